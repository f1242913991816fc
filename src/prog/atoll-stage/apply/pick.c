/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/apply/pick.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "prog/atoll-stage/apply/outcome.h"
#include "prog/atoll-stage/review/hunks.h"
#include "prog/atoll-stage/review/text.h"
#include "prog/atoll-stage/show/show.h"
#include "stage/record/paths.h"

enum { OUT_MAX = TEXT_RESULT_MAX * 4 + (8 << 20), NAMES_SHOWN = 8 };

struct pick {
	const struct pick_options *options;
	struct apply *apply;
	struct paths directories;    /* that are new or go as a whole: the index of the item */
	bool *is_split;              /* owned; of each item that is a directory: its entries are asked about */
	bool *is_decided;            /* owned; of each item */
	bool is_over;                /* no more questions: the rest is left */
	struct buf out;
	struct err *err;
};

/* Questions. */

static const struct key {
	char key;
	const char *meaning;
} keys[] = {
	{ 'y', "apply this" },
	{ 'n', "do not apply this" },
	{ 'q', "quit: what was not answered yet is not applied" },
	{ 'a', "apply this hunk and all later ones of this file" },
	{ 'd', "apply neither this hunk nor any later one of this file" },
	{ 'j', "leave this hunk, look at the next one" },
	{ 'k', "go back to the hunk before this one" },
	{ 's', "split this into smaller parts" },
	{ '?', "explain these keys" },
};

static bool has_key(const char *offered, char key)
{
	return key && strchr(offered, key);
}

static void put_help(struct pick *pick, const char *offered)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (has_key(offered, keys[i].key))
			buf_printf(&pick->out, "%c - %s\n", keys[i].key, keys[i].meaning);
}

/* The first letter of a line of stdin; '\n' of an empty one; 0 where there is no more. */
static char read_letter(void)
{
	char letter = 0, c;
	ssize_t n;

	do {
		n = read(STDIN_FILENO, &c, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		if (!letter && !isblank((unsigned char)c))
			letter = c;
	} while (c != '\n');
	return letter;
}

static void put_path(struct pick *pick, const struct stage_change *change)
{
	outcome_put_path(pick->options->opened, change->tree, change->path, &pick->out);
}

/* What was put out, and then "QUESTION PATH [keys]? " until the answer is one of the keys. Negative with *err. */
static int ask(struct pick *pick, const char *question, const struct stage_change *change, const char *offered)
{
	const struct verb_session *session = pick->options->opened->session;

	for (;;) {
		char letter;
		int r;

		buf_printf(&pick->out, "%s%s", session->colour ? "\x1b[1;34m" : "", question);
		put_path(pick, change);
		buf_put_text(&pick->out, " [");
		for (const char *key = offered; *key; key++)
			buf_printf(&pick->out, "%s%c", key > offered ? "," : "", *key);
		buf_printf(&pick->out, "]?%s ", session->colour ? "\x1b[0m" : "");
		r = show_flush(&pick->out, pick->err);
		if (r < 0)
			return r;
		letter = read_letter();
		if (!letter) {
			err_set(pick->err, ERR_USAGE, ECANCELED, "apply", "there was no answer, so nothing is applied");
			err_hint(pick->err, "answer on the terminal; q ends the questions and applies what was chosen");
			return -ECANCELED;
		}
		if (letter != '?' && has_key(offered, letter))
			return letter;
		put_help(pick, offered);
	}
}

/* Shows. */

static void on_line(void *context, const char *line, size_t size)
{
	struct pick *pick = context;

	show_put_line(line, size, true, pick->options->opened->session->colour, &pick->out);
}

static void put_flagged(struct pick *pick, const struct stage_change *change)
{
	if (change->is_flagged)
		buf_put_text(&pick->out, "flagged: the policy protects this path; others may run it later\n");
}

static void put_mode(struct pick *pick, const struct stage_change *change)
{
	if (change->host_exists && change->staged_exists && change->differs & STAGE_DIFFERS_MODE)
		buf_printf(&pick->out, "mode %04o → %04o\n", (unsigned)change->host.st_mode & 07777,
			   (unsigned)change->staged.st_mode & 07777);
	else if (!change->host_exists && !S_ISLNK(change->staged.st_mode))
		buf_printf(&pick->out, "mode %04o\n", (unsigned)change->staged.st_mode & 07777);
}

static void put_what(struct pick *pick, const struct stage_change *change)
{
	mode_t mode = change->staged_exists ? change->staged.st_mode : change->host.st_mode;

	put_flagged(pick, change);
	put_path(pick, change);
	if (change->staged_exists && change->host_exists && change->differs & STAGE_DIFFERS_TYPE)
		buf_printf(&pick->out, ": a %s takes the place of a %s\n", show_type(mode),
			   show_type(change->host.st_mode));
	else
		buf_printf(&pick->out, ": %s %s\n", show_type(mode), stage_change_kind_names[change->kind]);
	put_mode(pick, change);
	if (change->differs & STAGE_DIFFERS_XATTRS)
		buf_put_text(&pick->out, "extended attributes differ\n");
	if (change->differs & STAGE_DIFFERS_OWNER)
		buf_printf(&pick->out, "owner %u → %u\n", (unsigned)change->host.st_uid, (unsigned)change->owner);
}

static void put_size(struct pick *pick, const struct stage_change *change, const char *what)
{
	char before[32] = "nothing", after[32] = "nothing";

	if (change->host_exists && S_ISREG(change->host.st_mode))
		num_format_size_human((uint64_t)change->host.st_size, before);
	if (change->staged_exists && S_ISREG(change->staged.st_mode))
		num_format_size_human((uint64_t)change->staged.st_size, after);
	buf_printf(&pick->out, "%s: %s → %s\n", what, before, after);
}

/* Both sides of an item as texts. */
struct both {
	struct text host, staged;
};

static void both_done(struct both *both)
{
	text_done(&both->host);
	text_done(&both->staged);
}

static struct text_piece piece_of(const struct text *text)
{
	return (struct text_piece){ text->bytes, text->size };
}

/* 1: hunks has what differs; 0: it has none that can be shown, and that is said; negative with *err. */
static int load_hunks(struct pick *pick, const struct stage_change *change, struct both *both, struct hunks *ret_hunks)
{
	const struct opened *opened = pick->options->opened;
	int r = text_load(opened, change, SIDE_HOST, TEXT_SIZE_MAX, &both->host);
	struct text_piece host, staged;

	if (r == 0)
		r = text_load(opened, change, SIDE_STAGED, TEXT_SIZE_MAX, &both->staged);
	if (r < 0)
		return err_set(pick->err, ERR_INTERNAL, -r, "apply", "out of memory");
	if ((both->host.kind != TEXT_LINES && both->host.kind != TEXT_ABSENT) ||
	    (both->staged.kind != TEXT_LINES && both->staged.kind != TEXT_ABSENT)) {
		put_size(pick, change, both->host.kind == TEXT_LOST || both->staged.kind == TEXT_LOST ?
				       "it cannot be read, or changed while it was" :
				       both->host.kind == TEXT_LARGE || both->staged.kind == TEXT_LARGE ?
				       "too large to be shown by lines" : "binary file");
		return 0;
	}
	host = piece_of(&both->host);
	staged = piece_of(&both->staged);
	r = hunks_load(ret_hunks, pick->options->worker, &host, &staged);
	if (r == -EPIPE || r == -ENOMEM)
		return err_set(pick->err, ERR_INTERNAL, -r, "apply", "texts cannot be compared: %s", strerror(-r));
	if (r < 0)
		put_size(pick, change, "too much work to be compared by lines");
	return r < 0 ? 0 : ret_hunks->count > 0;
}

/* Decisions. */

static void decide(struct pick *pick, size_t index, bool takes)
{
	pick->apply->items[index].verdict = takes ? APPLY_TAKEN : APPLY_UNWANTED;
	pick->is_decided[index] = true;
}

static size_t count_hunks(const struct hunks *hunks, size_t end)
{
	size_t count = 0;

	for (size_t i = 0; i < end; i = hunks_end(hunks, i))
		count++;
	return count;
}

static size_t hunk_before(const struct hunks *hunks, size_t first)
{
	size_t at = 0;

	while (at < first && hunks_end(hunks, at) < first)
		at = hunks_end(hunks, at);
	return at;
}

static void mark_taken(struct hunks *hunks, size_t first, size_t end, bool takes)
{
	for (size_t i = first; i < end; i++)
		hunks->blocks[i].is_taken = takes;
}

/* One question about the hunk that begins with *at, which moves on. */
static int ask_hunk(struct pick *pick, struct hunks *hunks, const struct stage_change *change, size_t *at)
{
	size_t first = *at, end = hunks_end(hunks, first);
	char question[64], offered[16];
	int answer;

	if (str_format(offered, sizeof offered, "ynqad%s%s%s?", end < hunks->count ? "j" : "", first ? "k" : "",
		       end - first > 1 ? "s" : "") < 0 ||
	    str_format(question, sizeof question, "(%zu/%zu) apply this hunk to ", count_hunks(hunks, first) + 1,
		       count_hunks(hunks, hunks->count)) < 0)
		return err_set(pick->err, ERR_INTERNAL, ENOBUFS, "apply", "the question is too long");
	hunks_show(hunks, first, on_line, pick);
	answer = ask(pick, question, change, offered);
	if (answer < 0)
		return answer;
	if (answer == 's') {
		hunks_split(hunks, first);
		return 0;
	}
	if (answer == 'y' || answer == 'n')
		mark_taken(hunks, first, end, answer == 'y');
	if (answer == 'a' || answer == 'd')
		mark_taken(hunks, first, hunks->count, answer == 'a');
	pick->is_over = answer == 'q';
	*at = answer == 'k' ? hunk_before(hunks, first) :
	      answer == 'y' || answer == 'n' || answer == 'j' ? end : hunks->count;
	return 0;
}

/* A part of the file: made of the host's text and what was taken. */
static void make_part(struct pick *pick, size_t index, const struct hunks *hunks, mode_t mode)
{
	struct apply_item *item = &pick->apply->items[index];
	const struct pick_options *options = pick->options;
	cleanup_buf struct buf text;

	buf_init(&text, 2 * TEXT_SIZE_MAX);
	decide(pick, index, true);
	item->is_partial = true;
	item->merged = "";
	if (options->dry_run)
		return;
	hunks_put_result(hunks, &text);
	if (!buf_error(&text))
		item->merged = made_files_put(options->files, index, &options->opened->stacks[item->change->tree],
					      item->change, &(struct text_piece){ text.bytes, text.size }, mode & 0777);
	if (buf_error(&text) || !item->merged)
		item->verdict = APPLY_RACED;
}

/* A text that both sides have: hunk by hunk, and its mode by itself. */
static int ask_text(struct pick *pick, size_t index, struct hunks *hunks)
{
	const struct stage_change *change = pick->apply->items[index].change;
	bool has_mode = change->differs & STAGE_DIFFERS_MODE, takes_mode = false;
	int r = 0;

	if (has_mode) {
		r = ask(pick, "apply this change of mode to ", change, "ynq?");
		if (r < 0)
			return r;
		takes_mode = r == 'y';
		pick->is_over = r == 'q';
		r = 0;
	}
	for (size_t at = 0; r == 0 && !pick->is_over && at < hunks->count;)
		r = ask_hunk(pick, hunks, change, &at);
	if (r < 0)
		return r;
	if (!hunks_taken(hunks) && !takes_mode)
		decide(pick, index, false);
	else if (hunks_taken(hunks) == hunks->count && takes_mode == has_mode)
		decide(pick, index, true);
	else
		make_part(pick, index, hunks, takes_mode ? change->staged.st_mode : change->host.st_mode);
	return 0;
}

static int ask_whole(struct pick *pick, size_t index)
{
	static const char *const questions[STAGE_CHANGE_KIND_COUNT] = {
		[STAGE_ADDED] = "apply this addition of ", [STAGE_MODIFIED] = "apply this change to ",
		[STAGE_DELETED] = "apply this deletion of ",
	};
	const struct stage_change *change = pick->apply->items[index].change;
	int answer = ask(pick, questions[change->kind], change, "ynq?");

	if (answer < 0)
		return answer;
	pick->is_over = answer == 'q';
	if (!pick->is_over)
		decide(pick, index, answer == 'y');
	return 0;
}

static bool is_file(const struct stat *st)
{
	return S_ISREG(st->st_mode) || S_ISLNK(st->st_mode);
}

static bool is_asked(const struct apply_item *item)
{
	return item->verdict == APPLY_TAKEN || item->verdict == APPLY_FLAGGED;
}

/* A new directory that what is in it, which is asked about, brings along. */
static bool is_implied(const struct pick *pick, size_t index)
{
	const struct stage_change *change = pick->apply->items[index].change, *next;
	size_t length = strlen(change->path);

	if (change->kind != STAGE_ADDED || !S_ISDIR(change->staged.st_mode) || index + 1 == pick->apply->count)
		return false;
	next = pick->apply->items[index + 1].change;
	return is_asked(&pick->apply->items[index + 1]) && next->tree == change->tree &&
	       strncmp(next->path, change->path, length) == 0 && next->path[length] == '/';
}

static int ask_item(struct pick *pick, size_t index)
{
	const struct stage_change *change = pick->apply->items[index].change;
	cleanup_hunks struct hunks hunks = { 0 };
	struct both both = { 0 };
	int r = 0;

	/* A time of last change alone is nothing that anybody would be asked about. */
	if ((change->kind == STAGE_MODIFIED && change->differs == STAGE_DIFFERS_MTIME) || is_implied(pick, index)) {
		decide(pick, index, false);
		return 0;
	}
	put_what(pick, change);
	if ((change->host_exists && is_file(&change->host)) || (change->staged_exists && is_file(&change->staged)))
		r = load_hunks(pick, change, &both, &hunks);
	if (r > 0 && change->host_exists && change->staged_exists && S_ISREG(change->host.st_mode) &&
	    S_ISREG(change->staged.st_mode)) {
		r = ask_text(pick, index, &hunks);
	} else if (r >= 0) {
		for (size_t i = 0; i < hunks.count; i = hunks_end(&hunks, i))
			hunks_show(&hunks, i, on_line, pick);
		r = ask_whole(pick, index);
	}
	both_done(&both);
	return r;
}

/* Directories that are new, or go, are one question with all that is in them. */

static bool is_whole_directory(const struct stage_change *change)
{
	return (change->kind == STAGE_ADDED && change->staged_exists && S_ISDIR(change->staged.st_mode)) ||
	       (change->kind == STAGE_DELETED && change->host_exists && S_ISDIR(change->host.st_mode));
}

/* The topmost such directory that holds the item, or is it, and was not split; PATHS_NONE. */
static uint32_t root_of(const struct pick *pick, size_t index)
{
	const struct stage_change *change = pick->apply->items[index].change;
	uint32_t found = PATHS_NONE;

	for (size_t length = strlen(change->path); length; length = paths_parent(change->path, length)) {
		uint32_t at = paths_find(&pick->directories, (uint32_t)change->tree, change->path, length);

		if (at != PATHS_NONE && !pick->is_split[at] && !pick->is_decided[at] &&
		    pick->apply->items[at].verdict == APPLY_TAKEN)
			found = at;
	}
	return found;
}

static bool is_member(const struct pick *pick, size_t index, uint32_t root)
{
	return pick->apply->items[index].verdict == APPLY_TAKEN && !pick->is_decided[index] &&
	       root_of(pick, index) == root;
}

static bool is_directory_item(const struct pick *pick, size_t index)
{
	return stage_change_is_directory(pick->apply->items[index].change);
}

/* How many files and links are in it; the first ones are put out. */
static size_t put_members(struct pick *pick, uint32_t root)
{
	size_t count = 0;

	for (size_t i = 0; i < pick->apply->count; i++) {
		if (!is_member(pick, i, root) || is_directory_item(pick, i))
			continue;
		if (count++ >= NAMES_SHOWN)
			continue;
		buf_put_text(&pick->out, "  ");
		put_path(pick, pick->apply->items[i].change);
		buf_put_char(&pick->out, '\n');
	}
	if (count > NAMES_SHOWN)
		buf_printf(&pick->out, "  … and %zu more\n", count - NAMES_SHOWN);
	return count;
}

static void decide_members(struct pick *pick, uint32_t root, bool takes)
{
	/* The directory itself last: is_member() looks at it. */
	for (size_t i = 0; i < pick->apply->count; i++)
		if (i != root && is_member(pick, i, root))
			decide(pick, i, takes);
	decide(pick, root, takes);
}

/* A new directory is taken when something in it is (apply_complete()); one that goes is asked about behind that. */
static void split(struct pick *pick, uint32_t root, size_t members)
{
	pick->is_split[root] = true;
	if (members && pick->apply->items[root].change->kind == STAGE_ADDED)
		decide(pick, root, false);
}

static int ask_directory(struct pick *pick, uint32_t root)
{
	const struct stage_change *change = pick->apply->items[root].change;
	char question[96];
	size_t members;
	int answer;

	put_what(pick, change);
	members = put_members(pick, root);
	if (members < 2) {
		buf_reset(&pick->out);
		split(pick, root, members);
		return 0;
	}
	if (str_format(question, sizeof question, "apply %s of these %zu files in ",
		       change->kind == STAGE_ADDED ? "the addition" : "the deletion", members) < 0)
		return -ENOBUFS;
	answer = ask(pick, question, change, "ynqs?");
	if (answer < 0)
		return answer;
	pick->is_over = answer == 'q';
	if (answer == 's')
		split(pick, root, members);
	else if (!pick->is_over)
		decide_members(pick, root, answer == 'y');
	return 0;
}

static int ask_all(struct pick *pick)
{
	int r = 0;

	for (size_t i = 0; r == 0 && !pick->is_over && i < pick->apply->count; i++) {
		struct apply_item *item = &pick->apply->items[i];

		while (r == 0 && !pick->is_over && !pick->is_decided[i] && is_asked(item)) {
			uint32_t root = item->verdict == APPLY_TAKEN ? root_of(pick, i) : PATHS_NONE;

			r = root == PATHS_NONE ? ask_item(pick, i) : ask_directory(pick, root);
		}
	}
	for (size_t i = 0; i < pick->apply->count; i++)
		if (!pick->is_decided[i] && is_asked(&pick->apply->items[i]))
			pick->apply->items[i].verdict = APPLY_UNWANTED;
	return r;
}

static int prepare(struct pick *pick)
{
	int r = 0;

	pick->is_split = calloc(pick->apply->count + 1, sizeof *pick->is_split);
	pick->is_decided = calloc(pick->apply->count + 1, sizeof *pick->is_decided);
	if (!pick->is_split || !pick->is_decided)
		r = -ENOMEM;
	for (size_t i = 0; r == 0 && i < pick->apply->count; i++) {
		const struct stage_change *change = pick->apply->items[i].change;

		if (is_whole_directory(change))
			r = paths_put(&pick->directories, (uint32_t)change->tree, change->path, strlen(change->path),
				      (uint32_t)i);
	}
	return r < 0 ? err_set(pick->err, ERR_INTERNAL, -r, "apply", "out of memory") : 0;
}

int pick_run(const struct pick_options *options, struct apply *apply, struct err *err)
{
	struct pick pick = { .options = options, .apply = apply, .err = err };
	int r = prepare(&pick);

	buf_init(&pick.out, OUT_MAX);
	if (r == 0)
		r = ask_all(&pick);
	buf_done(&pick.out);
	paths_done(&pick.directories);
	free(pick.is_split);
	free(pick.is_decided);
	return r;
}
