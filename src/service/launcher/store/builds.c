/* SPDX-License-Identifier: Apache-2.0 */

/* Builds are rare: statements are prepared when they are wanted. */

#include "service/launcher/store/builds.h"

#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include "base/str.h"
#include "wire/frame.h"

const char *const build_state_names[BUILD_STATE_COUNT] = {
	[BUILD_WAITING] = "waiting", [BUILD_BUILDING] = "building", [BUILD_READY] = "ready", [BUILD_ERROR] = "error",
};

#define BUILD_COLUMNS "id, template, owner, state, created_ms, session, snapshot, step, message, tags, settings"
#define TAG_COLUMNS "tag, build, created_ms"
#define CACHED_COLUMNS "owner, hash, session, snapshot, used_ms"

/* NULL: it cannot be; later calls fail then. */
static sqlite3_stmt *prepare(struct database *store, const char *text)
{
	sqlite3_stmt *statement = NULL;

	return sqlite3_prepare_v2(database_handle(store), text, -1, &statement, NULL) == SQLITE_OK ? statement : NULL;
}

static void put_text(sqlite3_stmt *statement, int *at, const char *text)
{
	sqlite3_bind_text(statement, (*at)++, text, -1, SQLITE_TRANSIENT);
}

static void put_u64(sqlite3_stmt *statement, int *at, uint64_t number)
{
	sqlite3_bind_int64(statement, (*at)++, number > INT64_MAX ? INT64_MAX : (sqlite3_int64)number);
}

static void get_text(sqlite3_stmt *statement, int *at, char *out, size_t size)
{
	const unsigned char *text = sqlite3_column_text(statement, (*at)++);

	if (str_copy(out, size, text ? (const char *)text : "") < 0)
		out[0] = 0;
}

static uint64_t get_u64(sqlite3_stmt *statement, int *at)
{
	sqlite3_int64 number = sqlite3_column_int64(statement, (*at)++);

	return number < 0 ? 0 : (uint64_t)number;
}

/* One that gives no rows. Consumes it. */
static int finish(sqlite3_stmt *statement)
{
	int r = statement ? sqlite3_step(statement) : SQLITE_ERROR;

	sqlite3_finalize(statement);
	return r == SQLITE_DONE ? 0 : r == SQLITE_FULL ? -ENOSPC : -EIO;
}

/* 1, 0 at the end, -EIO. */
static int step(sqlite3_stmt *statement)
{
	int r = statement ? sqlite3_step(statement) : SQLITE_ERROR;

	return r == SQLITE_ROW ? 1 : r == SQLITE_DONE ? 0 : -EIO;
}

/* One that means rows by a text or two. */
static sqlite3_stmt *prepare_for(struct database *store, const char *text, const char *first, const char *second)
{
	sqlite3_stmt *statement = prepare(store, text);
	int at = 1;

	if (statement && first)
		put_text(statement, &at, first);
	if (statement && second)
		put_text(statement, &at, second);
	return statement;
}

/* ---- builds ---- */

int builds_put(struct database *store, const struct build_row *build)
{
	sqlite3_stmt *statement = prepare(store, "INSERT OR REPLACE INTO builds (" BUILD_COLUMNS
						 ") VALUES (?,?,?,?,?,?,?,?,?,?,?)");
	int at = 1;

	if (!statement)
		return -EIO;
	put_text(statement, &at, build->id);
	put_text(statement, &at, build->template);
	put_text(statement, &at, build->owner);
	put_u64(statement, &at, build->state);
	put_u64(statement, &at, build->created_ms);
	put_text(statement, &at, build->session);
	put_text(statement, &at, build->snapshot);
	put_text(statement, &at, build->step);
	put_text(statement, &at, build->message);
	put_text(statement, &at, build->tags);
	sqlite3_bind_blob64(statement, at, build->settings.size ? build->settings.bytes : "", build->settings.size,
			    SQLITE_TRANSIENT);
	return finish(statement);
}

static void get_build(sqlite3_stmt *statement, struct build_row *build)
{
	uint64_t state;
	int at = 0;

	*build = (struct build_row){ .id = "" };
	get_text(statement, &at, build->id, sizeof build->id);
	get_text(statement, &at, build->template, sizeof build->template);
	get_text(statement, &at, build->owner, sizeof build->owner);
	state = get_u64(statement, &at);
	build->state = state < BUILD_STATE_COUNT ? (enum build_state)state : BUILD_ERROR;
	build->created_ms = get_u64(statement, &at);
	get_text(statement, &at, build->session, sizeof build->session);
	get_text(statement, &at, build->snapshot, sizeof build->snapshot);
	get_text(statement, &at, build->step, sizeof build->step);
	get_text(statement, &at, build->message, sizeof build->message);
	get_text(statement, &at, build->tags, sizeof build->tags);
	build->settings.bytes = sqlite3_column_blob(statement, at);
	build->settings.size = build->settings.bytes ? (size_t)sqlite3_column_bytes(statement, at) : 0;
}

static int each_build(sqlite3_stmt *statement, int (*row)(void *context, const struct build_row *build), void *context)
{
	struct build_row build;
	int r;

	while ((r = step(statement)) == 1) {
		get_build(statement, &build);
		r = row(context, &build);
		if (r < 0)
			break;
	}
	sqlite3_finalize(statement);
	return r < 0 ? r : 0;
}

int builds_each(struct database *store, int (*row)(void *context, const struct build_row *build), void *context)
{
	static const char text[] = "SELECT " BUILD_COLUMNS " FROM builds ORDER BY created_ms, rowid";

	return each_build(prepare(store, text), row, context);
}

struct found_build {
	struct build_row *build;
	bool is_found;
};

static int take_build(void *context, const struct build_row *build)
{
	struct found_build *found = context;
	static uint8_t kept[FRAME_MESSAGE_MAX];

	*found->build = *build;
	found->is_found = build->settings.size <= sizeof kept;
	if (found->is_found && build->settings.size)
		memcpy(kept, build->settings.bytes, build->settings.size);
	found->build->settings.bytes = kept;
	return 0;
}

int builds_get(struct database *store, const char *id, struct build_row *ret_build)
{
	struct found_build found = { .build = ret_build };
	static const char text[] = "SELECT " BUILD_COLUMNS " FROM builds WHERE id = ?";
	int r = each_build(prepare_for(store, text, id, NULL), take_build, &found);

	return r < 0 ? r : found.is_found;
}

int builds_remove(struct database *store, const char *id)
{
	return finish(prepare_for(store, "DELETE FROM builds WHERE id = ?", id, NULL));
}

/* ---- tags ---- */

int builds_put_tag(struct database *store, const char *template, const struct build_tag *tag)
{
	sqlite3_stmt *statement = prepare_for(store, "INSERT OR REPLACE INTO build_tags (template, " TAG_COLUMNS
						     ") VALUES (?,?,?,?)", template, tag->tag);
	int at = 3;

	if (!statement)
		return -EIO;
	put_text(statement, &at, tag->build);
	put_u64(statement, &at, tag->created_ms);
	return finish(statement);
}

int builds_remove_tag(struct database *store, const char *template, const char *tag)
{
	int r = finish(prepare_for(store, "DELETE FROM build_tags WHERE template = ? AND tag = ?", template, tag));

	return r < 0 ? r : sqlite3_changes(database_handle(store)) > 0;
}

static int each_tag(sqlite3_stmt *statement, int (*row)(void *context, const struct build_tag *tag), void *context)
{
	struct build_tag tag;
	int r;

	while ((r = step(statement)) == 1) {
		int at = 0;

		get_text(statement, &at, tag.tag, sizeof tag.tag);
		get_text(statement, &at, tag.build, sizeof tag.build);
		tag.created_ms = get_u64(statement, &at);
		r = row(context, &tag);
		if (r < 0)
			break;
	}
	sqlite3_finalize(statement);
	return r < 0 ? r : 0;
}

int builds_each_tag(struct database *store, const char *template,
		    int (*row)(void *context, const struct build_tag *tag), void *context)
{
	return each_tag(prepare_for(store, "SELECT " TAG_COLUMNS " FROM build_tags WHERE template = ? "
					   "ORDER BY created_ms DESC, tag", template, NULL), row, context);
}

static int take_tag(void *context, const struct build_tag *tag)
{
	*(struct build_tag *)context = *tag;
	return 0;
}

int builds_get_tag(struct database *store, const char *template, const char *tag, struct build_tag *ret_tag)
{
	static const char text[] = "SELECT " TAG_COLUMNS " FROM build_tags WHERE template = ? AND tag = ?";
	int r;

	*ret_tag = (struct build_tag){ .tag = "" };
	r = each_tag(prepare_for(store, text, template, tag), take_tag, ret_tag);
	return r < 0 ? r : ret_tag->build[0] != 0;
}

/* ---- steps ---- */

int builds_put_cached(struct database *store, const struct build_cached *cached)
{
	sqlite3_stmt *statement = prepare_for(store, "INSERT OR REPLACE INTO build_steps (" CACHED_COLUMNS
						     ") VALUES (?,?,?,?,?)", cached->owner, cached->hash);
	int at = 3;

	if (!statement)
		return -EIO;
	put_text(statement, &at, cached->session);
	put_text(statement, &at, cached->snapshot);
	put_u64(statement, &at, cached->used_ms);
	return finish(statement);
}

static int each_cached(sqlite3_stmt *statement, int (*row)(void *context, const struct build_cached *cached),
		       void *context)
{
	struct build_cached cached;
	int r;

	while ((r = step(statement)) == 1) {
		int at = 0;

		get_text(statement, &at, cached.owner, sizeof cached.owner);
		get_text(statement, &at, cached.hash, sizeof cached.hash);
		get_text(statement, &at, cached.session, sizeof cached.session);
		get_text(statement, &at, cached.snapshot, sizeof cached.snapshot);
		cached.used_ms = get_u64(statement, &at);
		r = row(context, &cached);
		if (r < 0)
			break;
	}
	sqlite3_finalize(statement);
	return r < 0 ? r : 0;
}

int builds_each_cached(struct database *store, int (*row)(void *context, const struct build_cached *cached),
		       void *context)
{
	return each_cached(prepare(store, "SELECT " CACHED_COLUMNS " FROM build_steps ORDER BY used_ms, rowid"), row,
			   context);
}

static int take_cached(void *context, const struct build_cached *cached)
{
	*(struct build_cached *)context = *cached;
	return 0;
}

int builds_get_cached(struct database *store, const char *owner, const char *hash, struct build_cached *ret_cached)
{
	int r;

	*ret_cached = (struct build_cached){ .owner = "" };
	r = each_cached(prepare_for(store, "SELECT " CACHED_COLUMNS " FROM build_steps WHERE owner = ? AND hash = ?",
				    owner, hash), take_cached, ret_cached);
	return r < 0 ? r : ret_cached->owner[0] != 0;
}

int builds_remove_cached(struct database *store, const char *owner, const char *hash)
{
	return finish(prepare_for(store, "DELETE FROM build_steps WHERE owner = ? AND hash = ?", owner, hash));
}
