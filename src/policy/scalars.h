/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Every single value of a policy, once: its key, its unit, where it is in struct policy and in a snapshot, which values
 * are tighter, and what is said of it. What reads, finishes, checks, prints, compares and stores policies walks these
 * rows. Rules, and values that only mean something together (cool-downs, verify), are none of them. A new one is a
 * field of struct policy, one of struct snapshot_scalars (with a new version), a name below and a row. Pure.
 */

#include "policy/policy.h"

enum scalar_unit {
	SCALAR_SWITCH,               /* bool */
	SCALAR_CHOICE,               /* an enum: names */
	SCALAR_BYTES,
	SCALAR_AMOUNT,               /* "512", "200k" */
	SCALAR_CPUS,                 /* thousandths */
	SCALAR_MS,
	SCALAR_ONE_IN,               /* 100 for "1/100" */
	SCALAR_NUMBER,               /* digits alone */
	SCALAR_TEXT,                 /* const char *; NULL: none */
	SCALAR_UNIT_COUNT,
};

/* Which values let happen less. Of a text: none (LESS), or one that is there (MORE). */
enum scalar_tighter { SCALAR_TIGHTER_NONE, SCALAR_TIGHTER_LESS, SCALAR_TIGHTER_MORE };

struct scalar_row {
	const char *section, *name;  /* "audit", "files" */
	enum scalar_unit unit;
	enum scalar_tighter tighter;
	uint16_t offset, size;       /* in struct policy; size 0: not there */
	uint16_t stored;             /* in struct snapshot_scalars, as 32 bits, or 64 where size is 8; 0: not there */
	uint16_t name_count;
	const char *const *names;    /* of a choice; NULL among them is none. Of a switch: in comparisons, or NULL */
	uint64_t unsaid;             /* where no text says it */
	uint64_t min, max;           /* of a number; max 0: from 1, or "unlimited" */
	const char *expected;        /* what is within them, in words; NULL where max is 0 */
	const char *why;             /* a project's file may not widen it: the reason; NULL: not checked alone */
	const char *json;            /* its name in JSON; NULL: name */
	const char *dimension;       /* of a difference; NULL: section */
	const char *subject;         /* of a difference; NULL: "section.name" */
	const char *meaning;         /* for whoever is inside; NULL: not said there */
};

enum scalar_id {
	SCALAR_NETWORK_DEFAULT,
	SCALAR_NETWORK_HOST,         /* becomes the network mode */
	SCALAR_EXEC_DEFAULT,
	SCALAR_NEW_BINARIES,
	SCALAR_NAMESPACES,
	SCALAR_RESOURCES,            /* RESOURCE_COUNT of them */
	SCALAR_DATA_SECRETS = SCALAR_RESOURCES + RESOURCE_COUNT,
	SCALAR_DATA_PII,
	SCALAR_DATA_INJECTION,
	SCALAR_DATA_OUTGOING,
	SCALAR_AUDIT_FILES,
	SCALAR_AUDIT_EXEC,
	SCALAR_AUDIT_NETWORK,
	SCALAR_STAGE_AUTO,
	SCALAR_STAGE_BACKEND,
	SCALAR_ASK_TIMEOUT,
	SCALAR_ASK_BELL,
	SCALAR_ASK_PROMPT,
	SCALAR_ASK_REVIEW,
	SCALAR_ASK_DESKTOP,
	SCALAR_ASK_WEBHOOK,
	SCALAR_ASK_WEBHOOK_KEY,
	SCALAR_ASK_WEBHOOK_KEY_FILE,
	SCALAR_ASK_WEBHOOK_ANSWERS,
	SCALAR_MONITOR_BASELINE,
	SCALAR_MONITOR_BUDGET,
	SCALAR_MONITOR_LEARN,
	SCALAR_MONITOR_UNUSUAL,
	SCALAR_MONITOR_CANARY,
	SCALAR_TRUST_AGENT,
	SCALAR_TRUST_START,
	SCALAR_TRUST_CEILING,
	SCALAR_TRUST_FLOOR,
	SCALAR_TRUST_RAISE,
	SCALAR_TRUST_ON_FALL,
	SCALAR_TRUST_HALF_LIFE,
	SCALAR_TRUST_SESSIONS,
	SCALAR_TRUST_AT,
	SCALAR_ROW_COUNT,
};

extern const struct scalar_row scalar_rows[SCALAR_ROW_COUNT];

/* The value of a row in a policy, and another one for it. Not of a text. */
uint64_t scalar_get(enum scalar_id id, const struct policy *policy);
void scalar_set(enum scalar_id id, struct policy *policy, uint64_t value);

enum { SCALAR_TEXT_SIZE = 32 };

/*
 * How it reads in policy text: "4GiB", "1h30m", "1.5", "unlimited", "true", "deny". In out, or borrowed; of a text the
 * text itself, NULL where there is none.
 */
const char *scalar_to_text(enum scalar_id id, const struct policy *policy, char out[SCALAR_TEXT_SIZE]);

/* The same for a value that is in no policy. Not of a text. */
const char *scalar_value_to_text(enum scalar_id id, uint64_t value, char out[SCALAR_TEXT_SIZE]);

/* Whether both policies have the same in all rows from first to last. */
bool scalars_equal(enum scalar_id first, enum scalar_id last, const struct policy *a, const struct policy *b);
