/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/num.h"
#include "prog/atoll-stage/show/show.h"
#include "prog/atoll-stage/review/text.h"

/*
 * git's extended form of the unified difference, because patch(1) and git apply both read it and people know it. Names
 * are quoted as git quotes them. For a terminal each line goes through the escaper, tabs excepted.
 *
 * What that form cannot say stands in lines of our own before the header of a file, where git looks for the next header
 * and takes no notice. Behind the header they would end it: git would make an empty file of one that has content. A
 * change of which that form can say nothing at all has no header. One whose bytes are not shown has the line that makes
 * `git apply` refuse the patch, for else it would apply it without them.
 */

enum { FLUSH_AT = 64 << 10, BUFFER_MAX = TEXT_RESULT_MAX * 4 + (8 << 20) };

enum body { BODY_EMPTY, BODY_LINES, BODY_BINARY, BODY_NOT_SHOWN };

struct patch {
	const struct show *show;
	const struct verb_session *session;
	struct buf out, name, content;
};

/* The sides of a change, or of a half of it. */
struct sides {
	const struct stage_change *change;
	bool has_before, has_after;
	struct text before, after;
};

void show_put_line(const char *line, size_t size, bool escapes, bool has_colour, struct buf *out)
{
	static const struct {
		char first;
		const char *colour;
	} colours[] = { { '+', "\x1b[32m" }, { '-', "\x1b[31m" }, { '@', "\x1b[36m" } };
	const char *colour = "";

	for (size_t i = 0; has_colour && size && i < ARRAY_SIZE(colours); i++)
		if (*line == colours[i].first)
			colour = colours[i].colour;
	buf_put_text(out, colour);
	if (escapes) {
		for (const char *at = line, *end = line + size; at < end;) {
			const char *tab = memchr(at, '\t', (size_t)(end - at));
			const char *stop = tab ? tab : end;

			if (stop > at)
				buf_put_escaped(out, at, (size_t)(stop - at), 0);
			if (tab)
				buf_put_char(out, '\t');
			at = tab ? tab + 1 : end;
		}
	} else {
		buf_put(out, line, size);
	}
	buf_put_text(out, *colour ? "\x1b[0m\n" : "\n");
}

/* prefix and name as git writes them: in double quotes with C escapes where there are bytes beyond plain text. */
static void put_quoted(const char *prefix, const struct buf *name, struct buf *out)
{
	static const char special[] = "\a\b\t\n\v\f\r\"\\", letters[] = "abtnvfr\"\\";
	bool is_plain = true;

	for (size_t i = 0; i < name->size && is_plain; i++)
		is_plain = name->bytes[i] >= 0x20 && name->bytes[i] < 0x7f && name->bytes[i] != '"' &&
			   name->bytes[i] != '\\';
	if (!is_plain)
		buf_put_char(out, '"');
	buf_put_text(out, prefix);
	for (size_t i = 0; i < name->size; i++) {
		const char *found = name->bytes[i] ? strchr(special, name->bytes[i]) : NULL;

		if (found)
			buf_printf(out, "\\%c", letters[found - special]);
		else if (name->bytes[i] < 0x20 || name->bytes[i] >= 0x7f)
			buf_printf(out, "\\%03o", (unsigned)name->bytes[i]);
		else
			buf_put_char(out, (char)name->bytes[i]);
	}
	if (!is_plain)
		buf_put_char(out, '"');
}

/* "a/" or "b/" and the name, without the slash that an absolute one begins with. */
static void put_path(struct patch *patch, const char *prefix, const struct stage_change *change, struct buf *out)
{
	buf_reset(&patch->name);
	listing_put_path(patch->show->listing->opened, change, &patch->name);
	if (patch->name.size && patch->name.bytes[0] == '/')
		buf_consume(&patch->name, 1);
	put_quoted(prefix, &patch->name, out);
}

static void put_header_line(struct patch *patch, const char *format, unsigned mode)
{
	buf_put_text(&patch->out, patch->session->colour ? "\x1b[1m" : "");
	buf_printf(&patch->out, "%s%o", format, mode);
	buf_put_text(&patch->out, patch->session->colour ? "\x1b[0m\n" : "\n");
}

/* git knows two modes of files, and links. */
static unsigned git_mode(mode_t mode)
{
	if (S_ISLNK(mode))
		return 0120000;
	return mode & 0100 ? 0100755 : 0100644;
}

/* What git can say of a difference of modes. */
static void put_mode_lines(struct patch *patch, const struct stage_change *before, const struct stage_change *after)
{
	if (git_mode(before->host.st_mode) == git_mode(after->staged.st_mode))
		return;
	put_header_line(patch, "old mode ", git_mode(before->host.st_mode));
	put_header_line(patch, "new mode ", git_mode(after->staged.st_mode));
}

static void put_header(struct patch *patch, const struct stage_change *change, const struct stage_change *before)
{
	buf_put_text(&patch->out, patch->session->colour ? "\x1b[1m" : "");
	buf_put_text(&patch->out, "diff --git ");
	put_path(patch, "a/", before, &patch->out);
	buf_put_char(&patch->out, ' ');
	put_path(patch, "b/", change, &patch->out);
	buf_put_text(&patch->out, patch->session->colour ? "\x1b[0m\n" : "\n");
}

static void put_rename(struct patch *patch, const struct stage_change *change, const struct stage_change *before)
{
	put_header(patch, change, before);
	put_mode_lines(patch, before, change);
	buf_put_text(&patch->out, "similarity index 100%\nrename from ");
	put_path(patch, "", before, &patch->out);
	buf_put_text(&patch->out, "\nrename to ");
	put_path(patch, "", change, &patch->out);
	buf_put_char(&patch->out, '\n');
}

/* Whether a file's mode is one that git can say. */
static bool git_says(mode_t mode)
{
	return S_ISLNK(mode) || (mode & 07777) == 0644 || (mode & 07777) == 0755;
}

/* Permissions beyond what git says, and attributes beside a content: they come with it, so they are told with it. */
static void put_unsaid(struct patch *patch, const struct listed *listed)
{
	const struct stage_change *change = listed->change, *before = listed->renamed_from;
	mode_t old = before ? before->host.st_mode : change->host.st_mode, new = change->staged.st_mode;

	if (!change->staged_exists || S_ISDIR(new) || change->state == STAGE_REFUSED)
		return;
	if (change->kind == STAGE_ADDED && !before) {
		if (show_mode_is_open(new))
			buf_printf(&patch->out, "mode %04o: others may write\n", (unsigned)new & 07777);
		return;
	}
	if ((old ^ new) & 07777 && !(git_says(old) && git_says(new)))
		buf_printf(&patch->out, "mode %04o → %04o\n", (unsigned)old & 07777, (unsigned)new & 07777);
	if (change->differs & STAGE_DIFFERS_XATTRS)
		buf_put_text(&patch->out, "extended attributes differ\n");
	if (change->differs & STAGE_DIFFERS_OWNER)
		buf_printf(&patch->out, "owner %u → %u\n", (unsigned)change->host.st_uid, (unsigned)change->owner);
}

/* What else there is to say of a change, in lines before its header. */
static void put_notes(struct patch *patch, const struct listed *listed)
{
	const struct stage_change *change = listed->change;

	if (change->state == STAGE_SYSTEM)
		buf_put_text(&patch->out, "never applied, of the sandbox's own system\n");
	else if (change->state != STAGE_CLEAN)
		buf_printf(&patch->out, "%s%s: %s\n", change->is_settled ? "settled " : "",
			   stage_change_state_names[change->state], stage_reason_texts[change->reason]);
	if (change->is_flagged)
		buf_put_text(&patch->out, "flagged: applied only with --allow-flagged\n");
}

static void put_side_name(struct patch *patch, const char *mark, const char *prefix, const struct stage_change *change,
			  bool exists)
{
	buf_put_text(&patch->out, patch->session->colour ? "\x1b[1m" : "");
	buf_put_text(&patch->out, mark);
	if (exists)
		put_path(patch, prefix, change, &patch->out);
	else
		buf_put_text(&patch->out, "/dev/null");
	/* Where the name ends, for patch(1), which takes what is behind a blank for a time. */
	if (exists && memchr(patch->name.bytes, ' ', patch->name.size))
		buf_put_char(&patch->out, '\t');
	buf_put_text(&patch->out, patch->session->colour ? "\x1b[0m\n" : "\n");
}

static void put_hunks(struct patch *patch)
{
	for (size_t at = 0; at < patch->content.size;) {
		const char *line = (const char *)patch->content.bytes + at;
		const char *end = memchr(line, '\n', patch->content.size - at);
		size_t size = end ? (size_t)(end - line) : patch->content.size - at;

		show_put_line(line, size, patch->session->escape, patch->session->colour, &patch->out);
		at += size + 1;
	}
}

static void put_sizes(struct patch *patch, const struct sides *sides, const char *what)
{
	const struct stage_change *change = sides->change;
	char before[32] = "nothing", after[32] = "nothing";

	if (sides->has_before && S_ISREG(change->host.st_mode))
		num_format_size_human((uint64_t)change->host.st_size, before);
	if (sides->has_after && S_ISREG(change->staged.st_mode))
		num_format_size_human((uint64_t)change->staged.st_size, after);
	buf_printf(&patch->out, "%s: %s → %s\n", what, before, after);
}

static bool is_either(const struct sides *sides, enum text_kind kind)
{
	return sides->before.kind == kind || sides->after.kind == kind;
}

static enum body not_shown(struct patch *patch, const struct sides *sides, const char *why)
{
	put_sizes(patch, sides, why);
	return BODY_NOT_SHOWN;
}

/*
 * Makes what stands below the header, in patch->content, and says before the header why it is not all. Negative with
 * *err where nothing can go on.
 */
static int make_body(struct patch *patch, const struct sides *sides, struct err *err)
{
	struct text_piece before = { sides->before.bytes, sides->before.size };
	struct text_piece after = { sides->after.bytes, sides->after.size };
	bool is_binary = is_either(sides, TEXT_BINARY);
	int r;

	buf_reset(&patch->content);
	if (is_either(sides, TEXT_LOST)) {
		buf_put_text(&patch->out, "it cannot be read, or changed while it was\n");
		return BODY_NOT_SHOWN;
	}
	if (is_either(sides, TEXT_LARGE))
		return not_shown(patch, sides, is_binary ? "binary file" : "too large to be compared by lines");
	/* Nobody reads such a patch on a terminal. */
	if (is_binary && patch->session->escape)
		return not_shown(patch, sides, "binary file");
	r = is_binary ? text_worker_binary(patch->show->worker, &before, &after, &patch->content) :
			text_worker_lines(patch->show->worker, &before, &after, &patch->content);
	if (r == -EPIPE)
		return err_set(err, ERR_INTERNAL, EPIPE, "diff", "the process that compares texts has died");
	if (r < 0)
		return not_shown(patch, sides, is_binary ? "binary file, too much work to be compared" :
							   "too much work to be compared by lines");
	return !patch->content.size ? BODY_EMPTY : is_binary ? BODY_BINARY : BODY_LINES;
}

static void put_body(struct patch *patch, const struct sides *sides, enum body body)
{
	const struct stage_change *change = sides->change;

	if (body == BODY_BINARY)
		buf_put(&patch->out, patch->content.bytes, patch->content.size);
	if (body == BODY_NOT_SHOWN) {
		buf_put_text(&patch->out, "Binary files ");
		if (sides->has_before)
			put_path(patch, "a/", change, &patch->out);
		else
			buf_put_text(&patch->out, "/dev/null");
		buf_put_text(&patch->out, " and ");
		if (sides->has_after)
			put_path(patch, "b/", change, &patch->out);
		else
			buf_put_text(&patch->out, "/dev/null");
		buf_put_text(&patch->out, " differ\n");
	}
	if (body != BODY_LINES)
		return;
	put_side_name(patch, "--- ", "a/", change, sides->has_before);
	put_side_name(patch, "+++ ", "b/", change, sides->has_after);
	put_hunks(patch);
}

/* A change of which git knows nothing: of directories, of times, of what is refused. */
static void put_without_header(struct patch *patch, const struct listed *listed)
{
	const struct stage_change *change = listed->change;
	mode_t mode = change->staged_exists ? change->staged.st_mode : change->host.st_mode;

	buf_put_text(&patch->out, patch->session->colour ? "\x1b[1m" : "");
	buf_printf(&patch->out, "%s %s", show_type(mode), stage_change_kind_names[change->kind]);
	if (change->differs & STAGE_DIFFERS_MODE)
		buf_printf(&patch->out, ", mode %04o → %04o", (unsigned)change->host.st_mode & 07777,
			   (unsigned)change->staged.st_mode & 07777);
	else if (change->kind == STAGE_ADDED && show_mode_is_open(mode))
		buf_printf(&patch->out, ", mode %04o: others may write", (unsigned)mode & 07777);
	if (change->differs & STAGE_DIFFERS_XATTRS)
		buf_put_text(&patch->out, change->differs == STAGE_DIFFERS_XATTRS
						  ? ", only extended attributes differ"
						  : ", extended attributes differ");
	if (change->differs & STAGE_DIFFERS_OWNER)
		buf_printf(&patch->out, ", owner %u → %u", (unsigned)change->host.st_uid, (unsigned)change->owner);
	if (change->differs == STAGE_DIFFERS_MTIME)
		buf_put_text(&patch->out, ", only the time of the last change differs");
	buf_put_text(&patch->out, ": ");
	put_path(patch, "", change, &patch->out);
	buf_put_text(&patch->out, patch->session->colour ? "\x1b[0m\n" : "\n");
}

static void put_half_shown(struct patch *patch, const struct listed *listed, const struct sides *sides, enum body body)
{
	const struct stage_change *change = listed->change;
	bool is_kept = sides->has_before && sides->has_after;

	if (is_kept && body == BODY_EMPTY && git_mode(change->host.st_mode) == git_mode(change->staged.st_mode)) {
		put_without_header(patch, listed);
		return;
	}
	put_unsaid(patch, listed);
	put_header(patch, change, change);
	if (is_kept)
		put_mode_lines(patch, change, change);
	else if (sides->has_after)
		put_header_line(patch, "new file mode ", git_mode(change->staged.st_mode));
	else
		put_header_line(patch, "deleted file mode ", git_mode(change->host.st_mode));
	put_body(patch, sides, body);
}

/* One half of a change: git shows a change of type as a deletion and an addition. */
static int put_half(struct patch *patch, const struct listed *listed, bool has_before, bool has_after,
		    struct err *err)
{
	struct sides sides = { .change = listed->change, .has_before = has_before, .has_after = has_after };
	const struct opened *opened = patch->show->listing->opened;
	int r = 0;

	put_notes(patch, listed);
	if (has_before)
		r = text_load(opened, sides.change, SIDE_HOST, TEXT_SIZE_MAX, &sides.before);
	if (r == 0 && has_after)
		r = text_load(opened, sides.change, SIDE_STAGED, TEXT_SIZE_MAX, &sides.after);
	if (r < 0)
		err_set(err, ERR_INTERNAL, -r, "diff", "out of memory");
	else
		r = make_body(patch, &sides, err);
	if (r >= 0)
		put_half_shown(patch, listed, &sides, (enum body)r);
	text_done(&sides.before);
	text_done(&sides.after);
	return r < 0 ? r : 0;
}

static int put_listed(struct patch *patch, const struct listed *listed, struct err *err)
{
	const struct stage_change *change = listed->change;
	bool has_before = change->host_exists && !S_ISDIR(change->host.st_mode);
	bool has_after = change->staged_exists && !S_ISDIR(change->staged.st_mode);
	int r;

	/* What is never applied must not look to `git apply` as if it were for the project. */
	if (listed->renamed_from || change->state == STAGE_REFUSED || change->state == STAGE_SYSTEM ||
	    (!has_before && !has_after)) {
		put_notes(patch, listed);
		if (listed->renamed_from) {
			put_unsaid(patch, listed);
			put_rename(patch, change, listed->renamed_from);
		} else {
			put_without_header(patch, listed);
		}
		return 0;
	}
	if (!(change->differs & STAGE_DIFFERS_TYPE) || !has_before || !has_after)
		return put_half(patch, listed, has_before, has_after, err);
	r = put_half(patch, listed, true, false, err);
	return r < 0 ? r : put_half(patch, listed, false, true, err);
}

int show_patch(const struct show *show, struct err *err)
{
	struct patch patch = { .show = show, .session = show->listing->opened->session };
	int r = 0;

	buf_init(&patch.out, BUFFER_MAX);
	buf_init(&patch.name, 2 << 20);
	buf_init(&patch.content, TEXT_RESULT_MAX + 1);
	for (size_t i = 0; r == 0 && i < show->listing->count; i++) {
		const struct listed *listed = &show->listing->items[i];

		/* A patch renames files. */
		if (!show_has(show, listed) || listed->is_rename_source || listed->renamed_files)
			continue;
		r = put_listed(&patch, listed, err);
		if (r == 0 && patch.out.size >= FLUSH_AT)
			r = show_flush(&patch.out, err);
	}
	if (r == 0)
		r = show_flush(&patch.out, err);
	buf_done(&patch.out);
	buf_done(&patch.name);
	buf_done(&patch.content);
	return r;
}
