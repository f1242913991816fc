/* SPDX-License-Identifier: Apache-2.0 */

/* Which commands are worth judging: what is skipped before fnmatch(3) must be what fnmatch(3) would not match. */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/str.h"
#include "gate-exec/verifier-rules.h"

static const char *const patterns[] = {
	"python3*", "*", "**", "*a", "a*", "*xmrig*", "*/.cache/.*", "*/.cache/.*/**", "mkfs.*", "[Pp]ython",
	"ld-2*.so", "?sh", "\\*a", "*\\**", "*[0-9]*", "--coin=*", "/proc/*/fd/*", "*\u200b*", "*\u0430*", "",
	"*[\u0430\u0435]*", "STRATUM+*", "*Z*", "a?c", "*]", "[]a]*",
};

static const char *const words[] = {
	"python3", "python3.11", "Python3", "PYTHON", "python", "", "a", "A", "xa", "*a", "x*y", "XMRIG",
	"miner-xmrig-6", "/home/u/.cache/.x", "/home/u/.cache/.x/y", "mkfs.ext4", "mkfs", "ld-2.36.so",
	"bash", "zsh", "sh", "7z", "--coin=x", "--COIN=X", "/proc/1/fd/2", "a\u200bb", "\u0430", "b\u0435",
	"stratum+tcp://x", "z", "abc", "aBc", "x]", "]", "]a",
};

static bool expect(const char *pattern, const char *word, int flags)
{
	return fnmatch(pattern, word, flags) == 0;
}

static void test_names_are_skipped_as_fnmatch_would(void **state)
{
	size_t matches = 0;

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		for (size_t j = 0; j < ARRAY_SIZE(words); j++) {
			const char *one[] = { patterns[i] };
			struct verifier_rules rules = { .programs = { .patterns = one, .pattern_count = 1 } };
			const char *slash = strrchr(words[j], '/');
			bool wanted = expect(patterns[i], slash ? slash + 1 : words[j], 0);

			matches += wanted;
			assert_int_equal(verifier_rules_name(&rules, words[j]), wanted);
		}
	assert_true(matches > ARRAY_SIZE(words));
}

static void test_words_are_skipped_as_fnmatch_would_in_any_case(void **state)
{
	size_t matches = 0;

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++)
		for (size_t j = 0; j < ARRAY_SIZE(words); j++) {
			const char *one[] = { patterns[i] };
			struct verifier_rules rules = { .words = { .patterns = one, .pattern_count = 1 } };
			bool wanted = expect(patterns[i], words[j], FNM_CASEFOLD);

			matches += wanted;
			assert_int_equal(verifier_rules_word(&rules, words[j]), wanted);
		}
	assert_true(matches > ARRAY_SIZE(words));
}

static void test_plain_words_are_equal_in_any_case(void **state)
{
	const char *names[] = { "/dev/mem", "id_rsa" };
	const struct verifier_rules rules = { .words = { .names = names, .name_count = 2 } };

	assert_true(verifier_rules_word(&rules, "/DEV/mem"));
	assert_true(verifier_rules_word(&rules, "id_rsa"));
	assert_false(verifier_rules_word(&rules, "id_rsa.pub"));
	assert_false(verifier_rules_word(&rules, ""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_are_skipped_as_fnmatch_would),
		cmocka_unit_test(test_words_are_skipped_as_fnmatch_would_in_any_case),
		cmocka_unit_test(test_plain_words_are_equal_in_any_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
