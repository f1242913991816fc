/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/link.h"

#include "base/err.h"

void link_put_error(struct buf *out, const struct err *err)
{
	field_put_string(out, "where", err->stage);
	field_put_string(out, "what", err->message);
	field_put_string(out, "hint", err_advice(err));
	field_put_u64(out, "errno", err->errnum > 0 ? (uint64_t)err->errnum : 0);
}

void link_send_failure(int socket_fd, const struct err *err)
{
	cleanup_buf struct buf out;

	buf_init(&out, FRAME_MESSAGE_MAX);
	frame_begin(&out, LINK_EVENT);
	frame_put_u64(&out, 0);
	frame_put_u32(&out, LINK_EVENT_FAILED);
	field_put_u64(&out, "code", err->code);
	link_put_error(&out, err);
	if (frame_end(&out) == 0)
		(void)!frame_send(socket_fd, &out, NULL, 0);
}

int link_send_parked(int socket_fd)
{
	char memory[64];
	struct buf out;
	int r;

	buf_init_fixed(&out, memory, sizeof memory);
	frame_begin(&out, LINK_EVENT);
	frame_put_u64(&out, 0);
	frame_put_u32(&out, LINK_EVENT_PARKED);
	r = frame_end(&out);
	return r == 0 ? frame_send(socket_fd, &out, NULL, 0) : r;
}
