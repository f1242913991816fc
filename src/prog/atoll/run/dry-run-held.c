/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the box starts as EXEC_TRIAL_NAME: one program that stands still before its exec is tried, the box hears what
 * came of it, and once it was done for real whether that was the same (wire/trial.h). The trial ends with the socket.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "client/staged.h"
#include "os/fd.h"
#include "prog/atoll/run/dry-run-state.h"
#include "prog/atoll/verb/dry-run-end.h"
#include "wire/trial.h"

struct held {
	struct dry_run *dry;
	void *in;                    /* what was asked for, as long as it is worked at */
	struct buf out;
};

/* Negative: nobody is there any more, or what came is no message. */
static int receive(void *bytes, size_t size, struct frame *ret_frame)
{
	size_t fd_count;
	ssize_t n = fd_receive_message(TRIAL_FD, bytes, size, NULL, 0, &fd_count);

	return n < 0 ? (int)n : n == 0 ? -ECONNRESET : frame_open(ret_frame, bytes, (size_t)n);
}

static void put_count(struct buf *out, uint64_t count, const char *what)
{
	if (count)
		buf_printf(out, "%s%llu %s", out->size ? ", " : "", (unsigned long long)count, what);
}

/* One line without a byte of what is hostile. */
static void put_text(const struct dry_run *dry, struct buf *out)
{
	const struct stage_difference *difference = &dry->difference;
	const struct effects_numbers *effects = &dry->effects;

	put_count(out, difference->deleted, "deleted");
	put_count(out, difference->modified, "modified");
	put_count(out, difference->added, "added");
	put_count(out, difference->flagged, "in protected paths");
	put_count(out, effects->of[EFFECTS_OUTGOING], "would go out");
	put_count(out, effects->of[EFFECTS_ASKED], "would be asked about");
	put_count(out, effects->of[EFFECTS_REFUSED], "refused");
	if (dry->record.reads_input)
		buf_printf(out, "%sit reads its input", out->size ? ", " : "");
	if (dry->record.writes_host)
		buf_printf(out, "%swhat it writes straight to the host was read-only", out->size ? ", " : "");
	if (dry->status)
		buf_printf(out, "%sexit status %d", out->size ? ", " : "", dry->status);
	if (!out->size)
		buf_put_text(out, "nothing changed");
}

static int send_result(struct held *held, enum trial_result result, const char *text)
{
	struct trial_shown shown = { result, result == TRIAL_FAILED ? "" : held->dry->trial.id, text };
	char cut[TRIAL_TEXT_SIZE];
	int r;

	(void)!snprintf(cut, sizeof cut, "%s", text);
	shown.text = cut;
	r = trial_shown_put(&held->out, &shown);
	return r < 0 ? r : frame_send(TRIAL_FD, &held->out, NULL, 0);
}

/* Files that were deleted are gone for everything that comes after: that, a person should have seen. */
static enum trial_result result_of(const struct dry_run *dry)
{
	const struct effects_numbers *effects = &dry->effects;

	if (dry->effects.unreadable || !dry->effects.has_end)
		return TRIAL_FAILED;
	return dry->status == 0 && dry_run_reached_nobody(dry) && !effects->of[EFFECTS_REFUSED] &&
			       !dry->difference.flagged && !dry->difference.hidden && !dry->difference.deleted &&
			       !dry->record.writes_host
		       ? TRIAL_CLEAN
		       : TRIAL_TOLD;
}

static int show(struct held *held, int r, const struct err *err)
{
	char memory[TRIAL_TEXT_SIZE];
	struct buf text;

	if (r == 0 && held->dry->is_cut)
		return send_result(held, TRIAL_FAILED, "it took longer than a trial may");
	if (r < 0)
		return send_result(held, TRIAL_FAILED, err->message[0] ? err->message : "the trial failed");
	buf_init_fixed(&text, memory, sizeof memory - 1);
	put_text(held->dry, &text);
	return send_result(held, result_of(held->dry), buf_error(&text) ? "a great deal" : buf_text(&text));
}

static int compare(struct held *held, struct err *err)
{
	const struct staged_snapshot wanted = { .prefix = "done-" };
	struct dry_run *dry = held->dry;
	char memory[TRIAL_TEXT_SIZE];
	struct buf text;
	int r = staged_snapshot(dry->state, &dry->origin, &wanted, dry->real_snapshot, err);

	if (r == 0)
		r = dry_run_compare(dry, dry->origin.id, dry->real_snapshot, err);
	buf_init_fixed(&text, memory, sizeof memory - 1);
	if (r != 0)
		buf_put_text(&text, "it cannot be compared");
	else if (dry->differs)
		/* The session is frozen for a person's answer: it is restored after its end. */
		buf_printf(&text, "%llu paths; back: atoll stop %s; atoll restore %s %s",
			   (unsigned long long)(dry->real_difference.added + dry->real_difference.modified +
						dry->real_difference.deleted),
			   dry->origin.id, dry->origin.id, dry->record.snapshot);
	r = trial_compared_put(&held->out, r != 0 || dry->differs, buf_text(&text));
	return r < 0 ? r : frame_send(TRIAL_FD, &held->out, NULL, 0);
}

/* The names that were made for the comparison; the way back stays where it may be wanted. */
static int forget(const struct dry_run *dry, struct err *err)
{
	int r = *dry->real_snapshot ? staged_forget(dry->state, dry->origin.id, dry->real_snapshot, err) : 0;

	if (r == 0 && !dry->differs)
		r = dry_run_forget_origin(dry->state, &dry->record, err);
	return r == 0 && dry->has_trial ? dry_run_forget_shown(dry->state, dry->trial.id, &dry->record, err) : r;
}

/* In the place of a stdin that can be read once: the trial notices when somebody reads from such a one. */
static int lack_input(void)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0 || dup2(ends[0], STDIN_FILENO) < 0)
		return -errno;
	close(ends[0]);
	close(ends[1]);
	return 0;
}

static int serve(struct held *held, struct trial_begin *begin)
{
	struct dry_run *dry = held->dry;
	char memory[256];
	struct err err = { 0 };
	struct frame frame;
	int r;

	r = show(held, dry_run_try(dry, begin, &err), &err);
	while (r == 0) {
		r = receive(memory, sizeof memory, &frame);
		if (r == 0 && frame.type == TRIAL_ENDED)
			r = compare(held, &err);
	}
	r = forget(dry, &err);
	return r == 0 && dry->has_trial ? dry_run_discard(dry, &err) : r;
}

int dry_run_held_main(void)
{
	static struct dry_run_options given = { .quiet = true };
	struct held held = { .dry = NULL };
	struct trial_begin begin;
	struct err err = { 0 };
	struct frame frame;
	int r;

	signal(SIGPIPE, SIG_IGN);
	buf_init(&held.out, FRAME_MESSAGE_MAX);
	held.in = malloc(FRAME_MESSAGE_MAX);
	held.dry = dry_run_new(&given, &err);
	r = held.in && held.dry ? receive(held.in, FRAME_MESSAGE_MAX, &frame) : -ENOMEM;
	if (r == 0)
		r = frame.type == TRIAL_BEGIN ? trial_begin_get(&frame, &begin) : -EBADMSG;
	if (r == 0 && !begin.has_no_input)
		r = lack_input();
	return r == 0 && serve(&held, &begin) == 0 ? 0 : 125;
}
