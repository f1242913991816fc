/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/reader.h"
#include "os/fd.h"
#include "sample-log.h"

static void expect(struct audit_reader *reader, int kind, const char *text)
{
	const char *line;
	size_t size;

	assert_int_equal(audit_reader_next(reader, &line, &size), kind);
	if (kind == AUDIT_LINE_WHOLE || kind == AUDIT_LINE_PARTIAL) {
		assert_int_equal(size, strlen(text));
		assert_memory_equal(line, text, size);
	}
}

static void lines_and_a_tail(void **state)
{
	int fd = sample_log_of_bytes("one\n\nthree\nfo", 13);
	cleanup_audit_reader struct audit_reader reader;

	assert_int_equal(audit_reader_init(&reader, fd), 0);
	expect(&reader, AUDIT_LINE_WHOLE, "one");
	expect(&reader, AUDIT_LINE_WHOLE, "");
	expect(&reader, AUDIT_LINE_WHOLE, "three");
	expect(&reader, AUDIT_LINE_PARTIAL, "fo");
	expect(&reader, AUDIT_LINE_PARTIAL, "fo");
	/* The rest of the line arrives: nothing of it is lost. */
	assert_int_equal(pwrite(fd, "ur\n", 3, 13), 3);
	expect(&reader, AUDIT_LINE_WHOLE, "four");
	expect(&reader, AUDIT_LINE_NONE, NULL);
	assert_int_equal(audit_reader_rewind(&reader), 0);
	expect(&reader, AUDIT_LINE_WHOLE, "one");
	close(fd);
}

static void lines_around_the_limit(void **state)
{
	size_t sizes[] = { AUDIT_RECORD_MAX - 1, AUDIT_RECORD_MAX, AUDIT_RECORD_MAX + 1, 3 * AUDIT_RECORD_MAX };

	for (size_t i = 0; i < 4; i++) {
		cleanup_audit_reader struct audit_reader reader;
		char *bytes = malloc(sizes[i] + 8);
		int fd, kind = sizes[i] < AUDIT_RECORD_MAX ? AUDIT_LINE_WHOLE : AUDIT_LINE_TOO_LONG;
		const char *line;
		size_t size;

		memcpy(bytes, "a\n", 2);
		memset(bytes + 2, 'x', sizes[i]);
		memcpy(bytes + 2 + sizes[i], "\nlast\n", 6);
		fd = sample_log_of_bytes(bytes, sizes[i] + 8);
		assert_int_equal(audit_reader_init(&reader, fd), 0);
		expect(&reader, AUDIT_LINE_WHOLE, "a");
		assert_int_equal(audit_reader_next(&reader, &line, &size), kind);
		assert_int_equal(size, kind == AUDIT_LINE_WHOLE ? sizes[i] : AUDIT_RECORD_MAX);
		expect(&reader, AUDIT_LINE_WHOLE, "last");
		expect(&reader, AUDIT_LINE_NONE, NULL);
		close(fd);
		free(bytes);
	}
}

static void endless_line_at_the_end(void **state)
{
	cleanup_audit_reader struct audit_reader reader;
	char *bytes = calloc(1, 5 * AUDIT_RECORD_MAX);
	int fd = sample_log_of_bytes(bytes, 5 * AUDIT_RECORD_MAX);

	assert_int_equal(audit_reader_init(&reader, fd), 0);
	expect(&reader, AUDIT_LINE_TOO_LONG, NULL);
	expect(&reader, AUDIT_LINE_NONE, NULL);
	close(fd);
	free(bytes);
}

static void one_byte_at_a_time(void **state)
{
	static const char text[] = "first\nsecond\n";
	cleanup_audit_reader struct audit_reader reader;
	size_t whole = 0;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fd_set_nonblocking(ends[0], true), 0);
	assert_int_equal(audit_reader_init(&reader, ends[0]), 0);
	for (size_t i = 0; i < sizeof text - 1; i++) {
		const char *line;
		size_t size;
		int r;

		assert_int_equal(write(ends[1], text + i, 1), 1);
		r = audit_reader_next(&reader, &line, &size);
		if (text[i] == '\n') {
			assert_int_equal(r, AUDIT_LINE_WHOLE);
			assert_int_equal(size, whole ? 6 : 5);
			whole++;
		} else {
			assert_int_equal(r, -EAGAIN);
		}
	}
	assert_int_equal(whole, 2);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_and_a_tail),
		cmocka_unit_test(lines_around_the_limit),
		cmocka_unit_test(endless_line_at_the_end),
		cmocka_unit_test(one_byte_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
