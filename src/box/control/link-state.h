/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What control-link.c, which has the life of a linked client, control-link-events.c and control-link-requests.c have in
 * common; nobody else knows it.
 */

#include "box/control/client.h"
#include "box/control/link.h"
#include "box/state/sandbox.h"

struct link_lost {
	uint64_t from, to, count; /* numbers of events, all but count 0 where there are none */
};

struct link {
	uint64_t mask;            /* bits 1 << enum link_event that it wants to hear */
	uint64_t next;            /* the number of its next event */
	uint32_t credit;
	bool was_announced, was_frozen, has_lost;
	bool own_commands;        /* of commands it hears those alone that are its own */
	uint64_t stop_ticket, change_ticket;
	uint64_t asks_ticket;     /* of LINK_ASKS, while there is nothing new behind client->told; 0: none */
	struct link_lost lost[LINK_EVENT_COUNT];
};

/* The buffer that all messages to linked clients are made in. */
struct buf *link_message(struct box *box);

/* A reply: begun, with fields put into what begin returns, and sent. Who does not take it is cut off. */
struct buf *link_reply_begin(struct client *client, uint64_t ticket, enum err_code code);
void link_reply_send(struct client *client, const int *fds, size_t fd_count);

/* Whole replies; the last one returns 0, for handlers. */
void link_reply_done(struct client *client, uint64_t ticket);
void link_reply_u64(struct client *client, uint64_t ticket, const char *key, uint64_t number);
int link_reply_error(struct client *client, uint64_t ticket, const struct err *err);

/* The same with an errno behind what; 0. */
int link_reply_errno(struct client *client, uint64_t ticket, const char *stage, int errnum, const char *what);

/* What fails without a reason of its own in err is the log, without which nothing may happen. */
int link_reply_failure(struct client *client, uint64_t ticket, int r, struct err *err);

/* Whether the sandbox is ending, which is answered then. */
bool link_is_ending(struct client *client, uint64_t ticket);

/* Handlers of link-commands.c: see struct frame_rule. */
int link_on_run(void *context, struct frame *frame, int *fds, size_t fd_count);
int link_on_kill(void *context, struct frame *frame, int *fds, size_t fd_count);
int link_on_commands(void *context, struct frame *frame, int *fds, size_t fd_count);
int link_on_attach(void *context, struct frame *frame, int *fds, size_t fd_count);
int link_on_resize(void *context, struct frame *frame, int *fds, size_t fd_count);
int link_on_close_input(void *context, struct frame *frame, int *fds, size_t fd_count);

/* What a watch of a client's tells: its fields, or NULL: it is gone. */
struct link_change {
	uint64_t watch;
	struct frame *fields;
};

/* Tells of changes that were left out, where there is credit enough. Whether more can be told. */
bool link_has_room_for_changes(struct client *client);

/* As an event; and its fields, once. */
void link_watch_changed(struct client *client, const struct link_change *change);
void link_put_change(struct buf *out, const struct link_change *change);

/* What the owner asks about files and ports inside (link-files.c): see struct frame_rule. */
int link_on_file(void *context, struct frame *frame, int *fds, size_t fd_count);

/* Tells of events that were left out, as far as there is credit and room. */
void link_send_lost(struct client *client);

/* Tells once that the sandbox lives, where the client wants to hear it. */
void link_announce_to(struct client *client);
