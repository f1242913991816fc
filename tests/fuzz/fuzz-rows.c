/* SPDX-License-Identifier: Apache-2.0 */
/* What atoll's programs print as rows, as libatoll reads it; names in it are a sandbox's choice. */
#include <stddef.h>
#include <stdint.h>

#include "client/api/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t kinds[] = { ATOLL_CHANGE, ATOLL_PROBLEM, ATOLL_SNAPSHOT };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct rows rows = { 0 };

		(void)!rows_from_json(&rows, kinds[i], (const char *)data, size);
		rows_done(&rows);
	}
	return 0;
}
