/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "prog/atoll-stage/verb/audit-step.h"
#include "prog/atoll-stage/git/git-commit.h"
#include "prog/atoll-stage/apply/outcome.h"
#include "prog/atoll-stage/verb/path-filter.h"
#include "stage/apply/undo.h"
#include "stage/change/review-options.h"

struct request {
	struct verb_session session;
	struct undo_options given;
};

#define AT(member) offsetof(struct request, given.member)
static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct request),
	UNDO_OPTIONS(AT),
};

enum { OUT_MAX = 1 << 30 };

static int put_out(struct buf *out, struct err *err)
{
	int r = buf_error(out);

	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, out->bytes, out->size);
	return r < 0 ? err_set(err, ERR_STATE, -r, "undo", "stdout cannot be written: %s", strerror(-r)) : 0;
}

static void put_list_json(const struct opened *opened, const struct undo_entry *entries, size_t count,
			  struct buf *out)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_string(&json, "session", opened->record.session);
	json_array_begin(&json, "applies");
	for (size_t i = 0; i < count; i++) {
		char time[CLOCK_RFC3339_SIZE];

		clock_format_rfc3339(entries[i].time_ns, time);
		json_object_begin(&json, NULL);
		json_u64(&json, "apply", entries[i].number);
		json_string(&json, "time", time);
		json_u64(&json, "applied", entries[i].applied);
		json_u64(&json, "undone", entries[i].undone);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	buf_put_char(out, '\n');
}

static int list(const struct undo_options *given, const struct opened *opened, struct err *err)
{
	cleanup_free struct undo_entry *entries = NULL;
	cleanup_buf struct buf out = { 0 };
	size_t count;
	int r = undo_list(opened->stage_fd, &entries, &count);

	if (r < 0)
		return err_set(err, ERR_STATE, -r, "undo", "the record of the apply cannot be read: %s", strerror(-r));
	buf_init(&out, OUT_MAX);
	if (given->json)
		put_list_json(opened, entries, count, &out);
	for (size_t i = 0; i < count && !given->json; i++) {
		char time[CLOCK_RFC3339_SIZE];

		clock_format_rfc3339(entries[i].time_ns, time);
		buf_printf(&out, "%4u  %.19sZ  %zu path%s", entries[i].number, time, entries[i].applied,
			   entries[i].applied == 1 ? "" : "s");
		if (entries[i].undone == entries[i].applied)
			buf_put_text(&out, ", taken back");
		else if (entries[i].undone)
			buf_printf(&out, ", %zu of them taken back", entries[i].undone);
		buf_put_char(&out, '\n');
	}
	return put_out(&out, err);
}

static bool is_left(const struct undo_item *item)
{
	return item->verdict == UNDO_CHANGED || item->verdict == UNDO_FAILED;
}

static const char *reason_of(const struct undo_item *item)
{
	return item->verdict == UNDO_CHANGED ? "changed on the host since it was applied" : strerror(item->errnum);
}

static size_t count_verdict(const struct undo *undo, bool left)
{
	size_t count = 0;

	for (size_t i = 0; i < undo->count; i++)
		count += left ? is_left(&undo->items[i]) : undo->items[i].verdict == UNDO_TAKEN &&
			 journal_op_is_shown(undo->items[i].op);
	return count;
}

/* The length of what stands before "objects/…" or "index" of a path in a `.git`; 0: it is neither. */
static size_t repository_of(const char *path, const char *inner, bool is_directory)
{
	const char *at = path;

	while ((at = strstr(at, ".git/"))) {
		const char *rest = at + strlen(".git/");

		if ((at == path || at[-1] == '/') && str_has_prefix(rest, inner) &&
		    (is_directory || !rest[strlen(inner)]))
			return (size_t)(rest - path);
		at = rest;
	}
	return 0;
}

static bool has_undone_objects(const struct undo *undo, const struct undo_item *index, size_t length)
{
	for (size_t i = 0; i < undo->count; i++) {
		const struct undo_item *item = &undo->items[i];

		if (item->verdict == UNDO_TAKEN && item->op->tree == index->op->tree &&
		    repository_of(item->op->path, "objects/", true) == length &&
		    memcmp(item->op->path, index->op->path, length) == 0)
			return true;
	}
	return false;
}

/*
 * git rewrites its index whenever somebody looks (git status), so that it is the host's and stays, and names objects
 * that have gone with the commit.
 */
static void put_index_hints(const struct opened *opened, const struct undo *undo, struct buf *out)
{
	for (size_t i = 0; i < undo->count; i++) {
		const struct undo_item *item = &undo->items[i];
		size_t length = is_left(item) ? repository_of(item->op->path, "index", false) : 0;
		cleanup_free char *directory = NULL;

		if (!length || !has_undone_objects(undo, item, length))
			continue;
		/* Where the root of the tree is the work tree, there is no slash before. */
		directory = strndup(item->op->path, length > strlen("/.git/") ? length - strlen("/.git/") : 0);
		if (!directory)
			return;
		buf_put_text(out, "the index of git was changed since and names what was taken back; "
				  "put it in order with: git -C ");
		outcome_put_path(opened, item->op->tree, directory, out);
		buf_put_text(out, " reset\n");
	}
}

static void put_rehearsed(const struct opened *opened, const struct undo *undo, size_t taken, size_t left,
			  struct buf *out)
{
	buf_printf(out, "%s apply %u of session %s: %zu path%s can be taken back; do it with: atoll undo -n %u %s\n",
		   left ? taken ? "in part," : "no:" : "yes:", undo->apply.number, opened->record.session, taken,
		   taken == 1 ? "" : "s", undo->apply.number, opened->record.session);
}

/* What `apply --commit` made of it is git's by now, and stays. */
static void put_commit_hint(const struct opened *opened, uint32_t number, struct buf *out)
{
	char note[512];
	const char *branch;

	if (!git_commit_of_apply(opened->stage_fd, number, note, sizeof note))
		return;
	note[COMMIT_HEX_SIZE - 1] = 0;
	branch = note + COMMIT_HEX_SIZE;
	buf_printf(out, "commit %.12s", note);
	if (*branch) {
		buf_put_text(out, " on ");
		buf_put_escaped(out, branch, strlen(branch), sizeof note);
	}
	buf_printf(out, " still has these changes. If it is the newest one, take it back with: git reset %.12s~1\n"
			"Else make a commit against it: git revert %.12s\n", note, note);
}

static void put_text(const struct undo_options *given, const struct opened *opened, const struct undo *undo,
		     struct buf *out)
{
	size_t taken = count_verdict(undo, false), left = count_verdict(undo, true);

	if (given->rehearse && !given->quiet)
		put_rehearsed(opened, undo, taken, left, out);
	else if (!given->quiet && (taken || !left))
		buf_printf(out, "%s apply %u: %zu path%s%s\n", given->dry_run ? "would take back" : "took back",
			   undo->apply.number, taken, taken == 1 ? "" : "s",
			   given->dry_run || !taken ? "" : "; apply again with: atoll apply");
	if (left)
		buf_printf(out, "%s, %zu path%s:\n", given->rehearse ? "cannot be taken back" : "left", left,
			   left == 1 ? "" : "s");
	for (size_t i = 0; i < undo->count; i++) {
		const struct undo_item *item = &undo->items[i];

		if (!is_left(item))
			continue;
		buf_printf(out, "  %-8s  ", undo_verdict_names[item->verdict]);
		outcome_put_path(opened, item->op->tree, item->op->path, out);
		buf_printf(out, "  (%s)\n", reason_of(item));
	}
	put_index_hints(opened, undo, out);
	if (taken && !given->dry_run && !given->rehearse)
		put_commit_hint(opened, undo->apply.number, out);
}

static void put_json_items(const struct opened *opened, const struct undo *undo, bool left, struct json *json)
{
	for (size_t i = 0; i < undo->count; i++) {
		const struct undo_item *item = &undo->items[i];

		if (left ? !is_left(item) : item->verdict != UNDO_TAKEN || !journal_op_is_shown(item->op))
			continue;
		json_object_begin(json, NULL);
		outcome_put_json_path(opened, item->op->tree, item->op->path, json);
		if (left) {
			json_string(json, "why", undo_verdict_names[item->verdict]);
			json_string(json, "text", reason_of(item));
		}
		json_object_end(json);
	}
}

static void put_json(const struct undo_options *given, const struct opened *opened, const struct undo *undo,
		     struct buf *out)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_string(&json, "session", opened->record.session);
	json_u64(&json, "apply", undo->apply.number);
	if (undo->number)
		json_u64(&json, "undo", undo->number);
	else
		json_null(&json, "undo");
	json_bool(&json, "dry_run", given->dry_run || given->rehearse);
	json_bool(&json, "undoable", !count_verdict(undo, true));
	json_array_begin(&json, "undone");
	put_json_items(opened, undo, false, &json);
	json_array_end(&json);
	json_array_begin(&json, "left");
	put_json_items(opened, undo, true, &json);
	json_array_end(&json);
	json_object_end(&json);
	buf_put_char(out, '\n');
}

static int run_undo(struct audit_step *step, struct transaction_place *place, const struct path_filter *filter,
		    struct undo *undo, struct err *err)
{
	int r;

	audit_step_add_words(step, REVIEW_ASKED, (const char *const *)filter->paths);
	audit_step_attach(step, place);
	r = undo_run(place, undo, err);
	step->entry.counts[REVIEW_LEFT] = count_verdict(undo, true);
	return audit_step_end(step, r, err);
}

/* The place is locked and recovered. */
static int undo_wanted(const struct undo_options *given, struct transaction_place *place, struct audit_step *step,
		       struct path_filter *filter, struct err *err)
{
	const struct opened *opened = filter->opened;
	cleanup_undo struct undo undo = { 0 };
	cleanup_buf struct buf out;
	uint64_t number = 0;
	int r = given->number ? num_parse_u64(given->number, &number) : 0;

	buf_init(&out, OUT_MAX);
	if (r < 0 || number > UINT32_MAX)
		return err_set(err, ERR_USAGE, EINVAL, "undo", "--apply needs a number, not %s", given->number);
	r = undo_open(place, (uint32_t)number, &undo, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < undo.count; i++)
		if (undo.items[i].verdict == UNDO_TAKEN &&
		    !path_filter_has(filter, undo.items[i].op->tree, undo.items[i].op->path))
			undo.items[i].verdict = UNDO_UNWANTED;
	r = undo_complete(place, &undo, err);
	if (r == 0 && !given->dry_run && !given->rehearse)
		r = run_undo(step, place, filter, &undo, err);
	outcome_end_progress();
	if (r < 0)
		return r;
	if (given->json)
		put_json(given, opened, &undo, &out);
	else
		put_text(given, opened, &undo, &out);
	r = put_out(&out, err);
	return r < 0 ? r : count_verdict(&undo, true) ? EXIT_LEFT : 0;
}

/* For who must not change anything: -EBUSY with *err where a transaction was interrupted. */
static int need_clean(const struct transaction_place *place, struct err *err)
{
	cleanup_free uint32_t *numbers = NULL;
	size_t count;
	int r = transaction_list(place->stage_fd, &numbers, &count);

	for (size_t i = 0; i < count && r == 0; i++) {
		cleanup_journal struct journal journal = { 0 };

		r = transaction_load(place->stage_fd, numbers[i], &journal);
		if (r == 0 && journal.is_clean)
			continue;
		err_set(err, ERR_STATE, EBUSY, "undo", "apply %u of session %s was interrupted", numbers[i],
			place->record->session);
		err_hint(err, "atoll apply --resume %s finishes it or takes it back", place->record->session);
		return -EBUSY;
	}
	return r < 0 ? err_set(err, ERR_STATE, -r, "undo", "applies/ cannot be read: %s", strerror(-r)) : 0;
}

static int undo_one(const struct undo_options *given, struct audit_step *step, struct path_filter *filter,
		    struct err *err)
{
	const struct opened *opened = filter->opened;
	cleanup_transaction_place struct transaction_place place = { 0 };
	struct transaction_recovered recovered;
	int r = transaction_place_open(opened->stage_fd, &opened->record, &place, err);

	if (r < 0)
		return r;
	if (given->rehearse) {
		r = need_clean(&place, err);
		return r < 0 ? r : undo_wanted(given, &place, step, filter, err);
	}
	place.progress = isatty(STDERR_FILENO) && !given->quiet ? outcome_progress : NULL;
	r = transaction_recover(&place, &recovered, err);
	outcome_end_progress();
	if (r == 0 && recovered.finished + recovered.taken_back)
		fprintf(stderr, "atoll: dealt with %zu interrupted transactions first\n",
			recovered.finished + recovered.taken_back);
	if (r == 0)
		r = audit_step_recovered(step, &recovered, err);
	return r < 0 ? r : undo_wanted(given, &place, step, filter, err);
}

int cmd_undo(int argc, char **argv, struct err *err)
{
	cleanup_opened struct opened opened = OPENED_NONE;
	cleanup_audit_step struct audit_step step = AUDIT_STEP_INIT;
	struct request request = { 0 };
	struct path_filter filter = { 0 };
	int rest, r = options_parse(options, ARRAY_SIZE(options), &request, argc, argv, true, &rest, err);

	if (r != 0)
		return r < 0 ? r : options_print(options, ARRAY_SIZE(options), STDOUT_FILENO);
	r = opened_open(&opened, &request.session, err);
	if (r == 0)
		r = opened_need_host(&opened, "undo", err);
	if (r == 0)
		r = opened_stacks(&opened, err);
	if (r == 0)
		r = audit_step_open(&step, opened.sessions_fd, request.session.id, AUDIT_STAGE_UNDO, err);
	if (r == 0)
		r = opened_confine(&opened, CONFINE_STAGE_WRITING, err);
	if (r == 0)
		r = path_filter_init(&filter, &opened, argv + rest, argc - rest, err);
	if (r == 0)
		r = request.given.list ? list(&request.given, &opened, err)
				       : undo_one(&request.given, &step, &filter, err);
	path_filter_done(&filter);
	return r;
}
