/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "client/api/record.h"

static struct atoll_error error = { .size = sizeof error };

static void values_come_back_as_they_were_set(void **state)
{
	const char *const words[] = { "a", "", "c", NULL }, *const *got;
	atoll_record *record = atoll_record_new(ATOLL_SANDBOX);
	const char *text;
	uint64_t number;

	assert_int_equal(atoll_set_string(record, "name", "one", &error), 0);
	assert_int_equal(atoll_set_string(record, "name", "two", &error), 0);
	assert_int_equal(atoll_set_u64(record, "umask", 027, &error), 0);
	assert_int_equal(atoll_set_strings(record, "argv", words, &error), 0);
	assert_int_equal(atoll_get_string(record, "name", &text), 1);
	assert_string_equal(text, "two");
	assert_int_equal(atoll_get_u64(record, "umask", &number), 1);
	assert_int_equal(number, 027);
	assert_int_equal(atoll_get_strings(record, "argv", &got), 1);
	assert_string_equal(got[2], "c");
	assert_null(got[3]);
	assert_int_equal(atoll_get_u64(record, "name", &number), 0);
	assert_int_equal(atoll_get_string(record, "task", &text), 0);
	atoll_record_free(record);
}

static void a_descriptor_is_duplicated_and_taken_once(void **state)
{
	atoll_record *record = atoll_record_new(ATOLL_COMMAND);
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), taken;

	assert_int_equal(atoll_set_fd(record, "stdin", fd, &error), 0);
	close(fd);
	taken = atoll_take_fd(record, "stdin");
	assert_true(taken > 2 && fcntl(taken, F_GETFD) == FD_CLOEXEC);
	assert_int_equal(atoll_take_fd(record, "stdin"), ATOLL_E_NOT_FOUND);
	assert_int_equal(atoll_set_fd(record, "stdin", 9999, &error), ATOLL_E_INVALID);
	close(taken);
	atoll_record_free(record);
}

static void what_a_record_does_not_have_is_refused_at_once(void **state)
{
	atoll_record *record = atoll_record_new(ATOLL_POLICY);

	assert_int_equal(atoll_set_string(record, "levl", "low", &error), ATOLL_E_INVALID);
	assert_string_equal(error.hint, "did you mean \"level\"?");
	assert_int_equal(error.code, ATOLL_E_INVALID);
	assert_int_equal(atoll_set_u64(record, "level", 3, &error), ATOLL_E_INVALID);
	assert_string_equal(error.what, "\"level\" is a string");
	assert_int_equal(atoll_set_string(record, "argv", "x", &error), ATOLL_E_INVALID);
	assert_int_equal(atoll_set_string(record, "level", NULL, &error), ATOLL_E_INVALID);
	assert_int_equal(atoll_set_string(NULL, "level", "low", NULL), ATOLL_E_INVALID);
	assert_null(atoll_record_new(ATOLL_EVENT));
	assert_null(atoll_record_new(0));
	assert_null(atoll_record_new(77));
	atoll_record_free(record);
	atoll_record_free(NULL);
}

/* An older caller has a smaller struct: nothing behind it is written. */
static void an_error_is_no_larger_than_its_caller_says(void **state)
{
	struct atoll_error small;
	atoll_record *record = atoll_record_new(ATOLL_POLICY);

	memset(&small, 'x', sizeof small);
	small.size = (uint32_t)offsetof(struct atoll_error, what);
	assert_int_equal(atoll_set_string(record, "levl", "low", &small), ATOLL_E_INVALID);
	assert_int_equal(small.code, ATOLL_E_INVALID);
	assert_string_equal(small.where, "record");
	for (const char *at = small.what; at < (const char *)(&small + 1); at++)
		assert_int_equal(*at, 'x');
	atoll_record_free(record);
}

static void fields_of_a_frame_become_values_and_back(void **state)
{
	struct atoll_record *record = record_new(ATOLL_EVENT), *copy = record_new(ATOLL_EVENT);
	struct field field = { 0 };
	struct frame frame;
	size_t count = 0;
	struct buf out;
	int fds[1], r;

	assert_int_equal(record_put_u64(record, "seq", 7), 0);
	assert_int_equal(record_put_bytes(record, "subject", "a\0b", 3), 0);
	assert_int_equal(record_put_string(record, "a key of a newer box", "kept"), 0);
	buf_init(&out, 4096);
	frame_begin(&out, 1);
	assert_int_equal(record_put_fields(record, NULL, &out, fds, 1, &count), 0);
	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	while ((r = field_get(&frame, &field)) == 1)
		assert_int_equal(record_add_field(copy, &field), 0);
	assert_int_equal(r, 0);
	assert_string_equal(record_string(copy, "a key of a newer box"), "kept");
	buf_done(&out);
	atoll_record_free(record);
	atoll_record_free(copy);
}

static void a_field_that_is_cut_is_none(void **state)
{
	struct field field = { 0 };
	struct frame frame;
	struct buf out;

	buf_init(&out, 4096);
	frame_begin(&out, 1);
	frame_put_string(&out, "key");
	frame_put_u32(&out, FIELD_U64);
	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	assert_int_equal(field_get(&frame, &field), -EBADMSG);
	assert_int_equal(field_get(&frame, &field), -EBADMSG);
	frame_begin(&out, 1);
	frame_put_string(&out, "key");
	frame_put_u32(&out, FIELD_KIND_END);
	frame_put_u64(&out, 1);
	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	assert_int_equal(field_get(&frame, &field), -EBADMSG);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_come_back_as_they_were_set),
		cmocka_unit_test(a_descriptor_is_duplicated_and_taken_once),
		cmocka_unit_test(what_a_record_does_not_have_is_refused_at_once),
		cmocka_unit_test(an_error_is_no_larger_than_its_caller_says),
		cmocka_unit_test(fields_of_a_frame_become_values_and_back),
		cmocka_unit_test(a_field_that_is_cut_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
