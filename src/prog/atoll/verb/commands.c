/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/verb/commands.h"

static int visit_rows(atoll_sandbox *sandbox, const atoll_record *result,
		      int (*visit)(void *context, atoll_record *row), void *context, struct err *err)
{
	cleanup_cursor atoll_cursor *cursor = NULL;
	struct atoll_error error = LIBRARY_ERROR;
	atoll_record *row;
	int r = atoll_rows(sandbox, result, &cursor, &error);

	if (r < 0)
		return library_fail(&error, err);
	while ((r = library_next(cursor, &row, err)) == 1) {
		r = visit(context, row);
		atoll_record_free(row);
		if (r < 0)
			return r;
	}
	return r;
}

int commands_visit(atoll_sandbox *sandbox, int (*visit)(void *context, atoll_record *row), void *context,
		   struct err *err)
{
	uint64_t after = 0;
	int r;

	do {
		cleanup_record atoll_record *result = NULL;
		struct atoll_error error = LIBRARY_ERROR;

		r = atoll_commands(sandbox, after, NULL, &result, &error);
		if (r < 0)
			return library_fail(&error, err);
		after = library_number(result, "next");
		r = visit_rows(sandbox, result, visit, context, err);
	} while (r == 0 && after);
	return r;
}
