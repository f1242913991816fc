/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/fault.h"
#include "client/api/inside/inside.h"

/* Files as the sandbox sees them. */

int inside_not_yet(const struct atoll_sandbox *sandbox, struct atoll_error *error)
{
	int r = sandbox_check(sandbox, error);

	return r < 0 ? r : fault_set(error, ATOLL_E_UNSUPPORTED, 0, "session", "this is not served yet");
}

int atoll_open(atoll_sandbox *sandbox, const char *path, const atoll_record *how, uint64_t *ticket,
	       atoll_record **result, struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_stat(atoll_sandbox *sandbox, const char *path, uint32_t flags, uint64_t *ticket, atoll_record **result,
	       struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_readdir(atoll_sandbox *sandbox, const char *path, const atoll_record *how, uint64_t *ticket,
		  atoll_record **result, struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_mkdir(atoll_sandbox *sandbox, const char *path, uint32_t mode, uint64_t *ticket, atoll_record **result,
		struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_move(atoll_sandbox *sandbox, const char *from, const char *to, uint64_t *ticket, atoll_record **result,
	       struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_remove(atoll_sandbox *sandbox, const char *path, uint32_t flags, uint64_t *ticket, atoll_record **result,
		 struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_setattr(atoll_sandbox *sandbox, const char *path, const atoll_record *attributes,
		  uint64_t *ticket, atoll_record **result, struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_watch(atoll_sandbox *sandbox, const char *path, uint32_t flags, uint64_t *ticket, atoll_record **result,
		struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_unwatch(atoll_sandbox *sandbox, uint64_t watch, uint64_t *ticket, atoll_record **result,
		  struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}

int atoll_connect(atoll_sandbox *sandbox, uint16_t port, uint32_t family, uint64_t *ticket, atoll_record **result,
		  struct atoll_error *error)
{
	return inside_not_yet(sandbox, error);
}
