/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One connection to the control socket, shared by control.c, which has the socket and the table of messages, and
 * control-questions.c, which answers what is about questions; nobody else knows it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervise/freeze.h"
#include "supervise/loop.h"
#include "wire/frame.h"

struct box;
struct command;
struct err;
struct link;

enum client_state {
	CLIENT_NEW, CLIENT_CHANGING, CLIENT_EXEC, CLIENT_STOPPING, CLIENT_FREEZING, CLIENT_ASKING, CLIENT_DONE,
	CLIENT_REFUSED, CLIENT_LINK
};

struct client {
	struct box *box;
	int fd;
	uid_t uid;
	pid_t pid;
	enum client_state state;
	bool is_deferred; /* its EXEC waits in the socket */
	struct loop_source source;
	struct command *command;
	struct freeze_holder freeze; /* while it takes a snapshot */
	bool is_follower; /* it hears of questions */
	bool is_owed;	  /* and waits for the next one after: */
	uint64_t told;	  /* queue_generation() */
	struct link *link; /* owned (control-link.h); NULL: it speaks of one thing */
};

/*
 * Never waits: everything inside would, whose system calls the box answers. What a client does not read is kept by its
 * socket; one that lets that fill loses its connection. r: of the frame in box->run.out.
 */
void client_reply(struct client *client, int r, const int *fds, size_t fd_count);
void client_reply_u32(struct client *client, uint16_t type, uint32_t value);
void client_reply_error(struct client *client, const struct err *err);

/* Asks all commands to end, and ends the sandbox when they have or after so long. */
void control_stop(struct box *box, uint32_t grace_ms);

/* Why freeze_begin() did not, for who asked. */
void control_freeze_error(const struct box *box, int r, struct err *err);

/* Handlers of control-questions.c: see struct frame_rule. */
int client_on_asks(void *context, struct frame *frame, int *fds, size_t fd_count);
int client_on_answer(void *context, struct frame *frame, int *fds, size_t fd_count);
int client_on_grants(void *context, struct frame *frame, int *fds, size_t fd_count);
int client_on_token(void *context, struct frame *frame, int *fds, size_t fd_count);
int client_on_revoke(void *context, struct frame *frame, int *fds, size_t fd_count);

/* Tells who follows what is new, if anything is. */
void client_tell_questions(struct client *client);
