/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "service/protocol/filesystem.h"
#include "service/protocol/value.h"

enum { DEPTH_MAX = 1000 };

enum member_kind { MEMBER_PATH, MEMBER_BOOL, MEMBER_DEPTH };

struct member {
	const char *name;            /* NULL ends a list */
	enum member_kind kind;
	const char *key;
};

static const struct member path_members[] = { { "path", MEMBER_PATH, "path" }, { NULL } };
static const struct member move_members[] = {
	{ "source", MEMBER_PATH, "from" }, { "destination", MEMBER_PATH, "to" }, { NULL } };
static const struct member list_members[] = {
	{ "path", MEMBER_PATH, "path" }, { "depth", MEMBER_DEPTH, "depth" }, { NULL } };
static const struct member watch_members[] = {
	{ "path", MEMBER_PATH, "path" }, { "recursive", MEMBER_BOOL, "recursive" },
	{ "includeEntry", MEMBER_BOOL, "entries" }, { "allowNetworkMounts", MEMBER_BOOL, "network_mounts" }, { NULL } };

static const struct member *members_of(enum service_operation operation)
{
	switch (operation) {
	case SERVICE_MOVE:
		return move_members;
	case SERVICE_READDIR:
		return list_members;
	case SERVICE_WATCH:
		return watch_members;
	default:
		return path_members;
	}
}

static int put_path(const json_t *object, const struct member *member, struct buf *out,
		    char why[FILESYSTEM_WHY_SIZE])
{
	const char *path = "";
	int r = value_string(object, member->name, &path, why);

	if (r < 0)
		return r;
	/* Absent is the default of proto3, which names the user's home. */
	field_put_string(out, member->key, *path ? path : "~");
	return 0;
}

static int put_bool(const json_t *object, const struct member *member, struct buf *out,
		    char why[FILESYSTEM_WHY_SIZE])
{
	bool is_set = false;
	int r = value_bool(object, member->name, &is_set, why);

	if (r > 0)
		field_put_u64(out, member->key, is_set);
	return r;
}

static int put_depth(const json_t *object, const struct member *member, struct buf *out,
		     char why[FILESYSTEM_WHY_SIZE])
{
	uint64_t depth = 0;
	int r = value_number(object, member->name, UINT32_MAX, &depth, why);

	if (r >= 0)
		field_put_u64(out, member->key, !depth ? 1 : depth < DEPTH_MAX ? depth : DEPTH_MAX);
	return r;
}

int filesystem_read(enum service_operation operation, const void *json, size_t size, struct buf *out,
		    char why[FILESYSTEM_WHY_SIZE])
{
	static int (*const put[])(const json_t *object, const struct member *member, struct buf *out,
				  char why[FILESYSTEM_WHY_SIZE]) = {
		[MEMBER_PATH] = put_path, [MEMBER_BOOL] = put_bool, [MEMBER_DEPTH] = put_depth,
	};
	const struct member *member = members_of(operation);
	json_t *object;
	int r = value_parse(json, size, &object, why);

	if (r < 0)
		return r;
	for (; r >= 0 && member->name; member++)
		r = put[member->kind](object, member, out, why);
	json_decref(object);
	return r < 0 ? r : buf_error(out);
}

int filesystem_read_watcher(const void *json, size_t size, char *out, size_t out_size,
			    char why[FILESYSTEM_WHY_SIZE])
{
	const char *id = "";
	json_t *object;
	int r = value_parse(json, size, &object, why);

	if (r < 0)
		return r;
	r = value_string(object, "watcherId", &id, why);
	if (r >= 0 && (!*id || str_copy(out, out_size, id) < 0)) {
		if (str_copy(why, FILESYSTEM_WHY_SIZE, "\"watcherId\" names no watcher") < 0)
			why[0] = 0;
		r = -EINVAL;
	}
	json_decref(object);
	return r < 0 ? r : 0;
}
