/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "os/fd.h"
#include "wire/frame.h"

enum { TYPE = 7, HEADER_SIZE = 16 };

static struct buf out;

static int setup(void **state)
{
	buf_init(&out, 8 << 20);
	return 0;
}

static int teardown(void **state)
{
	buf_done(&out);
	return 0;
}

static struct frame reopen(void)
{
	struct frame frame;

	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	assert_int_equal(frame.type, TYPE);
	return frame;
}

static void every_kind_of_field_comes_back(void **state)
{
	static const char *const strv[] = { "", "a", "\n\xff", NULL };
	struct frame frame;
	size_t size;
	char **back;

	frame_begin(&out, TYPE);
	frame_put_u32(&out, UINT32_MAX);
	frame_put_u64(&out, UINT64_MAX);
	frame_put_bytes(&out, "a\0b", 3);
	frame_put_bytes(&out, NULL, 0);
	frame_put_string(&out, "text");
	frame_put_string(&out, "");
	frame_put_string(&out, NULL);
	frame_put_strv(&out, strv);
	frame_put_strv(&out, NULL);
	frame = reopen();
	assert_int_equal(frame_get_u32(&frame), UINT32_MAX);
	assert_true(frame_get_u64(&frame) == UINT64_MAX);
	assert_memory_equal(frame_get_bytes(&frame, &size), "a\0b", 3);
	assert_int_equal(size, 3);
	assert_non_null(frame_get_bytes(&frame, &size));
	assert_int_equal(size, 0);
	assert_string_equal(frame_get_string(&frame), "text");
	assert_string_equal(frame_get_string(&frame), "");
	assert_null(frame_get_string(&frame));
	back = frame_get_strv(&frame);
	assert_string_equal(back[0], "");
	assert_string_equal(back[2], "\n\xff");
	assert_null(back[3]);
	free(back);
	back = frame_get_strv(&frame);
	assert_null(back[0]);
	free(back);
	assert_int_equal(frame_finish(&frame), 0);
}

static void what_is_left_over_is_an_error(void **state)
{
	struct frame frame;

	frame_begin(&out, TYPE);
	frame_put_u32(&out, 1);
	frame = reopen();
	assert_int_equal(frame_finish(&frame), -EBADMSG);
	frame_begin(&out, TYPE);
	frame = reopen();
	assert_int_equal(frame_finish(&frame), 0);
}

static void errors_are_sticky(void **state)
{
	struct frame frame;
	size_t size = 1;

	frame_begin(&out, TYPE);
	frame_put_u32(&out, 1);
	frame_put_u64(&out, 2);
	frame_put_string(&out, "x");
	frame = reopen();
	assert_true(frame_get_u64(&frame) == 0);
	assert_int_equal(frame_get_u32(&frame), 0);
	assert_null(frame_get_string(&frame));
	assert_null(frame_get_bytes(&frame, &size));
	assert_int_equal(size, 0);
	assert_null(frame_get_strv(&frame));
	assert_int_equal(frame_finish(&frame), -EBADMSG);
}

static void headers_that_do_not_fit(void **state)
{
	uint8_t copy[64];
	struct frame frame;

	frame_begin(&out, TYPE);
	frame_put_u32(&out, 1);
	(void)reopen();
	for (size_t size = 0; size < out.size; size++)
		assert_int_equal(frame_open(&frame, out.bytes, size), -EBADMSG);
	/* magic, version, size and the reserved word: no byte of them may differ; the type is the caller's business */
	for (size_t at = 0; at < HEADER_SIZE; at++) {
		if (at == 6 || at == 7)
			continue;
		memcpy(copy, out.bytes, out.size);
		copy[at] ^= 0x10;
		assert_int_equal(frame_open(&frame, copy, out.size), -EBADMSG);
		assert_int_equal(frame_get_u32(&frame), 0);
		assert_int_equal(frame_finish(&frame), -EBADMSG);
	}
	memcpy(copy, out.bytes, out.size);
	copy[out.size] = 0;
	assert_int_equal(frame_open(&frame, copy, out.size + 1), -EBADMSG);
}

/* A frame of type TYPE with these bytes as its fields. */
static struct frame frame_of(const void *fields, size_t size)
{
	frame_begin(&out, TYPE);
	buf_put(&out, fields, size);
	return reopen();
}

static void strings_that_lie(void **state)
{
	struct frame frame = frame_of("\x04\x02\0\0\0ab", 7);

	assert_null(frame_get_string(&frame));
	assert_int_equal(frame_finish(&frame), -EBADMSG);
	frame = frame_of("\x04\x00\0\0\0", 5);
	assert_null(frame_get_string(&frame));
	assert_int_equal(frame_finish(&frame), -EBADMSG);
	frame = frame_of("\x04\x04\0\0\0a\0b\0", 9);
	assert_null(frame_get_string(&frame));
	frame = frame_of("\x04\x03\0\0\0a\0", 7);
	assert_null(frame_get_string(&frame));
	frame = frame_of("\x04\xff\xff\xff\xff" "a\0", 7);
	assert_null(frame_get_string(&frame));
	frame = frame_of("\x04\x02\0\0", 4);
	assert_null(frame_get_string(&frame));
	frame = frame_of("\x04", 1);
	assert_null(frame_get_string(&frame));
	frame = frame_of("", 0);
	assert_null(frame_get_string(&frame));
	assert_int_equal(frame_finish(&frame), -EBADMSG);
}

static void vectors_that_lie(void **state)
{
	/* Counts that promise more than there is must not cost memory. */
	struct frame frame = frame_of("\x06\xff\xff\xff\xff", 5);

	assert_null(frame_get_strv(&frame));
	assert_int_equal(frame_finish(&frame), -EBADMSG);
	frame = frame_of("\x06\x02\0\0\0\x04\x01\0\0\0\0", 11);
	assert_null(frame_get_strv(&frame));
	/* A NULL inside would end the vector before its count. */
	frame = frame_of("\x06\x01\0\0\0\x05\x05\x05\x05\x05\x05", 11);
	assert_null(frame_get_strv(&frame));
	assert_int_equal(frame_finish(&frame), -EBADMSG);
}

static void vectors_have_a_limit(void **state)
{
	char **strv = calloc(FRAME_STRV_MAX + 2, sizeof *strv), **back;
	struct frame frame;

	for (size_t i = 0; i <= FRAME_STRV_MAX; i++)
		strv[i] = (char *)"";
	frame_begin(&out, TYPE);
	frame_put_strv(&out, (const char *const *)strv);
	frame = reopen();
	assert_null(frame_get_strv(&frame));
	strv[FRAME_STRV_MAX] = NULL;
	frame_begin(&out, TYPE);
	frame_put_strv(&out, (const char *const *)strv);
	frame = reopen();
	back = frame_get_strv(&frame);
	assert_non_null(back);
	assert_null(back[FRAME_STRV_MAX]);
	free(back);
	free(strv);
}

static void writers_fail_once_and_say_so(void **state)
{
	struct buf small;

	buf_init(&small, 32);
	frame_begin(&small, TYPE);
	frame_put_string(&small, "this does not fit any more");
	frame_put_u32(&small, 1);
	assert_int_equal(frame_end(&small), -ENOBUFS);
	assert_int_equal(frame_send(-1, &small, NULL, 0), -ENOBUFS);
	buf_done(&small);
}

struct seen {
	int calls, take;
	size_t fd_count;
	uint32_t value;
	int kept;
};

static int handle(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct seen *seen = context;

	seen->calls++;
	seen->fd_count = fd_count;
	seen->value = frame_get_u32(frame);
	if (seen->take)
		seen->kept = take_fd(&fds[0]);
	return frame_finish(frame);
}

static const struct frame_rule rules[] = {
	{ TYPE, 1u << 0 | 1u << 2, HEADER_SIZE + 5, 0, 1, handle },
	{ TYPE + 1, 1u << 1, 64, 1, 2, handle },
};

static size_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

struct exchange {
	int ends[2];
	struct buf scratch;
	struct seen seen;
};

static void exchange_init(struct exchange *exchange)
{
	*exchange = (struct exchange){ .seen = { .kept = FD_NONE } };
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, exchange->ends), 0);
	buf_init(&exchange->scratch, FRAME_MESSAGE_MAX);
}

static void exchange_done(struct exchange *exchange)
{
	close(exchange->ends[0]);
	close(exchange->ends[1]);
	buf_done(&exchange->scratch);
}

static int deliver(struct exchange *exchange, unsigned state)
{
	return frame_dispatch(exchange->ends[1], &exchange->scratch, state, rules, ARRAY_SIZE(rules), &exchange->seen);
}

static void send_u32(struct exchange *exchange, uint16_t type, size_t fd_count)
{
	int fds[FRAME_FD_MAX + 1] = { 0, 0, 0, 0, 0 };

	frame_begin(&out, type);
	frame_put_u32(&out, 42);
	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_send(exchange->ends[0], &out, fds, fd_count), 0);
}

static void messages_reach_their_handler(void **state)
{
	struct exchange exchange;
	size_t before;

	exchange_init(&exchange);
	before = open_fds();
	send_u32(&exchange, TYPE, 0);
	assert_int_equal(deliver(&exchange, 0), 1);
	assert_int_equal(exchange.seen.value, 42);
	send_u32(&exchange, TYPE, 1);
	assert_int_equal(deliver(&exchange, 2), 1);
	assert_int_equal(exchange.seen.fd_count, 1);
	assert_int_equal(open_fds(), before);
	exchange.seen.take = true;
	send_u32(&exchange, TYPE + 1, 2);
	assert_int_equal(deliver(&exchange, 1), 1);
	assert_true(exchange.seen.kept >= 0);
	assert_int_equal(open_fds(), before + 1);
	close(exchange.seen.kept);
	close(exchange.ends[0]);
	assert_int_equal(deliver(&exchange, 0), 0);
	exchange.ends[0] = FD_NONE;
	assert_int_equal(exchange.seen.calls, 3);
	exchange_done(&exchange);
}

static void messages_out_of_turn_end_the_session(void **state)
{
	static const struct {
		uint16_t type;
		size_t fds;
		unsigned state;
	} wrong[] = {
		{ TYPE, 0, 1 },           /* not in this state */
		{ TYPE, 2, 0 },           /* too many fds */
		{ TYPE + 1, 0, 1 },       /* too few */
		{ TYPE + 1, 3, 1 },
		{ TYPE + 2, 0, 0 },       /* no such message */
		{ TYPE, 4, 0 },
		{ TYPE, FRAME_FD_MAX + 1, 0 },
	};
	struct exchange exchange;
	size_t before;

	exchange_init(&exchange);
	before = open_fds();
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		send_u32(&exchange, wrong[i].type, wrong[i].fds);
		assert_int_equal(deliver(&exchange, wrong[i].state), -EPROTO);
		assert_int_equal(open_fds(), before);
	}
	assert_int_equal(exchange.seen.calls, 0);
	exchange_done(&exchange);
}

static void malformed_messages_end_the_session(void **state)
{
	struct exchange exchange;
	size_t before;
	int fd = 0;

	exchange_init(&exchange);
	before = open_fds();
	assert_int_equal(fd_send_message(exchange.ends[0], "rubbish", 7, &fd, 1), 7);
	assert_int_equal(deliver(&exchange, 0), -EPROTO);
	/* No bytes but a descriptor: not the end of the connection, and nothing to keep. */
	assert_int_equal(fd_send_message(exchange.ends[0], "", 0, &fd, 1), 0);
	assert_int_equal(deliver(&exchange, 0), -EPROTO);
	frame_begin(&out, TYPE);
	frame_put_u64(&out, 42);
	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_send(exchange.ends[0], &out, &fd, 1), 0);
	assert_int_equal(deliver(&exchange, 0), -EPROTO);
	frame_begin(&out, TYPE);
	frame_put_string(&out, NULL);
	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_send(exchange.ends[0], &out, &fd, 1), 0);
	assert_int_equal(deliver(&exchange, 0), -EBADMSG);
	assert_int_equal(open_fds(), before);
	exchange_done(&exchange);
}

static void the_largest_message(void **state)
{
	uint8_t *bytes = calloc(1, FRAME_MESSAGE_MAX);
	struct exchange exchange;

	exchange_init(&exchange);
	frame_begin(&out, TYPE);
	frame_put_bytes(&out, bytes, FRAME_MESSAGE_MAX - HEADER_SIZE - 5);
	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(out.size, FRAME_MESSAGE_MAX);
	assert_int_equal(frame_send(exchange.ends[0], &out, NULL, 0), 0);
	assert_int_equal(deliver(&exchange, 0), -EPROTO);
	assert_int_equal(exchange.seen.calls, 0);
	frame_begin(&out, TYPE);
	frame_put_bytes(&out, bytes, FRAME_MESSAGE_MAX - HEADER_SIZE - 4);
	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_send(exchange.ends[0], &out, NULL, 0), -EMSGSIZE);
	free(bytes);
	exchange_done(&exchange);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_field_comes_back),
		cmocka_unit_test(what_is_left_over_is_an_error),
		cmocka_unit_test(errors_are_sticky),
		cmocka_unit_test(headers_that_do_not_fit),
		cmocka_unit_test(strings_that_lie),
		cmocka_unit_test(vectors_that_lie),
		cmocka_unit_test(vectors_have_a_limit),
		cmocka_unit_test(writers_fail_once_and_say_so),
		cmocka_unit_test(messages_reach_their_handler),
		cmocka_unit_test(messages_out_of_turn_end_the_session),
		cmocka_unit_test(malformed_messages_end_the_session),
		cmocka_unit_test(the_largest_message),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
