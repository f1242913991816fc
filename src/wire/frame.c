/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/frame.h"

#include <string.h>

#include "os/fd.h"

enum field_tag { TAG_U32 = 1, TAG_U64, TAG_BYTES, TAG_STRING, TAG_NULL, TAG_STRV };

struct header {
	uint32_t magic;
	uint16_t version, type;
	uint32_t size; /* of the whole frame */
	uint32_t zero;
};

enum { FRAME_MAGIC = 0x6c6f7461 }; /* "atol" */

void frame_begin(struct buf *out, uint16_t type)
{
	struct header header = { .magic = FRAME_MAGIC, .version = FRAME_VERSION, .type = type };

	buf_reset(out);
	buf_put(out, &header, sizeof header);
}

static void put_tagged(struct buf *out, enum field_tag tag, const void *bytes, size_t size)
{
	buf_put_char(out, (char)tag);
	buf_put(out, bytes, size);
}

void frame_put_u32(struct buf *out, uint32_t value)
{
	put_tagged(out, TAG_U32, &value, sizeof value);
}

void frame_put_u64(struct buf *out, uint64_t value)
{
	put_tagged(out, TAG_U64, &value, sizeof value);
}

static void put_sized(struct buf *out, enum field_tag tag, const void *bytes, size_t size)
{
	uint32_t length = (uint32_t)size;

	if (size > UINT32_MAX)
		out->error = out->error ? out->error : -ENOBUFS;
	put_tagged(out, tag, &length, sizeof length);
	buf_put(out, bytes, size);
}

void frame_put_bytes(struct buf *out, const void *bytes, size_t size)
{
	put_sized(out, TAG_BYTES, bytes, size);
}

void frame_put_string(struct buf *out, const char *text)
{
	if (text)
		put_sized(out, TAG_STRING, text, strlen(text) + 1);
	else
		buf_put_char(out, TAG_NULL);
}

void frame_put_strv(struct buf *out, const char *const *strv)
{
	uint32_t count = 0;

	while (strv && strv[count])
		count++;
	put_tagged(out, TAG_STRV, &count, sizeof count);
	for (uint32_t i = 0; i < count; i++)
		put_sized(out, TAG_STRING, strv[i], strlen(strv[i]) + 1);
}

int frame_end(struct buf *out)
{
	uint32_t size = (uint32_t)out->size;

	if (buf_error(out))
		return buf_error(out);
	memcpy(out->bytes + offsetof(struct header, size), &size, sizeof size);
	return 0;
}

int frame_open(struct frame *frame, void *bytes, size_t size)
{
	struct header header;

	*frame = (struct frame){ .bytes = bytes, .size = size, .at = sizeof header };
	if (size < sizeof header) {
		frame->error = -EBADMSG;
		return -EBADMSG;
	}
	memcpy(&header, bytes, sizeof header);
	if (header.magic != FRAME_MAGIC || header.version != FRAME_VERSION || header.size != size || header.zero)
		frame->error = -EBADMSG;
	frame->type = header.type;
	return frame->error;
}

uint16_t frame_peek_type(const uint8_t header[FRAME_HEADER_SIZE])
{
	struct header copy;

	_Static_assert(sizeof copy == FRAME_HEADER_SIZE, "the header has no padding");
	memcpy(&copy, header, sizeof copy);
	return copy.type;
}

uint32_t frame_peek_size(const uint8_t header[FRAME_HEADER_SIZE])
{
	struct header copy;

	memcpy(&copy, header, sizeof copy);
	return copy.size;
}

/* The next size bytes, or NULL with the sticky error. */
static void *get_raw(struct frame *frame, size_t size)
{
	void *at = frame->bytes + frame->at;

	if (frame->error || size > frame->size - frame->at) {
		frame->error = -EBADMSG;
		return NULL;
	}
	frame->at += size;
	return at;
}

static bool get_tag(struct frame *frame, enum field_tag tag)
{
	const uint8_t *at = get_raw(frame, 1);

	if (at && *at == tag)
		return true;
	frame->error = -EBADMSG;
	return false;
}

uint32_t frame_get_u32(struct frame *frame)
{
	const void *at = get_tag(frame, TAG_U32) ? get_raw(frame, 4) : NULL;
	uint32_t value = 0;

	if (at)
		memcpy(&value, at, sizeof value);
	return value;
}

uint64_t frame_get_u64(struct frame *frame)
{
	const void *at = get_tag(frame, TAG_U64) ? get_raw(frame, 8) : NULL;
	uint64_t value = 0;

	if (at)
		memcpy(&value, at, sizeof value);
	return value;
}

static void *get_sized(struct frame *frame, size_t *ret_size)
{
	const void *at = get_raw(frame, 4);
	uint32_t size;

	if (!at)
		return NULL;
	memcpy(&size, at, sizeof size);
	*ret_size = size;
	return get_raw(frame, size);
}

const void *frame_get_bytes(struct frame *frame, size_t *ret_size)
{
	const void *bytes;

	*ret_size = 0;
	if (!get_tag(frame, TAG_BYTES))
		return NULL;
	bytes = get_sized(frame, ret_size);
	if (!bytes)
		*ret_size = 0;
	return bytes;
}

const char *frame_get_string(struct frame *frame)
{
	const char *text;
	size_t size;

	if (!frame->error && frame->at < frame->size && frame->bytes[frame->at] == TAG_NULL) {
		frame->at++;
		return NULL;
	}
	if (!get_tag(frame, TAG_STRING))
		return NULL;
	text = get_sized(frame, &size);
	if (!text)
		return NULL;
	/* Exactly one NUL, at the end: what we check is what execve and open will see. */
	if (!size || strnlen(text, size) != size - 1) {
		frame->error = -EBADMSG;
		return NULL;
	}
	return text;
}

char **frame_get_strv(struct frame *frame)
{
	const void *at = get_tag(frame, TAG_STRV) ? get_raw(frame, 4) : NULL;
	cleanup_free char **strv = NULL;
	uint32_t count;

	if (!at)
		return NULL;
	memcpy(&count, at, sizeof count);
	/* A string takes at least 6 bytes: a count that cannot fit is refused before memory is taken for it. */
	if (count > FRAME_STRV_MAX || count > (frame->size - frame->at) / 6) {
		frame->error = -EBADMSG;
		return NULL;
	}
	strv = calloc(count + 1, sizeof *strv);
	if (!strv) {
		frame->error = -ENOMEM;
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		strv[i] = (char *)frame_get_string(frame);
		if (!strv[i]) {
			frame->error = frame->error ? frame->error : -EBADMSG;
			return NULL;
		}
	}
	return take_ptr(strv);
}

int frame_finish(struct frame *frame)
{
	if (!frame->error && frame->at != frame->size)
		frame->error = -EBADMSG;
	return frame->error;
}

static const struct frame_rule *find_rule(const struct frame *frame, unsigned state, size_t fd_count,
					  const struct frame_rule *rules, size_t rule_count)
{
	for (size_t i = 0; i < rule_count; i++) {
		const struct frame_rule *rule = &rules[i];

		if (rule->type != frame->type)
			continue;
		if (!(rule->states & 1u << state) || frame->size > rule->size_max)
			return NULL;
		return fd_count >= rule->fd_min && fd_count <= rule->fd_max ? rule : NULL;
	}
	return NULL;
}

int frame_dispatch(int socket_fd, struct buf *scratch, unsigned state, const struct frame_rule *rules,
		   size_t rule_count, void *context)
{
	int fds[FRAME_FD_MAX] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE };
	const struct frame_rule *rule;
	struct frame frame;
	size_t fd_count;
	uint8_t *memory;
	ssize_t n;
	int r;

	buf_reset(scratch);
	memory = buf_reserve(scratch, FRAME_MESSAGE_MAX);
	if (!memory)
		return buf_error(scratch);
	n = fd_receive_message(socket_fd, memory, FRAME_MESSAGE_MAX, fds, FRAME_FD_MAX, &fd_count);
	if (n == -EMSGSIZE)
		return -EPROTO;
	/* Nothing but fds: no frame, and not the end either, whose fds would stay with us. */
	if (n < 0 || (n == 0 && !fd_count))
		return (int)n;
	r = frame_open(&frame, memory, (size_t)n);
	rule = r < 0 ? NULL : find_rule(&frame, state, fd_count, rules, rule_count);
	r = rule ? rule->handle(context, &frame, fds, fd_count) : -EPROTO;
	for (size_t i = 0; i < FRAME_FD_MAX; i++)
		close_fd(&fds[i]);
	return r < 0 ? r : 1;
}

int frame_send(int socket_fd, const struct buf *out, const int *fds, size_t fd_count)
{
	ssize_t n;

	if (buf_error(out))
		return buf_error(out);
	if (out->size > FRAME_MESSAGE_MAX)
		return -EMSGSIZE;
	n = fd_send_message(socket_fd, out->bytes, out->size, fds, fd_count);
	return n < 0 ? (int)n : 0;
}
