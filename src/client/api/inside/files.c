/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "client/api/fault.h"
#include "client/api/inside/inside.h"
#include "client/api/record.h"
#include "wire/files.h"

/* Files as the sandbox sees them, and its ports: each is one request of wire/files.h. */

#define HAS(field) (1u << FILES_HAS_##field)

_Static_assert((int)ATOLL_OPEN_PARENTS == (int)FILES_OPEN_PARENTS && (int)ATOLL_OPEN_APPEND == (int)FILES_OPEN_APPEND &&
		       (int)ATOLL_STAT_ATTRIBUTES == (int)FILES_STAT_ATTRIBUTES &&
		       (int)ATOLL_WATCH_ENTRIES == (int)FILES_WATCH_ENTRIES, "flags are the same");

enum { WATCH_FLAGS = (ATOLL_WATCH_ENTRIES << 1) - 1 };

enum { OPEN_FLAGS = (ATOLL_OPEN_PARENTS << 1) - 1, STAT_FLAGS = (ATOLL_STAT_ATTRIBUTES << 1) - 1 };

static int check_path(const char *path, const char *where, struct atoll_error *error)
{
	if (!path || path[0] != '/')
		return fault_set(error, ATOLL_E_INVALID, 0, where, "the path is not absolute");
	return strlen(path) >= PATH_MAX ? fault_set(error, ATOLL_E_INVALID, 0, where, "the path is too long") : 0;
}

static int ask(atoll_sandbox *sandbox, const struct files_request *made, uint64_t *ticket, atoll_record **result,
	       struct atoll_error *error)
{
	const char *where = files_operation_names[made->operation];
	struct request request = { 0 };
	struct buf out;
	int r = sandbox_check(sandbox, error);

	if (r == 0 && made->set & HAS(PATH))
		r = check_path(made->path, where, error);
	if (r == 0 && made->set & HAS(TO))
		r = check_path(made->to, where, error);
	if (r == 0)
		r = sandbox_need(sandbox, 3, error);
	if (r < 0)
		return r;
	request.ticket = sandbox_begin(sandbox, &out, LINK_FILE);
	request.out = &out;
	files_request_put(&out, made);
	return sandbox_request(sandbox, &request, ticket, result, error);
}

static int check_kind(const atoll_record *record, uint32_t kind, const char *where, struct atoll_error *error)
{
	return !record || atoll_record_kind(record) == kind
		       ? 0 : fault_set(error, ATOLL_E_INVALID, 0, where, "the record is of another kind");
}

int atoll_open(atoll_sandbox *sandbox, const char *path, const atoll_record *how, uint64_t *ticket,
	       atoll_record **result, struct atoll_error *error)
{
	struct files_request request = { .operation = FILES_OPEN, .path = path, .flags = ATOLL_OPEN_READ,
					 .set = HAS(PATH) | HAS(FLAGS) };
	int r = check_kind(how, ATOLL_OPEN, "open", error);

	if (r < 0)
		return r;
	(void)record_u64(how, "flags", &request.flags);
	if (record_u64(how, "mode", &request.mode))
		request.set |= HAS(MODE);
	if (request.flags & ~(uint64_t)OPEN_FLAGS || request.mode > 0777)
		return fault_set(error, ATOLL_E_INVALID, 0, "open", "there are no such flags or no such mode");
	return ask(sandbox, &request, ticket, result, error);
}

int atoll_stat(atoll_sandbox *sandbox, const char *path, uint32_t flags, uint64_t *ticket, atoll_record **result,
	       struct atoll_error *error)
{
	const struct files_request request = { .operation = FILES_STAT, .path = path, .flags = flags,
					       .set = HAS(PATH) | HAS(FLAGS) };

	if (flags & ~(uint32_t)STAT_FLAGS)
		return fault_set(error, ATOLL_E_INVALID, 0, "stat", "there are no such flags");
	return ask(sandbox, &request, ticket, result, error);
}

int atoll_readdir(atoll_sandbox *sandbox, const char *path, const atoll_record *how, uint64_t *ticket,
		  atoll_record **result, struct atoll_error *error)
{
	struct files_request request = { .operation = FILES_READDIR, .path = path, .depth = 1,
					 .set = HAS(PATH) | HAS(DEPTH) | HAS(FROM) };
	uint64_t wants_attributes = 0;
	int r = check_kind(how, ATOLL_READDIR, "readdir", error);

	if (r < 0)
		return r;
	(void)record_u64(how, "depth", &request.depth);
	/* A box that is older than this library does not know the field, and needs it for nothing else. */
	if (record_u64(how, "with_attributes", &wants_attributes) && wants_attributes) {
		request.flags = FILES_STAT_ATTRIBUTES;
		request.set |= HAS(FLAGS);
	}
	(void)record_u64(how, "from", &request.from);
	if (!request.depth || request.depth > FILES_DEPTH_MAX || request.from > UINT32_MAX)
		return fault_set(error, ATOLL_E_INVALID, 0, "readdir", "\"depth\" is 1 to %d", FILES_DEPTH_MAX);
	return ask(sandbox, &request, ticket, result, error);
}

int atoll_mkdir(atoll_sandbox *sandbox, const char *path, uint32_t mode, uint64_t *ticket, atoll_record **result,
		struct atoll_error *error)
{
	const struct files_request request = { .operation = FILES_MKDIR, .path = path, .mode = mode,
					       .set = HAS(PATH) | HAS(MODE) };

	if (mode > 07777)
		return fault_set(error, ATOLL_E_INVALID, 0, "mkdir", "there is no such mode");
	return ask(sandbox, &request, ticket, result, error);
}

int atoll_move(atoll_sandbox *sandbox, const char *from, const char *to, uint64_t *ticket, atoll_record **result,
	       struct atoll_error *error)
{
	const struct files_request request = { .operation = FILES_MOVE, .path = from, .to = to,
					       .set = HAS(PATH) | HAS(TO) };

	return ask(sandbox, &request, ticket, result, error);
}

int atoll_remove(atoll_sandbox *sandbox, const char *path, uint32_t flags, uint64_t *ticket, atoll_record **result,
		 struct atoll_error *error)
{
	const struct files_request request = { .operation = FILES_REMOVE, .path = path, .flags = flags,
					       .set = HAS(PATH) | HAS(FLAGS) };

	if (flags & ~(uint32_t)ATOLL_REMOVE_RECURSIVE)
		return fault_set(error, ATOLL_E_INVALID, 0, "remove", "there are no such flags");
	return ask(sandbox, &request, ticket, result, error);
}

int atoll_setattr(atoll_sandbox *sandbox, const char *path, const atoll_record *attributes, uint64_t *ticket,
		  atoll_record **result, struct atoll_error *error)
{
	struct files_request request = { .operation = FILES_SETATTR, .path = path, .set = HAS(PATH) };
	const struct {
		const char *key;
		uint64_t *number;
		uint32_t bit;
		uint64_t most;
	} numbers[] = {
		{ "nofollow", &request.nofollow, HAS(NOFOLLOW), 1 }, { "mode", &request.mode, HAS(MODE), 07777 },
		{ "uid", &request.uid, HAS(UID), UINT32_MAX - 1 }, { "gid", &request.gid, HAS(GID), UINT32_MAX - 1 },
		{ "mtime_ns", &request.mtime_ns, HAS(MTIME), INT64_MAX },
	};
	const char *const *list;
	int r = check_kind(attributes, ATOLL_ATTRIBUTES, "setattr", error);

	if (r < 0 || !attributes)
		return r < 0 ? r : fault_set(error, ATOLL_E_INVALID, 0, "setattr", "there are no attributes");
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!record_u64(attributes, numbers[i].key, numbers[i].number))
			continue;
		request.set |= numbers[i].bit;
		if (*numbers[i].number > numbers[i].most)
			return fault_set(error, ATOLL_E_INVALID, 0, "setattr", "\"%s\" is too large", numbers[i].key);
	}
	if (atoll_get_strings(attributes, "attributes", &list)) {
		request.set |= HAS(ATTRIBUTES);
		request.attributes = (char **)list;
	}
	return ask(sandbox, &request, ticket, result, error);
}

int atoll_watch(atoll_sandbox *sandbox, const char *path, uint32_t flags, uint64_t *ticket, atoll_record **result,
		struct atoll_error *error)
{
	const struct files_request request = { .operation = FILES_WATCH, .path = path, .flags = flags,
					       .set = HAS(PATH) | HAS(FLAGS) };

	if (flags & ~(uint32_t)WATCH_FLAGS)
		return fault_set(error, ATOLL_E_INVALID, 0, "watch", "there are no such flags");
	return ask(sandbox, &request, ticket, result, error);
}

int atoll_unwatch(atoll_sandbox *sandbox, uint64_t watch, uint64_t *ticket, atoll_record **result,
		  struct atoll_error *error)
{
	const struct files_request request = { .operation = FILES_UNWATCH, .watch = watch, .set = HAS(WATCH) };

	if (!watch)
		return fault_set(error, ATOLL_E_INVALID, 0, "unwatch", "there is no such watch");
	return ask(sandbox, &request, ticket, result, error);
}

int atoll_connect(atoll_sandbox *sandbox, uint16_t port, uint32_t family, uint64_t *ticket, atoll_record **result,
		  struct atoll_error *error)
{
	const struct files_request request = { .operation = FILES_CONNECT, .port = port, .family = family,
					       .set = HAS(PORT) | HAS(FAMILY) };

	if (!port || (family != 0 && family != 4 && family != 6))
		return fault_set(error, ATOLL_E_INVALID, 0, "connect", "there is no such port or family");
	return ask(sandbox, &request, ticket, result, error);
}
