/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Checks that an action log is whole: every record in its place, none altered, and, against an anchor kept
 * elsewhere, that the end is the end that was written. Reads bytes, not JSON, and needs no JSON library: a record
 * is known by its first members, its last one and its hash (doc/format/audit.md). It cannot tell who rewrote
 * a log with all its hashes: for that the anchor must come from a place that the writer of the log cannot reach.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"

enum audit_fault {
	AUDIT_FAULT_NONE,
	AUDIT_FAULT_TRUNCATED,   /* the last line has no newline */
	AUDIT_FAULT_SHAPE,       /* no record at all, or one that is too long */
	AUDIT_FAULT_VERSION,     /* another "v" */
	AUDIT_FAULT_SEQ,         /* deleted, repeated or moved: another record stands in its place */
	AUDIT_FAULT_SESSION,     /* of another session */
	AUDIT_FAULT_ALTERED,     /* the record after it was chained to other bytes */
	AUDIT_FAULT_LINK,        /* it was chained to another record than the one before it */
	AUDIT_FAULT_MISSING,     /* the log ends before the anchor: a dropped tail, or an older log */
	AUDIT_FAULT_EXTRA,       /* the log goes on behind the anchor */
	AUDIT_FAULT_AFTER_END,   /* behind session.end, where only review records may stand (append.h) */
	AUDIT_FAULT_HEAD,        /* as many records as the anchor says, but not the same */
	AUDIT_FAULT_COUNT,
};

/* One short name for each fault, for machines ("truncated", "seq", …). */
extern const char *const audit_fault_names[AUDIT_FAULT_COUNT];

/* What is known from elsewhere about the end of the log. Review records may have come behind it. */
struct audit_anchor {
	bool has_head, has_records;
	struct hash head;
	uint64_t records;
};

/* Reads "sha256:" and 64 lower-case hex digits. -EINVAL for anything else. */
int audit_anchor_parse_head(struct audit_anchor *anchor, const char *text) MUST_USE;

struct audit_result {
	enum audit_fault fault;
	uint64_t bad_record;     /* from 1: the first record that is not as it was written; 0 without a fault */
	uint64_t found_seq;      /* AUDIT_FAULT_SEQ: the number of the record that stands there */
	uint64_t records;        /* good records before the fault */
	uint64_t lines;          /* records in the file; meaningful for AUDIT_FAULT_MISSING and _EXTRA */
	struct hash head;        /* of the last record; meaningful without a fault */
	char session[16];        /* as the first record says */
	bool is_ended;           /* session.end is among the good records */
	uint64_t reviews;        /* good records behind session.end: what was done with the staged changes */
};

/*
 * The chain, one line at a time, for a log in pieces. Blame needs the line after: a record whose "prev" does not
 * match is suspected together with the one before it, and the next record decides which of the two was altered.
 */
struct audit_chain {
	struct audit_result result;
	struct hash suspect;     /* of the record whose link is wrong */
	bool has_suspect, is_done;
	uint64_t anchor_record;  /* the record that has the anchor's head; 0: not met on the way */
	struct audit_anchor anchor;
};

/* session: the id that all records must carry, or NULL for that of the first. anchor: or NULL. */
void audit_chain_init(struct audit_chain *chain, const char *session, const struct audit_anchor *anchor);

/* One line without its newline; is_whole is false for one that was cut off. Bytes after a fault are ignored. */
void audit_chain_put(struct audit_chain *chain, const char *line, size_t size, bool is_whole);

/* The end of the log. Returns 0 when it is whole, 1 when chain->result names a fault. */
int audit_chain_finish(struct audit_chain *chain) MUST_USE;

/* All of fd from its offset on. 0: whole; 1: *ret_result names the fault; -errno of the read. */
int audit_verify(int fd, const char *session, const struct audit_anchor *anchor,
		 struct audit_result *ret_result) MUST_USE;

/* One line for people about the result, without a newline. */
void audit_result_format(const struct audit_result *result, const struct audit_anchor *anchor, struct buf *out);
