/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * By what rule the trust level of an agent moves: a table of events, a strain that they add up to and that decays, and
 * thresholds with hysteresis. Pure: no clock, no file. The record of an agent is store.h's, who reacts is the box.
 *
 *   level = what was granted, less one for each threshold that the strain has crossed; not below the policy's floor
 *
 * Two things hold for every state, event and time (tests/unit/trust/test-rules.c tries them all): an event that is bad
 * never raises the level, and of two agents the one that stood better before stands no worse after the same event.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/policy.h"

/* Numbers of the format of the record: they never change. */
enum trust_event {
	TRUST_BEGUN = 1,             /* a session begins: what has decayed counts from here on */
	TRUST_CLEAN,                 /* it ended by itself, and nothing bad was seen in it */
	TRUST_ENDED,                 /* it ended in another way, or something was seen: neither good nor bad */
	TRUST_KILLED,                /* its supervisor was killed */
	TRUST_DENIALS,               /* a burst of refusals */
	TRUST_INJECTION,             /* a prompt injection was found in what it read: nothing looks for one yet */
	TRUST_CANARY,                /* a canary was touched, or was about to leave */
	TRUST_VERIFIER,              /* a verifier refused what it wanted to run */
	TRUST_LIMIT,                 /* a limit was hit */
	TRUST_ALERT,                 /* an anomaly */
	TRUST_RAISED,                /* by a person, to a level */
	TRUST_LOWERED,               /* by a person, to a level */
	TRUST_RESET,                 /* by a person: the record begins again */
	TRUST_LENT,                  /* a token or a task raises it for one session */
	TRUST_CARRIED,               /* a session that goes on while older entries are forgotten */
	TRUST_RECALLED,              /* what moved the level, said again for the same reason; moves nothing */
	TRUST_EVENT_END,
};

/* Strain is counted in thousandths of a point. */
enum {
	TRUST_POINT = 1000,
	TRUST_STEP = 60 * TRUST_POINT,      /* the level falls by one with each of these */
	TRUST_HYSTERESIS = 40 * TRUST_POINT, /* and comes back only when it is so far below */
	TRUST_STRAIN_MAX = 300 * TRUST_POINT,
};

struct trust_rule {
	const char *name;            /* in the record's listing and the log: "deny-burst" */
	const char *words;           /* for people: "a burst of refusals" */
	uint32_t weight;             /* points of strain */
	bool is_bad;                 /* only lowers */
	bool is_lasting;             /* nothing but a person takes it back: the grant falls to the floor */
};

extern const struct trust_rule trust_rules[TRUST_EVENT_END];

struct trust_state {
	bool has_grant;              /* false: nobody has judged this agent; the policy's start counts */
	enum trust_level granted;
	uint32_t drop;               /* how many levels the strain has taken */
	uint32_t strain;             /* at the time strain_s, when it last grew */
	uint64_t strain_s;           /* CLOCK_REALTIME */
	uint32_t clean;              /* clean sessions in a row since the grant */
};

/* The state after the event. level: of TRUST_RAISED and TRUST_LOWERED; for others not looked at. */
struct trust_state trust_step(const struct trust_state *state, const struct trust_settings *settings,
			      enum trust_event event, enum trust_level level, uint64_t now_s);

/* The level that the state comes to under these settings: between floor and ceiling. */
enum trust_level trust_level_of(const struct trust_state *state, const struct trust_settings *settings);

/* What is left of the strain at that time; no time passes backwards. */
uint32_t trust_strain_at(const struct trust_state *state, const struct trust_settings *settings, uint64_t now_s);

struct trust_bounds {
	enum trust_level policy;     /* the level that the policy has without any of this */
	enum trust_level lent;       /* TRUST_NONE: nothing */
	enum trust_level confidence; /* TRUST_FULL: the caller says nothing */
};

/*
 * What a run may have: the level of its agent or what it was lent, whichever is higher, but no more than the ceiling,
 * the policy, and what its caller is confident of.
 */
enum trust_level trust_effective(const struct trust_settings *settings, enum trust_level level,
				 const struct trust_bounds *bounds);

/* From the caller's confidence, in thousandths, to the most that a run may have. Larger never gives less. */
enum trust_level trust_confidence_level(uint32_t confidence);

/* "low", "medium", "high", or a number from 0 to 1 with up to three digits behind the point. -EINVAL. */
int trust_confidence_parse(const char *text, uint32_t *ret_confidence);

/* How many of this event in a row at this time change the level; 0: as many as you like do not. */
unsigned trust_count_until(const struct trust_state *state, const struct trust_settings *settings,
			   enum trust_event event, uint64_t now_s, enum trust_level *ret_level);

/* When, if nothing happens, a session that begins has a higher level; 0: by waiting alone it does not rise. */
uint64_t trust_recovers_at(const struct trust_state *state, const struct trust_settings *settings, uint64_t now_s);
