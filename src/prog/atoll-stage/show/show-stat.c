/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/utf8.h"
#include "os/fd.h"
#include "prog/atoll-stage/show/show.h"
#include "prog/atoll-stage/review/text.h"

enum {
	STAT_LINE_MAX = 64 << 10,
	FLUSH_AT = 64 << 10,
	NAME_WIDTH = 50,
	BAR_WIDTH = 30,
	/* Lines are counted only as long as that is quick; sizes do for the rest. */
	COUNT_FILES = 2000,
	COUNT_BYTES = 32 << 20,
	COUNT_FILE_MAX = 1 << 20,
	COUNT_PAIRS = 200,
};

struct stat_show {
	const struct show *show;
	struct buf out;
	size_t files_left, pairs_left;
	uint64_t bytes_left;
};

static const char *const colours[GROUP_COUNT] = {
	[GROUP_FLAGGED] = "\x1b[33m", [GROUP_CLEAN] = "", [GROUP_CONFLICT] = "\x1b[31m", [GROUP_REFUSED] = "\x1b[35m",
	[GROUP_SETTLED] = "", [GROUP_SYSTEM] = "",
};

static const char *const headings[GROUP_COUNT] = {
	[GROUP_FLAGGED] = "flagged, applied only with --allow-flagged PATH:\n",
	[GROUP_CLEAN] = "",
	[GROUP_CONFLICT] = "conflicts, left by apply:\n",
	[GROUP_SETTLED] = "conflicts that were settled, what the host has stays:\n",
	[GROUP_REFUSED] = "refused, never applied:\n",
	[GROUP_SYSTEM] = "of the sandbox's own system, never applied, stays with the session:\n",
};

const char *show_type(mode_t mode)
{
	static const struct {
		mode_t type;
		const char *name;
	} types[] = {
		{ S_IFREG, "file" }, { S_IFDIR, "directory" }, { S_IFLNK, "symlink" },
		{ S_IFIFO, "fifo" }, { S_IFSOCK, "socket" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if ((mode & S_IFMT) == types[i].type)
			return types[i].name;
	return "device";
}

int show_flush(struct buf *out, struct err *err)
{
	int r = buf_error(out);

	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, out->bytes, out->size);
	buf_reset(out);
	return r < 0 ? err_set(err, ERR_STATE, -r, "diff", "stdout cannot be written: %s", strerror(-r)) : 0;
}

bool show_has(const struct show *show, const struct listed *listed)
{
	return !listed->is_implied && (!show->flagged_only || listed->change->is_flagged);
}

static size_t width_of(const struct buf *out, size_t start)
{
	size_t width = 0;

	for (size_t i = start; i < out->size; i++)
		width += (out->bytes[i] & 0xc0) != 0x80;
	return width;
}

static void put_name(const struct stat_show *stat, const struct stage_change *change, struct buf *out)
{
	const struct opened *opened = stat->show->listing->opened;
	cleanup_buf struct buf raw;

	buf_init(&raw, 2 << 20);
	listing_put_path(opened, change, &raw);
	/* Long ones are cut: the exact name is in --json. */
	buf_put_escaped(out, raw.bytes, raw.size, 4096);
	if (S_ISDIR(change->staged_exists ? change->staged.st_mode : change->host.st_mode))
		buf_put_char(out, '/');
}

static void put_mode(struct buf *out, mode_t mode)
{
	buf_printf(out, "%04o", (unsigned)mode & 07777);
}

bool show_mode_is_open(mode_t mode)
{
	return !S_ISLNK(mode) && mode & S_IWOTH && !(S_ISDIR(mode) && mode & S_ISVTX);
}

/* Also of what was renamed, where a line that says no more than that would hide it. */
static void put_modes(const struct listed *listed, struct buf *out)
{
	const struct stage_change *change = listed->change, *before = listed->renamed_from;
	mode_t old = before ? before->host.st_mode : change->host.st_mode;

	if (change->differs & STAGE_DIFFERS_MODE || (before && (old ^ change->staged.st_mode) & 07777)) {
		buf_put_text(out, " mode ");
		put_mode(out, old);
		buf_put_text(out, " → ");
		put_mode(out, change->staged.st_mode);
	} else if (change->kind == STAGE_ADDED && !before && show_mode_is_open(change->staged.st_mode)) {
		buf_put_text(out, " mode ");
		put_mode(out, change->staged.st_mode);
	}
}

static void put_sizes(const struct stage_change *change, struct buf *out)
{
	char size[32];

	if (change->host_exists && S_ISREG(change->host.st_mode) && change->kind != STAGE_ADDED) {
		num_format_size_human((uint64_t)change->host.st_size, size);
		buf_put_text(out, size);
	}
	if (change->kind == STAGE_MODIFIED)
		buf_put_text(out, " → ");
	if (change->staged_exists && S_ISREG(change->staged.st_mode)) {
		num_format_size_human((uint64_t)change->staged.st_size, size);
		buf_put_text(out, size);
	}
}

static void put_bar(const struct stat_show *stat, size_t added, size_t removed)
{
	struct buf *out = (struct buf *)&stat->out;
	size_t total = added + removed, plus = added, minus = removed;
	bool colour = stat->show->listing->opened->session->colour;

	if (total > BAR_WIDTH) {
		plus = (added * BAR_WIDTH + total - 1) / total;
		minus = BAR_WIDTH - plus;
	}
	buf_printf(out, "%4zu ", total);
	buf_put_text(out, colour && plus ? "\x1b[32m" : "");
	while (plus--)
		buf_put_char(out, '+');
	buf_put_text(out, colour && minus ? "\x1b[31m" : "");
	while (minus--)
		buf_put_char(out, '-');
	buf_put_text(out, colour ? "\x1b[0m" : "");
}

static size_t count_lines(const struct text *text)
{
	size_t lines = 0;
	const char *at = text->bytes, *end = at + text->size;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		lines++;
		at = newline ? newline + 1 : end;
	}
	return lines;
}

/* The lines that hunks add and remove. */
static void count_hunks(const struct buf *hunks, size_t *ret_added, size_t *ret_removed)
{
	*ret_added = *ret_removed = 0;
	for (size_t at = 0; at < hunks->size;) {
		const uint8_t *end = memchr(hunks->bytes + at, '\n', hunks->size - at);

		*ret_added += hunks->bytes[at] == '+';
		*ret_removed += hunks->bytes[at] == '-';
		at = end ? (size_t)(end - hunks->bytes) + 1 : hunks->size;
	}
}

/* 1 when counted. A side that is absent has no lines. */
static int count_pair(struct stat_show *stat, const struct text *before, const struct text *after, size_t *ret_added,
		      size_t *ret_removed)
{
	cleanup_buf struct buf hunks;
	int r;

	buf_init(&hunks, TEXT_RESULT_MAX + 1);
	if (before->kind == TEXT_ABSENT || after->kind == TEXT_ABSENT) {
		*ret_added = after->kind == TEXT_LINES ? count_lines(after) : 0;
		*ret_removed = before->kind == TEXT_LINES ? count_lines(before) : 0;
		return 1;
	}
	if (!stat->show->worker || !stat->pairs_left)
		return 0;
	stat->pairs_left--;
	r = text_worker_lines(stat->show->worker, &(struct text_piece){ before->bytes, before->size },
			      &(struct text_piece){ after->bytes, after->size }, &hunks);
	if (r < 0)
		return 0;
	count_hunks(&hunks, ret_added, ret_removed);
	return 1;
}

/* The lines of a file that was changed, or its sizes. */
static void put_content(struct stat_show *stat, const struct stage_change *change)
{
	const struct opened *opened = stat->show->listing->opened;
	uint64_t bytes = (uint64_t)(change->host_exists ? change->host.st_size : 0) +
			 (uint64_t)(change->staged_exists ? change->staged.st_size : 0);
	struct text before = { 0 }, after = { 0 };
	size_t added = 0, removed = 0;
	bool is_counted = false;

	if (stat->files_left && bytes <= stat->bytes_left && bytes <= COUNT_FILE_MAX) {
		stat->files_left--;
		stat->bytes_left -= bytes;
		if (text_load(opened, change, SIDE_HOST, COUNT_FILE_MAX, &before) == 0 &&
		    text_load(opened, change, SIDE_STAGED, COUNT_FILE_MAX, &after) == 0 &&
		    (before.kind == TEXT_LINES || before.kind == TEXT_ABSENT) &&
		    (after.kind == TEXT_LINES || after.kind == TEXT_ABSENT))
			is_counted = count_pair(stat, &before, &after, &added, &removed) > 0;
	}
	if (is_counted && (added || removed)) {
		put_bar(stat, added, removed);
	} else {
		if (before.kind == TEXT_BINARY || after.kind == TEXT_BINARY)
			buf_put_text(&stat->out, "binary ");
		put_sizes(change, &stat->out);
	}
	text_done(&before);
	text_done(&after);
}

static void put_link(struct stat_show *stat, const struct stage_change *change, enum text_side side)
{
	struct text target;

	if (text_load(stat->show->listing->opened, change, side, 4096, &target) < 0)
		return;
	buf_put_text(&stat->out, "-> ");
	if (target.kind == TEXT_LINES)
		buf_put_escaped(&stat->out, target.bytes, target.size, 512);
	text_done(&target);
}

/* One more thing to say of a change. */
static void put_also(struct buf *out, const char *text)
{
	if (out->size && out->bytes[out->size - 1] != ' ')
		buf_put_text(out, ", ");
	buf_put_text(out, text);
}

static void put_detail(struct stat_show *stat, const struct listed *listed)
{
	const struct stage_change *change = listed->change;
	mode_t mode = change->staged_exists ? change->staged.st_mode : change->host.st_mode;
	unsigned content = STAGE_DIFFERS_CONTENT | STAGE_DIFFERS_TYPE;

	if (change->state == STAGE_REFUSED || (change->state == STAGE_SYSTEM && change->reason)) {
		buf_put_text(&stat->out, stage_reason_texts[change->reason]);
		return;
	}
	if (change->differs & STAGE_DIFFERS_TYPE)
		buf_printf(&stat->out, "%s → %s ", show_type(change->host.st_mode), show_type(mode));
	if (S_ISLNK(mode))
		put_link(stat, change, change->staged_exists ? SIDE_STAGED : SIDE_HOST);
	else if (S_ISREG(mode) && (change->kind != STAGE_MODIFIED || change->differs & content))
		put_content(stat, change);
	put_modes(listed, &stat->out);
	if (change->kind == STAGE_MODIFIED && change->differs == STAGE_DIFFERS_MTIME)
		put_also(&stat->out, "time of last change only");
	if (change->differs & STAGE_DIFFERS_XATTRS)
		put_also(&stat->out, "extended attributes");
	if (change->differs & STAGE_DIFFERS_OWNER) {
		put_also(&stat->out, "owner ");
		buf_printf(&stat->out, "%u → %u", (unsigned)change->host.st_uid, (unsigned)change->owner);
	}
	if (change->state == STAGE_CONFLICT)
		buf_printf(&stat->out, "  %s", stage_reason_texts[change->reason]);
}

static void put_line(struct stat_show *stat, const struct listed *listed)
{
	static const char letters[] = { [STAGE_ADDED] = 'A', [STAGE_MODIFIED] = 'M', [STAGE_DELETED] = 'D' };
	const struct stage_change *change = listed->change;
	const char *colour = stat->show->listing->opened->session->colour ? colours[listed->group] : "";
	size_t start;

	buf_printf(&stat->out, " %s%c ", colour, listed->renamed_from ? 'R' : letters[change->kind]);
	start = stat->out.size;
	if (listed->renamed_from) {
		put_name(stat, listed->renamed_from, &stat->out);
		buf_put_text(&stat->out, " => ");
	}
	put_name(stat, change, &stat->out);
	for (size_t width = width_of(&stat->out, start); width < NAME_WIDTH; width++)
		buf_put_char(&stat->out, ' ');
	buf_put_text(&stat->out, *colour ? "\x1b[0m | " : " | ");
	if (listed->renamed_from && listed->renamed_files)
		buf_printf(&stat->out, "renamed, with %llu %s", (unsigned long long)listed->renamed_files,
			   listed->renamed_files == 1 ? "file" : "files");
	else if (listed->renamed_from)
		buf_put_text(&stat->out, "renamed");
	else
		put_detail(stat, listed);
	if (listed->renamed_from && !listed->renamed_files)
		put_modes(listed, &stat->out);
	/* Directories have nothing to tell. */
	while (stat->out.size && strchr(" |", stat->out.bytes[stat->out.size - 1]))
		stat->out.size--;
	buf_put_char(&stat->out, '\n');
}

static void put_count(struct buf *out, uint64_t count, const char *one, const char *many)
{
	if (count)
		buf_printf(out, ", %llu %s", (unsigned long long)count, count == 1 ? one : many);
}

static void put_summary(const struct stage_counts *counts, struct buf *out)
{
	uint64_t files = counts->added + counts->modified + counts->deleted;

	buf_printf(out, " %llu %s changed (%llu modified, %llu added, %llu deleted)", (unsigned long long)files,
		   files == 1 ? "file" : "files", (unsigned long long)counts->modified,
		   (unsigned long long)counts->added, (unsigned long long)counts->deleted);
	put_count(out, counts->directories, "directory", "directories");
	put_count(out, counts->flagged, "flagged", "flagged");
	put_count(out, counts->conflicts, "conflict", "conflicts");
	put_count(out, counts->refused, "refused", "refused");
	put_count(out, counts->system, "in the sandbox's own system", "in the sandbox's own system");
	buf_put_char(out, '\n');
}

int show_stat(const struct show *show, struct err *err)
{
	struct stat_show stat = {
		.show = show, .files_left = COUNT_FILES, .pairs_left = COUNT_PAIRS, .bytes_left = COUNT_BYTES,
	};
	const struct listing *listing = show->listing;
	enum listing_group group = GROUP_COUNT;
	int r = 0;

	/* Sizes for all of them rather than lines for those that happen to be first. */
	if (listing->count > COUNT_FILES)
		stat.files_left = 0;
	buf_init(&stat.out, FLUSH_AT + STAT_LINE_MAX);
	for (size_t i = 0; r == 0 && i < listing->count; i++) {
		const struct listed *listed = &listing->items[i];

		if (!show_has(show, listed) || listed->is_rename_source || listed->is_within_rename)
			continue;
		if (listed->group != group)
			buf_put_text(&stat.out, headings[listed->group]);
		group = listed->group;
		put_line(&stat, listed);
		if (stat.out.size >= FLUSH_AT)
			r = show_flush(&stat.out, err);
	}
	if (r == 0 && listing->count && !show->flagged_only)
		put_summary(&listing->counts, &stat.out);
	if (r == 0)
		r = show_flush(&stat.out, err);
	buf_done(&stat.out);
	return r;
}
