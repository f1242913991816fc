/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside box/ only: the desk as gate.c, which runs it, and judge.c, which judges what it passes on, share it.
 * Made when something inside first connects; run by atoll-box.
 */

#include <stdint.h>

#include "supervise/loop.h"
#include "supervise/peer.h"
#include "supervise/snapshot-job.h"
#include "wire/desk.h"

struct queue;
struct run;
struct runtime_mounts;

enum {
	DESK_PENDING_MAX = 64,       /* requests that wait for a person */
	DESK_KEPT_MAX = 64,          /* requests that can be waited for again by the number of their question */
	DESK_BURST = 40,             /* requests at once, and */
	DESK_REFILL_MS = 100,        /* one more each */
	DESK_STARTS_MAX = 8,         /* of the program after it fell */
	DESK_DEAF_MS = 60000,        /* no paths are looked at for so long after a file system did not answer */
};

struct access_pending {
	uint32_t id;                 /* 0: free */
	uint32_t question;
	uint32_t kind;
	char *path;                  /* real, of files; owned, NULL: none */
};

struct access_kept {
	uint32_t question;
	void *frame;                 /* DESK_WANT as it came; owned */
	size_t size;
};

/* A token that atoll-token looks at. */
struct access_token {
	uint32_t id;                 /* of the request; 0: there is none */
	struct peer peer;
	uint64_t free_ns;            /* the next one is looked at from then on */
};

/* The checkpoint that is being taken. */
struct access_checkpoint {
	uint32_t id;                 /* of the request; 0: there is none */
	struct snapshot_job job;
	uint64_t started_ns, free_ns; /* the next one is taken from free_ns on */
};

struct access_gate {
	struct run *run;
	struct queue *queue;         /* of questions */
	struct runtime_mounts *mounts; /* what was granted and brought in */
	int listen_fd;               /* owned */
	struct loop_source listen_source;
	struct peer peer;            /* atoll-desk */
	struct access_pending pending[DESK_PENDING_MAX];
	struct access_kept kept[DESK_KEPT_MAX];
	size_t kept_next;
	uint64_t tokens, refilled_ns, deaf_until_ns;
	struct access_token token;
	struct access_checkpoint checkpoint;
};

/* What the desk may say (judge.c), to a struct access_gate. */
enum { DESK_RULE_COUNT = 7 };
extern const struct frame_rule access_gate_rules[DESK_RULE_COUNT];

/* Nobody waits at the desk any more. */
void access_gate_forget(struct access_gate *gate);

/* Sends what is in the run's out to the gate, if there is one; one that does not read is ended. */
void access_gate_send(struct access_gate *gate);
