/* SPDX-License-Identifier: Apache-2.0 */
/* What decides fast decides as one who tries every rule: random rules, random paths, always the same ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "policy/decide.h"
#include "policy/glob.h"
#include "policy/order.h"

enum { RANDOM_RULES = 24, RANDOM_PATHS = 64, RANDOM_POLICIES = 400, TEXT_SIZE = 160 };

static uint64_t random_state = 20261122;

static unsigned below(unsigned limit)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(random_state >> 33) % limit;
}

static void random_path(char out[TEXT_SIZE], const char *const *from, unsigned count, unsigned depth)
{
	size_t used = 0;

	for (unsigned i = 1 + below(depth); i; i--)
		used += (size_t)snprintf(out + used, TEXT_SIZE - used, "/%s", from[below(count)]);
	assert_true(used < TEXT_SIZE);
}

static const char *const names[] = { "a", "b", "B", "ab", "a-b", "a.b", ".env", ".ENV", "x.key", "k.Key", "[", "abc" };
static const char *const parts[] = { "a",  "b", "ab",     "a.b",   ".env", "*.key", "**",
				     "*",  "?b", "[a-c]b", "[A-B]", "*.*",  "x*" };

static int by_path(const void *a, const void *b)
{
	return path_compare(((const struct file_rule *)a)->pattern, ((const struct file_rule *)b)->pattern);
}

struct random_policy {
	struct file_rule files[RANDOM_RULES];
	struct path_rule asks[4];
	char texts[RANDOM_RULES + 4][TEXT_SIZE], excepts[RANDOM_RULES][TEXT_SIZE];
	const char *except[RANDOM_RULES][2];
	uint32_t parents[RANDOM_RULES], lengths[RANDOM_RULES];
	struct policy policy;
};

/* Exact rules first, in order, each path once, as the compiler has them. */
static void random_rules(struct random_policy *random)
{
	size_t exact = below(RANDOM_RULES / 2), count = 0;

	for (size_t i = 0; i < exact; i++) {
		bool is_new = true;

		random_path(random->texts[count], names, ARRAY_SIZE(names), 4);
		for (size_t k = 0; k < count; k++)
			is_new = is_new && strcmp(random->texts[k], random->texts[count]) != 0;
		random->files[count] = (struct file_rule){ random->texts[count],
							   FILE_MASK + below(FILE_CLASS_COUNT - 1) };
		count += is_new;
	}
	qsort(random->files, count, sizeof *random->files, by_path);
	random->policy.files.exact_count = count;
	for (exact = count; count < exact + below(RANDOM_RULES / 2); count++) {
		random_path(random->texts[count], parts, ARRAY_SIZE(parts), 5);
		random->files[count] = (struct file_rule){ random->texts[count],
							   FILE_MASK + below(FILE_CLASS_COUNT - 1), FILE_GLOB };
		random->files[count].ending = glob_ending(random->texts[count]);
		if (random->files[count].class == FILE_MASK)
			random->files[count].flags |= FILE_GATED * below(2);
	}
	for (size_t i = 0; i < count; i++) {
		random_path(random->excepts[i], parts, ARRAY_SIZE(parts), 4);
		random->except[i][0] = random->excepts[i];
		random->except[i][1] = NULL;
		random->files[i].except = below(4) ? NULL : random->except[i];
	}
	random->policy.files.count = count;
}

static void random_asks(struct random_policy *random)
{
	random->policy.files.ask_count = below(4);
	for (size_t i = 0; i < random->policy.files.ask_count; i++) {
		char *text = random->texts[RANDOM_RULES + i];

		random_path(text, parts, ARRAY_SIZE(parts), 3);
		random->asks[i] = (struct path_rule){ text, glob_is_pattern(text) ? FILE_GLOB : 0, NULL,
						      { "ask", "", 0 }, glob_ending(text) };
	}
}

static void low(char out[TEXT_SIZE], const char *text)
{
	for (; *text; text++)
		*out++ = (char)(*text >= 'A' && *text <= 'Z' ? *text + 'a' - 'A' : *text);
	*out = 0;
}

static int plain_depth(const struct file_rule *rule, const char *path)
{
	char low_path[TEXT_SIZE], low_pattern[TEXT_SIZE];
	int depth;

	if (!(rule->flags & FILE_GLOB))
		return path_is_below(path, rule->pattern) ? path_depth(rule->pattern) : -1;
	depth = glob_match_below(rule->pattern, path);
	if (depth >= 0 || !(rule->flags & FILE_GATED))
		return depth;
	low(low_path, path);
	low(low_pattern, rule->pattern);
	return glob_match_below(low_pattern, low_path);
}

static bool is_plainly_excepted(const char *const *except, const char *path)
{
	if (!except)
		return false;
	return glob_is_pattern(except[0]) ? glob_match_below(except[0], path) >= 0 : path_is_below(path, except[0]);
}

/* The words of design and manual: a mask wins, else the deepest; of two as deep the exact one, then the lower class. */
static enum file_class plain_class(const struct policy *policy, const char *path)
{
	enum file_class best = FILE_HIDDEN;
	bool is_exact = false;
	int deepest = -1;

	for (size_t i = 0; i < policy->files.count; i++) {
		const struct file_rule *rule = &policy->files.rules[i];
		int depth = plain_depth(rule, path);

		if (depth < 0 || is_plainly_excepted(rule->except, path))
			continue;
		if (rule->class == FILE_MASK)
			return FILE_MASK;
		if (depth < deepest || (depth == deepest && (is_exact || rule->class >= best)))
			continue;
		best = rule->class;
		deepest = depth;
		is_exact = i < policy->files.exact_count;
	}
	return best;
}

static bool is_plainly_asked(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->files.ask_count; i++) {
		const struct path_rule *asked = &policy->files.asks[i];

		if (asked->flags & FILE_GLOB ? glob_match_below(asked->pattern, path) >= 0 :
					       path_is_below(path, asked->pattern))
			return true;
	}
	return false;
}

struct tally {
	unsigned classes[FILE_CLASS_COUNT], asked;
};

static void check_path(const struct policy *policy, struct tally *tally)
{
	struct action action = { .kind = ACTION_FILE_READ };
	char path[TEXT_SIZE];
	size_t rule;
	enum file_class class, plain;
	bool is_asked;

	random_path(path, names, ARRAY_SIZE(names), 5);
	action.subject = path;
	class = policy_classify(policy, path, &rule);
	plain = plain_class(policy, path);
	is_asked = is_plainly_asked(policy, path);
	if (class != plain)
		fail_msg("%s is %s, not %s", path, file_class_names[class], file_class_names[plain]);
	assert_int_equal(policy_decide(policy, &action).verdict == VERDICT_ASK, is_asked && class != FILE_MASK);
	tally->classes[class]++;
	tally->asked += is_asked;
}

static void random_policies_are_decided_as_by_trying_every_rule(void **state)
{
	struct random_policy *random = malloc(sizeof *random);
	struct tally tally = { 0 };

	assert_non_null(random);
	for (unsigned round = 0; round < RANDOM_POLICIES; round++) {
		memset(random, 0, sizeof *random);
		random->policy.files.rules = random->files;
		random->policy.files.parents = random->parents;
		random->policy.files.asks = random->asks;
		random_rules(random);
		random_asks(random);
		assert_int_equal(file_parents_fill(random->parents, random->lengths, random->files,
						   random->policy.files.exact_count, NULL), 0);
		for (unsigned i = 0; i < RANDOM_PATHS; i++)
			check_path(&random->policy, &tally);
	}
	for (size_t i = 0; i < FILE_CLASS_COUNT; i++)
		assert_true(tally.classes[i] > 100);
	assert_true(tally.asked > 100);
	free(random);
}

/* Paths that begin alike, which is what the search makes use of. */
static void the_search_ends_where_counting_does(void **state)
{
	enum { COUNT = 300 };
	static const char *const alike[] = { "aaaa", "aaab", "aab", "aa", "aaa-", "aaa.b", "a" };
	static char texts[COUNT][TEXT_SIZE];
	static struct file_rule rules[COUNT];

	for (size_t i = 0; i < COUNT; i++) {
		random_path(texts[i], alike, ARRAY_SIZE(alike), 6);
		rules[i].pattern = texts[i];
	}
	qsort(rules, COUNT, sizeof *rules, by_path);
	for (unsigned round = 0; round < 2000; round++) {
		char path[TEXT_SIZE];
		size_t count = 0;

		random_path(path, alike, ARRAY_SIZE(alike), 6);
		while (count < COUNT && path_compare(rules[count].pattern, path) <= 0)
			count++;
		assert_int_equal(path_count_up_to(rules, COUNT, path), count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_search_ends_where_counting_does),
		cmocka_unit_test(random_policies_are_decided_as_by_trying_every_rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
