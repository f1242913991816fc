/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "service/protocol/multipart.h"

static struct multipart multipart;

/* What a body comes to when it arrives in steps of so many bytes: "[name|filename]data." for each part. */
static int read_all(const char *body, size_t size, size_t step, struct buf *out)
{
	size_t at = 0;

	assert_int_equal(multipart_init(&multipart, "multipart/form-data; boundary=XY"), 0);
	while (at < size) {
		size_t end = size - at < step ? size : at + step;

		while (at < end) {
			const void *data;
			size_t used, data_size;
			int piece = multipart_next(&multipart, body + at, end - at, &used, &data, &data_size);

			if (piece < 0)
				return piece;
			at += used;
			if (piece == MULTIPART_PART)
				buf_printf(out, "[%s|%s]", multipart.name, multipart.filename);
			if (piece == MULTIPART_DATA)
				buf_put(out, data, data_size);
			if (piece == MULTIPART_PART_END)
				buf_put_char(out, '.');
			if (piece == MULTIPART_MORE)
				assert_int_equal(at, end);
		}
	}
	return 0;
}

static void expect(const char *body, const char *expected)
{
	for (size_t step = 1; step <= strlen(body); step++) {
		cleanup_buf struct buf out;

		buf_init(&out, 1 << 16);
		assert_int_equal(read_all(body, strlen(body), step, &out), 0);
		assert_string_equal(buf_text(&out), expected);
		assert_true(multipart_is_whole(&multipart));
	}
}

#define HEAD "Content-Disposition: form-data; name=\"file\"; filename=\"/a b\"\r\n\r\n"

static void parts_come_whole_however_they_are_cut(void **state)
{
	expect("--XY\r\n" HEAD "one\r\n--XY\r\n" HEAD "\r\n--XY--\r\n", "[file|/a b]one.[file|/a b].");
	expect("preamble\r\n--XY \r\nX: y\r\ncontent-disposition: form-data; filename=\"a\\\"b\\\\c\\d\"; "
	       "name=n\r\n\r\n"
	       "x\r\n--XY--epilogue",
	       "[n|a\"b\\c\\d]x.");
}

static void what_looks_like_a_delimiter_is_content(void **state)
{
	expect("--XY\r\n" HEAD "\r\r\n\r\n-\r\n--X\r\n--\r\n--XZ\n--XY\r\n--XY--",
	       "[file|/a b]\r\r\n\r\n-\r\n--X\r\n--\r\n--XZ\n--XY.");
}

static void an_end_is_missed(void **state)
{
	static const char body[] = "--XY\r\n" HEAD "one\r\n--XY\r\n";
	cleanup_buf struct buf out;

	buf_init(&out, 1000);
	assert_int_equal(read_all(body, sizeof body - 1, 1000, &out), 0);
	assert_false(multipart_is_whole(&multipart));
}

static void nonsense_is_refused(void **state)
{
	static const char *const bad[] = {
		"--XY\r\n\r\nno head\r\n--XY--",
		"--XY\r\nContent-Disposition: attachment; name=a\r\n\r\n",
		"--XY\r\nContent-Disposition: form-data\r\n\r\n",
		"--XY\r\nContent-Disposition: form-data; name=\"a\r\n\r\n",
		"--XYZ\r\n",
		"--XY\rx",
	};
	static const char *const types[] = {
		"",
		"text/plain",
		"multipart/form-data",
		"multipart/form-data; boundary=",
		"multipart/form-data; boundary=\"\"",
		"multipart/form-data; boundary=\"a",
		"multipart/form-data;x",
		("multipart/form-data; "
		 "boundary=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
	};
	cleanup_buf struct buf out;

	buf_init(&out, 1000);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(read_all(bad[i], strlen(bad[i]), 3, &out), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		assert_int_equal(multipart_init(&multipart, types[i]), -EINVAL);
	assert_int_equal(multipart_init(&multipart, "Multipart/Form-Data; charset=x; boundary=\"a b\""), 0);
}

static void a_head_and_parts_are_bounded(void **state)
{
	static char body[64 << 10];
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 20);
	memset(body, 'x', sizeof body);
	memcpy(body, "--XY\r\n", 6);
	assert_int_equal(read_all(body, sizeof body, 1000, &out), -EINVAL);
	assert_int_equal(multipart_init(&multipart, "multipart/form-data; boundary=XY"), 0);
	multipart.parts = MULTIPART_PARTS_MAX;
	for (int i = 0; i < 1; i++) {
		const void *data;
		size_t used, size;

		assert_int_equal(multipart_next(&multipart, "--XY\r\n", 6, &used, &data, &size), -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_come_whole_however_they_are_cut),
		cmocka_unit_test(what_looks_like_a_delimiter_is_content),
		cmocka_unit_test(an_end_is_missed),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(a_head_and_parts_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
