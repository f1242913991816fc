/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A client that speaks of more than one thing at a time (wire/link.h): its requests, and the events that it hears. The
 * sandbox never waits for one: an event for which it has no credit, or no room in its socket, is counted and told of
 * later, and a client that does not take its replies is cut off. Used by control.c, and by what has events to tell.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/link.h"

struct audit_event;
struct box;
struct client;
struct command;
struct err;

/* LINK_HELLO, and LINK_SUBSCRIBE behind it, where they came otherwise. -EPROTO, -EBADMSG, -ENOMEM: it is cut off. */
int link_greet(struct client *client, uint32_t lowest, uint32_t highest) MUST_USE;
int link_subscribe(struct client *client, uint64_t events) MUST_USE;

/* LINK_HELLO, for the table of control.c: see struct frame_rule. */
int link_on_hello(void *context, struct frame *frame, int *fds, size_t fd_count);

/* What a client said after that: see frame_dispatch(). */
int link_dispatch(struct client *client);

/* Whether its next message must not be heard yet. */
bool link_must_wait(const struct client *client, uint16_t type, bool is_spawning);

/* Answers who follows questions, where there is something new. */
void link_tell_questions(struct client *client);

/* It has hung up, or the sandbox has ended and it was told so. */
void link_free(struct client *client);

/* Makes those who subscribe hear of records of the log and of refusals. Before the first of them. */
void link_prepare(struct box *box);

/*
 * READY, once for each client that subscribed, and for one that subscribes later: init answers, and every wall stands.
 * Its command may not have begun yet (LINK_EVENT_STARTED).
 */
void link_announce(struct box *box);

/* A command goes on its way: master_fd (borrowed) is for who asked for it alone; FD_NONE. */
void link_command_started(struct box *box, const struct command *command, int master_fd);
void link_command_stopped(struct box *box, const struct command *command, uint32_t signal_number);
void link_command_ended(struct box *box, const struct command *command, const char *ended, int lost_errno);

/* Tells who did not hear of it yet whether everything inside stands still. Once a turn of the loop. */
void link_check(struct box *box);

/* The last word to a client. */
void link_conclude(struct client *client);
