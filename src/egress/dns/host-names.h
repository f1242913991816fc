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

struct host_names;

/* max: at most NAMES_MAX names at one time. NULL when out of memory. */
struct host_names *host_names_new(size_t max) MUST_USE;
void host_names_free(struct host_names *names);

/* Gives host (lower case, valid) its addresses (by number: synthetic_make()), those that it has if any. -ENOMEM. */
int host_names_assign(struct host_names *names, const char *host, uint32_t *ret_number) MUST_USE;

/* How often an address was taken from one name for another. */
uint64_t host_names_count_reused(const struct host_names *names);

/* Whose address this is (16 bytes, IPv4 mapped), and marks it as used; NULL: nobody's. Valid until the next give. */
const char *host_names_find(struct host_names *names, const uint8_t address[16]);
