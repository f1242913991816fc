/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/run/dry-run-show.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <termios.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "os/fd.h"

enum { TEXT_MAX = 1 << 20, JSON_MAX = 32 << 20, ANSWER_MAX = 64 };

static const char *const done_names[DRY_RUN_DONE_COUNT] = {
	[DRY_RUN_UNDECIDED] = "undecided", [DRY_RUN_REFUSED] = "refused", [DRY_RUN_TAKEN_OVER] = "taken-over",
	[DRY_RUN_AGAIN] = "done-again", [DRY_RUN_DIFFERS] = "differs",
	[DRY_RUN_BACK] = "taken-back",
};

static int write_err(struct buf *text)
{
	int r = buf_error(text);

	/* Nobody reads: nothing that happens depends on it. */
	if (r == 0 && fd_write_full(STDERR_FILENO, text->bytes, text->size) < 0)
		return 0;
	return r;
}

/* The text of a program that looked, which is as long as it made it. */
static int add_text(struct buf *out, int fd)
{
	char chunk[8192];
	off_t at = 0;
	ssize_t n;

	while (fd >= 0 && (n = pread(fd, chunk, sizeof chunk, at)) > 0) {
		buf_put(out, chunk, (size_t)n);
		at += n;
	}
	return buf_error(out);
}

static bool is_silent(const struct dry_run *dry)
{
	return dry->given->json || dry->given->quiet;
}

static void put_changes(const struct dry_run *dry, struct buf *out)
{
	const struct stage_difference *numbers = &dry->difference;
	const struct {
		uint64_t count;
		const char *what;
	} parts[] = {
		{ numbers->added, "added" }, { numbers->modified, "modified" }, { numbers->deleted, "deleted" },
		{ numbers->flagged, "in protected paths" },
	};
	bool is_first = true;

	buf_put_text(out, "  changes: ");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!parts[i].count)
			continue;
		buf_printf(out, "%s%llu %s", is_first ? "" : ", ", (unsigned long long)parts[i].count, parts[i].what);
		is_first = false;
	}
	buf_put_text(out, is_first ? "none\n" : "\n");
}

static void put_doubts(const struct dry_run *dry, struct buf *out)
{
	if (dry->record.writes_host)
		buf_put_text(out, "  for real it may reach files, devices or the network of the host straight, or a "
				  "verifier; the trial could not\n");
	if (dry->record.reads_input)
		buf_put_text(out, "  it reads its standard input, which the trial did not have\n");
	if (dry->effects.unreadable || !dry->effects.has_end)
		buf_put_text(out, "  its log cannot be read to the end: it may have done more than is shown\n");
}

int dry_run_show(struct dry_run *dry, struct err *err)
{
	cleanup_buf struct buf out;
	char shown[ERR_QUOTE_SIZE];
	int r;

	buf_init(&out, TEXT_MAX);
	if (is_silent(dry))
		return 0;
	/* What the command printed may have changed what the terminal makes of text. */
	if (isatty(STDERR_FILENO))
		buf_put_text(&out, "\033[!p\033[0m\033[?1049l\033(B\017\r");
	buf_printf(&out, "atoll: trial %s of %s: exit status %d; nothing of it was done for real\n", dry->trial.id,
		   err_quote(shown, dry->trial.command), dry->status);
	put_changes(dry, &out);
	r = add_text(&out, dry->changes_fd);
	if (r == 0)
		r = add_text(&out, dry->effects_fd);
	put_doubts(dry, &out);
	if (r == 0)
		r = write_err(&out);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "dry-run", "the result of the trial cannot be shown: %s",
			       strerror(-r))
		     : 0;
}

/* ---- to ask ---- */

static bool is_word(const char *line, ssize_t size, const char *word)
{
	size_t length = strlen(word);

	return size == (ssize_t)length + 1 && line[length] == '\n' && strncasecmp(line, word, length) == 0;
}

/*
 * 'y', 'n', or 0 where nobody can be asked or nothing was said. Anything but a yes is a no. What was typed, or made the
 * terminal answer, before the question was there is no answer to it.
 */
static char ask(const char *question)
{
	cleanup_fd int tty_fd = fd_open_at(AT_FDCWD, "/dev/tty", O_RDWR | O_NOCTTY, 0);
	char answer[ANSWER_MAX];
	ssize_t n;

	if (tty_fd < 0 || !isatty(STDERR_FILENO) || fd_write_full(tty_fd, question, strlen(question)) < 0 ||
	    tcdrain(tty_fd) < 0 || tcflush(tty_fd, TCIFLUSH) < 0)
		return 0;
	n = read(tty_fd, answer, sizeof answer);
	if (n <= 0)
		return 0;
	return is_word(answer, n, "y") || is_word(answer, n, "yes") ? 'y' : 'n';
}

bool dry_run_ask(struct dry_run *dry)
{
	char answer = dry->given->if_clean || is_silent(dry) ? 0 : ask("Do it for real? [y/N] ");

	dry->is_refused = answer == 'n';
	if (dry->is_refused)
		dry->done = DRY_RUN_REFUSED;
	return answer == 'y';
}

static bool is_in_live(const struct dry_run *dry)
{
	return dry->has_origin && !dry->has_real;
}

bool dry_run_ask_again(struct dry_run *dry)
{
	cleanup_buf struct buf out;

	buf_init(&out, TEXT_MAX);
	if (is_silent(dry))
		return false;
	buf_put_text(&out, "atoll: the result differs from what was shown:\n");
	if (add_text(&out, dry->difference_fd) < 0 || write_err(&out) < 0)
		return false;
	return ask(is_in_live(dry) ? "Is that all right? [y/N] " : "Keep it all the same? [y/N] ") == 'y';
}

bool dry_run_ask_back(struct dry_run *dry)
{
	return is_in_live(dry) && !is_silent(dry) &&
	       ask("Stop the session, and make it what it was before? [y/N] ") == 'y';
}

/* ---- the end ---- */

/* A session whose state somebody has to decide about. */
static const char *subject(const struct dry_run *dry)
{
	if (dry->has_origin && (dry->done != DRY_RUN_DIFFERS || !dry->has_real))
		return dry->origin.id;
	return dry->has_real ? dry->real.id : dry->trial.id;
}

static void put_differs(const struct dry_run *dry, const char *id, struct buf *out)
{
	buf_printf(out, "atoll: it was done, and the result differs from what trial %s showed; it waits in %s\n",
		   dry->trial.id, id);
	if (is_in_live(dry))
		buf_printf(out, "  back  atoll restore %s %s\n", id, dry->base);
}

static void put_end(const struct dry_run *dry, struct buf *out)
{
	const char *trial = dry->trial.id, *id = subject(dry);

	switch (dry->done) {
	case DRY_RUN_UNDECIDED:
		buf_printf(out, "atoll: for real  atoll dry-run --accept %s        look  atoll diff %s        "
				"drop  atoll discard %s\n", trial, trial, trial);
		return;
	case DRY_RUN_REFUSED:
		buf_printf(out, "atoll: not done; trial %s is dropped\n", trial);
		return;
	case DRY_RUN_BACK:
		buf_printf(out, "atoll: session %s was stopped, and is what it was before\n", id);
		return;
	case DRY_RUN_TAKEN_OVER:
		buf_printf(out, "atoll: done: %s holds what the trial showed; nothing on disk has changed yet\n",
			   id);
		break;
	case DRY_RUN_AGAIN:
		buf_printf(out, "atoll: done: %s holds what was %s\n", id,
			   dry->differs ? "done, and not all of it was shown" : "shown");
		break;
	case DRY_RUN_DIFFERS:
		put_differs(dry, id, out);
		break;
	default:
		return;
	}
	buf_printf(out, "  review  atoll diff %s        keep  atoll apply %s        drop  atoll discard %s\n", id, id,
		   id);
}

static void put_numbers(const struct dry_run *dry, struct json *json)
{
	const struct stage_difference *numbers = &dry->difference;

	json_object_begin(json, "counts");
	json_u64(json, "added", numbers->added);
	json_u64(json, "modified", numbers->modified);
	json_u64(json, "deleted", numbers->deleted);
	json_u64(json, "flagged", numbers->flagged);
	json_u64(json, "refused", numbers->hidden);
	json_object_end(json);
}

static int flush_out(struct buf *out)
{
	int r = buf_error(out);

	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, out->bytes, out->size);
	buf_reset(out);
	return r;
}

/* A value that a confined program wrote as JSON, however long it is; "null" where there is none. */
static int put_raw(struct json *json, struct buf *out, const char *key, int fd)
{
	off_t at = 0, size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	char chunk[8192];
	int r = 0;

	if (size <= 0) {
		json_null(json, key);
		return 0;
	}
	json_raw(json, key, "", 0);
	while (r == 0 && at < size) {
		ssize_t n = pread(fd, chunk, sizeof chunk, at);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		at += n;
		/* Behind the value stands the end of a line. */
		buf_put(out, chunk, (size_t)n - (at == size && chunk[n - 1] == '\n'));
		r = flush_out(out);
	}
	return r;
}

static void put_head(const struct dry_run *dry, struct json *json)
{
	json_string(json, "trial", dry->trial.id);
	json_string(json, "of", dry->has_origin ? dry->origin.id : NULL);
	json_string(json, "snapshot", dry->has_origin ? dry->record.snapshot : NULL);
	json_array_begin(json, "argv");
	for (size_t i = 0; dry->record.command[i]; i++)
		json_bytes(json, NULL, dry->record.command[i], strlen(dry->record.command[i]));
	json_array_end(json);
	json_i64(json, "exit", dry->status);
	put_numbers(dry, json);
}

static int write_json(const struct dry_run *dry, struct buf *out)
{
	struct json json;
	int r;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	put_head(dry, &json);
	r = put_raw(&json, out, "changes", dry->changes_fd);
	if (r == 0)
		r = put_raw(&json, out, "effects", dry->effects_fd);
	json_bool(&json, "clean", dry_run_is_clean(dry));
	json_bool(&json, "writes_host", dry->record.writes_host);
	json_bool(&json, "reads_input", dry->record.reads_input);
	json_string(&json, "done", done_names[dry->done]);
	json_string(&json, "session", dry->done >= DRY_RUN_TAKEN_OVER ? subject(dry) : NULL);
	json_string(&json, "back", is_in_live(dry) && *dry->real_snapshot ? dry->base : NULL);
	if (r == 0)
		r = put_raw(&json, out, "difference", dry->difference_fd);
	json_object_end(&json);
	buf_put_char(out, '\n');
	return r == 0 ? flush_out(out) : r;
}

int dry_run_tell(struct dry_run *dry, struct err *err)
{
	cleanup_buf struct buf out;
	int r = 0;

	buf_init(&out, JSON_MAX);
	if (dry->given->json) {
		r = write_json(dry, &out);
		return r < 0 ? err_set(err, ERR_STATE, -r, "dry-run", "the object cannot be written: %s", strerror(-r))
			     : 0;
	}
	if (dry->given->quiet)
		return 0;
	put_end(dry, &out);
	r = write_err(&out);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "dry-run", "%s", strerror(-r)) : 0;
}
