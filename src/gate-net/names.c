/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/names.h"

#include <stdlib.h>

#include "base/str.h"

/* Addresses are given in order: as many names as are in use at one time do not share a place. */
enum { ENTRIES = 64 };

struct gate_name {
	uint32_t number;             /* 0: none */
	char host[254];
};

void gate_names_learn(struct gate_names *names, uint32_t number, const char *host)
{
	struct gate_name *entry;

	if (!names->entries)
		names->entries = calloc(ENTRIES, sizeof *names->entries);
	if (!names->entries)
		return;
	entry = &names->entries[number % ENTRIES];
	entry->number = str_copy(entry->host, sizeof entry->host, host) < 0 ? 0 : number;
}

const char *gate_names_find(const struct gate_names *names, uint32_t number)
{
	const struct gate_name *entry = names->entries ? &names->entries[number % ENTRIES] : NULL;

	return entry && number && entry->number == number ? entry->host : NULL;
}

void gate_names_done(struct gate_names *names)
{
	free(names->entries);
	names->entries = NULL;
}
