/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/verb/library.h"

#include <limits.h>

#include "base/str.h"
#include "client/find.h"
#include "session/directories.h"

/* ---- errors ---- */

int library_fail(const struct atoll_error *error, struct err *err)
{
	static const struct {
		int code;
		enum err_code ours;
		int errnum;
	} table[] = {
		{ ATOLL_E_INVALID, ERR_USAGE, EINVAL },	     { ATOLL_E_POLICY, ERR_POLICY, EPERM },
		{ ATOLL_E_WALL, ERR_WALL, EPERM },	     { ATOLL_E_STATE, ERR_STATE, EIO },
		{ ATOLL_E_NOT_FOUND, ERR_NOT_FOUND, ENOENT }, { ATOLL_E_NOT_RUNNABLE, ERR_NOT_RUNNABLE, EACCES },
		{ ATOLL_E_GONE, ERR_STATE, ECONNRESET },     { ATOLL_E_BUSY, ERR_STATE, EBUSY },
		{ ATOLL_E_LIMIT, ERR_STATE, EAGAIN },	     { ATOLL_E_PROTOCOL, ERR_STATE, EPROTO },
		{ ATOLL_E_TIMEOUT, ERR_STATE, ETIMEDOUT },   { ATOLL_E_IDENTITY, ERR_STATE, EPERM },
	};
	enum err_code code = ERR_INTERNAL;
	int errnum = EIO;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].code == error->code) {
			code = table[i].ours;
			errnum = table[i].errnum;
		}
	errnum = error->errnum > 0 ? error->errnum : errnum;
	err_set(err, code, errnum, error->where, "%s", error->what);
	err_hint(err, "%s", error->hint);
	return -errnum;
}

int library_fail_event(const atoll_record *event, struct err *err)
{
	struct atoll_error error = { .code = -(int32_t)library_number(event, "code"),
				     .errnum = (int32_t)library_number(event, "errno") };
	const char *const texts[] = { library_text(event, "where"), library_text(event, "what"),
				      library_text(event, "hint") };
	char *const places[] = { error.where, error.what, error.hint };
	const size_t sizes[] = { sizeof error.where, sizeof error.what, sizeof error.hint };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		(void)!str_copy(places[i], sizes[i], texts[i] ? texts[i] : "");
	return library_fail(&error, err);
}

bool library_is_gone(const struct atoll_error *error)
{
	return error->code == ATOLL_E_GONE;
}

/* ---- places ---- */

/* Of the last context: a verb has one. */
static char state_dir[PATH_MAX], runtime_dir[PATH_MAX];

/* No verb starts anything by it, so where the programs are, which takes a look at /proc, is not said. */
static int put_places(atoll_record *places, uint64_t events, bool own_commands, struct err *err)
{
	const char *const values[][2] = { { "state", state_dir }, { "runtime", runtime_dir } };
	struct atoll_error error = LIBRARY_ERROR;
	int r = session_state_dir(state_dir, sizeof state_dir, false, err);

	if (r == 0)
		r = session_runtime_dir(runtime_dir, sizeof runtime_dir, false, err);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(values); i++)
		r = atoll_set_string(places, values[i][0], values[i][1], &error);
	if (r == 0)
		r = atoll_set_u64(places, "events", events, &error);
	if (r == 0)
		r = atoll_set_u64(places, "own_commands", own_commands, &error);
	return r < 0 ? library_fail(&error, err) : 0;
}

static int make_context(uint64_t events, bool own_commands, atoll_context **ret_context, struct err *err)
{
	cleanup_record atoll_record *places = atoll_record_new(ATOLL_CONTEXT);
	struct atoll_error error = LIBRARY_ERROR;
	int r = put_places(places, events, own_commands, err);

	if (r == 0 && atoll_context_new(places, ret_context, &error) < 0)
		r = library_fail(&error, err);
	return r;
}

int library_context(uint64_t events, atoll_context **ret_context, struct err *err)
{
	return make_context(events, true, ret_context, err);
}

int library_context_of_all(uint64_t events, atoll_context **ret_context, struct err *err)
{
	return make_context(events, false, ret_context, err);
}

int library_find(atoll_context *context, const char *id_or_name, atoll_sandbox **ret_sandbox, struct err *err)
{
	cleanup_record atoll_record *filter = atoll_record_new(ATOLL_FILTER);
	struct atoll_error error = LIBRARY_ERROR;
	char project[PATH_MAX];
	int r = id_or_name ? 0 : find_project(project, err);

	if (r < 0)
		return r;
	r = atoll_set_string(filter, id_or_name ? "name" : "project", id_or_name ? id_or_name : project, &error);
	if (r == 0)
		r = atoll_set_u64(filter, "running", 1, &error);
	if (r == 0)
		r = atoll_find_newest(context, filter, ret_sandbox, &error);
	return r < 0 ? library_fail(&error, err) : 0;
}

int library_find_record(const char *id_or_name, struct session_record *ret_session, struct err *err)
{
	char project[PATH_MAX];
	int r = id_or_name ? 0 : find_project(project, err);

	return r < 0 ? r : session_find(state_dir, id_or_name ? NULL : project, id_or_name, runtime_dir, ret_session,
					err);
}

int library_record(const atoll_sandbox *sandbox, struct session_record *ret_session, struct err *err)
{
	return session_load_id(state_dir, atoll_id(sandbox), ret_session) < 0
		       ? err_set(err, ERR_STATE, ENOENT, "session", "the session has ended") : 0;
}

/* ---- records ---- */

int library_next(atoll_cursor *cursor, atoll_record **ret_row, struct err *err)
{
	struct atoll_error error = LIBRARY_ERROR;
	int r = atoll_cursor_next(cursor, ret_row, &error);

	return r < 0 ? library_fail(&error, err) : r;
}

uint64_t library_number(const atoll_record *record, const char *key)
{
	uint64_t number = 0;

	(void)atoll_get_u64(record, key, &number);
	return number;
}

const char *library_text(const atoll_record *record, const char *key)
{
	const void *bytes = NULL;
	size_t size;

	return atoll_get_bytes(record, key, &bytes, &size) ? bytes : NULL;
}

void library_context_done(atoll_context **context)
{
	atoll_context_free(*context);
}

void library_sandbox_done(atoll_sandbox **sandbox)
{
	atoll_sandbox_free(*sandbox);
}

void library_record_done(atoll_record **record)
{
	atoll_record_free(*record);
}

void library_cursor_done(atoll_cursor **cursor)
{
	atoll_cursor_free(*cursor);
}

void library_policy_done(atoll_policy **policy)
{
	atoll_policy_free(*policy);
}
