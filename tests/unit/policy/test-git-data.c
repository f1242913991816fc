/* SPDX-License-Identifier: Apache-2.0 */

/* What in a repository is data, what is not, and what is it only in its ordinary form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/decide.h"
#include "policy/git-data.h"

static const char *const data[] = {
	"HEAD", "index", "packed-refs", "ORIG_HEAD", "COMMIT_EDITMSG", "MERGE_MSG", "objects", "objects/4b",
	"objects/4b/825dc642cb6eb9a060e54bf8d69288fbee4904", "objects/pack/pack-1.idx", "refs/heads/a/b", "refs/stash",
	"logs/HEAD", "logs/refs/heads/x", "info/exclude", "hooks/pre-commit.sample", "rr-cache/1/preimage",
	"worktrees/w/HEAD", "worktrees/w/index", "modules/a/objects/4b/x", "modules/a/b/HEAD",
	"modules/a/modules/b/index",
};
static const char *const other[] = {
	"", "config", "config.worktree", "commondir", "gitdir", "hooks", "hooks/pre-commit", "hooks/x.sample/y",
	"info/attributes", "objects/info/alternates", "rebase-merge/git-rebase-todo", "rebase-apply/patch",
	"sequencer/todo", "index/x", "HEAD/x", "branches/x", "remotes/x", "BISECT_NAMES", "config.lock", "Index",
	"objects/4B/x", "objects/4b/x/y", "MERGE_RR",
	"new-in-the-next-git", "worktrees/w/commondir", "worktrees/w/config.worktree",
	"modules/a/config", "modules/a/hooks/post-checkout", "x/HEAD", "hooks/refs/x",
};

static void data_is_a_list(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(data); i++)
		if (!git_is_data_by_name(data[i], false))
			fail_msg("%s is data", data[i]);
	for (size_t i = 0; i < ARRAY_SIZE(other); i++)
		if (git_is_data_by_name(other[i], false))
			fail_msg("%s is no data", other[i]);
	assert_true(git_is_data_by_name("rebase-merge/git-rebase-todo", true));
	assert_false(git_is_data_by_name("config", true));
}

static bool is_ordinary(enum git_part part, const char *text)
{
	return git_text_is_ordinary(part, text, strlen(text));
}

static void forms_are_those_that_git_writes(void **state)
{
	char long_text[GIT_TEXT_MAX + 2];

	assert_true(is_ordinary(GIT_HEAD, "ref: refs/heads/main\n"));
	assert_true(is_ordinary(GIT_HEAD, "4b825dc642cb6eb9a060e54bf8d69288fbee4904\n"));
	assert_false(is_ordinary(GIT_HEAD, "ref: refs/heads/../../x\n"));
	assert_false(is_ordinary(GIT_HEAD, "ref: ../x\n"));
	assert_false(is_ordinary(GIT_HEAD, "ref: refs/heads/a\nb"));
	assert_false(is_ordinary(GIT_HEAD, ""));
	assert_false(git_text_is_ordinary(GIT_HEAD, "ref: refs/\0x", 12));
	assert_true(is_ordinary(GIT_COMMONDIR, "../..\n"));
	assert_false(is_ordinary(GIT_COMMONDIR, "../../x\n"));
	assert_false(is_ordinary(GIT_COMMONDIR, "/x\n"));
	assert_true(is_ordinary(GIT_GITDIR, "/x/y/.git\n"));
	assert_false(is_ordinary(GIT_GITDIR, "x/.git\n"));
	assert_true(is_ordinary(GIT_DATA, "anything"));
	assert_false(is_ordinary(GIT_OTHER, "anything"));
	memset(long_text, 'a', sizeof long_text);
	memcpy(long_text, "ref: refs/", 10);
	assert_false(git_text_is_ordinary(GIT_HEAD, long_text, GIT_TEXT_MAX + 1));
}

static void other_repositories_lie_where_git_keeps_them(void **state)
{
	assert_true(git_can_hold_repository("worktrees/w"));
	assert_true(git_can_hold_repository("modules/a/b"));
	assert_false(git_can_hold_repository("worktrees/w/x"));
	assert_false(git_can_hold_repository("worktrees/"));
	assert_false(git_can_hold_repository("refs/x"));
	assert_false(git_can_hold_repository("x"));
}

static const struct file_rule files[] = {
	{ "/p", FILE_STAGE, 0, NULL, { "files.stage[0]", "", 0 }, 0 },
	{ "/w", FILE_WRITE, FILE_GUARDED, NULL, { "files.write[0]", "", 0 }, 0 },
};
static const uint32_t parents[] = { UINT32_MAX, UINT32_MAX };
static const struct path_rule rules[] = {
	{ .pattern = "/**/.git", .flags = FILE_GLOB | PATH_GIT, .origin = { "p[0]", "", 0 } },
	{ .pattern = "/**/Makefile", .flags = FILE_GLOB | PATH_BUILD, .origin = { "p[1]", "", 0 } },
	{ .pattern = "/**/.envrc", .flags = FILE_GLOB, .origin = { "p[2]", "", 0 } },
};
static const struct policy policy = {
	.name = "t", .project = "/p", .home = "", .files.rules = files, .files.count = 2, .files.exact_count = 2,
	.files.parents = parents, .files.protects = rules, .files.protect_count = ARRAY_SIZE(rules),
};

static enum verdict decide(enum action_kind kind, const char *path)
{
	struct action action = { .kind = kind, .subject = path };

	return policy_decide(&policy, &action).verdict;
}

static void rules_leave_data_out(void **state)
{
	assert_int_equal(decide(ACTION_FILE_APPLY, "/p/.git/index"), VERDICT_ALLOW);
	assert_int_equal(decide(ACTION_FILE_APPLY, "/p/.git/config"), VERDICT_ASK);
	assert_int_equal(decide(ACTION_FILE_APPLY, "/p/.git"), VERDICT_ASK);
	assert_int_equal(decide(ACTION_FILE_APPLY, "/p/a/.git/hooks/x"), VERDICT_ASK);
	/* Data of one repository, and none of the one around it; and the other way round. */
	assert_int_equal(decide(ACTION_FILE_APPLY, "/p/.git/hooks/.git/HEAD"), VERDICT_ASK);
	assert_int_equal(decide(ACTION_FILE_APPLY, "/p/.git/refs/.git/config"), VERDICT_ASK);
}

static void written_in_place_is_asked_about(void **state)
{
	assert_int_equal(decide(ACTION_FILE_WRITE, "/w/.envrc"), VERDICT_ASK);
	assert_int_equal(decide(ACTION_FILE_WRITE, "/w/sub/.git/hooks/x"), VERDICT_ASK);
	assert_int_equal(decide(ACTION_FILE_WRITE, "/w/.git/index"), VERDICT_ALLOW);
	assert_int_equal(decide(ACTION_FILE_READ, "/w/.envrc"), VERDICT_ALLOW);
	/* What a build runs lies beside sources that it runs as well. */
	assert_int_equal(decide(ACTION_FILE_WRITE, "/w/Makefile"), VERDICT_ALLOW);
	assert_int_equal(decide(ACTION_FILE_APPLY, "/p/Makefile"), VERDICT_ASK);
	assert_int_equal(decide(ACTION_FILE_WRITE, "/p/.envrc"), VERDICT_STAGE);
	assert_true(policy_gates_writes(&policy));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_is_a_list),
		cmocka_unit_test(forms_are_those_that_git_writes),
		cmocka_unit_test(other_repositories_lie_where_git_keeps_them),
		cmocka_unit_test(rules_leave_data_out),
		cmocka_unit_test(written_in_place_is_asked_about),
	};

	return cmocka_run_group_tests_name("git-data", tests, NULL, NULL);
}
