/* SPDX-License-Identifier: Apache-2.0 */
/* The repository of a worktree or a submodule comes along, and nothing that a project alone claims to be one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "fixture.h"

#define REPOSITORY "/home/u/main/.git"
#define TREE REPOSITORY "/worktrees/p"
#define MODULE REPOSITORY "/modules/lib/p"

#define PRIVATE FILE_SCRATCH /* the home, where nothing of the host's is seen */

/* A project /home/u/p with this .git, and what lies where that leads to. */
struct worktree {
	const char *name, *git, *path[2], *text[2], *expected_at;
	const char *policy; /* NULL: extends medium */
	enum file_class expected;
};

static const struct worktree cases[] = {
	{ "as git makes it", "gitdir: " TREE "\n", { TREE "/gitdir", TREE "/commondir" },
	  { "/home/u/p/.git\n", "../..\n" }, REPOSITORY "/HEAD", NULL, FILE_STAGE },
	{ "with relative paths", "gitdir: ../main/.git/worktrees/p\n", { TREE "/gitdir", TREE "/commondir" },
	  { "../../../../p/.git\n", "../..\n" }, REPOSITORY "/HEAD", NULL, FILE_STAGE },
	{ "nothing but the repository", "gitdir: " TREE "\n", { TREE "/gitdir", TREE "/commondir" },
	  { "/home/u/p/.git\n", "../..\n" }, "/home/u/main/f", NULL, PRIVATE },
	{ "as the project is: to read", "gitdir: " TREE "\n", { TREE "/gitdir", TREE "/commondir" },
	  { "/home/u/p/.git\n", "../..\n" }, REPOSITORY "/HEAD", "atoll: 1\nextends: none\n", FILE_READ },
	{ "never in place", "gitdir: " TREE "\n", { TREE "/gitdir", TREE "/commondir" },
	  { "/home/u/p/.git\n", "../..\n" }, REPOSITORY "/HEAD",
	  "atoll: 1\nextends: medium\ndrop: [.]\nfiles: {write: [.]}\n", FILE_STAGE },
	{ "what the policy says counts", "gitdir: " TREE "\n", { TREE "/gitdir", TREE "/commondir" },
	  { "/home/u/p/.git\n", "../..\n" }, REPOSITORY "/HEAD",
	  "atoll: 1\nextends: medium\nfiles: {mask: [~/main]}\n", FILE_MASK },
	{ "no project, no repository", "gitdir: " TREE "\n", { TREE "/gitdir", TREE "/commondir" },
	  { "/home/u/p/.git\n", "../..\n" }, REPOSITORY "/HEAD",
	  "atoll: 1\nextends: medium\ndrop: [.]\nfiles: {mask: [.]}\n", PRIVATE },
	{ "not named back", "gitdir: " TREE "\n", { TREE "/commondir" }, { "../..\n" }, REPOSITORY "/HEAD", NULL,
	  PRIVATE },
	{ "of another worktree", "gitdir: " TREE "\n", { TREE "/gitdir", TREE "/commondir" },
	  { "/home/u/q/.git\n", "../..\n" }, REPOSITORY "/HEAD", NULL, PRIVATE },
	{ "what it has in common is elsewhere", "gitdir: " TREE "\n", { TREE "/gitdir", TREE "/commondir" },
	  { "/home/u/p/.git\n", "/home/u/.ssh\n" }, REPOSITORY "/HEAD", NULL, PRIVATE },
	{ "no directory of git", "gitdir: /home/u/keys/worktrees/p\n",
	  { "/home/u/keys/worktrees/p/gitdir", "/home/u/keys/worktrees/p/commondir" },
	  { "/home/u/p/.git\n", "../..\n" }, "/home/u/keys/id", NULL, PRIVATE },
	{ "a directory alone", "gitdir: /home/u/keys\n", { "/home/u/keys/gitdir" }, { "/home/u/p/.git\n" },
	  "/home/u/keys/id", NULL, PRIVATE },
	{ "more than one line", "gitdir: " TREE "\nx\n", { TREE "/gitdir", TREE "/commondir" },
	  { "/home/u/p/.git\n", "../..\n" }, REPOSITORY "/HEAD", NULL, PRIVATE },
	{ "a submodule", "gitdir: ../main/.git/modules/lib/p\n", { MODULE "/config" },
	  { "[core]\n\tbare = false\n\tworktree = ../../../../../p\n" }, MODULE "/HEAD", NULL, FILE_STAGE },
	{ "a submodule, and not what it is part of", "gitdir: " MODULE "\n", { MODULE "/config" },
	  { "[core]\n\tworktree = /home/u/p\n" }, REPOSITORY "/HEAD", NULL, PRIVATE },
	{ "a submodule of another place", "gitdir: " MODULE "\n", { MODULE "/config" },
	  { "[core]\n\tworktree = /home/u/q\n" }, MODULE "/HEAD", NULL, PRIVATE },
	{ "a submodule that says it twice", "gitdir: " MODULE "\n", { MODULE "/config" },
	  { "[core]\n\tworktree = /home/u/q\n\tworktree = /home/u/p\n" }, MODULE "/HEAD", NULL, PRIVATE },
	{ "no module", "gitdir: /home/u/modules/p\n", { "/home/u/modules/p/config" },
	  { "[core]\n\tworktree = /home/u/p\n" }, "/home/u/modules/p/HEAD", NULL, PRIVATE },
};

static void set_up(const struct worktree *worktree)
{
	fixture_reset();
	fixture_file("/t.yaml", worktree->policy ? worktree->policy : "atoll: 1\nextends: medium\n");
	fixture_request.policy = "/t.yaml";
	fixture_file("/home/u/p/.git", worktree->git);
	for (size_t i = 0; i < ARRAY_SIZE(worktree->path) && worktree->path[i]; i++)
		fixture_file(worktree->path[i], worktree->text[i]);
}

static void what_both_sides_say_counts(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		set_up(&cases[i]);
		fixture_compile();
		assert_string_equal(fixture_errors(), "");
		if (fixture_class(cases[i].expected_at) != cases[i].expected)
			fail_msg("%s: %d", cases[i].name, fixture_class(cases[i].expected_at));
	}
}

/* The compiled policy is kept: what it was made from must be looked at before it is used again. */
static void what_was_read_is_a_source(void **state)
{
	static const char *const expected[] = { "/home/u/p/.git", TREE "/gitdir", TREE "/commondir" };
	const struct snapshot_source *sources;
	size_t count, found = 0;

	set_up(&cases[0]);
	fixture_compile();
	sources = lang_sources(fixture_lang(), &count);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < ARRAY_SIZE(expected); k++)
			found += str_equal(sources[i].path, expected[k]);
	assert_int_equal(found, ARRAY_SIZE(expected));
	/* And nothing inside writes them. */
	for (size_t k = 0; k < ARRAY_SIZE(expected); k++)
		assert_int_equal(fixture_class(expected[k]), FILE_READ);
}

static void a_link_in_the_place_of_the_file_is_none(void **state)
{
	set_up(&cases[0]);
	fixture_link("/home/u/p/.git", "/home/u/other/.git");
	fixture_compile();
	assert_int_equal(fixture_class(REPOSITORY "/HEAD"), PRIVATE);
}

static void a_repository_that_holds_the_home_or_the_project_is_none(void **state)
{
	set_up(&cases[0]);
	fixture_request.home = REPOSITORY "/home";
	fixture_compile();
	assert_int_equal(fixture_class(REPOSITORY "/HEAD"), FILE_HIDDEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_both_sides_say_counts),
		cmocka_unit_test(what_was_read_is_a_source),
		cmocka_unit_test(a_link_in_the_place_of_the_file_is_none),
		cmocka_unit_test(a_repository_that_holds_the_home_or_the_project_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
