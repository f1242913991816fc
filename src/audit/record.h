/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a line of the log must look like to be a record, as far as the chain needs it. Bytes, not JSON: the first
 * members and the last one have fixed places (doc/format/audit.md). Within audit/ only.
 */

#include <stddef.h>
#include <stdint.h>

#include "audit/verify.h"

struct audit_record {
	uint64_t seq;
	const char *session;   /* SESSION_ID_SIZE - 1 bytes, in the line */
	const char *type;      /* in the line */
	size_t type_size;
	struct hash prev, own;
};

/* AUDIT_FAULT_NONE, _SHAPE or _VERSION. line: without its newline. */
enum audit_fault audit_record_parse(struct audit_record *ret_record, const char *line, size_t size) MUST_USE;

/* 64 lower-case hex digits. */
bool audit_hash_from_hex(struct hash *ret_hash, const char *hex);
