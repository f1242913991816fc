/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What stands inside a sandbox in the place of a secret: random text of the same shape, so that a program which looks
 * at its key before it uses it starts. Tells of the secret its length, which public prefix it begins with, where it
 * has separators, and which classes of characters occur in it; nothing else. Run by atoll-secret.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum {
	PLACEHOLDER_MAX = 1024,      /* a longer secret has one of this length */
	PLACEHOLDER_RANDOM_MIN = 16, /* characters by chance: nobody writes them by accident, or guesses them */
	PLACEHOLDER_KEY_SIZE = 32,
};

/*
 * Whose it is. A program that remembers its key, or asks whether it may be used, shall see the same one in each run of
 * a project; another project has another. The characters come from the key, and never from the value.
 */
struct placeholder_of {
	const uint8_t *key;          /* PLACEHOLDER_KEY_SIZE random bytes that nobody inside can know: the vault's */
	const char *project, *name;
};

/*
 * The one for the size bytes of value into out, NUL-terminated. It differs from value, and is longer than it where
 * that has less than PLACEHOLDER_RANDOM_MIN letters and digits. sodium_init() must have been called.
 */
void placeholder_make(const struct placeholder_of *of, const uint8_t *value, size_t size,
		      char out[PLACEHOLDER_MAX + 1]);
