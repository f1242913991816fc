/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The secrets of one sandbox while the gate has them: taken from the socket that atoll-secret filled, kept in memory of
 * their own, which is locked as far as the limit allows, left out of core files and wiped. Nothing here can write one
 * anywhere. Runs in atoll-egress.
 */

#include "base/err.h"
#include "egress/credentials/inject.h"
#include "egress/credentials/owner-headers.h"
#include "egress/credentials/scan.h"
#include "policy/policy.h"

struct gate_secret {
	const char *name, *value, *placeholder;   /* NUL-terminated, in the locked memory */
	size_t size;                              /* of value */
	bool is_canary;                           /* planted: nothing stands for it, and who sends it is not told */
	unsigned parts_seen;                      /* requests that had a long part of it */
	bool has_come_in;                         /* a part of it, with an answer: it is not put in any more */
};

/* All zero: there are none. */
struct gate_secrets {
	struct gate_secret items[POLICY_SECRETS_MAX + POLICY_CANARY_FILES_MAX];
	size_t count;
	struct owner_headers headers;             /* not of the policy */
	struct injection *injections;             /* owned: each rule that injects, with its value */
	size_t injection_count;
	struct scanner *scanner;                  /* owned; words as below */
	uint32_t long_words;                      /* too long to be masked: only their beginning is known */
	void *memory;
	size_t memory_size;
};

/* The words of the scanner: secret number i, and what stands inside in its place. */
#define SECRET_WORD(i) (i)
#define PLACEHOLDER_WORD(i) (16 + (i))
#define SECRET_WORDS UINT32_C(0x0000ffff)

_Static_assert(POLICY_SECRETS_MAX + POLICY_CANARY_FILES_MAX <= 16 &&
	       PLACEHOLDER_WORD(POLICY_SECRETS_MAX) <= SCAN_WORDS_MAX, "words are bits");

/*
 * Takes all that the policy names from GATE_SECRETS_FD, and what it has planted from GATE_CANARIES_FD, which hold them
 * already and are closed. Negative with *err: one is missing, or
 * cannot be put where its rule wants it (said before anything runs). Before the process confines itself.
 */
int gate_secrets_load(struct gate_secrets *ret_secrets, const struct policy *policy, struct err *err) MUST_USE;
void gate_secrets_done(struct gate_secrets *secrets);

/* The number of the secret of this name, or -1. */
int gate_secrets_find(const struct gate_secrets *secrets, const char *name);
