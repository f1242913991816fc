/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one decision about a path costs, in ns, with RULES exact rules, 256 masks by glob and 256 paths to ask about by
 * glob: the most that the compiler takes. Linked with the libraries of the run path. Prints the least of slices, as
 * others on the machine take from the caches too.
 *
 *   decide RULES
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policy/decide.h"
#include "policy/glob.h"
#include "policy/order.h"

enum { GLOBS = 256, SLICES = 31, CALLS = 20000, TEXT = 64 };

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int by_path(const void *a, const void *b)
{
	return path_compare(((const struct file_rule *)a)->pattern, ((const struct file_rule *)b)->pattern);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void make_rules(struct file_rule *rules, size_t count, struct path_rule *asks)
{
	char (*texts)[TEXT] = calloc(count + 2 * GLOBS, TEXT);

	for (size_t i = 0; i < count + GLOBS; i++) {
		const char *form = i < count ? "/home/u/project/dir%zu/sub/file%zu.c" :
			      i % 2 ? "/home/u/**/.secret-%zu%zu" : "/home/**/*.%zu-key%zu";

		snprintf(texts[i], TEXT, form, i % 100, i);
		rules[i].pattern = texts[i];
		rules[i].class = i < count ? FILE_WRITE : FILE_MASK;
		rules[i].flags = i < count ? 0 : FILE_GLOB | FILE_GATED;
		rules[i].ending = i < count ? 0 : glob_ending(texts[i]);
	}
	qsort(rules, count, sizeof *rules, by_path);
	for (size_t i = 0; i < GLOBS; i++) {
		char *text = texts[count + GLOBS + i];

		snprintf(text, TEXT, "/home/u/data%zu/**/*.csv%zu", i % 9, i);
		asks[i] = (struct path_rule){ .pattern = text, .flags = FILE_GLOB, .ending = glob_ending(text) };
	}
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
	struct file_rule *rules = calloc(count + GLOBS, sizeof *rules);
	uint32_t *parents = calloc(count + 1, sizeof *parents), *lengths = calloc(count + 1, sizeof *lengths);
	struct path_rule asks[GLOBS];
	struct policy policy = { .files = rules, .file_count = count + GLOBS, .file_exact_count = count,
				 .file_parents = parents, .file_asks = asks, .file_ask_count = GLOBS };
	struct action action = { .kind = ACTION_FILE_READ };
	uint64_t slices[SLICES], allowed = 0;

	if (!count || !rules || !parents || !lengths)
		return 2;
	make_rules(rules, count, asks);
	if (file_parents_fill(parents, lengths, rules, count, NULL) < 0)
		return 1;
	for (size_t slice = 0; slice < SLICES; slice++) {
		uint64_t begin = now_ns();

		/* Far apart, as no cache likes it. */
		for (size_t i = 0; i < CALLS; i++) {
			action.subject = rules[(i * 7919 + slice) % count].pattern;
			allowed += policy_decide(&policy, &action).verdict == VERDICT_ALLOW;
		}
		slices[slice] = (now_ns() - begin) / CALLS;
	}
	qsort(slices, SLICES, sizeof *slices, by_value);
	printf("%llu\n", (unsigned long long)slices[0]);
	return allowed == (uint64_t)SLICES * CALLS ? 0 : 1;
}
