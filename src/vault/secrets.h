/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The secrets of a user while they are in the clear: a sorted table of names and values in memory that is locked,
 * guarded, left out of core files and wiped (sodium_malloc), and its bytes (doc/format/vault.md). Pure; run by
 * atoll-secret alone. It knows neither files nor keys.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/secret-name.h"

enum {
	SECRET_VALUE_MAX = 16 << 10,
	SECRETS_MAX = 256,
	SECRETS_BYTES_MAX = 1 << 20,        /* of the whole table as secrets_format() writes it */
};

struct secret {
	char name[SECRET_NAME_SIZE];
	uint64_t made_s, changed_s;         /* CLOCK_REALTIME */
	uint32_t size;                      /* 1 … SECRET_VALUE_MAX */
	uint8_t *value;                     /* owned, from sodium_malloc() */
};

struct secrets {
	size_t count;
	struct secret items[SECRETS_MAX];   /* by name, each name once */
};

/* An empty table, or NULL when out of memory. sodium_init() must have been called. Freed by secrets_free(). */
struct secrets *secrets_new(void) MUST_USE;
void secrets_free(struct secrets *secrets);

static inline void cleanup_secrets_(struct secrets **secrets)
{
	secrets_free(*secrets);
}
#define cleanup_secrets __attribute__((cleanup(cleanup_secrets_)))

/* NULL when there is none of this name. Borrowed until the table changes. */
const struct secret *secrets_find(const struct secrets *secrets, const char *name);

/*
 * Adds or replaces; value is copied. 0, or 1 when it replaced one. -EINVAL (name, or a size out of range), -EDQUOT
 * (SECRETS_MAX or SECRETS_BYTES_MAX), -ENOMEM: nothing was changed then.
 */
int secrets_set(struct secrets *secrets, const char *name, const void *value, size_t size, uint64_t now_s) MUST_USE;

/* -ENOENT when there is none of this name. */
int secrets_remove(struct secrets *secrets, const char *name) MUST_USE;

/* -ENOENT, -EEXIST when there is one of the new name, -EINVAL when that is no name. The dates stay. */
int secrets_rename(struct secrets *secrets, const char *name, const char *new_name, uint64_t now_s) MUST_USE;

/* The table as bytes in *ret_bytes, owned by the caller, freed with sodium_free(). -ENOMEM. */
int secrets_format(const struct secrets *secrets, uint8_t **ret_bytes, size_t *ret_size) MUST_USE;

/*
 * A table from bytes; every byte must be used, names valid and in order. -EBADMSG when it is none, -ENOMEM. Freed by
 * secrets_free().
 */
int secrets_parse(const uint8_t *bytes, size_t size, struct secrets **ret_secrets) MUST_USE;

/* How long a value is, roughly, so that a list can say it: "1-16", "17-64", … bytes. Static. */
const char *secret_size_class(uint32_t size);
