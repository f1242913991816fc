/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How the agent of this session stands (trust/rules.h), while it runs: what is seen of it goes into its record, the log
 * first; and when its level falls, by what happens here, in another session of it or by a person, the policy's
 * `trust.on_fall` is done. Sessions without an agent have none of it and pay nothing. Run by atoll-box.
 */

#include "base/cleanup.h"
#include "supervise/cooldown.h"
#include "supervise/hub.h"
#include "supervise/loop.h"
#include "supervise/module.h"
#include "trust/store.h"

struct buf;
struct reactions;
struct run;
struct err;

/* What `atoll run` found and compiled the policy for; in the request. All borrowed. */
struct run_agent {
	const char *agent;           /* NULL: nobody's record counts, and only the confidence did something */
	enum trust_level level;      /* that the policy was compiled for */
	struct trust_bounds bounds;
	const char *lent_by;         /* "token 3f2a…", "policy system"; NULL: nothing was lent */
};

/*
 * A run that came to nothing with less than its policy has: adds to the hint of *err that this may be why, and the way
 * out. Nothing where there is no agent, or it has all of it.
 */
void agent_trust_blame(const struct run_agent *agent, struct err *err);

/* The same sentence for people, without an end; false: there is nothing to say. */
bool agent_trust_put_blame(const struct run_agent *agent, struct buf *out);

enum { AGENT_TRUST_EVENTS_MAX = 64, AGENT_TRUST_NEWS_MAX = AGENT_TRUST_EVENTS_MAX + 1, AGENT_TRUST_CAUSE_SIZE = 160 };

/* What was seen while somebody else held the record. */
struct agent_trust_news {
	enum trust_event event;
	char cause[TRUST_CAUSE_SIZE];
};

struct agent_trust {
	struct run *run;
	const struct reactions *reactions;
	const char *agent;           /* NULL: there is none, or the session has not begun */
	enum trust_level level;      /* that holds now */
	enum trust_fault fault;
	bool was_bad, is_lent_over;
	bool must_react, is_narrowed, is_frozen; /* the policy's answer to a fall: due; done */
	unsigned events;             /* bad ones that were kept; of more only the first lasting one is */
	bool has_lasting;
	struct agent_trust_news *waiting; /* owned; AGENT_TRUST_NEWS_MAX of them; NULL: none ever waited */
	size_t waiting_count;
	uint64_t waiting_since_ns, retry_ns; /* CLOCK_MONOTONIC */
	char cause[AGENT_TRUST_CAUSE_SIZE]; /* of the last fall, escaped; "" */
	enum trust_level fell_to;
	struct cooldown burst;
	int watch_fd;
	struct loop_source source;   /* of the directory of records */
	bool has_begun;
	struct subscriber subscriber;
};

/*
 * The narrow way in for whoever sees something in this session: one of the events of trust/rules.h that are bad, and
 * what it was, for people (any bytes; cut and escaped). It is in the log and in the record when this returns, unless
 * another session holds the record: then the loop writes it as soon as it can, and what cannot be written for seconds
 * ends the sandbox. What follows from it is done from the loop. Nothing happens in a session without an agent.
 * Negative: it could not be written, and the sandbox must end.
 */
int agent_trust_note(struct agent_trust *agent, enum trust_event event, const char *cause) MUST_USE;

/* The level that holds now: the policy's where the session has no agent. For gates that ask more of some. */
enum trust_level agent_trust_level(const struct agent_trust *agent);

/* Whether everything stands still since the agent fell, until a person says more. */
bool agent_trust_holds_still(const struct agent_trust *agent);

/* The session begins, and is in the record as one that has not ended. Negative with box->run.err. */
int agent_trust_begin(struct agent_trust *agent) MUST_USE;

/* It ends: clean, or not. Negative with box->run.err. */
int agent_trust_end(struct agent_trust *agent, bool has_failed) MUST_USE;

/* standing-narrow.c: the network without what levels above this one give. 1: there is nothing to take away. */
int agent_trust_narrow(struct agent_trust *agent, enum trust_level level, bool asks) MUST_USE;

/* The network as the session began with it. */
int agent_trust_widen(struct agent_trust *agent) MUST_USE;

/* Its state is a struct agent_trust: writes what waited for the record, and does what a fall or a rise leads to. */
extern const struct module agent_trust_module;
