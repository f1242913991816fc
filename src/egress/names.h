/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The addresses that allowed names have inside: one of 198.18.0.0/15 (RFC 2544, routed nowhere) and one of our own
 * ULA prefix for each, so that the address of a later connection names its host exactly. Bounded: the name that was
 * not used for the longest time loses its address first. Resolves nothing. Pure. Runs in atoll-egress.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum { NAMES_MAX = 32768 };

struct names;

/* max: at most NAMES_MAX names at one time. NULL when out of memory. */
struct names *names_new(size_t max) MUST_USE;
void names_free(struct names *names);

/* Gives host (lower case, valid) its addresses (by number: synthetic_make()), those that it has if any. -ENOMEM. */
int names_give(struct names *names, const char *host, uint32_t *ret_number) MUST_USE;

/* How often an address was taken from one name for another. */
uint64_t names_count_reused(const struct names *names);

/* Whose address this is (16 bytes, IPv4 mapped), and marks it as used; NULL: nobody's. Valid until the next give. */
const char *names_find(struct names *names, const uint8_t address[16]);
