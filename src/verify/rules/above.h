/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What there is among all that flows into an operation, directly or through others: by it most conditions on what comes
 * in are answered without a search. It only ever rules out, as filter.h. Only for match.c. Pure.
 */

#include "verify/model/operation.h"
#include "verify/rules/filter.h"

struct above {
	struct filter_hits hits;
	uint32_t kinds;      /* bits of enum operation_kind */
	bool has_document;
};

/* above: one for each operation, zero. hits: of each operation, made. */
void above_find(struct above *above, const struct operations *operations, const struct filter_hits *hits);
