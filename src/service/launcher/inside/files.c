/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/inside/files.h"

#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "service/launcher/call/await.h"
#include "service/launcher/store/user.h"

/* Attributes of files that are a client's begin so, behind "user.". */
static const char own_prefix[] = "e2b.";

enum { MODE_FILE = 0644, MODE_DIRECTORY = 0755, ATTRIBUTES_MAX = 64, METADATA_MAX = 32, ROW_HEAD = 64 };

/* ---- what is said of a file ---- */

static uint64_t type_of(const char *name)
{
	static const struct {
		const char *name;
		enum service_file_type type;
	} types[] = {
		{ "file", SERVICE_FILE_REGULAR }, { "directory", SERVICE_FILE_DIRECTORY },
		{ "symlink", SERVICE_FILE_SYMLINK },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (str_equal(types[i].name, name))
			return types[i].type;
	return SERVICE_FILE_OTHER;
}

static void put_number(struct buf *out, const char *key, const atoll_record *from, const char *its_key)
{
	uint64_t number;

	if (atoll_get_u64(from, its_key, &number))
		field_put_u64(out, key, number);
}

/*
 * NAME=value of the client's own become name, value, … A program inside may set more and longer ones than a client:
 * what a reply cannot have is left out, for else it would hide the whole directory.
 */
static void put_metadata(struct buf *out, const atoll_record *entry)
{
	const char *pairs[2 * METADATA_MAX + 1] = { NULL }, *const *attributes;
	char names[METADATA_MAX][256];
	size_t count = 0;

	if (!atoll_get_strings(entry, "attributes", &attributes))
		return;
	for (; *attributes && count < METADATA_MAX; attributes++) {
		const char *equals = strchr(*attributes, '='), *name = *attributes + strlen(own_prefix);

		if (!equals || !str_has_prefix(*attributes, own_prefix) || strlen(equals + 1) > SERVICE_TEXT_MAX ||
		    str_format(names[count], sizeof names[count], "%.*s", (int)(equals - name), name) < 0)
			continue;
		pairs[2 * count] = names[count];
		pairs[2 * count + 1] = equals + 1;
		count++;
	}
	if (count)
		field_put_strings(out, "metadata", pairs);
}

/* Where a link leads, absolute, as clients expect it: by the words alone. */
static void put_target(struct buf *out, const char *link, const char *target)
{
	char directory[PATH_MAX], path[PATH_MAX];
	const char *name = path_basename(link);

	if (target && str_format(directory, sizeof directory, "%.*s", (int)(name - link), link) == 0 &&
	    path_join(path, sizeof path, directory, target) == 0)
		field_put_string(out, "target", path);
	else
		field_put_string(out, "target", target);
}

void files_put_entry(struct buf *out, const atoll_record *entry, const char *path)
{
	const char *text, *type = "";
	const void *target;
	size_t size;

	atoll_get_string(entry, "file_type", &type);
	field_put_string(out, "name", path_basename(path));
	field_put_u64(out, "type", type_of(type));
	field_put_string(out, "path", path);
	put_number(out, "size", entry, "size");
	put_number(out, "mode", entry, "mode");
	put_number(out, "modified_ns", entry, "mtime_ns");
	if (atoll_get_string(entry, "owner", &text))
		field_put_string(out, "owner", text);
	if (atoll_get_string(entry, "group", &text))
		field_put_string(out, "group", text);
	if (atoll_get_bytes(entry, "target", &target, &size) && !memchr(target, 0, size)) {
		cleanup_free char *copy = strndup(target, size);

		put_target(out, path, copy);
	}
	put_metadata(out, entry);
}

/* ---- paths ---- */

/* The absolute path of a value; false: it was answered. */
static bool find_path(struct call *call, const char *key, char out[PATH_MAX])
{
	struct err err = { 0 };

	if (call_check_user(call, &err) < 0) {
		call_fail_err(call, 401, &err);
		return false;
	}
	if (user_path(call_string(call, key), out, &err) < 0) {
		call_fail_err(call, 400, &err);
		return false;
	}
	return true;
}

/* Of a call whose path was found good before. */
static const char *path_again(const struct call *call, const char *key, char out[PATH_MAX])
{
	return user_path(call_string(call, key), out, NULL) == 0 ? out : "/";
}

/* What failed is said with the path as the client wrote it. */
static void fail(struct call *call, const struct outcome *outcome)
{
	const char *path = call_string(call, "path");
	char what[600], shown[ERR_QUOTE_SIZE];

	if (outcome->code != ATOLL_E_NOT_FOUND || !path) {
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
		return;
	}
	if (str_format(what, sizeof what, "path not found: %s", err_quote(shown, path)) < 0)
		what[0] = 0;
	call_fail_atoll(call, outcome->code, what, "");
}

static void reply_entry(struct call *call, const char *key, const atoll_record *entry)
{
	char path[PATH_MAX];

	files_put_entry(call_begin_reply(call, 200), entry, path_again(call, key, path));
	call_end_reply(call, NULL, 0);
}

/* ---- one file ---- */

static void opened(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	char path[PATH_MAX];
	struct buf *out;
	int fd;

	if (outcome->code) {
		fail(call, outcome);
		return;
	}
	fd = atoll_take_fd(outcome->result, "file");
	out = call_begin_reply(call, 200);
	if (fd >= 0)
		field_put_fd(out, "file", 0);
	files_put_entry(out, outcome->result, path_again(call, "path", path));
	call_end_reply(call, &fd, fd >= 0);
}

void files_open(struct call *call)
{
	bool writes = call_number(call, "write", 0) != 0;
	struct atoll_error error = { .size = sizeof error };
	atoll_record *how;
	char path[PATH_MAX];
	uint64_t ticket = 0;
	int r;

	if (!find_path(call, "path", path))
		return;
	how = atoll_record_new(ATOLL_OPEN);
	r = how ? atoll_set_u64(how, "flags", writes ? ATOLL_OPEN_WRITE | ATOLL_OPEN_CREATE | ATOLL_OPEN_TRUNCATE |
				ATOLL_OPEN_PARENTS : ATOLL_OPEN_READ, &error) : ATOLL_E_NO_MEMORY;
	if (r == 0 && writes)
		r = atoll_set_u64(how, "mode", call_number(call, "mode", MODE_FILE), &error);
	if (r == 0)
		r = atoll_open(call->sandbox->handle, path, how, &ticket, NULL, &error);
	atoll_record_free(how);
	await_answer(call->sandbox, call, r, ticket, &error, opened);
}

static void stated(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (outcome->code)
		fail(call, outcome);
	else
		reply_entry(call, call->message->operation == SERVICE_MOVE ? "to" : "path", outcome->result);
}

static void ask_stat(struct call *call, const char *key, await_done *done)
{
	struct atoll_error error = { .size = sizeof error };
	char path[PATH_MAX];
	uint64_t ticket = 0;
	int r = atoll_stat(call->sandbox->handle, path_again(call, key, path),
			   ATOLL_STAT_NOFOLLOW | ATOLL_STAT_ATTRIBUTES, &ticket, NULL, &error);

	await_answer(call->sandbox, call, r, ticket, &error, done);
}

void files_stat(struct call *call)
{
	char path[PATH_MAX];

	if (find_path(call, "path", path))
		ask_stat(call, "path", stated);
}

/* What is there already: a directory is no news, anything else is in the way. */
static void there_already(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	const char *type = "";

	if (outcome->code) {
		fail(call, outcome);
		return;
	}
	atoll_get_string(outcome->result, "file_type", &type);
	if (type_of(type) == SERVICE_FILE_DIRECTORY)
		call_fail(call, 409, NULL, "directory already exists: %s", call_string(call, "path"));
	else
		call_fail(call, 400, NULL, "path already exists but it is not a directory: %s",
			  call_string(call, "path"));
}

/* Made, moved or changed: its values now. */
static void changed(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (outcome->code == ATOLL_E_EXISTS && call->message->operation == SERVICE_MKDIR)
		ask_stat(call, "path", there_already);
	else if (outcome->code)
		fail(call, outcome);
	else
		ask_stat(call, call->message->operation == SERVICE_MOVE ? "to" : "path", stated);
}

void files_mkdir(struct call *call)
{
	struct atoll_error error = { .size = sizeof error };
	char path[PATH_MAX];
	uint64_t ticket = 0;
	int r;

	if (!find_path(call, "path", path))
		return;
	r = atoll_mkdir(call->sandbox->handle, path, MODE_DIRECTORY, &ticket, NULL, &error);
	await_answer(call->sandbox, call, r, ticket, &error, changed);
}

void files_move(struct call *call)
{
	struct atoll_error error = { .size = sizeof error };
	char from[PATH_MAX], to[PATH_MAX];
	uint64_t ticket = 0;
	int r;

	if (!find_path(call, "from", from) || !find_path(call, "to", to))
		return;
	r = atoll_move(call->sandbox->handle, from, to, &ticket, NULL, &error);
	await_answer(call->sandbox, call, r, ticket, &error, changed);
}

/* What is not there is what was wanted: os.RemoveAll of the clients' own server says so, too. */
static void removed(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (outcome->code && outcome->code != ATOLL_E_NOT_FOUND)
		fail(call, outcome);
	else
		call_reply(call, 204);
}

void files_remove(struct call *call)
{
	struct atoll_error error = { .size = sizeof error };
	char path[PATH_MAX];
	uint64_t ticket = 0;
	int r;

	if (!find_path(call, "path", path))
		return;
	r = atoll_remove(call->sandbox->handle, path, ATOLL_REMOVE_RECURSIVE, &ticket, NULL, &error);
	await_answer(call->sandbox, call, r, ticket, &error, removed);
}

/* name, value, … become NAME=value. ATOLL_E_INVALID: a name that cannot be one. */
static int set_attributes(atoll_record *record, const char *const *metadata, struct atoll_error *error)
{
	char *list[ATTRIBUTES_MAX + 1] = { NULL };
	int r = 0;

	for (size_t i = 0; r == 0 && metadata[2 * i]; i++) {
		bool is_wrong = i == ATTRIBUTES_MAX || !*metadata[2 * i] || strchr(metadata[2 * i], '=');

		list[i] = is_wrong ? NULL : str_printf("%s%s=%s", own_prefix, metadata[2 * i], metadata[2 * i + 1]);
		r = is_wrong ? ATOLL_E_INVALID : list[i] ? 0 : ATOLL_E_NO_MEMORY;
	}
	if (r == 0)
		r = atoll_set_strings(record, "attributes", (const char *const *)list, error);
	for (size_t i = 0; list[i]; i++)
		free(list[i]);
	return r;
}

void files_setattr(struct call *call)
{
	const char *const *metadata = service_strings(call->message, "metadata");
	struct atoll_error error = { .size = sizeof error,
	.what = "a name of metadata is not one, or they are too many" };
	atoll_record *attributes;
	char path[PATH_MAX];
	uint64_t ticket = 0;
	int r = 0;

	if (!find_path(call, "path", path))
		return;
	attributes = atoll_record_new(ATOLL_ATTRIBUTES);
	if (!attributes)
		r = ATOLL_E_NO_MEMORY;
	if (r == 0 && metadata)
		r = set_attributes(attributes, metadata, &error);
	if (r == 0 && service_get(call->message, "mode"))
		r = atoll_set_u64(attributes, "mode", call_number(call, "mode", 0), &error);
	if (r == 0)
		r = atoll_setattr(call->sandbox->handle, path, attributes, &ticket, NULL, &error);
	atoll_record_free(attributes);
	await_answer(call->sandbox, call, r, ticket, &error, changed);
}

/* ---- directories ---- */

/* False: it does not fit behind the others; it has a longer path here than in the box's own row. */
static bool put_row(struct call *call, const atoll_record *entry, const char *directory)
{
	struct buf *row = &call->daemon->row;
	char below[PATH_MAX], path[PATH_MAX];
	const void *bytes;
	size_t size;

	/* A name with a NUL in it is none; one that is too long cannot be asked for either. */
	if (!atoll_get_bytes(entry, "path", &bytes, &size) || memchr(bytes, 0, size) ||
	    str_format(below, sizeof below, "%.*s", (int)size, (const char *)bytes) < 0 ||
	    path_join(path, sizeof path, directory, below) < 0)
		return true;
	service_begin_row(row);
	files_put_entry(row, entry, path);
	if (call->rows.size && call->rows.size + row->size + ROW_HEAD > CALL_ROWS_MAX)
		return false;
	service_put_row(&call->rows, row);
	return true;
}

static void read_done(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	atoll_cursor *rows = NULL;
	char directory[PATH_MAX], number[24];
	atoll_record *entry;
	uint64_t next = 0, at = 0;
	bool fits = true;
	struct buf *out;

	if (outcome->code || atoll_rows(sandbox->handle, outcome->result, &rows, NULL) < 0) {
		fail(call, outcome);
		return;
	}
	path_again(call, "path", directory);
	(void)!num_parse_u64(call_string(call, "next") ? call_string(call, "next") : "0", &at);
	while (fits && atoll_cursor_next(rows, &entry, NULL) == 1) {
		fits = put_row(call, entry, directory);
		at += fits;
		atoll_record_free(entry);
	}
	atoll_cursor_free(rows);
	out = call_begin_reply(call, 200);
	buf_put(out, call->rows.bytes, call->rows.size);
	if (fits)
		atoll_get_u64(outcome->result, "next", &next);
	else
		next = at;
	if (next &&
	    str_format(number, sizeof number, "%llu", (unsigned long long)next) == 0)
		field_put_string(out, "next", number);
	call_end_reply(call, NULL, 0);
}

void files_readdir(struct call *call)
{
	struct atoll_error error = { .size = sizeof error };
	const char *next = call_string(call, "next");
	atoll_record *how;
	char path[PATH_MAX];
	uint64_t ticket = 0, from = 0, depth = call_number(call, "depth", 1);
	int r;

	if (!find_path(call, "path", path))
		return;
	if (next && num_parse_u64(next, &from) < 0) {
		call_fail(call, 400, NULL, "this is no page that this service gave");
		return;
	}
	how = atoll_record_new(ATOLL_READDIR);
	r = how ? atoll_set_u64(how, "depth", depth ? depth > 64 ? 64 : depth : 1, &error) : ATOLL_E_NO_MEMORY;
	if (r == 0)
		r = atoll_set_u64(how, "from", from, &error);
	if (r == 0)
		r = atoll_set_u64(how, "with_attributes", 1, &error);
	if (r == 0)
		r = atoll_readdir(call->sandbox->handle, path, how, &ticket, NULL, &error);
	atoll_record_free(how);
	await_answer(call->sandbox, call, r, ticket, &error, read_done);
}

/* ---- ports ---- */

static void dialed(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	struct buf *out;
	int fd;

	if (outcome->code) {
		call_fail(call, 502, NULL, "nothing listens on this port inside: %s", outcome->what);
		return;
	}
	fd = atoll_take_fd(outcome->result, "socket");
	out = call_begin_reply(call, 200);
	if (fd >= 0)
		field_put_fd(out, "socket", 0);
	kept_put(out, sandbox->made.message, "mask_host");
	call_end_reply(call, &fd, fd >= 0);
}

void files_dial(struct call *call)
{
	struct atoll_error error = { .size = sizeof error };
	char token[CREDENTIAL_TOKEN_SIZE];
	uint64_t ticket = 0;
	int r;

	credential_token(call->daemon->secret, "traffic", call->sandbox->id, token);
	if (!service_number(call->sandbox->made.message, "public_traffic", 1) &&
	    !credential_is_equal(call_string(call, "traffic_token"), token)) {
		call_fail(call, 403, NULL, "this sandbox wants its traffic token (header e2b-traffic-access-token)");
		return;
	}
	r = atoll_connect(call->sandbox->handle, (uint16_t)call_number(call, "port", 0), 0, &ticket, NULL, &error);
	await_answer(call->sandbox, call, r, ticket, &error, dialed);
}
