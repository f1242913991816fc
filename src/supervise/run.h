/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What every module of a box may know of the run that it serves: what was asked for, the policy, the log, the loop and
 * the processes inside; and how a run ends. Owned by box/, which alone fills it in; a module keeps a pointer to it
 * beside its own state and looks into no other module's. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "limit/limit.h"
#include "os/pidref.h"
#include "session/run-request.h"

struct audit_writer;
struct err;
struct freeze;
struct hub;
struct loop;
struct peer;
struct policy;
struct refusals;
struct run_policy;
struct run_request;
struct watch;
struct watch_options;

/* Why the sandbox ended; the first reason stays. */
enum ended {
	ENDED_NOT,
	ENDED_EXIT,
	ENDED_SIGNAL,
	ENDED_TIME,
	ENDED_MEMORY,
	ENDED_DISK,
	ENDED_OUTPUT,
	ENDED_POLICY,
	ENDED_STOPPED,
	ENDED_COUNT,
};

extern const char *const ended_names[ENDED_COUNT];

enum { RUN_HITS_MAX = 16, RUN_HIT_SIZE = 64, RUN_STAGES_MAX = 24 };

struct run_stage {
	const char *name;
	uint64_t ns;
};

/* What the report shows of a run's course. */
struct run_course {
	char hits[RUN_HITS_MAX][RUN_HIT_SIZE]; /* limits that were hit, by policy key */
	size_t hit_count;
	struct run_stage stages[RUN_STAGES_MAX];
	size_t stage_count;
	uint64_t stage_started_ns;
};

/* What box/ does where a module has the run end. */
struct run_owner {
	void (*kill)(void *context); /* everything inside */
	void *context;
};

struct run {
	const struct run_request *request;
	const struct run_policy *policy;
	const struct policy *network_policy; /* that holds for the network at present; policy-change alone sets it */
	struct hash policy_hash;
	struct err *err; /* where a failure is explained */
	struct audit_writer *audit;
	struct loop *loop;
	struct hub *hub; /* what gates see, for who listens */
	struct refusals *refusals;
	struct freeze *freeze;
	struct peer *peers; /* companions that have a process (peer.h) */
	struct watch *watch;		      /* NULL: the jail does not stand yet */
	const struct watch_options *identity; /* of who is inside; filled once the jail stands */
	struct limit_group *limits;	      /* NULL: not made yet, or gone */
	struct pidref init;
	struct buf out, scratch; /* frames to and from init and clients; what stands in them lasts until the next use */
	struct limit_usage usage; /* as last read */
	uint64_t output_bytes;
	uint32_t missing; /* walls that the policy lets be missing */
	enum ended ended;
	bool is_dead;	  /* PID 1 is gone, and so is everything else inside */
	bool is_stopping; /* somebody asked for the end; what runs has time to leave */
	struct run_course course;
	struct run_owner owner;
};

/* Ends the sandbox for this reason (the first one stays) and kills everything inside. */
void run_end(struct run *run, enum ended why);

/* The moment a stage ends: its name (kept) and the time since the last one go into the report. */
void run_stage(struct run *run, const char *name);

/* The same for a stage that ran beside another, where its time is known. Dropped beyond RUN_STAGES_MAX. */
void run_stage_add(struct run *run, const char *name, uint64_t ns);

/* Notes that a limit (a policy key) was hit: once a kind in the report, and a record in the log. Negative: the log
 * failed. */
int run_limit_hit(struct run *run, const char *limit, uint64_t value) MUST_USE;

/* The same for limits that are in the way again and again: a record each time. */
int run_limit_episode(struct run *run, const char *limit, uint64_t value) MUST_USE;

/* Ends the run where the log that the sandbox causes goes beyond what it may take of the disk. Negative: the
 * log failed. */
int run_check_log_size(struct run *run) MUST_USE;
