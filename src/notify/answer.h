/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a webhook answers: one JSON object, read strictly (doc/format/notify.md). Whether it is about what was asked is
 * not looked at here. Run by atoll-notify.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "wire/asking.h"

enum { ANSWER_MAX = 4096, ANSWER_USES_MAX = 1000000, ANSWER_SECONDS_MAX = 30 * 86400 };

struct answer {
	uint32_t question;
	uint8_t hash[ASKING_HASH_SIZE];
	bool is_allowed;
	enum asking_scope scope;     /* not ASKING_FOREVER */
	uint64_t amount;             /* as asking_reply has it */
};

/* Before the process confines itself: jansson seeds its tables. */
void answer_prepare(void);

/* -EINVAL with *ret_why, a few static words. */
int answer_parse(const void *bytes, size_t size, struct answer *ret_answer, const char **ret_why) MUST_USE;
