/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The snapshot of a running session. Descriptor 3 is a connection to its box, which freezes the sandbox until we say
 * so or are gone; meanwhile the live uppers are copied. The copy gets its name only when the box has said that nothing
 * moved until the end. (A session in which nothing runs is sealed by atoll itself.)
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll-stage/layers/turns.h"
#include "prog/atoll-stage/verb/layer-gc.h"
#include "prog/atoll-stage/verb/verb.h"
#include "stage/snapshot/snapshot.h"
#include "wire/control.h"

enum { CONTROL_FD = 3 };

struct snapshot_options {
	struct verb_session session;
	const char *name, *prefix, *message;
};

static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct snapshot_options),
	{ 0, "name", "NAME", "the snapshot's name", OPTION_TEXT, offsetof(struct snapshot_options, name) },
	{ 0, "prefix", "PREFIX", "name it PREFIXn", OPTION_TEXT, offsetof(struct snapshot_options, prefix) },
	{ 0, "message", "TEXT", "what it is for", OPTION_TEXT, offsetof(struct snapshot_options, message) },
};

static int fail(int r, const char *what, struct err *err)
{
	return err_set(err, ERR_STATE, -r, "snapshot", "%s: %s", what, strerror(-r));
}

/* What the box could not do, in its own words. */
static int take_error(struct frame *frame, struct err *err)
{
	size_t size;
	const void *bytes = frame_get_bytes(frame, &size);

	if (frame_finish(frame) < 0 || size != sizeof *err)
		return fail(-EPROTO, "the box gave no clear answer", err);
	memcpy(err, bytes, sizeof *err);
	err->stage[sizeof err->stage - 1] = err->message[sizeof err->message - 1] = err->hint[sizeof err->hint - 1] = 0;
	return err->errnum > 0 ? -err->errnum : -EIO;
}

/* The number that comes with CONTROL_DONE, or negative. */
static int receive_done(struct buf *scratch, struct err *err)
{
	struct frame frame;
	size_t fd_count;
	ssize_t n;
	void *bytes;
	int r;

	buf_reset(scratch);
	bytes = buf_reserve(scratch, FRAME_MESSAGE_MAX);
	n = bytes ? fd_receive_message(CONTROL_FD, bytes, FRAME_MESSAGE_MAX, NULL, 0, &fd_count) : -ENOMEM;
	if (n == 0 || n == -ECONNRESET) {
		err_set(err, ERR_STATE, ECONNRESET, "snapshot", "the session ended while the snapshot was taken");
		err_hint(err, "try again: nothing runs in it now");
		return -ECONNRESET;
	}
	r = n < 0 ? (int)n : frame_open(&frame, bytes, (size_t)n);
	if (r < 0)
		return fail(r, "the box's answer cannot be read", err);
	if (frame.type == CONTROL_ERROR)
		return take_error(&frame, err);
	r = (int)frame_get_u32(&frame);
	return frame.type == CONTROL_DONE && frame_finish(&frame) == 0 && r >= 0
		       ? r
		       : fail(-EPROTO, "the box gave no clear answer", err);
}

static int ask(struct buf *scratch, uint16_t type, const char *name, struct err *err)
{
	int r;

	frame_begin(scratch, type);
	if (type == CONTROL_FREEZE)
		frame_put_string(scratch, name);
	r = frame_end(scratch);
	if (r == 0)
		r = frame_send(CONTROL_FD, scratch, NULL, 0);
	return r < 0 ? fail(r, "the box cannot be asked", err) : receive_done(scratch, err);
}

static int copy_frozen(const struct stage_lock *lock, const char *name, uint32_t *ret_layer, struct err *err)
{
	cleanup_buf struct buf scratch;
	int r;

	buf_init(&scratch, FRAME_MESSAGE_MAX);
	r = ask(&scratch, CONTROL_FREEZE, name, err);
	if (r < 0)
		return r;
	r = stage_snapshot_copy(lock, ret_layer, err);
	if (r < 0)
		return r;
	r = ask(&scratch, CONTROL_THAW, NULL, err);
	if (r > 0) {
		err_set(err, ERR_STATE, EAGAIN, "snapshot", "the session did not stand still until its copy was made");
		err_hint(err, "try again, or stop the session first");
		r = -EAGAIN;
	}
	if (r < 0 && stage_snapshot_drop_copy(lock, *ret_layer) < 0)
		return r; /* nothing names it: gc takes it */
	return r;
}

static int choose_name(const struct snapshot_options *given, const struct stage_lock *lock,
		       char out[STAGE_SNAPSHOT_NAME_SIZE], struct err *err)
{
	int r;

	if (!given->name)
		return stage_snapshot_next_name(lock, given->prefix, out, err);
	r = stage_snapshot_check_name(lock, given->name, err);
	return r < 0 ? r : str_copy(out, STAGE_SNAPSHOT_NAME_SIZE, given->name);
}

static int take(const struct snapshot_options *given, struct stage_lock *lock, char name[STAGE_SNAPSHOT_NAME_SIZE],
		struct err *err)
{
	bool is_auto = given->prefix && str_equal(given->prefix, STAGE_AUTO_PREFIX);
	bool is_turn = given->prefix && str_equal(given->prefix, STAGE_TURN_PREFIX);
	uint32_t layer = 0;
	int r = choose_name(given, lock, name, err);

	if (r == 0)
		r = layer_gc_confine(lock->sessions_fd, NULL, err);
	if (r == 0 && is_turn)
		r = turns_check(lock, err);
	if (r == 0)
		r = copy_frozen(lock, name, &layer, err);
	if (r == 0)
		r = stage_snapshot_name_copy(lock, layer, name, given->message, err);
	if (r == 0 && is_turn)
		r = turns_thin(lock, err);
	if (r == 0 && is_auto) {
		r = stage_snapshot_thin(lock, STAGE_AUTO_PREFIX, STAGE_AUTO_KEPT, err);
		if (r > 0)
			r = layer_gc_layers(lock, err);
	}
	return r;
}

int cmd_snapshot(int argc, char **argv, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	struct snapshot_options given = { 0 };
	char name[STAGE_SNAPSHOT_NAME_SIZE];
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r == 0 && (!given.session.state || !given.session.id || !given.name == !given.prefix))
		r = err_set(err, ERR_USAGE, EINVAL, "snapshot", "atoll-stage snapshot is run by atoll");
	if (r == 0)
		r = stage_lock_open(given.session.state, given.session.id, &lock, err);
	if (r == 0)
		r = stage_lock_need_layers(&lock, "a snapshot", err);
	if (r == 0)
		r = take(&given, &lock, name, err);
	if (r < 0)
		return r;
	return printf("%s\n", name) < 0 || fflush(stdout) != 0
		       ? err_set(err, ERR_STATE, EIO, "snapshot", "stdout cannot be written")
		       : 0;
}
