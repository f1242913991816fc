/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/json.h"

static struct buf out;
static struct json json;

static int setup(void **state)
{
	buf_init(&out, 1 << 16);
	json_init(&json, &out);
	return 0;
}

static int teardown(void **state)
{
	buf_done(&out);
	return 0;
}

static void nesting_and_commas(void **state)
{
	json_object_begin(&json, NULL);
	json_array_begin(&json, "empty");
	json_array_end(&json);
	json_array_begin(&json, "list");
	json_u64(&json, NULL, 1);
	json_object_begin(&json, NULL);
	json_object_end(&json);
	json_object_begin(&json, NULL);
	json_null(&json, "a");
	json_bool(&json, "b", true);
	json_object_end(&json);
	json_array_end(&json);
	json_bool(&json, "last", false);
	json_object_end(&json);
	assert_string_equal(buf_text(&out), "{\"empty\":[],\"list\":[1,{},{\"a\":null,\"b\":true}],\"last\":false}");
}

static void numbers(void **state)
{
	json_array_begin(&json, NULL);
	json_u64(&json, NULL, UINT64_MAX);
	json_i64(&json, NULL, INT64_MIN);
	json_i64(&json, NULL, -1);
	json_i64(&json, NULL, INT64_MAX);
	json_fixed(&json, NULL, 0);
	json_fixed(&json, NULL, 2100);
	json_fixed(&json, NULL, 2001);
	json_fixed(&json, NULL, 2010);
	json_fixed(&json, NULL, 12000);
	json_array_end(&json);
	assert_string_equal(buf_text(&out), "[18446744073709551615,-9223372036854775808,-1,9223372036854775807,"
			    "0,2.1,2.001,2.01,12]");
}

static void assert_string_json(const char *bytes, size_t size, const char *expected)
{
	buf_reset(&out);
	json_init(&json, &out);
	json_string_n(&json, NULL, bytes, size);
	assert_string_equal(buf_text(&out), expected);
}

static void strings_are_escaped(void **state)
{
	assert_string_json("", 0, "\"\"");
	assert_string_json("a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"");
	assert_string_json("\n\t\r\0\x1f\x7f", 6, "\"\\n\\t\\u000d\\u0000\\u001f\\u007f\"");
	assert_string_json("äö🌱", strlen("äö🌱"), "\"äö🌱\"");
	assert_string_json("\xc2\x9b", 2, "\"\\u009b\"");
	assert_string_json("\xe2\x80\xae\xef\xbb\xbf", 6, "\"\\u202e\\ufeff\"");
	/* Tag characters carry text that nobody sees; beyond U+FFFF they are two escapes. */
	assert_string_json("\xf3\xa0\x81\x81", 4, "\"\\udb40\\udc41\"");
	assert_string_json("\xff" "a\xc3", 3, "\"\\ufffda\\ufffd\"");
}

static void keys_are_escaped_too(void **state)
{
	json_object_begin(&json, NULL);
	json_string(&json, "a\"\n", NULL);
	json_object_end(&json);
	assert_string_equal(buf_text(&out), "{\"a\\\"\\n\":null}");
}

static void bytes_come_back_exactly(void **state)
{
	json_array_begin(&json, NULL);
	json_bytes(&json, NULL, "plain", 5);
	json_bytes(&json, NULL, "\xff", 1);
	json_bytes(&json, NULL, "\xff\xfe", 2);
	json_bytes(&json, NULL, "\xff\xfe\xfd", 3);
	json_bytes(&json, NULL, "\0", 1);
	json_bytes(&json, NULL, "", 0);
	json_array_end(&json);
	assert_string_equal(buf_text(&out), "[\"plain\",{\"b64\":\"/w==\"},{\"b64\":\"//4=\"},{\"b64\":\"//79\"},"
			    "\"\\u0000\",\"\"]");
}

/* Whatever the bytes: one line of ASCII control-free text with balanced quotes. */
static void all_byte_pairs(void **state)
{
	for (unsigned pair = 0; pair < 65536; pair++) {
		const char bytes[2] = { (char)(pair >> 8), (char)pair };
		const char *text;
		size_t length;

		buf_reset(&out);
		json_init(&json, &out);
		json_string_n(&json, NULL, bytes, 2);
		text = buf_text(&out);
		length = strlen(text);
		assert_true(length >= 4 && text[0] == '"' && text[length - 1] == '"');
		for (size_t i = 0; i < length; i++)
			assert_true((unsigned char)text[i] >= 0x20 && text[i] != 0x7f);
	}
}

static void hash_vectors(void **state)
{
	const struct hash_piece pieces[] = { { "a", 1 }, { NULL, 0 }, { "bc", 2 } };
	char hex[HASH_HEX_SIZE];
	struct hash hash;

	hash_pieces(&hash, pieces, 3);
	hash_to_hex(&hash, hex);
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	hash_bytes(&hash, "", 0);
	hash_to_hex(&hash, hex);
	assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nesting_and_commas, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers, setup, teardown),
		cmocka_unit_test_setup_teardown(strings_are_escaped, setup, teardown),
		cmocka_unit_test_setup_teardown(keys_are_escaped_too, setup, teardown),
		cmocka_unit_test_setup_teardown(bytes_come_back_exactly, setup, teardown),
		cmocka_unit_test_setup_teardown(all_byte_pairs, setup, teardown),
		cmocka_unit_test(hash_vectors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
