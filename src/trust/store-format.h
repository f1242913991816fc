/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The bytes of an agent's record and of what vouches for it (doc/format/trust.md). Private to src/trust/. Pure; what is
 * parsed is believed in nothing.
 */

#include "base/buf.h"
#include "trust/store.h"

enum { TRUST_FILE_MAX = 64 << 10 };

/* The end of a record, kept elsewhere. */
struct trust_witness {
	char magic[8];
	uint64_t seq;
	struct hash head;            /* of the chain up to there */
	struct hash check;           /* of what stands before, and of the agent's name */
};

/* The chain before the first entry, and with one more. */
void trust_chain_begin(struct hash *chain, const char *agent);
void trust_chain(struct hash *chain, const struct trust_entry *entry);

/* The whole file; errors are in out. */
void trust_file_format(const struct trust_book *book, struct buf *out);

/* Fills what a file says: settings, entries (owned), base. -EBADMSG, -ENOMEM. book->agent: whose it must be. */
int trust_file_parse(const char *bytes, size_t size, struct trust_book *book) MUST_USE;

/* Fills it in: bound to the agent by a hash over its name, so that it belongs to no other agent's record. */
void trust_witness_make(struct trust_witness *witness, const char *agent, uint64_t seq, const struct hash *head);

/* Copies bytes into *ret_witness where they are one that was made for this agent; -EBADMSG for anything else. */
int trust_witness_check(const char *bytes, size_t size, const char *agent, struct trust_witness *ret_witness) MUST_USE;
