/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/inside/inside.h"

/* Commands that last: who they are, and streams of those that run. */

int atoll_commands(atoll_sandbox *sandbox, uint64_t after, uint64_t *ticket, atoll_record **result,
		   struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_attach(atoll_sandbox *sandbox, uint64_t command, const atoll_record *how, uint64_t *ticket,
		 atoll_record **result, struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_close_input(atoll_sandbox *sandbox, uint64_t command, uint64_t *ticket, atoll_record **result,
		      struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_rows(atoll_sandbox *sandbox, const atoll_record *result, atoll_cursor **ret, struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_update(atoll_sandbox *sandbox, const atoll_record *update, uint64_t *ticket, atoll_record **result,
		 struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}
