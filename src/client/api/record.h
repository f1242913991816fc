/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Records of libatoll: values by key, each of one kind (atoll.h), and the one table of keys. What comes from another
 * process is added by record_add_field(), where a key that this library does not know is kept: a box may be newer.
 */

#include <stdbool.h>

#include "atoll.h"
#include "base/cleanup.h"
#include "wire/field.h"

enum { RECORD_STRING_MAX = 1 << 20, RECORD_STRINGS_MAX = 64 << 10 };

struct key {
	uint64_t kinds;          /* bits 1 << kind */
	const char *name;
	uint32_t type;
	const char *text;
};

/* NULL: records of this kind have no such key. */
const struct key *key_find(uint32_t kind, const char *name);

/* NULL: no memory. Of any kind. */
struct atoll_record *record_new(uint32_t kind) MUST_USE;

/* Of this library's own making: 0, or -ENOMEM. A record that is NULL takes nothing: -ENOMEM. */
int record_put_u64(struct atoll_record *record, const char *key, uint64_t number) MUST_USE;
int record_put_bytes(struct atoll_record *record, const char *key, const void *bytes, size_t size) MUST_USE;
int record_put_string(struct atoll_record *record, const char *key, const char *text) MUST_USE;

/* Takes the descriptor in any case. */
int record_put_fd(struct atoll_record *record, const char *key, int fd) MUST_USE;

/* A field of a frame but a descriptor. -ENOMEM. */
int record_add_field(struct atoll_record *record, const struct field *field) MUST_USE;

/*
 * Writes all values into a frame that was begun; descriptors as indices from *fd_count on, which are added to fds
 * (borrowed, fd_max of them). -E2BIG: there are more. skip: keys that stay here, NULL-terminated, or NULL.
 */
int record_put_fields(const struct atoll_record *record, const char *const *skip, struct buf *out, int *fds,
		      size_t fd_max, size_t *fd_count) MUST_USE;

/* NULL where it is not set; the record may be NULL. */
const char *record_string(const struct atoll_record *record, const char *key);
bool record_u64(const struct atoll_record *record, const char *key, uint64_t *ret);

/* Whether it is set, of whatever type; record may be NULL. */
bool record_has(const struct atoll_record *record, const char *key);

/* Borrowed; FD_NONE where there is none. */
int record_fd(const struct atoll_record *record, const char *key);
