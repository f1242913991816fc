/* SPDX-License-Identifier: Apache-2.0 */

/* The index answers as the decision function does, only faster. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/decide.h"
#include "session/protects.h"

static const char *const git[] = { "/**/.git/*", NULL };
static const struct file_rule files[] = { { "/p", FILE_STAGE, 0, NULL, { "files.stage[0]", "", 0 } } };
static const uint32_t parents[] = { UINT32_MAX };
static const struct path_rule rules[] = {
	{ "/**/.git/hooks/**", FILE_GLOB, NULL, { "p[0]", "", 0 } },
	{ "/**/.git", FILE_GLOB, git, { "p[1]", "", 0 } },
	{ "/**/*.pth", FILE_GLOB, NULL, { "p[2]", "", 0 } },
	{ "/**/.github/workflows/**", FILE_GLOB, NULL, { "p[3]", "", 0 } },
	{ "/p/exact", 0, NULL, { "p[4]", "", 0 } },
	{ "/**/Make[fF]ile", FILE_GLOB, NULL, { "p[5]", "", 0 } },
	{ "/**/pre-push", FILE_GLOB | PATH_FILE, NULL, { "p[6]", "", 0 } },
	{ "/p/only", PATH_FILE, NULL, { "p[7]", "", 0 } },
};

static struct policy policy = {
	.name = "t",		  .project = "/p",	.home = "",	      .files.rules = files,
	.files.count = 1,	  .files.exact_count = 1, .files.parents = parents, .files.protects = rules,
	.files.protect_count = ARRAY_SIZE(rules),
};

static void answers_as_decisions_do(void **state)
{
	static const char *const tops[] = { "/p", "/p/a", "/p/.github", "/p/exact", "/p/.git", "/p/b/.git/hooks" };
	static const char *const names[] = {
		"x",		".git",	   ".git/config", ".git/hooks", ".git/hooks/x/y", "a.pth",	      "pth",
		".pth.x",	"workflows", "workflows/x", ".github/workflows", "exact", "exact/x",	      "exacts",
		"Makefile",	"MakeFile", "Makefiles",  "hooks",	"hooks/pre-commit", "a b/\xff.pth",
		"pre-push",	"pre-push/x", "pre-push/pre-push", "only", "only/x",
	};
	struct protects *protects = protects_new(&policy);
	size_t flagged = 0;

	assert_non_null(protects);
	for (size_t t = 0; t < ARRAY_SIZE(tops); t++)
		for (size_t n = 0; n < ARRAY_SIZE(names); n++) {
			struct action action = { .kind = ACTION_FILE_APPLY };
			char path[256];
			bool expected;

			snprintf(path, sizeof path, "%s/%s", tops[t], names[n]);
			action.subject = path;
			expected = policy_decide(&policy, &action).verdict == VERDICT_ASK;
			flagged += expected;
			if ((protects_judge(protects, path, false) == PROTECTS_ALWAYS) != expected)
				fail_msg("%s: %d", path, expected);
		}
	assert_true(flagged > 20 && flagged < 100);
	protects_free(protects);
}

/* Git runs a file of that name; a directory has to be called so by chance. */
static void the_name_of_a_file_is_no_directory(void **state)
{
	struct protects *protects = protects_new(&policy);

	assert_non_null(protects);
	for (int is_directory = 0; is_directory < 2; is_directory++) {
		enum protects_verdict expected = is_directory ? PROTECTS_NOTHING : PROTECTS_ALWAYS;

		assert_int_equal(protects_judge(protects, "/p/pre-push", is_directory), expected);
		assert_int_equal(protects_judge(protects, "/p/pre-push/pre-push", is_directory), expected);
		assert_int_equal(protects_judge(protects, "/p/only", is_directory), expected);
		assert_int_equal(protects_judge(protects, "/p/pre-push/x", is_directory), PROTECTS_NOTHING);
		/* Other rules cover it all the same. */
		assert_int_equal(protects_judge(protects, "/p/.git/hooks/pre-push", is_directory), PROTECTS_ALWAYS);
		assert_int_equal(protects_judge(protects, "/p/pre-push/Makefile", is_directory), PROTECTS_ALWAYS);
	}
	protects_free(protects);
}

static void a_policy_without_rules_flags_nothing(void **state)
{
	struct policy none = policy;
	struct protects *protects;

	none.files.protect_count = 0;
	protects = protects_new(&none);
	assert_non_null(protects);
	assert_int_equal(protects_judge(protects, "/p/.git/hooks/x", false), PROTECTS_NOTHING);
	protects_free(protects);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_as_decisions_do),
		cmocka_unit_test(the_name_of_a_file_is_no_directory),
		cmocka_unit_test(a_policy_without_rules_flags_nothing),
	};

	return cmocka_run_group_tests_name("protects", tests, NULL, NULL);
}
