/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Refusals as people and agents read them: one structured record each with rule, reason and way out, equal
 * ones counted instead of repeated. Kept for the report, and appended to denials.jsonl, which the sandbox can
 * read.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "policy/decide.h"

enum { DENIALS_KEPT = 64, DENIAL_SUBJECT_MAX = 256, DENIAL_TEXT_MAX = 160, DENIALS_FILE_MAX = 1 << 20 };

struct denial {
	enum action_kind kind;
	char subject[DENIAL_SUBJECT_MAX]; /* escaped */
	char rule[64];
	char reason[DENIAL_TEXT_MAX], hint[DENIAL_TEXT_MAX];
	uint32_t episode;
	uint64_t count;
	uint64_t repeats; /* of them: further places at which one search looked for the same program */
};

/* Hears of each refusal, also of those that are not kept; but for the further places of one search. */
struct denial_observer {
	void (*refused)(void *context, const struct denial *denial); /* NULL: nobody */
	void *context;
};

struct denials {
	struct denial_observer observer;
	const struct policy *policy; /* which refusals a person could be asked about; borrowed, NULL: none */
	int fd; /* borrowed: denials.jsonl, O_APPEND */
	uint64_t file_bytes;
	uint64_t total; /* every refusal, also those that are not kept */
	uint64_t repeats; /* of them; for people one search is one refusal */
	uint64_t burst_ns; /* when the present ten seconds began */
	uint64_t burst, burst_max; /* refusals in them, without repeats; the most in any */
	size_t count;
	struct denial kept[DENIALS_KEPT];
};

/*
 * Adds one refusal; subject may hold hostile bytes. Equal ones of one episode (0 where there are none) are counted
 * instead of repeated. Negative when denials.jsonl could not be written.
 */
int denials_add(struct denials *denials, const struct action *action, const struct decision *decision,
		uint32_t episode) MUST_USE;

/* As denials_add(), for one more place of a search whose first refusal was added already. */
int denials_add_repeat(struct denials *denials, const struct action *action, const struct decision *decision) MUST_USE;

/* The report's "denials": an array of those that are kept, in the order of their first one. */
void denials_to_json(const struct denials *denials, struct json *json);
