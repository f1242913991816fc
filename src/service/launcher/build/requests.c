/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/build/requests.h"

#include <string.h>

#include "base/str.h"
#include "service/launcher/build/archives.h"
#include "service/launcher/build/build.h"
#include "service/launcher/build/template-name.h"
#include "session/directories.h"

enum { WAITING_MAX = 100, TAGS_MAX = 32 };

struct waiting_builds {
	const char *owner;
	size_t count;
	char oldest[DATABASE_NAME_SIZE];
};

static int count_waiting(void *context, const struct build_row *row)
{
	struct waiting_builds *waiting = context;

	if (row->state != BUILD_WAITING || !str_equal(row->owner, waiting->owner))
		return 0;
	return waiting->count++ ? 0 : str_copy(waiting->oldest, sizeof waiting->oldest, row->id);
}

/* Those that were asked for and never started: the oldest goes for a new one. */
static int make_room(struct database *store, const char *owner)
{
	struct waiting_builds waiting = { .owner = owner };
	int r = builds_each(store, count_waiting, &waiting);

	return r == 0 && waiting.count >= WAITING_MAX ? builds_remove(store, waiting.oldest) : r;
}

static int count_template(void *context, const struct template_row *row)
{
	struct waiting_builds *templates = context;

	templates->count += str_equal(row->owner, templates->owner);
	return 0;
}

/* As many templates and snapshots as the owner may have; false: the call was answered. */
static bool has_room(struct call *call)
{
	struct waiting_builds templates = { .owner = call->caller.key.owner };
	uint64_t max = call->daemon->settings->snapshots_max;
	int r = database_each_template(call->daemon->store, count_template, &templates);

	if (r == 0 && templates.count < max)
		return true;
	if (r < 0)
		template_name_fail_database(call, r);
	else
		call_fail(call, 429, NULL, "%s has as many templates and snapshots as it may have (%llu); delete one",
			  templates.owner, (unsigned long long)max);
	return false;
}

/* Each with a blank behind it. False: the call was answered. */
static bool read_tags(struct call *call, const struct template_name *name, struct buf *out)
{
	const char *const *tags = service_strings(call->message, "tags");
	size_t count = strv_count(tags);

	if (name->tag[0])
		buf_printf(out, "%s ", name->tag);
	for (size_t i = 0; i < count; i++) {
		if (!template_name_is_word(tags[i]) || strlen(tags[i]) >= DATABASE_NAME_SIZE) {
			call_fail(call, 400, NULL, "tags are letters, digits, \".\", \"_\" and \"-\"");
			return false;
		}
		buf_printf(out, "%s ", tags[i]);
	}
	if (!out->size)
		buf_put_text(out, TAG_DEFAULT " ");
	if (count > TAGS_MAX || buf_error(out) < 0) {
		call_fail(call, 400, NULL, "there are too many tags (%d at most)", TAGS_MAX);
		return false;
	}
	return true;
}

/* The template of this name, made where there is none; false: the call was answered. */
static bool make_template(struct call *call, const struct template_name *name, struct template_row *row)
{
	struct daemon *daemon = call->daemon;
	char path[PATH_MAX], id[CREDENTIAL_ID_SIZE];
	int r = template_name_find(call, name->name, true, row);

	if (r == 0 && (str_equal(name->name, "base") || str_equal(name->name, LIFECYCLE_INTERPRETER) ||
		       session_root_path(daemon->places.state, name->name, path, sizeof path) == 0)) {
		call_fail(call, 409, NULL, "'%s' is a template of this machine: choose another name", name->name);
		return false;
	}
	if (r == 0 && !has_room(call))
		return false;
	if (r == 0) {
		*row = (struct template_row){ .created_ms = build_now_ms() };
		r = credential_new_id(id);
		if (r == 0)
			r = str_copy(row->id, sizeof row->id, id);
		if (r == 0)
			r = str_copy(row->name, sizeof row->name, name->name);
		if (r == 0)
			r = str_copy(row->owner, sizeof row->owner, call->caller.key.owner);
		if (r == 0)
			r = database_put_template(daemon->store, row);
	}
	if (r < 0)
		template_name_fail_database(call, r);
	return r >= 0;
}

static void put_tags(struct buf *out, char *tags)
{
	const char *strings[2 * TAGS_MAX + 1] = { NULL };
	size_t count = 0;

	for (char *at = tags, *blank; count < 2 * TAGS_MAX && (blank = strchr(at, ' ')); at = blank + 1) {
		*blank = 0;
		strings[count++] = at;
	}
	field_put_strings(out, "tags", strings);
}

void requests_name(struct call *call)
{
	struct build_row build = { .state = BUILD_WAITING, .created_ms = build_now_ms() };
	const char *names[] = { build.template, NULL };
	char id[CREDENTIAL_ID_SIZE];
	struct template_row row;
	struct template_name name;
	struct buf tags, *out;
	int r;

	buf_init_fixed(&tags, build.tags, sizeof build.tags - 1);
	if (!template_name_read(call_string(call, "name"), &name)) {
		call_fail(call, 400, NULL, "a name has letters, digits, \".\", \"_\" and \"-\", and a tag behind \":\"");
		return;
	}
	if (!read_tags(call, &name, &tags) || !make_template(call, &name, &row))
		return;
	r = make_room(call->daemon->store, row.owner);
	if (r == 0)
		r = credential_new_id(id);
	if (r == 0)
		r = str_copy(build.id, sizeof build.id, id);
	if (r == 0)
		r = str_copy(build.template, sizeof build.template, row.id);
	if (r == 0)
		r = str_copy(build.owner, sizeof build.owner, row.owner);
	if (r == 0)
		r = builds_put(call->daemon->store, &build);
	if (r < 0) {
		template_name_fail_database(call, r);
		return;
	}
	daemon_note_change(call->daemon);
	out = call_begin_reply(call, 202);
	field_put_string(out, "template", build.template);
	field_put_string(out, "build", build.id);
	names[0] = row.name;
	field_put_strings(out, "names", names);
	put_tags(out, build.tags);
	call_end_reply(call, NULL, 0);
}

/* ---- archives ---- */

/* What a URL is signed with: it is good for this archive of this template alone. */
static void sign(const struct call *call, const char *template, const char *file, char out[CREDENTIAL_TOKEN_SIZE])
{
	char purpose[160];

	out[0] = 0;
	if (str_format(purpose, sizeof purpose, "upload %s", file) == 0)
		credential_token(call->daemon->secret, purpose, template, out);
}

void requests_file(struct call *call)
{
	const char *file = call_string(call, "file"), *host = call_string(call, "host");
	char token[CREDENTIAL_TOKEN_SIZE], url[1024];
	struct template_row row;
	struct buf *out;
	int r;

	if (!archives_hash_is_valid(file)) {
		call_fail(call, 400, NULL, "the hash of files is 64 hex digits");
		return;
	}
	if (!template_name_get(call, call_string(call, "template"), &row))
		return;
	r = archives_has(call->daemon->places.directory, row.owner, file);
	sign(call, row.id, file, token);
	if (r < 0 || str_format(url, sizeof url, "%s://%s/templates/%s/files/%s?upload=%s",
				call_number(call, "secure", 0) ? "https" : "http", host ? host : "localhost", row.id,
				file, token) < 0) {
		call_fail(call, r < 0 ? call_unwritten_status(r) : 400, NULL, "the archives cannot be used");
		return;
	}
	out = call_begin_reply(call, 201);
	field_put_u64(out, "present", r > 0);
	field_put_string(out, "url", url);
	call_end_reply(call, NULL, 0);
}

struct owner_search {
	const char *template;
	char owner[DATABASE_NAME_SIZE];
};

static int take_owner(void *context, const struct template_row *row)
{
	struct owner_search *search = context;

	if (str_equal(row->id, search->template))
		memcpy(search->owner, row->owner, sizeof search->owner);
	return 0;
}

static void commit(struct call *call, const char *owner, const char *part)
{
	int r = archives_commit(call->daemon->places.directory, owner, call_string(call, "file"), part,
				call_number(call, "commit", 0));

	if (r < 0)
		call_fail(call, r == -EBADMSG || r == -ENOENT ? 400 : call_unwritten_status(r), NULL,
			  "the archive did not come whole");
	else
		call_reply(call, 200);
}

void requests_upload(struct call *call)
{
	struct owner_search search = { .template = call_string(call, "template") };
	const char *file = call_string(call, "file"), *part = call_string(call, "part");
	char token[CREDENTIAL_TOKEN_SIZE], name[CREDENTIAL_ID_SIZE];
	struct buf *out;
	int fd;

	sign(call, search.template, file, token);
	if (!archives_hash_is_valid(file) || !credential_is_equal(call_string(call, "upload"), token) ||
	    database_each_template(call->daemon->store, take_owner, &search) < 0 || !search.owner[0]) {
		call_fail(call, 401, NULL, "the URL is not signed by this service");
		return;
	}
	if (part && service_get(call->message, "commit")) {
		commit(call, search.owner, part);
		return;
	}
	if (part) {
		call_reply(call, archives_drop(call->daemon->places.directory, search.owner, part) < 0 ? 400 : 204);
		return;
	}
	fd = archives_begin(call->daemon->places.directory, search.owner, name);
	if (fd < 0) {
		call_fail(call, call_unwritten_status(fd), NULL, "the archive cannot be written");
		return;
	}
	out = call_begin_reply(call, 200);
	field_put_fd(out, "archive", 0);
	field_put_string(out, "part", name);
	field_put_u64(out, "max", ARCHIVE_BYTES_MAX);
	call_end_reply(call, &fd, 1);
}

void requests_alias(struct call *call)
{
	struct template_row row;
	struct buf *out;

	if (!template_name_get(call, call_string(call, "template"), &row))
		return;
	out = call_begin_reply(call, 200);
	field_put_string(out, "template", row.id);
	call_end_reply(call, NULL, 0);
}

/* ---- tags ---- */

static int put_tag_row(void *context, const struct build_tag *tag)
{
	struct call *call = context;
	struct buf *row = &call->daemon->row;

	if (call->count++ >= SERVICE_ROWS_MAX)
		return 0;
	service_begin_row(row);
	field_put_string(row, "tag", tag->tag);
	field_put_string(row, "build", tag->build);
	field_put_u64(row, "created_ms", tag->created_ms);
	service_put_row(&call->rows, row);
	return 0;
}

void requests_tags(struct call *call)
{
	struct template_row row;
	struct buf *out;
	int r;

	if (!template_name_get(call, call_string(call, "template"), &row))
		return;
	call->count = 0;
	r = builds_each_tag(call->daemon->store, row.id, put_tag_row, call);
	if (r < 0) {
		template_name_fail_database(call, r);
		return;
	}
	out = call_begin_reply(call, 200);
	buf_put(out, call->rows.bytes, call->rows.size);
	call_end_reply(call, NULL, 0);
}

static int count_tag(void *context, const struct build_tag *tag)
{
	++*(size_t *)context;
	return 0;
}

/* False: the call was answered. */
static bool check_tags(struct call *call, const char *template)
{
	const char *const *tags = service_strings(call->message, "tags");
	size_t count = 0;

	for (size_t i = 0; i < strv_count(tags); i++)
		if (!template_name_is_word(tags[i]) || strlen(tags[i]) >= DATABASE_NAME_SIZE) {
			call_fail(call, 400, NULL, "tags are letters, digits, \".\", \"_\" and \"-\"");
			return false;
		}
	if (builds_each_tag(call->daemon->store, template, count_tag, &count) < 0 ||
	    count + strv_count(tags) > SERVICE_ROWS_MAX) {
		call_fail(call, 429, NULL, "a template has %d tags at most", SERVICE_ROWS_MAX);
		return false;
	}
	return true;
}

void requests_tag(struct call *call)
{
	const char *const *tags = service_strings(call->message, "tags");
	const char *target = call_string(call, "name");
	struct template_row row;
	struct build_tag tag;
	struct template_name name;
	struct buf *out;
	int r;

	if (!template_name_get(call, target, &row) || !check_tags(call, row.id))
		return;
	r = template_name_read(target, &name) ? builds_get_tag(call->daemon->store, row.id, name.tag[0] ? name.tag : TAG_DEFAULT,
						      &tag) : 0;
	if (r == 0) {
		call_fail(call, 404, NULL, "template '%s' not found", target);
		return;
	}
	tag.created_ms = build_now_ms();
	for (size_t i = 0; r >= 0 && i < strv_count(tags); i++) {
		r = str_copy(tag.tag, sizeof tag.tag, tags[i]);
		if (r == 0)
			r = builds_put_tag(call->daemon->store, row.id, &tag);
	}
	if (r < 0) {
		template_name_fail_database(call, r);
		return;
	}
	daemon_note_change(call->daemon);
	out = call_begin_reply(call, 201);
	field_put_string(out, "build", tag.build);
	field_put_strings(out, "tags", tags ? tags : (const char *const[]){ NULL });
	call_end_reply(call, NULL, 0);
}

void requests_untag(struct call *call)
{
	const char *const *tags = service_strings(call->message, "tags");
	struct template_row row;
	int r = 0;

	if (!template_name_get(call, call_string(call, "name"), &row))
		return;
	for (size_t i = 0; r >= 0 && i < strv_count(tags); i++)
		r = builds_remove_tag(call->daemon->store, row.id, tags[i]);
	if (r < 0) {
		template_name_fail_database(call, r);
		return;
	}
	daemon_note_change(call->daemon);
	call_reply(call, 204);
}
