/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/dry-run-show.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll/say.h"

enum { TEXT_MAX = 1 << 20, JSON_MAX = 80 << 20, ANSWER_MAX = 64 };

static const char *const done_names[DRY_RUN_DONE_COUNT] = {
	[DRY_RUN_UNDECIDED] = "undecided", [DRY_RUN_REFUSED] = "refused", [DRY_RUN_TAKEN_OVER] = "taken-over",
	[DRY_RUN_AGAIN] = "done-again", [DRY_RUN_DIFFERS] = "differs",
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
	const struct { uint64_t count; const char *what; } parts[] = {
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

int dry_run_show(struct dry_run *dry, struct err *err)
{
	cleanup_buf struct buf out;
	char shown[SAY_PATH_SIZE];
	int r;

	buf_init(&out, TEXT_MAX);
	if (is_silent(dry))
		return 0;
	buf_printf(&out, "atoll: trial %s of %s: exit status %d; nothing of it was done for real\n", dry->trial.id,
		   say_path(shown, dry->trial.command), dry->status);
	put_changes(dry, &out);
	r = add_text(&out, dry->changes_fd);
	if (r == 0)
		r = add_text(&out, dry->effects_fd);
	if (dry->record.writes_host)
		buf_put_text(&out, dry->has_origin
					   ? "  what it writes straight to the host could only be read in the trial\n"
					   : "  for real it writes straight to the host, what was copied in the trial\n");
	if (dry->record.reads_input)
		buf_put_text(&out, "  it reads its standard input, which the trial did not have\n");
	if (dry->effects.unreadable || !dry->effects.has_end)
		buf_put_text(&out, "  its log cannot be read to the end: it may have done more than is shown\n");
	if (r == 0)
		r = write_err(&out);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "dry-run", "what came of the trial cannot be shown: %s",
			       strerror(-r))
		     : 0;
}

/* ---- to ask ---- */

/* 'y', 'n', or 0 where nobody can be asked or nothing was said. Anything but a yes is a no. */
static char ask(const char *question)
{
	cleanup_fd int tty_fd = fd_open_at(AT_FDCWD, "/dev/tty", O_RDWR | O_NOCTTY, 0);
	char answer[ANSWER_MAX];
	ssize_t n;

	if (tty_fd < 0 || !isatty(STDERR_FILENO) || fd_write_full(tty_fd, question, strlen(question)) < 0)
		return 0;
	n = read(tty_fd, answer, sizeof answer);
	if (n <= 0)
		return 0;
	return answer[0] == 'y' || answer[0] == 'Y' ? 'y' : 'n';
}

bool dry_run_ask(struct dry_run *dry)
{
	char answer = dry->given->if_clean || is_silent(dry) ? 0 : ask("Do it for real? [y/N] ");

	dry->is_refused = answer == 'n';
	if (dry->is_refused)
		dry->done = DRY_RUN_REFUSED;
	return answer == 'y';
}

bool dry_run_ask_again(struct dry_run *dry)
{
	cleanup_buf struct buf out;

	buf_init(&out, TEXT_MAX);
	if (is_silent(dry))
		return false;
	buf_put_text(&out, "atoll: it came out otherwise than was shown:\n");
	if (add_text(&out, dry->difference_fd) < 0 || write_err(&out) < 0)
		return false;
	return ask(dry->origin.is_live && dry->has_origin ? "Is that all right? [y/N] " : "Keep it all the same? [y/N] ") ==
	       'y';
}

/* ---- the end ---- */

/* A session whose state somebody has to decide about. */
static const char *subject(const struct dry_run *dry)
{
	if (dry->has_origin && (dry->done != DRY_RUN_DIFFERS || !dry->has_real))
		return dry->origin.id;
	return dry->has_real ? dry->real.id : dry->trial.id;
}

static void put_end(const struct dry_run *dry, struct buf *out)
{
	const char *trial = dry->trial.id, *id = subject(dry);

	switch (dry->done) {
	case DRY_RUN_UNDECIDED:
		buf_printf(out, "atoll: for real  atoll dry-run --accept %s        drop  atoll discard %s\n", trial, trial);
		return;
	case DRY_RUN_REFUSED:
		buf_printf(out, "atoll: not done; trial %s is dropped\n", trial);
		return;
	case DRY_RUN_TAKEN_OVER:
		buf_printf(out, "atoll: done: %s holds what the trial showed; nothing on disk has changed yet\n", id);
		break;
	case DRY_RUN_AGAIN:
		buf_printf(out, "atoll: done: %s holds what was %s\n", id,
			   dry->differs ? "done, and not all of it was shown" : "shown");
		break;
	case DRY_RUN_DIFFERS:
		buf_printf(out, "atoll: it was done, and came out otherwise than trial %s showed; it waits in %s\n", trial,
			   id);
		if (dry->has_origin && !dry->has_real)
			buf_printf(out, "  back  atoll stop %s; atoll restore %s %s\n", id, id, dry->record.snapshot);
		break;
	default:
		return;
	}
	buf_printf(out, "  review  atoll diff %s        keep  atoll apply %s        drop  atoll discard %s\n", id, id, id);
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

/* A value that a confined program wrote as JSON; "null" where there is none. */
static int put_raw(struct json *json, struct buf *out, const char *key, int fd)
{
	struct buf text;
	int r;

	if (fd < 0) {
		json_null(json, key);
		return 0;
	}
	buf_init(&text, JSON_MAX);
	r = add_text(&text, fd);
	while (text.size && text.bytes[text.size - 1] == '\n')
		text.size--;
	if (r == 0)
		json_raw(json, key, text.bytes, text.size);
	buf_done(&text);
	return r;
}

static int put_json(const struct dry_run *dry, struct buf *out)
{
	struct json json;
	int r;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_string(&json, "trial", dry->trial.id);
	json_string(&json, "of", dry->has_origin ? dry->origin.id : NULL);
	json_string(&json, "snapshot", dry->has_origin ? dry->record.snapshot : NULL);
	json_array_begin(&json, "argv");
	for (size_t i = 0; dry->record.command[i]; i++)
		json_bytes(&json, NULL, dry->record.command[i], strlen(dry->record.command[i]));
	json_array_end(&json);
	json_i64(&json, "exit", dry->status);
	put_numbers(dry, &json);
	r = put_raw(&json, out, "changes", dry->changes_fd);
	if (r == 0)
		r = put_raw(&json, out, "effects", dry->effects_fd);
	json_bool(&json, "clean", dry_run_is_clean(dry));
	json_bool(&json, "writes_host", dry->record.writes_host);
	json_bool(&json, "reads_input", dry->record.reads_input);
	json_string(&json, "done", done_names[dry->done]);
	json_string(&json, "session", dry->done >= DRY_RUN_TAKEN_OVER ? subject(dry) : NULL);
	if (r == 0)
		r = put_raw(&json, out, "difference", dry->difference_fd);
	json_object_end(&json);
	buf_put_char(out, '\n');
	return r == 0 ? buf_error(out) : r;
}

int dry_run_tell(struct dry_run *dry, struct err *err)
{
	cleanup_buf struct buf out;
	int r = 0;

	buf_init(&out, JSON_MAX);
	if (dry->given->json) {
		r = put_json(dry, &out);
		return r < 0 ? err_set(err, ERR_INTERNAL, -r, "dry-run", "the object cannot be made: %s", strerror(-r))
			     : say_out(&out, err);
	}
	if (dry->given->quiet)
		return 0;
	put_end(dry, &out);
	r = write_err(&out);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "dry-run", "%s", strerror(-r)) : 0;
}
