/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/snapshots.h"

#include "base/num.h"
#include "base/str.h"
#include "service/launcher/call/access.h"
#include "service/launcher/control.h"
#include "session/directories.h"
#include "service/launcher/tidy.h"

enum { TIMEOUT_FORK_MS = 15000, FORKS_MAX = 32 };

/* ---- finding ---- */

struct search {
	const struct call *call;
	const char *template;        /* id or name */
	struct template_row *found;
	bool is_found;
};

/* An id is one template's; of a name the newest of the owner counts. */
static int match(void *context, const struct template_row *row)
{
	struct search *search = context;

	if (row->session[0] && access_means(&search->call->caller, row, search->template)) {
		*search->found = *row;
		search->is_found = true;
	}
	return 0;
}

int snapshots_find(struct call *call, const char *template, struct template_row *ret_row, struct origin *ret_origin)
{
	struct search search = { call, template, ret_row, false };
	int r = database_each_template(call->daemon->store, match, &search);

	if (r < 0 || !search.is_found)
		return r;
	*ret_origin = (struct origin){ .session = ret_row->session, .snapshot = ret_row->snapshot };
	return 1;
}

/* ---- taking one ---- */

/* Its name in the session: letters and digits, unique. */
static int ask_snapshot(struct call *call, const char *name, await_done *done)
{
	struct atoll_error error = { .size = sizeof error };
	atoll_record *record = atoll_record_new(ATOLL_SNAPSHOT);
	uint64_t ticket = 0;
	int r = record ? atoll_set_string(record, "name", name, &error) : ATOLL_E_NO_MEMORY;

	if (r == 0)
		r = atoll_snapshot(call->sandbox->handle, record, &ticket, NULL, &error);
	atoll_record_free(record);
	await_answer(call->sandbox, call, r, ticket, &error, done);
	return r;
}

static void put_snapshot(struct buf *out, const struct template_row *row)
{
	const char *const names[] = { row->name[0] ? row->name : row->id, NULL };

	field_put_string(out, "snapshot", row->id);
	field_put_strings(out, "names", names);
	field_put_u64(out, "created_ms", row->created_ms);
	if (row->sandbox[0])
		field_put_string(out, "sandbox", row->sandbox);
}

static void taken(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	struct template_row row = { .created_ms = lifecycle_now_ms() };
	const char *name = call_string(call, "name");
	int r;

	if (outcome->code) {
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
		return;
	}
	r = str_copy(row.id, sizeof row.id, call->text);
	if (r == 0)
		r = str_copy(row.name, sizeof row.name, name ? name : "");
	if (r == 0)
		r = str_copy(row.owner, sizeof row.owner, sandbox->owner);
	if (r == 0)
		r = str_copy(row.session, sizeof row.session, sandbox->session);
	if (r == 0)
		r = str_copy(row.snapshot, sizeof row.snapshot, call->text);
	if (r == 0)
		r = str_copy(row.sandbox, sizeof row.sandbox, sandbox->id);
	if (r == 0)
		r = database_put_template(call->daemon->store, &row);
	if (r < 0) {
		call_fail(call, r == -ENAMETOOLONG ? 400 : call_unwritten_status(r), NULL,
			  "the snapshot cannot be kept: %s",
			  r == -ENAMETOOLONG ? "its name is too long" : database_problem(call->daemon->store));
		return;
	}
	r = tidy_hold(call->daemon);
	if (r < 0) {
		(void)!database_remove_template(call->daemon->store, row.id);
		call_fail(call, call_unwritten_status(r), NULL,
			  "the snapshot cannot be kept: the state directory cannot be written");
		return;
	}
	daemon_note_change(call->daemon);
	put_snapshot(call_begin_reply(call, 201), &row);
	call_end_reply(call, NULL, 0);
}

/* The id that the snapshot will have; false: it was answered. */
static bool choose_id(struct call *call)
{
	if (credential_new_id(call->text) == 0)
		return true;
	call_fail(call, 500, NULL, "there is no randomness");
	return false;
}

static int count_own(void *context, const struct template_row *row)
{
	struct call *call = context;

	call->count += str_equal(row->owner, call->sandbox->owner);
	return 0;
}

/* As many as the owner of the sandbox may have; false: it was answered. */
static bool has_room(struct call *call)
{
	uint64_t max = call->daemon->settings->snapshots_max;

	call->count = 0;
	if (database_each_template(call->daemon->store, count_own, call) < 0)
		call_fail(call, 500, NULL, "the database cannot be read");
	else if (call->count >= max)
		call_fail(call, 429, NULL, "%s has as many snapshots as it may have (%llu); delete one",
			  call->sandbox->owner, (unsigned long long)max);
	else
		return true;
	return false;
}

void snapshots_take(struct call *call)
{
	if (has_room(call) && choose_id(call))
		(void)!ask_snapshot(call, call->text, taken);
}

/* ---- forks ---- */

/* Each is made from the same snapshot, with what the first was asked for with. */
static void fork_taken(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	struct origin origin = { .session = sandbox->session, .snapshot = call->text };
	uint64_t count = call->count;

	if (outcome->code) {
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
		return;
	}
	for (uint64_t i = 0; i < count; i++) {
		struct kept made = { 0 };

		if (!control_has_room(call, 1))
			lifecycle_failed(call, ATOLL_E_LIMIT, "there are as many sandboxes as there may be", "");
		else if (kept_read(&made, sandbox->made.bytes, sandbox->made.size) < 0)
			lifecycle_failed(call, ATOLL_E_NO_MEMORY, "out of memory", "");
		else
			lifecycle_create(call, &made, &origin, call_number(call, "timeout_ms", TIMEOUT_FORK_MS));
	}
}

void snapshots_fork(struct call *call)
{
	uint64_t count = call_number(call, "count", 1);

	if (!count || count > FORKS_MAX) {
		call_fail(call, 400, NULL, "count: 1 to %d forks at once", FORKS_MAX);
		return;
	}
	if (!control_check_quotas(call, count))
		return;
	call->count = count;
	if (choose_id(call))
		(void)!ask_snapshot(call, call->text, fork_taken);
}

/* ---- lists ---- */

struct listing {
	struct call *call;
	uint64_t seen, from, limit;
	bool has_more;
};

static void put_template(struct call *call, const struct template_row *row)
{
	const char *const names[] = { row->name[0] ? row->name : row->id, NULL };
	struct buf *out = &call->daemon->row;

	service_begin_row(out);
	if (call->message->operation == SERVICE_SNAPSHOTS) {
		put_snapshot(out, row);
	} else {
		field_put_string(out, "template", row->id);
		field_put_strings(out, "names", names);
		field_put_u64(out, "created_ms", row->created_ms);
		if (row->session[0])
			field_put_u64(out, "is_snapshot", 1);
	}
	service_put_row(&call->rows, out);
}

static int put_on_page(struct listing *listing, const struct template_row *row)
{
	if (listing->seen++ < listing->from)
		return 0;
	if (listing->seen > listing->from + listing->limit)
		listing->has_more = true;
	else
		put_template(listing->call, row);
	return 0;
}

static int list_one(void *context, const struct template_row *row)
{
	struct listing *listing = context;
	const char *sandbox = call_string(listing->call, "sandbox"), *name = call_string(listing->call, "name");

	if (!access_sees(&listing->call->caller, row->owner) || (sandbox && !str_equal(sandbox, row->sandbox)) ||
	    (name && !str_equal(name, row->name)))
		return 0;
	return put_on_page(listing, row);
}

/* Systems that were imported on this machine are there for every key. */
static int list_root(void *context, const char *name, uint64_t made_ms)
{
	struct listing *listing = context;
	struct template_row row = { .created_ms = made_ms };

	return str_copy(row.id, sizeof row.id, name) < 0 ? 0 : put_on_page(listing, &row);
}

void snapshots_list(struct call *call)
{
	struct listing listing = { .call = call, .limit = call_number(call, "limit", SERVICE_ROWS_MAX) };
	const char *next = call_string(call, "next");
	char number[24];
	struct buf *out;

	if (next && num_parse_u64(next, &listing.from) < 0) {
		call_fail(call, 400, NULL, "nextToken is none that this service gave");
		return;
	}
	if (database_each_template(call->daemon->store, list_one, &listing) < 0) {
		call_fail(call, 500, NULL, "the database cannot be read");
		return;
	}
	if (call->message->operation == SERVICE_TEMPLATES &&
	    session_each_root(call->daemon->places.state, list_root, &listing) < 0) {
		call_fail(call, 500, NULL, "the imported systems cannot be listed");
		return;
	}
	out = call_begin_reply(call, 200);
	buf_put(out, call->rows.bytes, call->rows.size);
	if (listing.has_more &&
	    str_format(number, sizeof number, "%llu", (unsigned long long)(listing.from + listing.limit)) == 0)
		field_put_string(out, "next", number);
	call_end_reply(call, NULL, 0);
}

void snapshots_delete(struct call *call)
{
	const char *template = call_string(call, "template");
	struct template_row row;
	struct origin origin;
	int r = snapshots_find(call, template, &row, &origin);

	if (r == 0) {
		call_fail(call, 404, NULL, "template '%s' not found", template);
		return;
	}
	if (r == 1)
		r = database_remove_template(call->daemon->store, row.id);
	if (r < 0) {
		call_fail(call, call_unwritten_status(r), NULL, "the database cannot be written");
		return;
	}
	tidy_forget(call->daemon, row.session, row.snapshot);
	(void)!tidy_hold(call->daemon);
	call_reply(call, 204);
}
