/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which names the gate gave addresses to lately, so that a connection to one can be written down at once. A few, and
 * only what the gate said: what is not known here, the gate asks about. Run by atoll-box.
 */

#include <stdint.h>

struct gate_name;

struct gate_names {
	struct gate_name *entries;   /* owned; NULL until there is one */
};

/* The address of this number stands for host from now on. Out of memory, nothing is known. */
void gate_names_learn(struct gate_names *names, uint32_t number, const char *host);

/* Borrowed until the next call of learn; NULL: not known. */
const char *gate_names_find(const struct gate_names *names, uint32_t number);
void gate_names_done(struct gate_names *names);
