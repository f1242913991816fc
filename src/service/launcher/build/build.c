/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/build/build.h"

#include <string.h>

#include "base/str.h"
#include "os/clock.h"
#include "service/launcher/build/archives.h"
#include "service/launcher/build/template-name.h"

enum { LOGS_KEPT_MAX = 64, NS_PER_MS = 1000000 };

uint64_t build_now_ms(void)
{
	return clock_realtime_ns() / NS_PER_MS;
}

/* ---- those of this process ---- */

struct build *build_find(const struct daemon *daemon, const char *id)
{
	struct build *build = daemon->registry.builds;

	while (build && !str_equal(build->id, id))
		build = build->next;
	return build;
}

void build_free(struct build *build)
{
	plan_done(&build->plan);
	settings_done(&build->settings);
	kept_done(&build->request);
	build_log_done(&build->log);
	free(build);
}

void build_trim_logs(struct daemon *daemon, const char *id)
{
	size_t count = 0;

	for (struct build **at = &daemon->registry.builds; *at;) {
		struct build *build = *at;

		if (build->phase == BUILD_IN_END && (++count > LOGS_KEPT_MAX || str_equal(build->id, id))) {
			*at = build->next;
			build_free(build);
		} else {
			at = &build->next;
		}
	}
}

void build_free_all(struct daemon *daemon)
{
	while (daemon->registry.builds) {
		struct build *build = daemon->registry.builds;

		daemon->registry.builds = build->next;
		build_free(build);
	}
}

size_t build_count_running(const struct daemon *daemon, const char *owner)
{
	size_t count = 0;

	for (const struct build *build = daemon->registry.builds; build; build = build->next)
		count += build->phase != BUILD_IN_END && str_equal(build->owner, owner);
	return count;
}

/* ---- rows ---- */

bool build_get(struct call *call, struct build_row *ret_build)
{
	struct template_row row;
	int r;

	if (!template_name_get(call, call_string(call, "template"), &row))
		return false;
	r = builds_get(call->daemon->store, call_string(call, "build"), ret_build);
	if (r < 0)
		template_name_fail_database(call, r);
	else if (r == 0 || !str_equal(ret_build->template, row.id))
		call_fail(call, 404, NULL, "the template has no build '%s'", call_string(call, "build"));
	else
		return true;
	return false;
}

/* What its commands were told becomes what those of its sandboxes are told. */
static int put_settings(const struct build *build, struct buf *out)
{
	const char *start = service_string(build->request.message, "start");
	const char *ready = service_string(build->request.message, "ready");

	service_begin_request(out, 1, SERVICE_CREATE);
	field_put_strings(out, "env", (const char *const *)build->settings.env);
	field_put_string(out, "cwd", build->settings.cwd);
	field_put_string(out, "start_command", start);
	field_put_string(out, "ready_command", ready);
	return frame_end(out);
}

static int put_tags(const struct build *build, struct build_row *row)
{
	struct build_tag tag = { .created_ms = build_now_ms() };
	char *at = row->tags;
	int r = str_copy(tag.build, sizeof tag.build, build->id);

	while (r == 0 && *at) {
		size_t length = strcspn(at, " ");

		if (length < sizeof tag.tag) {
			memcpy(tag.tag, at, length);
			tag.tag[length] = 0;
			r = builds_put_tag(build->daemon->store, row->template, &tag);
		}
		at += length + (at[length] == ' ');
	}
	return r;
}

int build_write_end(const struct build *build, enum build_state state, const char *step, const char *message,
		    const struct build_cached *last)
{
	struct database *store = build->daemon->store;
	cleanup_buf struct buf settings;
	struct build_row row;
	int r = builds_get(store, build->id, &row);

	buf_init(&settings, FRAME_MESSAGE_MAX);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	row.state = state;
	if (str_copy(row.step, sizeof row.step, step) < 0 || str_copy(row.message, sizeof row.message, message) < 0)
		(void)!str_copy(row.message, sizeof row.message, "the build has failed");
	r = 0;
	if (last) {
		memcpy(row.session, last->session, sizeof row.session);
		memcpy(row.snapshot, last->snapshot, sizeof row.snapshot);
		r = put_settings(build, &settings);
		row.settings = (struct bytes){ settings.bytes, settings.size };
	}
	if (r == 0)
		r = builds_put(store, &row);
	if (r == 0 && last)
		r = put_tags(build, &row);
	daemon_note_change(build->daemon);
	return r;
}

/* ---- state ---- */

static void put_entries(struct call *call, const struct build *build, struct buf *out)
{
	uint64_t from = call_number(call, "offset", 0), count = call_number(call, "limit", SERVICE_ROWS_MAX);

	for (; build && from < build->log.count && count && call->rows.size < CALL_ROWS_MAX / 2; from++, count--) {
		const struct build_log_entry *entry = &build->log.entries[from];
		struct buf *row = &call->daemon->row;

		service_begin_row(row);
		field_put_u64(row, "time_ms", entry->time_ms);
		field_put_string(row, "level", entry->level);
		field_put_string(row, "message", entry->text);
		field_put_string(row, "step", entry->step);
		service_put_row(&call->rows, row);
	}
	buf_put(out, call->rows.bytes, call->rows.size);
}

void build_status(struct call *call)
{
	struct build_row row;
	struct buf *out;

	if (!build_get(call, &row))
		return;
	out = call_begin_reply(call, 200);
	field_put_string(out, "template", row.template);
	field_put_string(out, "build", row.id);
	field_put_string(out, "status", build_state_names[row.state]);
	if (row.state == BUILD_ERROR) {
		field_put_string(out, "message", row.message);
		field_put_string(out, "step", row.step[0] ? row.step : NULL);
	}
	put_entries(call, build_find(call->daemon, row.id), out);
	call_end_reply(call, NULL, 0);
}

struct failed {
	char id[DATABASE_NAME_SIZE];
};

static int take_building(void *context, const struct build_row *row)
{
	struct failed *failed = context;

	return row->state == BUILD_BUILDING ? str_copy(failed->id, sizeof failed->id, row->id) : 0;
}

int build_recover(struct daemon *daemon)
{
	struct failed listing = { .id = "" };
	struct build_row row;
	int r;

	archives_drop_all(daemon->places.directory);
	for (;;) {
		listing.id[0] = 0;
		r = builds_each(daemon->store, take_building, &listing);
		if (r == 0 && listing.id[0])
			r = builds_get(daemon->store, listing.id, &row);
		if (r <= 0)
			return r;
		row.state = BUILD_ERROR;
		(void)!str_copy(row.step, sizeof row.step, "base");
		(void)!str_copy(row.message, sizeof row.message, "the service was started again while it was built");
		r = builds_put(daemon->store, &row);
		if (r < 0)
			return r;
	}
}
