/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/decide-exec.h"
#include "policy/decide.h"
#include "policy/glob.h"
#include "policy/order.h"

static const char *const except_src[] = { "/usr/src", "/usr/local/*.d", NULL };
static struct file_rule files[] = {
	{ "/etc", FILE_READ, 0, NULL, { "files.read[0]", "p.yaml", 3 } },
	{ "/home/u", FILE_SCRATCH, 0, NULL, { "files.scratch[0]", "p.yaml", 4 } },
	{ "/home/u/p", FILE_WRITE, 0, NULL, { "files.write[0]", "p.yaml", 5 } },
	{ "/home/u/p/.env", FILE_MASK, 0, NULL, { "files.mask[0]", "p.yaml", 6 } },
	{ "/home/u/p/.git/hooks", FILE_READ, 0, NULL, { "files.read[1]", "p.yaml", 7 } },
	{ "/home/u/p/bin", FILE_WRITE, FILE_NOEXEC, NULL, { "files.write[1]", "p.yaml", 8 } },
	{ "/home/u/p/staged", FILE_STAGE, 0, NULL, { "files.stage[0]", "p.yaml", 9 } },
	{ "/home/u/p-other", FILE_READ, 0, NULL, { "files.read[2]", "p.yaml", 10 } },
	{ "/usr", FILE_READ, 0, except_src, { "files.read[3]", "p.yaml", 11 } },
	{ "/**/.secret", FILE_MASK, FILE_GLOB, NULL, { "files.mask[1]", "p.yaml", 12 } },
	{ "/**/.venv", FILE_READ, FILE_GLOB, NULL, { "files.read[4]", "p.yaml", 13 } },
};
static uint32_t parents[9];
static const struct path_rule asks[] = { { "/home/u/p/data", 0, NULL, { "files.ask[0]", "p.yaml", 14 } } };
static const struct path_rule protects[] = {
	{ "/**/Makefile", FILE_GLOB, NULL, { "files.protect[0]", "p.yaml", 15 } }
};
static const char *const push[] = { "git", "push", "**", NULL };
static const struct exec_rule execs[] = {
	{ VERDICT_DENY, "/usr/bin/sudo", 0, NULL, NULL, { "exec.deny[0]", "p.yaml", 16 } },
	{ VERDICT_ASK, NULL, 0, push, NULL, { "exec.ask[0]", "p.yaml", 17 } },
	{ VERDICT_DENY, "/**/nc", FILE_GLOB, NULL, NULL, { "exec.deny[1]", "p.yaml", 18 } },
};
static const struct env_pass passes[] = { { "LC_*", { "env.pass[0]", "p.yaml", 19 } },
					  { "PATH", { "env.pass[1]", "p.yaml", 20 } } };
static const struct device_rule devices[] = { { "kvm", { "devices[0]", "p.yaml", 21 } } };
static struct policy policy = {
	.files.rules = files,
	.files.count = ARRAY_SIZE(files),
	.files.exact_count = 9,
	.files.parents = parents,
	.files.asks = asks,
	.files.ask_count = 1,
	.files.protects = protects,
	.files.protect_count = 1,
	.exec.rules = execs,
	.exec.count = 3,
	.exec.exact_count = 1,
	.exec.default_verdict = VERDICT_ALLOW,
	.exec.default_origin = { "exec.default", "", 0 },
	.exec.new_binaries = true,
	.env.pass = passes,
	.env.pass_count = 2,
	.devices = devices,
	.device_count = 1,
};

static int sort(void **state)
{
	uint32_t lengths[9];

	return file_parents_fill(parents, lengths, files, 9, NULL);
}

static struct decision ask_path(enum action_kind kind, const char *path)
{
	return policy_decide(&policy, &(struct action){ .kind = kind, .subject = path });
}

static void the_most_specific_path_decides(void **state)
{
	static const struct {
		const char *path;
		enum file_class class;
	} rows[] = {
		{ "/", FILE_HIDDEN },
		{ "/etc", FILE_READ },
		{ "/etcetera", FILE_HIDDEN },
		{ "/etc/x/y", FILE_READ },
		{ "/home/u", FILE_SCRATCH },
		{ "/home/u/.bashrc", FILE_SCRATCH },
		{ "/home/u/p", FILE_WRITE },
		{ "/home/u/p/x", FILE_WRITE },
		{ "/home/u/p-other/x", FILE_READ },
		{ "/home/u/pq", FILE_SCRATCH },
		{ "/home/u/p/.env", FILE_MASK },
		{ "/home/u/p/.env/x", FILE_MASK },
		{ "/home/u/p/.envrc", FILE_WRITE },
		{ "/home/u/p/.git/hooks/pre-commit", FILE_READ },
		{ "/home/u/p/.git/index", FILE_WRITE },
		{ "/home/u/p/deep/.secret", FILE_MASK },
		{ "/etc/.secret/x", FILE_MASK },
		{ "/home/u/p/.venv/bin/x", FILE_READ },
		{ "/usr/lib", FILE_READ },
		{ "/usr/src/linux", FILE_HIDDEN },
		{ "/usr/local/x.d/y", FILE_HIDDEN },
		{ "/zzz", FILE_HIDDEN },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t rule;
		enum file_class class = policy_classify(&policy, rows[i].path, &rule);

		if (class != rows[i].class)
			fail_msg("%s is %s", rows[i].path, file_class_names[class]);
		assert_int_equal(rule == SIZE_MAX, class == FILE_HIDDEN);
	}
}

static void file_verdicts(void **state)
{
	struct decision decision;

	assert_int_equal(ask_path(ACTION_FILE_READ, "/etc/x").verdict, VERDICT_ALLOW);
	decision = ask_path(ACTION_FILE_WRITE, "/etc/x");
	assert_int_equal(decision.verdict, VERDICT_DENY);
	assert_string_equal(decision.rule.id, "files.read[0]");
	assert_int_equal(decision.rule.line, 3);
	assert_int_equal(ask_path(ACTION_FILE_WRITE, "/home/u/p/a").verdict, VERDICT_ALLOW);
	assert_int_equal(ask_path(ACTION_FILE_WRITE, "/home/u/p/staged/a").verdict, VERDICT_STAGE);
	assert_int_equal(ask_path(ACTION_FILE_READ, "/home/u/p/staged/a").verdict, VERDICT_ALLOW);
	assert_int_equal(ask_path(ACTION_FILE_READ, "/home/u/p/data/a").verdict, VERDICT_ASK);
	assert_int_equal(ask_path(ACTION_FILE_WRITE, "/home/u/x").verdict, VERDICT_SIMULATE);
	assert_int_equal(ask_path(ACTION_FILE_READ, "/home/u/p/.env").verdict, VERDICT_DENY);
	assert_int_equal(ask_path(ACTION_FILE_APPLY, "/home/u/p/staged/Makefile").verdict, VERDICT_ASK);
	assert_int_equal(ask_path(ACTION_FILE_APPLY, "/home/u/p/staged/x").verdict, VERDICT_ALLOW);
	assert_int_equal(ask_path(ACTION_FILE_APPLY, "/etc/x").verdict, VERDICT_DENY);
	assert_int_equal(ask_path(ACTION_FILE_READ, "/nowhere").verdict, VERDICT_DENY);
	assert_int_equal(ask_path(ACTION_FILE_READ, "/proc/self/maps").verdict, VERDICT_ALLOW);
	assert_int_equal(ask_path(ACTION_FILE_WRITE, "/run/atoll/limits.md").verdict, VERDICT_DENY);
}

static void malformed_subjects_are_denied(void **state)
{
	static const char *const bad[] = { "",	      "etc",	  "./etc",	   "/etc/",	"//etc",
					   "/etc//x", "/etc/./x", "/etc/../etc/x", "/etc/x/..", "/." };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (ask_path(ACTION_FILE_READ, bad[i]).verdict != VERDICT_DENY)
			fail_msg("\"%s\" was not denied", bad[i]);
	assert_int_equal(ask_path(ACTION_FILE_READ, NULL).verdict, VERDICT_DENY);
	assert_int_equal(ask_path(ACTION_KIND_COUNT, "/etc").verdict, VERDICT_DENY);
	assert_int_equal(ask_path((enum action_kind)77, "/etc").verdict, VERDICT_DENY);
}

static enum verdict run(const char *program, const char *const *argv)
{
	return policy_decide(&policy,
			     &(struct action){ .kind = ACTION_EXEC, .subject = program, .argv = argv })
		.verdict;
}

static void exec_verdicts(void **state)
{
	static const char *const git_push[] = { "git", "push", "origin/main", "--force", NULL };
	static const char *const git_log[] = { "git", "log", NULL };

	assert_int_equal(run("/usr/bin/ls", NULL), VERDICT_ALLOW);
	assert_int_equal(run("/usr/bin/sudo", NULL), VERDICT_DENY);
	assert_int_equal(run("/usr/bin/sudoedit", NULL), VERDICT_ALLOW);
	assert_int_equal(run("/usr/local/bin/nc", NULL), VERDICT_DENY);
	assert_int_equal(run("/usr/bin/git", git_push), VERDICT_ASK);
	assert_int_equal(run("/usr/bin/git", git_log), VERDICT_ALLOW);
	assert_int_equal(run("/usr/bin/sudo", git_push), VERDICT_DENY);
	assert_int_equal(run("/home/u/p/bin/x", NULL), VERDICT_DENY);
	assert_int_equal(run("/home/u/p/x", NULL), VERDICT_ALLOW);
	assert_int_equal(run("/nowhere/x", NULL), VERDICT_DENY);
	policy.exec.new_binaries = false;
	assert_int_equal(run("/home/u/p/x", NULL), VERDICT_DENY);
	assert_int_equal(run("/home/u/x", NULL), VERDICT_DENY);
	assert_int_equal(run("/usr/bin/ls", NULL), VERDICT_ALLOW);
	policy.exec.new_binaries = true;
}

/* What a file is counts, where somebody has looked; what takes away holds by any of its names. */
static void exec_by_identity(void **state)
{
	static const char *const words[] = { "ls", "-l", NULL }, *const git_push[] = { "/usr/bin/git", "push", NULL };
	static const char *const renamed_push[] = { "x", "push", NULL };
	static const char *const ask_words[] = { "git", "push", "**", NULL }, *const allow_words[] = { "make", NULL };
	static const char *const but[] = { "/usr/bin/python3", NULL };
	static const struct exec_rule rules[] = {
		{ VERDICT_ALLOW, "/usr/bin/git", 0, NULL, NULL, { "allow", "", 1 } },
		{ VERDICT_DENY, "/usr/bin/nc", FILE_OPTIONAL, NULL, NULL, { "deny", "", 2 } },
		{ VERDICT_DENY, "/**/curl", FILE_GLOB, NULL, NULL, { "glob", "", 3 } },
		{ VERDICT_DENY, "/usr/bin/python*", FILE_GLOB, NULL, but, { "python", "", 4 } },
		{ VERDICT_ASK, NULL, 0, ask_words, NULL, { "push", "", 5 } },
		{ VERDICT_ALLOW, NULL, 0, allow_words, NULL, { "make", "", 6 } },
	};
	static const struct {
		const char *subject;
		const char *names[3];
		const char *const *argv;
		bool is_unnamed;
		enum verdict verdict;
	} rows[] = {
		{ "/usr/bin/ls", { NULL }, words, false, VERDICT_DENY },
		{ "/usr/bin/git", { "/usr/bin/git" }, words, false, VERDICT_ALLOW },
		{ "/home/u/p/x", { "/usr/bin/git" }, words, false, VERDICT_ALLOW },
		/* Another file at the path of a listed one. */
		{ "/usr/bin/git", { NULL }, words, false, VERDICT_DENY },
		{ "/home/u/p/x", { "/usr/bin/git", "/usr/bin/nc" }, words, false, VERDICT_DENY },
		{ "/home/u/p/x", { "/usr/bin/git", "/opt/curl" }, words, false, VERDICT_DENY },
		{ "/usr/bin/git", { "/usr/bin/git" }, git_push, false, VERDICT_ASK },
		{ "/usr/bin/git", { "/usr/bin/git" }, NULL, false, VERDICT_ALLOW },
		/* By any name it was given, but not by one that it gives itself. */
		{ "/home/u/p/git", { "/usr/bin/git" }, renamed_push, false, VERDICT_ASK },
		{ "/usr/bin/ls", { NULL }, allow_words, false, VERDICT_DENY },
		{ "/usr/bin/make", { NULL }, allow_words, false, VERDICT_ALLOW },
		/* An exception is a program too. */
		{ "/usr/bin/python3", { NULL }, words, false, VERDICT_DENY },
		{ "/usr/bin/python9", { "/usr/bin/git", "/usr/bin/python3" }, words, false, VERDICT_ALLOW },
		/* Without a path nothing is on a list. */
		{ "/memfd:git (deleted)", { "/usr/bin/git" }, words, true, VERDICT_DENY },
	};
	struct action loader = { .kind = ACTION_EXEC, .subject = "/home/u/p/x", .argv = words,
				 .names = (const char *const[]){ policy_loaders[0], NULL } };
	struct policy judged = policy;

	judged.exec.default_verdict = VERDICT_DENY;
	judged.exec.rules = rules;
	judged.exec.count = ARRAY_SIZE(rules);
	judged.exec.exact_count = 2;
	assert_true(policy_judges_programs(&judged));
	assert_true(policy_judges_arguments(&judged));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct action action = {
			.kind = ACTION_EXEC, .subject = rows[i].subject, .argv = rows[i].argv, .names = rows[i].names,
			.is_unnamed = rows[i].is_unnamed,
		};
		enum verdict verdict = policy_decide(&judged, &action).verdict;

		if (verdict != rows[i].verdict)
			fail_msg("row %zu: %s", i, verdict_names[verdict]);
	}
	judged.exec.default_verdict = VERDICT_ALLOW;
	/* Which runs anything. */
	assert_string_equal(policy_decide(&judged, &loader).rule.id, "builtin.loader");
	loader.names = (const char *const[]){ NULL };
	assert_int_equal(policy_decide(&judged, &loader).verdict, VERDICT_ALLOW);
	judged.exec.count = 2;
	assert_false(policy_judges_programs(&judged));
	assert_false(policy_judges_arguments(&judged));
}

static void names(void **state)
{
	assert_int_equal(ask_path(ACTION_ENV, "PATH").verdict, VERDICT_ALLOW);
	assert_int_equal(ask_path(ACTION_ENV, "LC_ALL").verdict, VERDICT_ALLOW);
	assert_int_equal(ask_path(ACTION_ENV, "LD_PRELOAD").verdict, VERDICT_DENY);
	assert_int_equal(ask_path(ACTION_ENV, "PATHX").verdict, VERDICT_DENY);
	assert_int_equal(ask_path(ACTION_DEVICE, "kvm").verdict, VERDICT_ALLOW);
	assert_int_equal(ask_path(ACTION_DEVICE, "null").verdict, VERDICT_ALLOW);
	assert_int_equal(ask_path(ACTION_DEVICE, "mem").verdict, VERDICT_DENY);
	assert_int_equal(ask_path(ACTION_SYSCALL, "bpf").verdict, VERDICT_DENY);
}

static void zeroed_memory_denies(void **state)
{
	static const struct policy zero;

	for (int kind = 0; kind < ACTION_KIND_COUNT; kind++) {
		struct decision decision =
			policy_decide(&zero, &(struct action){ .kind = kind, .subject = "/x" });

		assert_int_equal(decision.verdict, VERDICT_DENY);
		assert_non_null(decision.reason);
		assert_non_null(decision.hint);
	}
}

static void an_unsorted_policy_is_decided_too(void **state)
{
	struct policy unsorted = policy;

	unsorted.files.exact_count = 0;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		size_t a, b;

		assert_int_equal(policy_classify(&unsorted, files[i].pattern, &a),
				 policy_classify(&policy, files[i].pattern, &b));
		assert_int_equal(a, b);
	}
}

static int by_path(const void *a, const void *b)
{
	return path_compare(((const struct file_rule *)a)->pattern, ((const struct file_rule *)b)->pattern);
}

static const struct {
	const char *pattern, *from, *to;
	bool keeps;
} moves[] = {
	{ "/p/**/.env", "/p/a", "/p/b", true },          { "/p/**/.env", "/p/a", "/q/a", false },
	{ "/p/**/.env", "/q/a", "/p/a", true },          { "/p/conf/*.key", "/p/conf", "/p/other", false },
	{ "/p/conf/*.key", "/p/x", "/p/conf", true },    { "/p/conf/*.key", "/p/CONF", "/p/x", false },
	{ "/p/*/x/**", "/p/a", "/p/b", true },           { "/p/*/x/**", "/p/a/x", "/p/a/y", false },
	{ "/p/*/x/**", "/p/a/y", "/p/b/x", true },       { "**/*.pem", "/a", "/b", true },
};

static void a_directory_takes_no_name_out_of_a_mask(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(moves); i++) {
		struct file_rule mask = { moves[i].pattern, FILE_MASK, FILE_GLOB | FILE_GATED, NULL, { "m", "", 0 } };
		struct policy one = { .files.rules = &mask, .files.count = 1 };

		if ((policy_decide_move(&one, moves[i].from, moves[i].to).verdict == VERDICT_ALLOW) !=
		    moves[i].keeps)
			fail_msg("%s: %s to %s", moves[i].pattern, moves[i].from, moves[i].to);
	}
	/* An exact path that is asked about. */
	assert_int_equal(policy_decide_move(&(struct policy){ .files.asks = asks, .files.ask_count = 1 }, "/home/u/p",
					    "/home/u/q").verdict, VERDICT_DENY);
	assert_int_equal(policy_decide_move(&(struct policy){ .files.asks = asks, .files.ask_count = 1 }, "/home/u/q",
					    "/home/u/r").verdict, VERDICT_ALLOW);
}

static void no_glob_is_passed_over(void **state)
{
	static const char *const rows[][2] = {
		{ "**/.env", "/a/.ENV" }, { "/a/*.Key", "/a/x.kEy/below" }, { "/a/b?", "/a/bc" }, { "/a/[xy]", "/a/x" },
		{ "/a/**", "/a/q" }, { "**/x\\*y", "/b/x*y" }, { "/a/**/b/**", "/a/c/B/d" }, { "**/a", "/A" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct glob_endings endings;

		glob_endings_of(rows[i][1], &endings);
		assert_true(glob_matches_caseless(rows[i][0], rows[i][1]));
		assert_true(glob_may_match_below(glob_ending(rows[i][0]), &endings));
	}
}

/* The budget is 2 µs; the bound here is wide enough for a sanitizer on a busy machine. */
static void ten_thousand_rules_cost_nothing(void **state)
{
	enum { COUNT = 10000, CALLS = 200000, GLOBS = 256 };
	struct file_rule *many = calloc(COUNT + GLOBS, sizeof *many);
	uint32_t *many_parents = calloc(COUNT, sizeof *many_parents),
		 *lengths = calloc(COUNT, sizeof *lengths);
	struct policy large = {
		.files = { .rules = many, .count = COUNT + GLOBS, .exact_count = COUNT, .parents = many_parents },
	};
	static char paths[COUNT][48], globs[GLOBS][48];
	struct timespec start, end;
	size_t rule;
	double each;

	for (size_t i = 0; i < COUNT; i++) {
		snprintf(paths[i], sizeof paths[i], "/home/u/project/dir%zu/sub/file%zu", i % 100, i);
		many[i] = (struct file_rule){
			paths[i], i % 2 ? FILE_READ : FILE_WRITE, 0, NULL, { "x", "", 0 }
		};
	}
	qsort(many, COUNT, sizeof *many, by_path);
	assert_int_equal(file_parents_fill(many_parents, lengths, many, COUNT, NULL), 0);
	/* As many masks by glob as the compiler takes. */
	for (size_t i = 0; i < GLOBS; i++) {
		snprintf(globs[i], sizeof globs[i], i % 2 ? "/home/u/**/.secret-%zu" : "/home/**/*.%zu-key", i);
		many[COUNT + i] = (struct file_rule){ globs[i], FILE_MASK, FILE_GLOB | FILE_GATED, NULL, { "y", "", 0 },
						       glob_ending(globs[i]) };
	}
	assert_int_equal(policy_classify(&large, "/home/u/project/dir1/x/.SECRET-255/below", &rule), FILE_MASK);
	assert_int_equal(policy_classify(&large, "/home/u/project/dir1/x/a.254-key", &rule), FILE_MASK);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	for (size_t i = 0; i < CALLS; i++)
		assert_int_not_equal(policy_classify(&large, many[i % COUNT].pattern, &rule), FILE_HIDDEN);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	each = ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / CALLS;
	print_message("%.0f ns a decision\n", each);
	/* One by one they would take ten times as long, also without optimization and with sanitizers. */
	assert_true(each < 100000);
	free(many);
	free(many_parents);
	free(lengths);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_most_specific_path_decides),
		cmocka_unit_test(file_verdicts),
		cmocka_unit_test(malformed_subjects_are_denied),
		cmocka_unit_test(exec_verdicts),
		cmocka_unit_test(exec_by_identity),
		cmocka_unit_test(names),
		cmocka_unit_test(zeroed_memory_denies),
		cmocka_unit_test(an_unsorted_policy_is_decided_too),
		cmocka_unit_test(a_directory_takes_no_name_out_of_a_mask),
		cmocka_unit_test(no_glob_is_passed_over),
		cmocka_unit_test(ten_thousand_rules_cost_nothing),
	};

	return cmocka_run_group_tests(tests, sort, NULL);
}
