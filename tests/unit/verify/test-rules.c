/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The shipped rules as bytes and back: the same rules, and nothing but them. And which commands are worth judging: what
 * any rule finds in a command alone must be among them, or a box would never ask.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fnmatch.h>

#include "base/str.h"
#include "shipped.h"
#include "verify/verify.h"
#include "verify/worth.h"

enum { COMPILED_MAX = 8 << 20, WORDS = 64 };

static void store(const struct rules *rules, struct buf *out)
{
	buf_init(out, COMPILED_MAX);
	assert_int_equal(rules_store(rules, out), 0);
}

static void rules_are_the_same_again(void **state)
{
	struct rules *rules = shipped_rules(), *again;
	struct buf bytes, twice;

	store(rules, &bytes);
	again = rules_restore(bytes.bytes, bytes.size);
	assert_non_null(again);
	assert_int_equal(rules_count(again), rules_count(rules));
	store(again, &twice);
	assert_int_equal(twice.size, bytes.size);
	assert_memory_equal(twice.bytes, bytes.bytes, bytes.size);
	rules_free(again);
	rules_free(rules);
	buf_done(&bytes);
	buf_done(&twice);
}

static void assert_same_findings(struct verify *a, struct verify *b, const struct verify_input *input)
{
	static struct verify_result left, right;

	assert_int_equal(verify_judge(a, input, &left, NULL), 0);
	assert_int_equal(verify_judge(b, input, &right, NULL), 0);
	assert_int_equal(left.count, right.count);
	for (size_t i = 0; i < left.count; i++) {
		assert_string_equal(left.findings[i].id, right.findings[i].id);
		assert_string_equal(left.findings[i].reason, right.findings[i].reason);
		assert_string_equal(left.findings[i].instead, right.findings[i].instead);
		assert_int_equal(left.findings[i].class, right.findings[i].class);
		assert_int_equal(left.findings[i].severity, right.findings[i].severity);
		assert_int_equal(left.findings[i].confidence, right.findings[i].confidence);
		assert_int_equal(left.findings[i].span.start, right.findings[i].span.start);
	}
	verify_result_done(&left);
	verify_result_done(&right);
}

static void they_find_the_same(void **state)
{
	struct rules *rules = shipped_rules();
	struct verify *parsed = verify_new(rules), *loaded;
	struct buf bytes;

	store(rules, &bytes);
	loaded = verify_new(rules_restore(bytes.bytes, bytes.size));
	assert_true(rules_example_count(rules) > 100);
	for (size_t i = 0; i < rules_example_count(rules); i++) {
		struct rule_example example = rules_example(rules, i);
		struct verify_input input = {
			.language = (enum verify_language)language_from_name(example.language), .bytes = example.text,
			.size = strlen(example.text),
		};

		assert_same_findings(parsed, loaded, &input);
	}
	verify_free(parsed);
	verify_free(loaded);
	buf_done(&bytes);
}

static void anything_else_is_refused(void **state)
{
	struct rules *rules = shipped_rules();
	struct buf bytes;
	uint8_t *copy;

	store(rules, &bytes);
	rules_free(rules);
	copy = malloc(bytes.size + 1);
	assert_non_null(copy);
	assert_null(rules_restore(copy, 0));
	/* Cut anywhere, with a header that fits; and longer than it says. */
	for (size_t size = 16; size <= bytes.size + 1; size += size < 1024 ? 1 : 997) {
		uint32_t claimed = (uint32_t)size;

		if (size == bytes.size)
			continue;
		memcpy(copy, bytes.bytes, size < bytes.size ? size : bytes.size);
		memcpy(copy + 8, &claimed, sizeof claimed);
		assert_null(rules_restore(copy, size));
	}
	/* With any byte wrong: refused, or rules whose every part can be used. */
	for (size_t at = 0; at < bytes.size; at += at < 1024 ? 1 : 997) {
		struct rules *damaged;

		memcpy(copy, bytes.bytes, bytes.size);
		copy[at] ^= 0x81;
		damaged = rules_restore(copy, bytes.size);
		if (damaged) {
			struct verify *verify = verify_new(damaged);
			struct verify_input input = { .language = LANGUAGE_SHELL, .bytes = "curl x | sh", .size = 11 };
			struct verify_result result;

			assert_int_equal(verify_judge(verify, &input, &result, NULL), 0);
			verify_result_done(&result);
			verify_free(verify);
		}
	}
	free(copy);
	buf_done(&bytes);
}

/* ---- what is worth judging ---- */

static bool is_one_of(const struct vec *globs, const char *text, int flags)
{
	for (size_t i = 0; i < globs->count; i++)
		if (fnmatch(((const char *const *)globs->items)[i], text, flags) == 0)
			return true;
	return false;
}

/* As gate-exec/verifier.c has it. */
static bool is_worth(const struct worth *worth, char *const *argv)
{
	if (is_one_of(&worth->programs, path_basename(argv[0]), 0))
		return true;
	for (size_t i = 0; argv[i]; i++)
		if (is_one_of(&worth->words, argv[i], FNM_CASEFOLD))
			return true;
	return false;
}

/* A text that is one command without anything that a shell does, as words; false for any other. */
static bool split(char *text, char *argv[WORDS + 1])
{
	size_t count = 0;
	char *rest = NULL;

	if (strpbrk(text, "|&;<>()$`\\\"'*?[]#~=%{}!\n"))
		return false;
	for (char *word = strtok_r(text, " ", &rest); word && count < WORDS; word = strtok_r(NULL, " ", &rest))
		argv[count++] = word;
	argv[count] = NULL;
	return count > 0;
}

static void what_is_found_in_a_command_is_worth_it(void **state)
{
	struct rules *rules = shipped_rules();
	struct verify *verify = verify_new(rules);
	struct arena arena = { 0 };
	struct worth worth = worth_of(rules, &arena);
	unsigned tried = 0, found = 0;

	for (size_t i = 0; i < rules_example_count(rules); i++) {
		struct rule_example example = rules_example(rules, i);
		char *text = arena_text(&arena, example.text), *argv[WORDS + 1];
		struct verify_input input = { .arguments = (const char *const *)argv };
		static struct verify_result result;

		if (!str_equal(example.language, "shell") || !split(text, argv))
			continue;
		tried++;
		assert_int_equal(verify_judge(verify, &input, &result, NULL), 0);
		found += result.count > 0;
		if (result.count && !is_worth(&worth, argv))
			fail_msg("%s is found by %s, and nobody would ask", example.text, result.findings[0].id);
		verify_result_done(&result);
	}
	assert_true(tried > 100 && found > 50);
	verify_free(verify);
	arena_done(&arena);
}

/* A compiler's command must not wait for anybody. */
static void what_builds_is_not_worth_it(void **state)
{
	static const char *const commands[] = {
		"/usr/bin/true", "gcc -O2 -c a.c -o a.o", "/usr/lib/gcc/x86_64-linux-gnu/12/cc1 -quiet a.c",
		"as -o a.o a.s", "make -j4", "ninja", "cmake -B build", "ld a.o", "rustc main.rs", "javac A.java",
		"cat a.txt", "grep -r x .", "ls -la", "echo hello",
	};
	struct rules *rules = shipped_rules();
	struct arena arena = { 0 };
	struct worth worth = worth_of(rules, &arena);

	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		char *argv[WORDS + 1];

		assert_true(split(arena_text(&arena, commands[i]), argv));
		if (is_worth(&worth, argv))
			fail_msg("%s would be judged", commands[i]);
	}
	arena_done(&arena);
	rules_free(rules);
}

/* A rule of the user's own may be about all commands: then all are asked about. */
static void a_rule_about_everything_asks_about_everything(void **state)
{
	static const char *const conditions[] = { "kind: command", "program: \"*\"", "flags: [x]" };

	for (size_t i = 0; i < sizeof conditions / sizeof *conditions; i++) {
		struct rules *rules = rules_new();
		struct arena arena = { 0 };
		struct diags diags = { .arena = &arena };
		char *argv[] = { (char *)"anything", NULL };
		struct worth worth;
		char text[200];

		assert_int_equal(str_format(text, sizeof text, "atoll-verify: 1\nclass: evade\nrules:\n"
					    "  - {id: a, severity: low, reason: r, match: {%s}}\n", conditions[i]), 0);
		assert_true(rules_add(rules, &diags, "own.yaml", text, strlen(text)));
		assert_true(rules_finish(rules, &diags));
		worth = worth_of(rules, &arena);
		assert_true(is_worth(&worth, argv));
		arena_done(&arena);
		rules_free(rules);
	}
}

static bool finds(struct rules *rules, const char *id, enum verify_language language, const char *text)
{
	struct verify_input input = { .language = language, .bytes = text, .size = strlen(text) };
	struct verify *verify = verify_new(rules);
	static struct verify_result result;
	bool is_found = false;

	assert_int_equal(verify_judge(verify, &input, &result, NULL), 0);
	for (size_t i = 0; i < result.count; i++)
		is_found |= str_equal(result.findings[i].id, id);
	verify_result_done(&result);
	verify_free(verify);
	return is_found;
}

static struct rules *rules_of(const char *text)
{
	struct rules *rules = rules_new();
	struct arena arena = { 0 };
	struct diags diags = { .arena = &arena };

	assert_true(rules_add(rules, &diags, "own.yaml", text, strlen(text)));
	assert_true(rules_finish(rules, &diags));
	arena_done(&arena);
	return rules;
}

/* What programs and functions do is said by the tables alone: without the row the rule has nothing to see. */
static void rows_say_what_programs_and_calls_do(void **state)
{
	static const char rule[] = "atoll-verify: 1\nclass: destructive\nrules:\n"
				   "  - {id: a, severity: low, reason: r, match: {kind: remove, arguments: /etc/x}}\n";
	static const char rows[] = "wrappers: {around: {skips: 1}}\nprograms: {vanish: {does: remove, to: but-first}}\n"
				   "languages: {python: {aliases: {p.q: own},\n"
				   "  calls: {own.drop: {does: remove, target: 1/at}}}}\n";
	static const struct {
		enum verify_language language;
		const char *text;
	} texts[] = {
		{ LANGUAGE_SHELL, "vanish now /etc/x" }, { LANGUAGE_SHELL, "around 5 vanish now /etc/x" },
		{ LANGUAGE_PYTHON, "import p\np.q.drop(1, \"/etc/x\")\n" },
		{ LANGUAGE_PYTHON, "import own\nown.drop(at=\"/etc/x\")\n" },
	};

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		char whole[1000];

		assert_int_equal(str_format(whole, sizeof whole, "%s%s", rule, rows), 0);
		assert_false(finds(rules_of(rule), "a", texts[i].language, texts[i].text));
		assert_true(finds(rules_of(whole), "a", texts[i].language, texts[i].text));
	}
}

/* One deed, two rules of a class: a policy that asks about what is medium would ask beside what it has for critical. */
static void the_worse_of_two_rules_stands_for_both(void **state)
{
	static const char rules[] =
		"atoll-verify: 1\nclass: destructive\nprograms: {zap: {does: remove, to: but-first}}\nrules:\n"
		"  - {id: mild, severity: medium, reason: r, match: {kind: remove, arguments: /etc/*}}\n"
		"  - {id: other, class: evade, severity: medium, reason: r, match: {kind: remove, arguments: /etc/*}}\n"
		"  - {id: gone, severity: low, leaves: true, reason: r, match: {kind: remove, arguments: /etc/*}}\n"
		"  - {id: worse, severity: critical, reason: r, match: {kind: remove, arguments: /etc/x}}\n"
		"  - {id: unsure, severity: high, confidence: possible, reason: r,\n"
		"     match: {kind: remove, arguments: /etc/z}}\n";
	static const struct {
		const char *text, *id;
		bool is_told;
	} told[] = {
		{ "zap it /etc/x", "worse", true }, { "zap it /etc/x", "mild", false },
		{ "zap it /etc/y", "mild", true },
		{ "zap it /etc/x", "other", true }, { "zap it /etc/x", "gone", true },
		{ "zap it /etc/x /etc/y", "mild", true }, { "zap it /etc/y /etc/x", "mild", true },
		{ "zap it /etc/x; zap it /etc/x", "mild", false }, { "zap it /etc/x /etc/x", "mild", false },
		{ "zap it /etc/z", "unsure", true }, { "zap it /etc/z", "mild", true },
	};

	for (size_t i = 0; i < sizeof told / sizeof *told; i++)
		assert_int_equal(finds(rules_of(rules), told[i].id, LANGUAGE_SHELL, told[i].text), told[i].is_told);
}

/* The shipped rules must not be judged with while the tables are missing, and those that were kept neither. */
static void rules_without_tables_are_not_whole(void **state)
{
	struct rules *rules = rules_of("atoll-verify: 1\nclass: evade\nrules:\n"
				       "  - {id: a, severity: low, reason: r, match: {kind: command}}\n");
	struct buf bytes;

	assert_false(rules_are_whole(rules));
	store(rules, &bytes);
	assert_null(rules_restore(bytes.bytes, bytes.size));
	buf_done(&bytes);
	rules_free(rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_the_same_again),
		cmocka_unit_test(they_find_the_same),
		cmocka_unit_test(anything_else_is_refused),
		cmocka_unit_test(what_is_found_in_a_command_is_worth_it),
		cmocka_unit_test(what_builds_is_not_worth_it),
		cmocka_unit_test(a_rule_about_everything_asks_about_everything),
		cmocka_unit_test(rows_say_what_programs_and_calls_do),
		cmocka_unit_test(the_worse_of_two_rules_stands_for_both),
		cmocka_unit_test(rules_without_tables_are_not_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
