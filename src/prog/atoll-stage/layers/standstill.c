/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/layers/standstill.h"

#include <string.h>

#include "base/str.h"
#include "os/fd.h"
#include "wire/control.h"

enum { CONTROL_FD = 3 };

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

/* The number that comes with CONTROL_DONE, or negative. ret_fd: NULL, or where a descriptor goes (owned). */
static int receive_done(struct buf *scratch, int *ret_fd, struct err *err)
{
	cleanup_fd int fd = FD_NONE;
	struct frame frame;
	size_t fd_count;
	ssize_t n;
	void *bytes;
	int r;

	buf_reset(scratch);
	bytes = buf_reserve(scratch, FRAME_MESSAGE_MAX);
	n = bytes ? fd_receive_message(CONTROL_FD, bytes, FRAME_MESSAGE_MAX, &fd, ret_fd ? 1 : 0, &fd_count) : -ENOMEM;
	if (n == 0 || n == -ECONNRESET) {
		err_set(err, ERR_STATE, ECONNRESET, "snapshot", "the session ended meanwhile");
		err_hint(err, "try again: nothing runs in it now");
		return -ECONNRESET;
	}
	r = n < 0 ? (int)n : frame_open(&frame, bytes, (size_t)n);
	if (r < 0)
		return fail(r, "the box's answer cannot be read", err);
	if (frame.type == CONTROL_ERROR)
		return take_error(&frame, err);
	r = (int)frame_get_u32(&frame);
	if (frame.type != CONTROL_DONE || frame_finish(&frame) < 0 || r < 0 || (ret_fd && fd < 0))
		return fail(-EPROTO, "the box gave no clear answer", err);
	if (ret_fd)
		*ret_fd = take_fd(&fd);
	return r;
}

/* scratch holds the frame. */
static int ask(struct buf *scratch, int *ret_fd, struct err *err)
{
	int r = frame_end(scratch);

	if (r == 0)
		r = frame_send(CONTROL_FD, scratch, NULL, 0);
	return r < 0 ? fail(r, "the box cannot be asked", err) : receive_done(scratch, ret_fd, err);
}

int standstill_begin(const char *name, struct err *err)
{
	cleanup_buf struct buf scratch;
	int r;

	buf_init(&scratch, FRAME_MESSAGE_MAX);
	frame_begin(&scratch, CONTROL_FREEZE);
	frame_put_string(&scratch, name);
	r = ask(&scratch, NULL, err);
	return r < 0 ? r : 0;
}

int standstill_tree(size_t number, struct err *err)
{
	cleanup_buf struct buf scratch;
	int fd, r;

	buf_init(&scratch, FRAME_MESSAGE_MAX);
	frame_begin(&scratch, CONTROL_TREE);
	frame_put_u32(&scratch, (uint32_t)number);
	r = ask(&scratch, &fd, err);
	return r < 0 ? r : fd;
}

int standstill_end(struct err *err)
{
	cleanup_buf struct buf scratch;

	buf_init(&scratch, FRAME_MESSAGE_MAX);
	frame_begin(&scratch, CONTROL_THAW);
	return ask(&scratch, NULL, err);
}
