/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base64.h"
#include "service/protocol/basic-user.h"
#include "service/protocol/connect.h"

static void test_base64_both_ways(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" },	   { "f", "Zg==" },	   { "fo", "Zm8=" },
		{ "foo", "Zm9v" }, { "foob", "Zm9vYg==" }, { "\xff\xfe\xfd", "//79" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cleanup_buf struct buf text, back;

		buf_init(&text, 100);
		buf_init(&back, 100);
		base64_put(&text, rows[i][0], strlen(rows[i][0]));
		assert_string_equal(buf_text(&text), rows[i][1]);
		assert_int_equal(base64_read(&back, rows[i][1], strlen(rows[i][1])), 0);
		assert_string_equal(buf_text(&back), rows[i][0]);
	}
}

static void test_base64_reads_other_forms_and_no_nonsense(void **state)
{
	static const char *const bad[] = { "=", "Z", "Zg=", "Zg===", "Z=g=", "Zm9v!", "Zm9 v", "====" };
	cleanup_buf struct buf out;

	buf_init(&out, 100);
	assert_int_equal(base64_read(&out, "_-79Zg", 6), 0);
	assert_int_equal(out.size, 4);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(base64_read(&out, bad[i], strlen(bad[i])), -EINVAL);
	assert_int_equal(out.size, 4);
}

static void test_envelope_both_ways(void **state)
{
	struct connect_envelope envelope;
	cleanup_buf struct buf out;
	size_t used;

	buf_init(&out, 1000);
	connect_envelope_begin(&out);
	buf_put_text(&out, "{}");
	connect_envelope_end(&out, 0, 0);
	connect_put_end(&out, CONNECT_NOT_FOUND, "no \"such\" process");
	for (size_t size = 0; size < 7; size++)
		assert_int_equal(connect_envelope_read(out.bytes, size, 100, &envelope, &used), 0);
	assert_int_equal(connect_envelope_read(out.bytes, out.size, 100, &envelope, &used), 1);
	assert_int_equal(used, 7);
	assert_memory_equal(envelope.payload, "{}", 2);
	assert_int_equal(connect_envelope_read(out.bytes + 7, out.size - 7, 100, &envelope, &used), 1);
	assert_int_equal(envelope.flags, CONNECT_END);
	buf_consume(&out, 7 + CONNECT_ENVELOPE_SIZE);
	assert_string_equal(buf_text(&out),
			    "{\"error\":{\"code\":\"not_found\",\"message\":\"no \\\"such\\\" process\"}}");
}

static void test_envelope_refuses(void **state)
{
	struct connect_envelope envelope;
	size_t used;

	assert_int_equal(connect_envelope_read("\x01\0\0\0\0", 5, 100, &envelope, &used), -ENOTSUP);
	assert_int_equal(connect_envelope_read("\x04\0\0\0\0", 5, 100, &envelope, &used), -EBADMSG);
	assert_int_equal(connect_envelope_read("\0\0\0\0\x65", 5, 100, &envelope, &used), -EMSGSIZE);
	assert_int_equal(connect_envelope_read("\0\xff\xff\xff\xff", 5, 100, &envelope, &used), -EMSGSIZE);
}

static void test_headers(void **state)
{
	char user[BASIC_USER_SIZE];
	uint64_t ms;

	assert_int_equal(connect_read_timeout("60000", &ms), 0);
	assert_int_equal(ms, 60000);
	assert_int_equal(connect_read_timeout(NULL, &ms), 0);
	assert_int_equal(ms, 0);
	assert_int_equal(connect_read_timeout("-1", &ms), -EINVAL);
	assert_int_equal(connect_read_timeout("99999999999", &ms), -EINVAL);
	assert_int_equal(connect_read_keepalive("50"), 50);
	assert_int_equal(connect_read_keepalive("x"), 90);
	assert_int_equal(basic_user_read("Basic cm9vdDo=", user), 1);
	assert_string_equal(user, "root");
	assert_int_equal(basic_user_read(NULL, user), 0);
	assert_int_equal(basic_user_read("Bearer cm9vdDo=", user), 0);
	assert_int_equal(basic_user_read("Basic Og==", user), 0);
	assert_int_equal(basic_user_read("Basic cm9vdA==", user), -EINVAL);
	assert_int_equal(basic_user_read("Basic Li4vYTo=", user), -EINVAL);
}

static void test_codes(void **state)
{
	for (int i = 0; i < CONNECT_CODE_COUNT; i++)
		assert_int_equal(connect_code_from_name(connect_code_name((enum connect_code)i)), i);
	assert_int_equal(connect_code_status(CONNECT_NOT_FOUND), 404);
	assert_int_equal(connect_code_from_status(507), CONNECT_RESOURCE_EXHAUSTED);
	assert_int_equal(connect_code_from_name("nonsense"), CONNECT_UNKNOWN);
	assert_int_equal(connect_code_from_name(NULL), CONNECT_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base64_both_ways),
		cmocka_unit_test(test_base64_reads_other_forms_and_no_nonsense),
		cmocka_unit_test(test_envelope_both_ways),
		cmocka_unit_test(test_envelope_refuses),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_codes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
