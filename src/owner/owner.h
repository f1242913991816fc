/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What whoever has a sandbox asks about its files and ports: one process of ours inside (atoll-files), the requests
 * that wait for it, and what the policy says of each path before anything happens. Nothing here waits for a file
 * system: a process that does is killed, and left to itself. Run by atoll-box.
 *
 * The folder has the box's half; the other one is prog/atoll-files/.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervise/peer.h"
#include "wire/files.h"

struct file_gate;
struct owner_job;
struct run;

enum { OWNER_JOBS_MAX = 64, OWNER_BYTES_MAX = 2 << 20, OWNER_MS = 4000, OWNER_IDLE_MS = 30000, OWNER_STUCK_MAX = 8 };

/* Of one remove, each of a second or less: what is not done after them fails with ENOTEMPTY, and can be asked again. */
enum { OWNER_TURNS_MAX = 600 };

struct owner_answer {
	int errnum;              /* 0: it was done */
	struct frame *fields;    /* borrowed: what is told of it; NULL: nothing */
	int *fd;                 /* what was opened: take_fd(); FD_NONE: nothing */
};

struct owner_asker {
	void (*done)(void *context, uint64_t ticket, enum files_operation operation, const struct owner_answer *answer);
	void *context;
	/* Of a watch; NULL fields: it is gone. */
	void (*changed)(void *context, uint64_t watch, struct frame *fields);
	uid_t uid;               /* for the log */
	pid_t pid;
};

struct owner_watch {
	uint64_t number;         /* 0: none */
	struct owner_asker asker;
};

struct owner {
	struct run *run;         /* borrowed, as gate; NULL: the sandbox does not live yet */
	struct file_gate *gate;
	int rules_fd;            /* owned: the sandbox's Landlock rules; FD_NONE: there are none */
	struct peer peer;
	struct owner_job *first, **last; /* owned; the first one is being done where is_asked */
	size_t count, bytes;
	bool is_asked;
	struct owner_watch watches[FILES_WATCHES_MAX];
	uint64_t next_ticket;
	unsigned stuck;          /* processes that could not be waited for */
};

/* Of a sandbox that lives from here on; rules_fd is taken. */
void owner_init(struct owner *owner, struct run *run, struct file_gate *gate, int rules_fd);

/*
 * Asks for one thing; asker->done is called once, later. -EAGAIN: too many wait; -ESHUTDOWN: the sandbox does not live;
 * -ENOMEM.
 */
int owner_ask(struct owner *owner, const struct files_request *request, uint64_t ticket,
	      const struct owner_asker *asker) MUST_USE;

/* Nothing of this asker's (its context) is told any more; what was begun is ended. */
void owner_forget(struct owner *owner, const void *context);

/* No process of it is left, but for one that waits for a file system. */
void owner_close(struct owner *owner);
