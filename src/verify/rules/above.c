/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/rules/above.h"

#include <string.h>

#include "base/str.h"

/* Most flows come from what stands before, so that one pass does; more are for loops, and files written later. */
enum { PASSES = 8 };

static bool join(struct above *above, const struct operation *from, const struct filter_hits *hits,
		 const struct above *further)
{
	struct above before = *above;

	for (size_t i = 0; i < ARRAY_SIZE(above->hits.bits); i++)
		above->hits.bits[i] |= hits->bits[i] | further->hits.bits[i];
	above->kinds |= 1U << from->kind | further->kinds;
	above->has_document |= from->document || further->has_document;
	return memcmp(&before, above, sizeof before) != 0;
}

static bool join_flows(struct above *above, const struct operations *operations, const struct filter_hits *hits,
		       uint32_t index)
{
	const struct flow *flows = operations->flows.items;
	bool has_changed = false;

	for (uint32_t at = operations_get(operations, index)->first_flow; at; at = flows[at - 1].next) {
		uint32_t from = flows[at - 1].from;

		has_changed |= join(&above[index], operations_get(operations, from), &hits[from], &above[from]);
	}
	return has_changed;
}

void above_find(struct above *above, const struct operations *operations, const struct filter_hits *hits)
{
	uint32_t count = (uint32_t)operations_count(operations);
	bool has_changed = true;

	for (unsigned pass = 0; has_changed && pass < PASSES; pass++) {
		has_changed = false;
		for (uint32_t i = 0; i < count; i++)
			has_changed |= join_flows(above, operations, hits, i);
	}
	/* Where it does not settle, everything may be there. */
	for (uint32_t i = 0; has_changed && i < count; i++)
		above[i] = (struct above){ .kinds = UINT32_MAX, .has_document = true };
	for (uint32_t i = 0; has_changed && i < count; i++)
		filter_note_all(&above[i].hits);
}
