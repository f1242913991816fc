/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Processes inside whose streams the front holds. Output goes to all clients that are connected; the only one holds it
 * up by not reading, of several a slow one is dropped, and where there is none it is read and thrown away, so that no
 * process stands still because its client has gone. Run by atoll-front.
 */

#include "service/front/stream.h"
#include "service/protocol/process.h"

struct front;
struct process;

/* A client's stream of a process. */
struct process_reader {
	struct process_reader *next;
	struct process *process;     /* NULL: not connected any more */
	struct stream stream;
};

/*
 * A process by a reply of SERVICE_EXEC or SERVICE_ATTACH, from which it takes the descriptors; token: what the launcher
 * accepted for it (NULL: none). One that is known already is found again and keeps its own. NULL: out of memory.
 */
struct process *process_open(struct front *front, const char *sandbox, const char *token,
			     struct service_message *reply);

/* The process that a selector means; NULL: it is not known here, or the token is not the one it was opened with. */
struct process *process_find(struct front *front, const char *sandbox, const char *token,
			     const struct process_selector *selector);

/* Connects a reader whose stream has begun; the first message says which process it is. */
void process_add_reader(struct process *process, struct process_reader *reader);

/* Disconnects one client; the process goes on, also without any. Nothing happens where it is not connected. */
void process_remove_reader(struct process_reader *reader);

/*
 * Writes to its standard input or terminal. 1: all of it; 0: *size was reduced to what was written, and waiter (NULL
 * for nobody) is called when there is room; -ENOENT: it has no such input; -EBUSY: too many wait; or another errno.
 */
int process_write(struct process *process, bool is_for_pty, const void *bytes, size_t *size) MUST_USE;

/* Who waits for room; removed by process_wait_no_more(). */
struct process_waiter {
	struct process_waiter *next;
	struct process *process;     /* NULL: does not wait */
	void (*ready)(void *context);/* there is room, or the process has gone */
	void *context;
};

/* -EBUSY: too many wait already. */
int process_wait(struct process *process, struct process_waiter *waiter) MUST_USE;
void process_wait_no_more(struct process_waiter *waiter);

/* Closes its standard input, where it has one that is no terminal. */
void process_close_input(struct process *process);

/* Events of the launcher: one has ended; a sandbox has gone. */
void process_on_exit(struct front *front, const struct service_message *event);
void process_on_gone(struct front *front, const char *sandbox);

/* Signs of life, and processes whose output nobody closes. */
void process_tick(struct front *front);

/* The last that a stream says of a process: how it ended, or that its deadline was over. */
void process_end_stream(struct stream *stream, const struct process_end *end);

/* How a process ended, of an event or a reply. */
struct process_end process_end_of(const struct service_message *message);
