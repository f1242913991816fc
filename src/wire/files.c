/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/files.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

const char *const files_operation_names[FILES_OPERATION_COUNT] = {
	[FILES_OPEN] = "open", [FILES_STAT] = "stat", [FILES_READDIR] = "readdir", [FILES_MKDIR] = "mkdir",
	[FILES_MOVE] = "move", [FILES_REMOVE] = "remove", [FILES_SETATTR] = "setattr", [FILES_WATCH] = "watch",
	[FILES_UNWATCH] = "unwatch", [FILES_CONNECT] = "connect",
};

#define HAS(field) (1u << FILES_HAS_##field)

static const struct {
	uint32_t must, may;
} operations[FILES_OPERATION_COUNT] = {
	[FILES_OPEN] = { HAS(PATH) | HAS(FLAGS), HAS(MODE) },
	[FILES_STAT] = { HAS(PATH), HAS(FLAGS) },
	[FILES_READDIR] = { HAS(PATH), HAS(FLAGS) | HAS(DEPTH) | HAS(FROM) },
	[FILES_MKDIR] = { HAS(PATH) | HAS(MODE), 0 },
	[FILES_MOVE] = { HAS(PATH) | HAS(TO), 0 },
	[FILES_REMOVE] = { HAS(PATH), HAS(FLAGS) },
	[FILES_SETATTR] = { HAS(PATH), HAS(NOFOLLOW) | HAS(MODE) | HAS(UID) | HAS(GID) | HAS(MTIME) | HAS(ATTRIBUTES) },
	[FILES_WATCH] = { HAS(PATH), HAS(FLAGS) },
	[FILES_UNWATCH] = { HAS(WATCH), 0 },
	[FILES_CONNECT] = { HAS(PORT), HAS(FAMILY) },
};

static const struct {
	const char *key;
	enum field_kind kind;
	size_t at;
	uint64_t least, most;
} fields[FILES_FIELD_COUNT] = {
#define NUMBER(field, least, most) FIELD_U64, offsetof(struct files_request, field), least, most
	[FILES_HAS_PATH] = { "path", FIELD_STRING, offsetof(struct files_request, path), 0, 0 },
	[FILES_HAS_TO] = { "to", FIELD_STRING, offsetof(struct files_request, to), 0, 0 },
	[FILES_HAS_FLAGS] = { "flags", NUMBER(flags, 0, 0xff) },
	[FILES_HAS_MODE] = { "mode", NUMBER(mode, 0, 07777) },
	[FILES_HAS_UID] = { "uid", NUMBER(uid, 0, UINT32_MAX - 1) },
	[FILES_HAS_GID] = { "gid", NUMBER(gid, 0, UINT32_MAX - 1) },
	[FILES_HAS_MTIME] = { "mtime_ns", NUMBER(mtime_ns, 0, INT64_MAX) },
	[FILES_HAS_NOFOLLOW] = { "nofollow", NUMBER(nofollow, 0, 1) },
	[FILES_HAS_DEPTH] = { "depth", NUMBER(depth, 1, FILES_DEPTH_MAX) },
	[FILES_HAS_FROM] = { "from", NUMBER(from, 0, UINT32_MAX) },
	[FILES_HAS_PORT] = { "port", NUMBER(port, 1, UINT16_MAX) },
	[FILES_HAS_FAMILY] = { "family", NUMBER(family, 0, 6) },
	[FILES_HAS_WATCH] = { "watch", NUMBER(watch, 1, UINT64_MAX) },
	[FILES_HAS_ATTRIBUTES] = { "attributes", FIELD_STRINGS, offsetof(struct files_request, attributes), 0, 0 },
#undef NUMBER
};

void files_request_put(struct buf *out, const struct files_request *request)
{
	frame_put_u32(out, request->operation);
	for (unsigned i = 0; i < FILES_FIELD_COUNT; i++) {
		const char *at = (const char *)request + fields[i].at;

		if (!(request->set & 1u << i))
			continue;
		if (fields[i].kind == FIELD_U64)
			field_put_u64(out, fields[i].key, *(const uint64_t *)(const void *)at);
		else if (fields[i].kind == FIELD_STRING)
			field_put_string(out, fields[i].key, *(const char *const *)(const void *)at);
		else
			field_put_strings(out, fields[i].key, *(const char *const *const *)(const void *)at);
	}
}

static bool is_path(const struct field *field)
{
	const char *text = field->bytes;

	return text[0] == '/' && field->size < PATH_MAX;
}

static bool are_attributes(char *const *list)
{
	size_t size = 0;

	for (; *list; list++) {
		const char *value = strchr(*list, '=');

		size += strlen(*list) + 1;
		if (!value || value == *list || value - *list > NAME_MAX - 5 || size > FILES_ATTRIBUTES_MAX)
			return false;
	}
	return true;
}

/* Takes what field has. */
static int set_field(struct files_request *request, struct field *field)
{
	unsigned i = 0;
	char *at;

	while (i < FILES_FIELD_COUNT && !str_equal(fields[i].key, field->key))
		i++;
	if (i == FILES_FIELD_COUNT || fields[i].kind != field->kind || request->set & 1u << i)
		return -EBADMSG;
	request->set |= 1u << i;
	at = (char *)request + fields[i].at;
	switch (field->kind) {
	case FIELD_U64:
		*(uint64_t *)(void *)at = field->number;
		return field->number < fields[i].least || field->number > fields[i].most ? -EBADMSG : 0;
	case FIELD_STRING:
		*(const char **)(void *)at = field->bytes;
		return is_path(field) ? 0 : -EBADMSG;
	default:
		request->attributes = field->strings;
		field->strings = NULL;
		return are_attributes(request->attributes) ? 0 : -EBADMSG;
	}
}

int files_request_get(struct frame *frame, struct files_request *ret_request)
{
	struct files_request request = { .operation = (enum files_operation)frame_get_u32(frame) };
	struct field field = { 0 };
	int r;

	while ((r = field_get(frame, &field)) == 1) {
		r = set_field(&request, &field);
		field_done(&field);
		if (r < 0)
			break;
	}
	if (r == 0 && (request.operation < FILES_OPEN || request.operation >= FILES_OPERATION_COUNT ||
		       (request.set & operations[request.operation].must) != operations[request.operation].must ||
		       request.set & ~(operations[request.operation].must | operations[request.operation].may)))
		r = -EBADMSG;
	if (r < 0) {
		free(request.attributes);
		return r;
	}
	*ret_request = request;
	return 0;
}

bool files_request_changes(const struct files_request *request)
{
	switch (request->operation) {
	case FILES_OPEN:
		return request->flags & ~(uint64_t)FILES_OPEN_READ;
	case FILES_MKDIR:
	case FILES_MOVE:
	case FILES_REMOVE:
	case FILES_SETATTR:
		return true;
	default:
		return false;
	}
}
