/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "egress/tls/hello.h"

static void put_u16(struct buf *out, size_t value)
{
	buf_put_char(out, (char)(value >> 8));
	buf_put_char(out, (char)value);
}

/* A server_name extension with the names given (NULL: no extension at all). */
static void put_names(struct buf *out, const char *const *names, size_t name_size)
{
	struct buf list;

	buf_init(&list, 4096);
	for (; *names; names++) {
		size_t size = name_size ? name_size : strlen(*names);

		buf_put_char(&list, 0);
		put_u16(&list, size);
		buf_put(&list, *names, size);
	}
	put_u16(out, 0);
	put_u16(out, list.size + 2);
	put_u16(out, list.size);
	buf_put(out, list.bytes, list.size);
	buf_done(&list);
}

/* The handshake message around these extensions. */
static void put_message(struct buf *out, const struct buf *extensions)
{
	struct buf body;

	buf_init(&body, 8192);
	put_u16(&body, 0x0303);
	for (int i = 0; i < 32; i++)
		buf_put_char(&body, (char)i);
	buf_put_char(&body, 0);
	put_u16(&body, 2);
	put_u16(&body, 0x1301);
	put_u16(&body, 0x0100);
	if (extensions) {
		put_u16(&body, extensions->size);
		buf_put(&body, extensions->bytes, extensions->size);
	}
	buf_put_char(out, 1);
	buf_put_char(out, 0);
	put_u16(out, body.size);
	buf_put(out, body.bytes, body.size);
	buf_done(&body);
}

/* In records of at most this size. */
static void put_records(struct buf *out, const struct buf *message, size_t record)
{
	for (size_t at = 0; at < message->size; at += record) {
		size_t part = message->size - at < record ? message->size - at : record;

		buf_put_char(out, 22);
		put_u16(out, 0x0301);
		put_u16(out, part);
		buf_put(out, message->bytes + at, part);
	}
}

static void make(struct buf *out, const char *const *names, size_t name_size, size_t record)
{
	struct buf extensions, message;

	buf_init(&extensions, 8192);
	buf_init(&message, 8192);
	buf_init(out, 65536);
	put_u16(&extensions, 43); /* supported_versions */
	put_u16(&extensions, 3);
	buf_put(&extensions, "\2\3\4", 3);
	if (names)
		put_names(&extensions, names, name_size);
	put_message(&message, &extensions);
	put_records(out, &message, record);
	assert_int_equal(buf_error(out), 0);
	buf_done(&extensions);
	buf_done(&message);
}

static enum hello_state feed(const struct buf *stream, size_t step, struct hello *hello)
{
	hello_init(hello, HELLO_FIRST);
	for (size_t at = 0; at < stream->size; at += step)
		hello_feed(hello, stream->bytes + at, stream->size - at < step ? stream->size - at : step);
	return hello->state;
}

static void the_name_however_it_is_cut(void **state)
{
	static const char *const names[] = { "API.example.org", NULL };
	static const size_t records[] = { 16384, 100, 7, 1 }, steps[] = { 100000, 64, 1 };
	struct hello hello;
	struct buf stream;

	for (size_t r = 0; r < ARRAY_SIZE(records); r++) {
		make(&stream, names, 0, records[r]);
		for (size_t s = 0; s < ARRAY_SIZE(steps); s++) {
			assert_int_equal(feed(&stream, steps[s], &hello), HELLO_NAMED);
			assert_true(hello_names(&hello, "api.example.org"));
			assert_false(hello_names(&hello, "pi.example.org"));
			hello_done(&hello);
		}
		for (size_t cut = 0; cut < stream.size; cut++) {
			struct buf part = stream;

			part.size = cut;
			assert_int_equal(feed(&part, 4096, &hello), HELLO_MORE);
			hello_done(&hello);
		}
		buf_done(&stream);
	}
}

static void names_that_are_none(void **state)
{
	static const char *const two[] = { "a.example.org", "b.example.org", NULL }, *const zero[] = { NULL },
				 *const nul[] = { "evil.com\0.allowed.com", NULL }, *const dot[] = { "a.org.", NULL };
	struct hello hello;
	struct buf stream;

	make(&stream, NULL, 0, 16384);
	assert_int_equal(feed(&stream, 4096, &hello), HELLO_UNNAMED);
	hello_done(&hello);
	buf_done(&stream);
	make(&stream, two, 0, 16384);
	assert_int_equal(feed(&stream, 4096, &hello), HELLO_MALFORMED);
	hello_done(&hello);
	buf_done(&stream);
	make(&stream, zero, 0, 16384);
	assert_int_equal(feed(&stream, 4096, &hello), HELLO_MALFORMED);
	hello_done(&hello);
	buf_done(&stream);
	make(&stream, nul, 21, 16384);
	assert_int_equal(feed(&stream, 4096, &hello), HELLO_MALFORMED);
	hello_done(&hello);
	buf_done(&stream);
	make(&stream, dot, 0, 16384);
	assert_int_equal(feed(&stream, 4096, &hello), HELLO_NAMED);
	assert_false(hello_names(&hello, "a.org"));
	hello_done(&hello);
	buf_done(&stream);
}

static void not_tls(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
		enum hello_state state;
	} rows[] = {
		{ "GET / HTTP/1.1\r\n", 16, HELLO_PLAIN },
		{ "SSH-2.0-x", 9, HELLO_PLAIN },
		{ "\x80\x2e\1\3\1", 5, HELLO_PLAIN },           /* SSL 2 */
		{ "\x16\2\0\0\1", 5, HELLO_PLAIN },
		{ "\x16", 1, HELLO_MORE },
		{ "\x15", 1, HELLO_MORE },
		{ "\x15\3\1\0\2\1\x5a", 7, HELLO_MALFORMED },  /* an alert, which a server may skip */
		{ "\x14\3\3\0\1\1", 6, HELLO_MALFORMED },
		{ "\x17\3\3\0\1\1", 6, HELLO_MALFORMED },
		{ "\x15x", 2, HELLO_PLAIN },
		{ "\x16\3\1\0\0", 5, HELLO_MALFORMED },         /* an empty record */
		{ "\x16\3\1\xff\xff", 5, HELLO_MALFORMED },     /* too large a record */
		{ "\x16\3\1\0\4\2", 6, HELLO_MALFORMED },       /* a server's hello */
		{ "\x16\3\1\0\4\1\xff\xff\xff", 9, HELLO_MALFORMED },
		{ "\x16\3\1\0\1\1\x17\3\1", 9, HELLO_MALFORMED }, /* something else before the message is whole */
	};
	struct hello hello;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf stream = { .bytes = (uint8_t *)rows[i].bytes, .size = rows[i].size };

		assert_int_equal(feed(&stream, 1, &hello), rows[i].state);
		hello_done(&hello);
	}
}

static void a_second_hello_behind_early_data(void **state)
{
	static const char *const names[] = { "a.org", NULL }, *const others[] = { "b.org", NULL };
	static const char before[] = "\x14\3\3\0\1\1" "\x17\3\3\0\5early" "\x15\3\3\0\2\1\x5a";
	struct hello first, same, other;
	struct buf stream, second;

	make(&stream, names, 0, 16384);
	assert_int_equal(feed(&stream, 7, &first), HELLO_NAMED);
	assert_int_equal(first.size, stream.size);
	buf_init(&second, 65536);
	buf_put(&second, before, sizeof before - 1);
	buf_put(&second, stream.bytes, stream.size);
	hello_init(&same, HELLO_SECOND);
	for (size_t i = 0; i < second.size; i++)
		hello_feed(&same, second.bytes + i, 1);
	assert_int_equal(same.state, HELLO_NAMED);
	assert_int_equal(same.size, second.size);
	assert_true(hello_is_same(&first, &same));
	buf_done(&stream);
	make(&stream, others, 0, 20);
	hello_init(&other, HELLO_SECOND);
	hello_feed(&other, stream.bytes, stream.size);
	assert_int_equal(other.state, HELLO_NAMED);
	assert_false(hello_is_same(&first, &other));
	hello_done(&other);
	/* Nothing is skipped in the middle of it, and nothing that is none of TLS. */
	stream.size = 25;
	buf_put(&stream, before, sizeof before - 1);
	hello_init(&other, HELLO_SECOND);
	assert_int_equal(hello_feed(&other, stream.bytes, stream.size), HELLO_MALFORMED);
	hello_done(&other);
	hello_init(&other, HELLO_SECOND);
	assert_int_equal(hello_feed(&other, (const uint8_t *)"GET /", 5), HELLO_MALFORMED);
	assert_false(hello_is_same(&first, &other));
	hello_done(&first);
	hello_done(&same);
	buf_done(&second);
	buf_done(&stream);
}

static void two_hellos_in_one_record(void **state)
{
	static const char *const names[] = { "a.org", NULL };
	struct hello hello;
	struct buf stream;

	make(&stream, names, 0, 16384);
	buf_put(&stream, stream.bytes + 5, stream.size - 5);
	stream.bytes[3] = (uint8_t)((stream.size - 5) >> 8);
	stream.bytes[4] = (uint8_t)(stream.size - 5);
	assert_int_equal(feed(&stream, 4096, &hello), HELLO_MALFORMED);
	hello_done(&hello);
	buf_done(&stream);
}

/* The first bytes of answers: header of the record and of the message, version, random. */
static void a_server_that_wants_another(void **state)
{
	static const uint8_t random[] = "\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91"
					"\xc2\xa2\x11\x16\x7a\xbb\x8c\x5e\x07\x9e\x09\xe2\xc8\xa8\x33\x9c";
	struct buf message, stream;
	struct hello hello;

	buf_init(&message, 8192);
	buf_put(&message, "\2\0\0\x54\3\3", 6);
	buf_put(&message, random, 32);
	for (size_t record = 1; record <= 64; record *= 8) {
		buf_init(&stream, 65536);
		put_records(&stream, &message, record);
		hello_init(&hello, HELLO_OF_SERVER);
		for (size_t i = 0; i + 1 < stream.size; i++)
			assert_int_equal(hello_feed(&hello, stream.bytes + i, 1), HELLO_MORE);
		assert_int_equal(hello_feed(&hello, stream.bytes + stream.size - 1, 1), HELLO_RETRY);
		hello_done(&hello);
		stream.bytes[stream.size - 1] ^= 1;
		hello_init(&hello, HELLO_OF_SERVER);
		assert_int_equal(hello_feed(&hello, stream.bytes, stream.size), HELLO_PLAIN);
		hello_done(&hello);
		buf_done(&stream);
	}
	buf_done(&message);
	hello_init(&hello, HELLO_OF_SERVER);
	assert_int_equal(hello_feed(&hello, (const uint8_t *)"\x15\3\3\0\2\2\x28", 7), HELLO_PLAIN);
	hello_done(&hello);
	hello_init(&hello, HELLO_OF_SERVER);
	assert_int_equal(hello_feed(&hello, (const uint8_t *)"220 ready", 9), HELLO_PLAIN);
	hello_done(&hello);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_however_it_is_cut),
		cmocka_unit_test(names_that_are_none),
		cmocka_unit_test(not_tls),
		cmocka_unit_test(a_second_hello_behind_early_data),
		cmocka_unit_test(two_hellos_in_one_record),
		cmocka_unit_test(a_server_that_wants_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
