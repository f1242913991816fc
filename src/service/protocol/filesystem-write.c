/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "service/protocol/connect.h"
#include "service/protocol/filesystem.h"
#include "service/protocol/time.h"

enum { NS_PER_MS = 1000000, PERMISSIONS_SIZE = 11 };

static const char *const types[] = {
	[SERVICE_FILE_OTHER] = "FILE_TYPE_UNSPECIFIED", [SERVICE_FILE_REGULAR] = "FILE_TYPE_FILE",
	[SERVICE_FILE_DIRECTORY] = "FILE_TYPE_DIRECTORY", [SERVICE_FILE_SYMLINK] = "FILE_TYPE_SYMLINK",
};

static const char *const changes[] = {
	"EVENT_TYPE_UNSPECIFIED", [SERVICE_CHANGE_CREATE] = "EVENT_TYPE_CREATE",
	[SERVICE_CHANGE_WRITE] = "EVENT_TYPE_WRITE", [SERVICE_CHANGE_REMOVE] = "EVENT_TYPE_REMOVE",
	[SERVICE_CHANGE_RENAME] = "EVENT_TYPE_RENAME", [SERVICE_CHANGE_CHMOD] = "EVENT_TYPE_CHMOD",
};

/* "-rw-r--r--", as Go's fs.FileMode has it. */
static void format_permissions(uint64_t type, uint64_t mode, char out[PERMISSIONS_SIZE])
{
	static const char kinds[] = "?-dL", bits[] = "rwxrwxrwx";

	out[0] = kinds[type & 3];
	for (unsigned i = 0; i < 9; i++)
		out[i + 1] = mode & 0400 >> i ? bits[i] : '-';
	out[10] = 0;
}

static void put_text(struct json *json, const char *name, const char *text)
{
	if (text)
		json_string(json, name, text);
}

static void put_metadata(struct json *json, const char *const *pairs)
{
	if (!strv_count(pairs))
		return;
	json_object_begin(json, "metadata");
	for (size_t i = 0; i + 1 < strv_count(pairs); i += 2)
		json_string(json, pairs[i], pairs[i + 1]);
	json_object_end(json);
}

/* path: where the file is. */
static void put_members_at(struct json *json, const char *name, const char *path, const struct service_message *values)
{
	uint64_t type = service_number(values, "type", 0), mode = service_number(values, "mode", 0);
	char permissions[PERMISSIONS_SIZE], time[TIME_SIZE], size[32];

	format_permissions(type, mode, permissions);
	time_format(service_number(values, "modified_ns", 0) / NS_PER_MS, time);
	json_object_begin(json, name);
	put_text(json, "name", service_string(values, "name"));
	json_string(json, "type", types[type < ARRAY_SIZE(types) ? type : 0]);
	put_text(json, "path", path);
	/* 64 bits are a string in proto3's JSON. */
	if (str_format(size, sizeof size, "%llu", (unsigned long long)service_number(values, "size", 0)) == 0)
		json_string(json, "size", size);
	json_u64(json, "mode", mode);
	json_string(json, "permissions", permissions);
	put_text(json, "owner", service_string(values, "owner"));
	put_text(json, "group", service_string(values, "group"));
	json_string(json, "modifiedTime", time);
	put_text(json, "symlinkTarget", service_string(values, "target"));
	put_metadata(json, service_strings(values, "metadata"));
	json_object_end(json);
}

static void put_members(struct json *json, const char *name, const struct service_message *values)
{
	put_members_at(json, name, service_string(values, "path"), values);
}

void filesystem_put_entry(struct buf *out, const struct service_message *values)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	put_members(&json, "entry", values);
	json_object_end(&json);
}

void filesystem_begin_list(struct buf *out)
{
	buf_put_text(out, "{\"entries\":[");
}

void filesystem_put_listed(struct buf *out, const struct service_message *row, size_t at)
{
	struct json json;

	if (at)
		buf_put_char(out, ',');
	json_init(&json, out);
	put_members(&json, NULL, row);
}

void filesystem_end_list(struct buf *out)
{
	buf_put_text(out, "]}");
}

static void put_message(struct buf *out, const char *text)
{
	size_t at = out->size;

	connect_envelope_begin(out);
	buf_put_text(out, text);
	connect_envelope_end(out, at, 0);
}

void filesystem_put_watching(struct buf *out)
{
	put_message(out, "{\"start\":{}}");
}

void filesystem_put_keepalive(struct buf *out)
{
	put_message(out, "{\"keepalive\":{}}");
}

static void put_event(struct json *json, const char *name, const struct service_message *event,
		      const char *directory)
{
	char path[PATH_MAX];
	uint64_t change = service_number(event, "change", 0);

	json_object_begin(json, name);
	put_text(json, "name", service_string(event, "below"));
	json_string(json, "type", changes[change < ARRAY_SIZE(changes) ? change : 0]);
	if (directory && service_string(event, "path") &&
	    path_join(path, sizeof path, directory, service_string(event, "path")) == 0)
		put_members_at(json, "entry", path, event);
	else if (service_string(event, "path"))
		put_members(json, "entry", event);
	json_object_end(json);
}

void filesystem_put_change(struct buf *out, const struct service_message *event, const char *directory)
{
	size_t at = out->size;
	struct json json;

	connect_envelope_begin(out);
	json_init(&json, out);
	json_object_begin(&json, NULL);
	put_event(&json, "filesystem", event, directory);
	json_object_end(&json);
	connect_envelope_end(out, at, 0);
}

void filesystem_put_event(struct buf *out, const struct service_message *event, const char *directory)
{
	struct json json;

	json_init(&json, out);
	put_event(&json, NULL, event, directory);
}

void filesystem_put_uploaded(struct buf *out, const struct service_message *values)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	put_text(&json, "path", service_string(values, "path"));
	put_text(&json, "name", service_string(values, "name"));
	json_string(&json, "type", "file");
	put_metadata(&json, service_strings(values, "metadata"));
	json_object_end(&json);
}
