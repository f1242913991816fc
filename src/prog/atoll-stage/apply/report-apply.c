/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/apply/report-apply.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

enum { OUT_MAX = 1 << 30, FLUSH_AT = 64 << 10, FLAGGED_WORDS_MAX = 8 };

static int flush_to(int fd, struct buf *out, struct err *err)
{
	int r = buf_error(out);

	if (r == 0)
		r = fd_write_full(fd, out->bytes, out->size);
	buf_reset(out);
	return r < 0 ? err_set(err, ERR_STATE, -r, "apply", "the report cannot be written: %s", strerror(-r)) : 0;
}

static int flush(struct buf *out, struct err *err)
{
	return flush_to(STDOUT_FILENO, out, err);
}

static bool is_left(const struct apply_item *item)
{
	return item->verdict != APPLY_TAKEN && item->verdict != APPLY_KEPT && item->verdict != APPLY_UNWANTED &&
	       item->verdict != APPLY_SYSTEM;
}

static bool is_taken(const struct apply_item *item)
{
	return item->verdict == APPLY_TAKEN;
}

static bool is_kept(const struct apply_item *item)
{
	return item->verdict == APPLY_KEPT;
}

size_t tell_apply_left(const struct apply *apply)
{
	size_t left = 0;

	for (size_t i = 0; i < apply->count; i++)
		left += is_left(&apply->items[i]);
	return left;
}

size_t tell_apply_marked(const struct apply *apply)
{
	size_t marked = 0;

	for (size_t i = 0; i < apply->count; i++)
		marked += apply->items[i].verdict == APPLY_TAKEN && apply->items[i].has_markers;
	return marked;
}

static size_t count_system(const struct apply *apply)
{
	size_t count = 0;

	for (size_t i = 0; i < apply->count; i++)
		count += apply->items[i].verdict == APPLY_SYSTEM;
	return count;
}

/* git writes it also where nothing was changed, so it is in conflict sooner than anything else. */
static bool is_git_index(const char *path)
{
	return str_equal(path, ".git/index") || str_has_suffix(path, "/.git/index");
}

static void put_reason(const struct apply_report *report, size_t index, struct buf *out)
{
	const struct apply_item *item = &report->apply->items[index];
	const struct stage_change *change = item->change;

	if (item->verdict == APPLY_FAILED)
		buf_put_text(out, strerror(item->errnum));
	else if (item->verdict == APPLY_FLAGGED)
		buf_put_text(out, "protected: it needs a yes of its own");
	else if (item->verdict == APPLY_HELD)
		buf_put_text(out, change->host_exists && S_ISDIR(change->host.st_mode) ?
				  "something below it stays" : "the directory above it is left");
	else if (item->verdict == APPLY_RACED)
		buf_put_text(out, "it changed while it was read");
	else if (change->reason)
		buf_put_text(out, stage_reason_texts[change->reason]);
	else
		buf_put_text(out, "changed on the host while it was applied");
	if (item->verdict == APPLY_CONFLICT && is_git_index(change->path))
		buf_put_text(out, "; `git reset` there makes it anew from what was applied");
	if (item->verdict == APPLY_CONFLICT && report->text_merge_results &&
	    *text_merge_texts[report->text_merge_results[index]])
		buf_printf(out, "; %s", text_merge_texts[report->text_merge_results[index]]);
}

static void put_left_line(const struct apply_report *report, size_t index, struct buf *out)
{
	const struct apply_item *item = &report->apply->items[index];

	buf_printf(out, "  %-8s  ", apply_verdict_names[item->verdict]);
	outcome_put_path(report->opened, item->change->tree, item->change->path, out);
	buf_put_text(out, "  (");
	put_reason(report, index, out);
	buf_put_text(out, ")\n");
}

static void count_taken(const struct apply *apply, size_t counts[STAGE_CHANGE_KIND_COUNT])
{
	for (size_t i = 0; i < apply->count; i++)
		counts[apply->items[i].change->kind] += apply->items[i].verdict == APPLY_TAKEN;
}

static void put_note(const struct apply_report *report, const struct apply_item *item, const char *note,
		     struct buf *out)
{
	buf_put_text(out, note);
	outcome_put_path(report->opened, item->change->tree, item->change->path, out);
	buf_put_char(out, '\n');
}

/* What was taken otherwise than it was staged must not pass in silence. */
static void put_notes(const struct apply_report *report, struct buf *out)
{
	for (size_t i = 0; i < report->apply->count; i++) {
		const struct apply_item *item = &report->apply->items[i];

		if (item->verdict == APPLY_TAKEN && item->lost_set_id)
			put_note(report, item, "  without its set-id bits: ", out);
		if (item->verdict == APPLY_TAKEN && item->is_partial)
			put_note(report, item, "  in part; the rest stays staged: ", out);
		if (item->verdict == APPLY_TAKEN && item->merged && !item->has_markers && !item->is_partial)
			put_note(report, item, "  merged with the host's: ", out);
		if (item->verdict == APPLY_TAKEN && item->has_markers)
			put_note(report, item, "  both between markers, to be edited: ", out);
		if (item->verdict == APPLY_TAKEN && item->change->state == STAGE_CONFLICT && !item->merged)
			put_note(report, item, "  the session's over the host's: ", out);
		if (item->verdict == APPLY_KEPT)
			put_note(report, item, "  the host's stays: ", out);
	}
}

static void put_summary(const struct apply_report *report, struct buf *out)
{
	const char *session = report->opened->record.session;
	size_t counts[STAGE_CHANGE_KIND_COUNT] = { 0 };

	count_taken(report->apply, counts);
	if (report->dry_run)
		buf_put_text(out, "would apply ");
	else if (report->apply->number && !report->apply->applied && report->apply->kept)
		buf_printf(out, "settled %zu conflict%s; take it back with: atoll undo %s\n", report->apply->kept,
			   report->apply->kept == 1 ? "" : "s", session);
	else if (report->apply->number)
		buf_put_text(out, "applied ");
	else
		buf_put_text(out, tell_apply_left(report->apply) ? "nothing applied\n" : "nothing to apply\n");
	if (!report->dry_run && (!report->apply->number || (!report->apply->applied && report->apply->kept)))
		return;
	outcome_put_counts(counts, out);
	if (!report->dry_run && report->apply->applied)
		buf_printf(out, "; take it back with: atoll undo %s", session);
	buf_put_char(out, '\n');
}

/* Whether a conflict was left about which nothing was said. */
static bool has_unsettled(const struct apply_report *report)
{
	for (size_t i = 0; i < report->apply->count && report->settlement == SETTLE_NOT; i++)
		if (report->apply->items[i].verdict == APPLY_CONFLICT)
			return true;
	return false;
}

/* Words that stand for all flagged paths that were left: themselves, or directories above where they are many. */
struct flagged_words {
	char *words[FLAGGED_WORDS_MAX];  /* owned */
	size_t count;
};

static void flagged_words_done(struct flagged_words *flagged)
{
	for (size_t i = 0; i < flagged->count; i++)
		free(flagged->words[i]);
	flagged->count = 0;
}

/* The path cut to this many components below its tree; the tree's own without any. NULL: no memory. */
static char *cut_path(const struct opened *opened, const struct stage_change *change, size_t components)
{
	const char *root = opened_tree(opened, change->tree), *end = change->path;

	for (size_t i = 0; i < components && *end; i++)
		end += strcspn(end + (*end == '/'), "/") + (*end == '/');
	if (end == change->path)
		return str_dup(root);
	return str_printf("%s/%.*s", str_equal(root, "/") ? "" : root, (int)(end - change->path), change->path);
}

/* False: they are too many of this depth, or one cannot be written so that a shell reads it. */
static bool collect_flagged(const struct apply_report *report, size_t components, struct flagged_words *flagged)
{
	for (size_t i = 0; i < report->apply->count; i++) {
		const struct apply_item *item = &report->apply->items[i];
		cleanup_free char *word = NULL;
		cleanup_buf struct buf ignored;
		bool is_known = false;

		buf_init(&ignored, 1 << 20);
		if (item->verdict != APPLY_FLAGGED)
			continue;
		word = cut_path(report->opened, item->change, components);
		if (!word || !buf_put_shell_word(&ignored, word))
			return false;
		for (size_t known = 0; known < flagged->count && !is_known; known++)
			is_known = path_is_below(word, flagged->words[known]);
		if (is_known)
			continue;
		if (flagged->count == FLAGGED_WORDS_MAX)
			return false;
		flagged->words[flagged->count++] = take_ptr(word);
	}
	return flagged->count > 0;
}

/* How to look at the flagged paths that were left, and the command that applies them, to be copied. */
static void put_flagged_command(const struct apply_report *report, struct buf *out)
{
	static const size_t depths[] = { SIZE_MAX, 3, 2, 1, 0 };
	const char *session = report->opened->record.session;
	struct flagged_words flagged = { 0 };
	bool is_found = false;

	for (size_t i = 0; i < ARRAY_SIZE(depths) && !is_found; i++) {
		flagged_words_done(&flagged);
		is_found = collect_flagged(report, depths[i], &flagged);
	}
	if (is_found) {
		buf_printf(out, "look at the flagged ones:  atoll diff -p --flagged %s\nthen apply them with:      "
				"atoll apply %s", session, session);
		for (size_t i = 0; i < flagged.count; i++) {
			buf_put_text(out, " --allow-flagged ");
			buf_put_shell_word(out, flagged.words[i]);
		}
		buf_put_char(out, '\n');
	}
	flagged_words_done(&flagged);
}

int report_apply_text(const struct apply_report *report, struct err *err)
{
	int fd = report->is_aside ? STDERR_FILENO : STDOUT_FILENO;
	size_t left = tell_apply_left(report->apply), system = count_system(report->apply);
	cleanup_buf struct buf out;
	int r = 0;

	buf_init(&out, OUT_MAX);
	if (!report->quiet)
		put_summary(report, &out);
	put_notes(report, &out);
	if (system && !report->quiet)
		buf_printf(&out, "never applied, stays with the session: %zu change%s of the sandbox's own system\n",
			   system, system == 1 ? "" : "s");
	if (left)
		buf_printf(&out, "left, %zu path%s:\n", left, left == 1 ? "" : "s");
	for (size_t i = 0; i < report->apply->count && r == 0; i++) {
		if (is_left(&report->apply->items[i]))
			put_left_line(report, i, &out);
		if (out.size >= FLUSH_AT)
			r = flush_to(fd, &out, err);
	}
	if (r == 0 && has_unsettled(report) && !report->is_aside)
		buf_put_text(&out, "settle conflicts, all or those of a PATH, with atoll apply --ours (the host's "
				   "stays), --theirs (the session's takes its place) or --merge (of texts both)\n");
	if (r == 0 && !report->is_aside)
		put_flagged_command(report, &out);
	return r == 0 ? flush_to(fd, &out, err) : r;
}

static void put_json_item(const struct apply_report *report, size_t index, struct json *json)
{
	const struct apply_item *item = &report->apply->items[index];
	const struct stage_change *change = item->change;
	cleanup_buf struct buf text;

	json_object_begin(json, NULL);
	outcome_put_json_path(report->opened, change->tree, change->path, json);
	json_string(json, "kind", stage_change_kind_names[change->kind]);
	if (is_left(item)) {
		buf_init(&text, 8192);
		put_reason(report, index, &text);
		json_string(json, "why", apply_verdict_names[item->verdict]);
		json_string(json, "reason", stage_reason_names[change->reason]);
		json_string(json, "text", buf_text(&text));
	}
	if (item->merged)
		json_bool(json, item->is_partial ? "partial" : "merged", true);
	if (item->lost_set_id)
		json_bool(json, "lost_set_id", true);
	if (item->has_markers)
		json_bool(json, "markers", true);
	if (item->verdict == APPLY_TAKEN && change->state == STAGE_CONFLICT)
		json_string(json, "settled", settlement_names[item->merged ? SETTLE_MERGE : SETTLE_THEIRS]);
	if (item->verdict == APPLY_KEPT)
		json_string(json, "settled", settlement_names[report->settlement]);
	json_object_end(json);
}

/* 100,000 paths are written as they come. */
static int put_json_items(const struct apply_report *report, const char *key,
			  bool (*has)(const struct apply_item *item), struct json *json, struct err *err)
{
	int r = 0;

	json_array_begin(json, key);
	for (size_t i = 0; i < report->apply->count && r == 0; i++) {
		if (has(&report->apply->items[i]))
			put_json_item(report, i, json);
		if (json->out->size >= FLUSH_AT)
			r = flush(json->out, err);
	}
	json_array_end(json);
	return r;
}

int report_apply_json(const struct apply_report *report, struct err *err)
{
	cleanup_buf struct buf out;
	struct json json;
	int r;

	buf_init(&out, OUT_MAX);
	json_init(&json, &out);
	json_object_begin(&json, NULL);
	json_string(&json, "session", report->opened->record.session);
	if (report->apply->number)
		json_u64(&json, "apply", report->apply->number);
	else
		json_null(&json, "apply");
	json_bool(&json, "dry_run", report->dry_run);
	json_u64(&json, "recovered", report->recovered);
	json_u64(&json, "bytes", report->apply->bytes);
	json_u64(&json, "system", count_system(report->apply));
	r = put_json_items(report, "applied", is_taken, &json, err);
	if (r == 0)
		r = put_json_items(report, "kept", is_kept, &json, err);
	if (r == 0)
		r = put_json_items(report, "left", is_left, &json, err);
	json_object_end(&json);
	buf_put_char(&out, '\n');
	return r == 0 ? flush(&out, err) : r;
}
