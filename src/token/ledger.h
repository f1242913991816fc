/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is remembered of tokens here: how often each was presented, which are revoked, which were minted. One file that
 * is replaced whole under a lock and is on the disk before anybody acts on it, so that two who present the same token
 * at once, or a power cut, cannot use it twice. Of what has expired nothing is kept. Run by atoll-token.
 */

#include "base/err.h"
#include "token/check.h"
#include "token/chain.h"

enum { LEDGER_ENTRIES_MAX = 16384 };

enum { LEDGER_REVOKED = 1 << 0, LEDGER_MINTED = 1 << 1 };

/* What is known of one block of a token, and so of every token that begins with it. */
struct ledger_entry {
	struct token_id id;
	uint64_t made_s, expires_s;      /* made_s: LEDGER_MINTED; expires_s UINT64_MAX: not known */
	uint32_t used, flags;            /* LEDGER_* */
};

struct ledger {
	int dir_fd, lock_fd;             /* dir_fd borrowed */
	struct ledger_entry *entries;    /* owned */
	size_t count;
};

/* Reads it, without the lock: for those who only look. ledger_close() in any case. An empty one where there is none. */
int ledger_open(struct ledger *ledger, int dir_fd, struct err *err) MUST_USE;

/* The same, and keeps others from changing it until ledger_close(). */
int ledger_begin(struct ledger *ledger, int dir_fd, struct err *err) MUST_USE;

/* Writes it, without what has expired; on the disk when it returns. Between ledger_begin() and ledger_close(). */
int ledger_store(struct ledger *ledger, uint64_t now_s, struct err *err) MUST_USE;
void ledger_close(struct ledger *ledger);

/* NULL: nothing is known of it. */
struct ledger_entry *ledger_find(const struct ledger *ledger, const struct token_id *id);

/* The same, and makes one where there is none; NULL: there is no room, or no memory. */
struct ledger_entry *ledger_note(struct ledger *ledger, const struct token_id *id, uint64_t expires_s);

/* TOKEN_FINE, TOKEN_REVOKED or TOKEN_USED_UP. */
enum token_fault ledger_judge(const struct ledger *ledger, const struct token *token);

/* Counts one more use of each block that counts them. -EDQUOT: no room. Between begin and store. */
int ledger_count_use(struct ledger *ledger, const struct token *token) MUST_USE;
