/* SPDX-License-Identifier: Apache-2.0 */
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
#include "fixture.h"

static void paths_are_normalised(void **state)
{
	assert_non_null(fixture_text(
		"atoll: 1\nfiles: {read: [/usr//lib/, /a/../b/./c, ~/x/, \"~\", ./src/.., ../q]}\n"));
	assert_int_equal(fixture_class("/usr/lib/x"), FILE_READ);
	assert_int_equal(fixture_class("/usr/libx"), FILE_HIDDEN);
	assert_int_equal(fixture_class("/b/c"), FILE_READ);
	assert_int_equal(fixture_class("/a"), FILE_HIDDEN);
	assert_int_equal(fixture_class("/home/u/x"), FILE_READ);
	assert_int_equal(fixture_class("/home/u"), FILE_READ);
	assert_int_equal(fixture_class("/home/u/p"), FILE_READ);
	assert_int_equal(fixture_class("/home/u/q"), FILE_READ);
	assert_int_equal(fixture_class("/home/v"), FILE_HIDDEN);
}

static void no_home_is_an_error_only_where_a_person_wrote_it(void **state)
{
	fixture_reset();
	fixture_request.home = fixture_request.config_home = "";
	fixture_request.level = "medium";
	assert_non_null(fixture_compile());
	fixture_file("/t.yaml", "atoll: 1\nfiles: {read: [~/x]}\n");
	fixture_request.level = NULL;
	fixture_request.policy = "/t.yaml";
	assert_null(fixture_compile());
	assert_non_null(strstr(fixture_errors(), "HOME"));
}

static void except_narrows_its_rule(void **state)
{
	assert_non_null(
		fixture_text("atoll: 1\nfiles: {read: [{path: /usr, except: [/usr/src]}, /usr/src/keep]}\n"));
	assert_int_equal(fixture_class("/usr/src/x"), FILE_HIDDEN);
	assert_int_equal(fixture_class("/usr/src/keep/x"), FILE_READ);
	assert_int_equal(fixture_plan("/usr/src")->class, FILE_MASK);
	assert_non_null(
		fixture_text("atoll: 1\nnetwork: {allow: [{host: \"*.a.org\", except: [b.a.org]}]}\n"));
	assert_int_equal(fixture_ask(ACTION_NET_CONNECT, "c.a.org"), VERDICT_ALLOW);
	assert_int_equal(fixture_ask(ACTION_NET_CONNECT, "b.a.org"), VERDICT_DENY);
}

static void mask_wins(void **state)
{
	assert_non_null(fixture_text("atoll: 1\nfiles: {mask: [/a], write: [/a, /a/b]}\n"));
	assert_int_equal(fixture_class("/a/b/c"), FILE_MASK);
	assert_int_equal(fixture_ask(ACTION_FILE_READ, "/a/b"), VERDICT_DENY);
}

static void the_plan_leaves_out_what_changes_nothing(void **state)
{
	const struct policy *policy;
	cleanup_buf struct buf text;

	buf_init(&text, 1 << 20);
	buf_put_text(&text, "atoll: 1\nfiles:\n  write: [/w]\n  read:\n    - /r\n");
	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "    - /r/d%d/x\n", i);
	policy = fixture_text(buf_text(&text));
	assert_non_null(policy);
	assert_int_equal(policy->files.plan_count, 2);
	assert_true(policy->files.count >= 1002);
	policy = fixture_text("atoll: 1\nfiles: {scratch: [/s], mask: [/s/m, /h, /w/m], write: [/w, /s/w], "
			      "read: [/w/r, /s/w/r]}\n");
	assert_int_equal(policy->files.plan_count, 6);
	assert_null(fixture_plan("/s/m"));
	assert_null(fixture_plan("/h"));
	assert_int_equal(fixture_plan("/w/m")->class, FILE_MASK);
	assert_true(fixture_plan("/w/r")->flags & FILE_NOFOLLOW);
	assert_false(fixture_plan("/s/w")->flags & FILE_NOFOLLOW);
	for (size_t i = 1; i < policy->files.plan_count; i++)
		assert_true(strcmp(policy->files.plan[i - 1].path, policy->files.plan[i].path) < 0);
}

/* In a staged tree the mask layer can empty a directory; elsewhere a pattern is enforced only where it means a name. */
static void masks_of_contents(void **state)
{
	const struct policy *policy =
		fixture_text("atoll: 1\nfiles: {stage: [/s], mask: [\"/s/a/*\", \"/s/b/**\", \"/h/c/**\", "
			     "\"/r/d/**\", /s/e, /s/a/x], read: [/r]}\n");

	assert_non_null(policy);
	assert_int_equal(policy->unenforced_count, 0);
	assert_int_equal(fixture_plan("/s")->class, FILE_STAGE);
	for (const char *const *path = (const char *const[]){ "/s/a", "/s/b", NULL }; *path; path++) {
		assert_int_equal(fixture_plan(*path)->class, FILE_MASK);
		assert_true(fixture_plan(*path)->flags & FILE_CONTENTS);
	}
	assert_false(fixture_plan("/s/e")->flags & FILE_CONTENTS);
	assert_null(fixture_plan("/s/a/x"));
	assert_null(fixture_plan("/h/c"));
	assert_int_equal(fixture_plan("/r/d")->class, FILE_MASK);
	assert_false(fixture_plan("/r/d")->flags & FILE_CONTENTS);
	assert_int_equal(fixture_class("/s/a"), FILE_STAGE);
	assert_int_equal(fixture_class("/s/a/x/y"), FILE_MASK);
}

static void drop_takes_inherited_rules_away(void **state)
{
	assert_non_null(fixture_text("atoll: 1\nextends: medium\ndrop: [~/.nvm, /home/u/go/, /usr/bin/sudo, "
				     "LC_*, \"none:files.read[1]\"]\n"));
	assert_int_equal(fixture_class("/home/u/.nvm"), FILE_SCRATCH);
	assert_int_equal(fixture_class("/home/u/go"), FILE_SCRATCH);
	assert_int_equal(fixture_class("/usr"), FILE_HIDDEN);
	assert_int_equal(fixture_ask(ACTION_ENV, "LC_ALL"), VERDICT_DENY);
	assert_null(fixture_text("atoll: 1\nextends: medium\ndrop: [\"files.read[1]\"]\n"));
	assert_non_null(strstr(fixture_errors(), "NAME:files.read[1]"));
}

static const char *env_value(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->env.set_count; i++)
		if (strcmp(policy->env.set[i].name, name) == 0)
			return policy->env.set[i].value;
	return "";
}

static void scalars_replace_and_lists_add(void **state)
{
	const struct policy *policy =
		fixture_text("atoll: 1\nextends: medium\nresources: {memory: 1GiB}\nfiles: {read: "
			     "[/data]}\nenv: {set: {TMPDIR: /x}}\n");

	assert_int_equal(policy->limits[RESOURCE_MEMORY].value, 1 << 30);
	assert_string_equal(policy->limits[RESOURCE_MEMORY].origin.file, "/t.yaml");
	assert_int_equal(policy->level, TRUST_MEDIUM);
	assert_int_equal(fixture_class("/data"), FILE_READ);
	assert_int_equal(fixture_class("/usr"), FILE_READ);
	assert_string_equal(env_value(policy, "TMPDIR"), "/x");
	/* What the child does not name stays. */
	assert_string_equal(env_value(policy, "GIT_OPTIONAL_LOCKS"), "0");
}

static void several_parents_share_their_own(void **state)
{
	const struct policy *policy = fixture_text("atoll: 1\nextends: [claude, python]\n");

	assert_non_null(policy);
	assert_int_equal(fixture_class("/home/u/.claude/x"), FILE_WRITE);
	assert_int_equal(fixture_class("/home/u/.cache/pip"), FILE_WRITE);
}

static void the_level_on_the_command_line_replaces_the_one_of_the_chain(void **state)
{
	fixture_reset();
	fixture_request.policy = "claude";
	fixture_request.level = "low";
	assert_int_equal(fixture_compile()->level, TRUST_LOW);
	assert_int_equal(fixture_class("/home/u/.claude/x"), FILE_WRITE);
	assert_int_equal(fixture_class("/home/u/.nvm"), FILE_SCRATCH);
	fixture_request.level = "lwo";
	assert_null(fixture_compile());
	assert_non_null(strstr(fixture_errors(), "did you mean \"low\"?"));
}

static void the_users_own_policies_are_found(void **state)
{
	fixture_reset();
	fixture_file("/home/u/.config/atoll/policy.yaml", "atoll: 1\nextends: mine\n");
	fixture_file("/home/u/.config/atoll/policies/mine.yaml",
		     "atoll: 1\nextends: low\nfiles: {read: [/mine]}\n");
	assert_non_null(fixture_compile());
	assert_int_equal(fixture_class("/mine"), FILE_READ);
	fixture_request.level = "none";
	assert_int_equal(fixture_compile()->level, TRUST_NONE);
	assert_int_equal(fixture_class("/mine"), FILE_HIDDEN);
}

/* A file of the user must not stand in for a trust level. */
static void shipped_names_come_first(void **state)
{
	fixture_reset();
	fixture_file("/home/u/.config/atoll/policies/none.yaml", "atoll: 1\nextends: full\n");
	fixture_request.policy = "none";
	assert_int_equal(fixture_compile()->level, TRUST_NONE);
	assert_int_equal(fixture_class("/home/u/x"), FILE_SCRATCH);
}

static void missing_files_are_sources_too(void **state)
{
	const struct snapshot_source *sources;
	bool has_project = false, has_default = false;
	size_t count;

	fixture_reset();
	assert_non_null(fixture_compile());
	sources = lang_sources(fixture_lang(), &count);
	for (size_t i = 0; i < count; i++) {
		has_project |= str_equal(sources[i].path, "/home/u/p/.atoll.yaml") && !sources[i].exists;
		has_default |=
			str_equal(sources[i].path, "/home/u/.config/atoll/policy.yaml") && !sources[i].exists;
	}
	assert_true(has_project && has_default);
}

static void atolls_own_files_are_out_of_reach(void **state)
{
	static const char *const private_dirs[] = { "/state/atoll", NULL };
	static const char *const paths[] = { "/home/u/.config/atoll/policy.yaml",
					     "/home/u/.local/state/atoll",
					     "/home/u/.cache/atoll/x",
					     "/var/lib/atoll",
					     "/run/atoll/x.sock",
					     "/state/atoll/sessions" };

	fixture_reset();
	fixture_file("/t.yaml",
		     "atoll: 1\nfiles: {write: [/, ~, ~/.config/atoll, /var/lib/atoll/sessions]}\n");
	fixture_request.policy = "/t.yaml";
	fixture_request.private_dirs = private_dirs;
	assert_non_null(fixture_compile());
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		assert_int_equal(fixture_ask(ACTION_FILE_WRITE, paths[i]), VERDICT_DENY);
		assert_int_equal(fixture_ask(ACTION_FILE_READ, paths[i]), VERDICT_DENY);
	}
	assert_int_equal(fixture_plan("/home/u/.config/atoll")->class, FILE_MASK);
	assert_null(fixture_text("atoll: 1\ndrop: [builtin.state]\n"));
}

static void links_are_followed_for_masks(void **state)
{
	fixture_reset();
	fixture_file("/t.yaml",
		     "atoll: 1\nfiles: {mask: [~/.ssh], read: [/data, ~/tools], write: [., ./out]}\n");
	fixture_link("/home/u/.ssh", "/data/keys");
	fixture_link("/home/u/tools", "/opt/tools");
	fixture_link("/home/u/p/out", "/etc");
	fixture_request.policy = "/t.yaml";
	assert_non_null(fixture_compile());
	assert_int_equal(fixture_class("/data/keys/id_rsa"), FILE_MASK);
	assert_int_equal(fixture_class("/opt/tools"), FILE_READ);
	/* A link in the project that leads out of it gives nothing. */
	assert_int_equal(fixture_class("/etc"), FILE_HIDDEN);
}

static void the_project_may_be_the_home(void **state)
{
	fixture_reset();
	fixture_request.project = "/home/u";
	fixture_request.level = "medium";
	assert_non_null(fixture_compile());
	assert_int_equal(fixture_class("/home/u/x"), FILE_STAGE);
	assert_int_equal(fixture_class("/home/u/.ssh"), FILE_MASK);
}

static void a_project_with_odd_bytes(void **state)
{
	fixture_reset();
	fixture_request.project = "/home/u/a b\n[*]\xff";
	fixture_request.level = "medium";
	assert_non_null(fixture_compile());
	assert_int_equal(fixture_class("/home/u/a b\n[*]\xff/x"), FILE_STAGE);
	assert_int_equal(fixture_class("/home/u/a b\n[*]\xff/.env"), FILE_MASK);
	assert_int_equal(fixture_class("/home/u/a b\n*\xff/x"), FILE_SCRATCH);
}

/* What no mount can take away is decided at access time; what one can is not. */
static void masks_by_glob_are_for_the_gate(void **state)
{
	static const struct {
		const char *text;
		bool is_gated;
	} rows[] = {
		{ "files: {mask: [\"**/.env\"]}", true },
		{ "files: {stage: [/s], mask: [\"/s/*.key\"]}", true },
		{ "files: {stage: [/s], mask: [\"/s/*/x/**\"]}", true },
		{ "files: {stage: [/s], mask: [\"/s/*\"]}", true },
		{ "files: {read: [/r], mask: [\"/r/d/*\"]}", true },
		{ "files: {stage: [/s], mask: [{path: \"/s/d/*\", except: [/s/d/x]}]}", true },
		{ "files: {stage: [/s], mask: [\"/s/d/*\"]}", false },
		{ "files: {stage: [/s], mask: [/s/d]}", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct policy *policy;
		bool is_gated = false;
		char text[200];

		snprintf(text, sizeof text, "atoll: 1\n%s\n", rows[i].text);
		policy = fixture_text(text);
		assert_non_null(policy);
		assert_int_equal(policy->unenforced_count, 0);
		for (size_t k = 0; k < policy->files.count; k++)
			is_gated |= policy->files.rules[k].flags & FILE_GATED;
		assert_int_equal(is_gated, rows[i].is_gated);
	}
}

static void what_cannot_be_enforced_is_listed(void **state)
{
	static const struct {
		const char *text, *what;
	} rows[] = {
		{ "files: {write: [\"build/*\"]}", "files.write glob" },
		{ "network: {host: true, default: allow, allow: [{host: a.org, http: [{methods: [GET]}]}]}",
		  "network.allow http with host: true" },
		{ "network: {default: allow, host: true, allow: [{host: a.org, ports: [443], inject: {header: x, "
		  "secret: y}}]}", "network.allow inject with host: true" },
		{ "network: {default: allow, host: true, simulate: [{host: a.org, answer: {}}]}",
		  "network.simulate with host: true" },
		{ "network: {default: allow, host: true, deny: [a.org]}", "network.deny with host: true" },
		{ "network: {default: allow, host: true, limits: {total: 1GiB}}", "network.limits with host: true" },
		{ "network: {limits: {requests: 5/s}}", "network.limits requests where no rule has http or inject" },
		{ "network: {allow: [{host: a.org, limits: {requests: 5/s}}]}",
		  "network.allow limits requests without http or inject" },
		{ "network: {allow: [{host: a.org, limits: {labels: 1KiB}}]}",
		  "network.allow limits labels without a wildcard" },
		{ "data: {pii: flag}", "data.pii" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct policy *policy;
		char text[200];

		snprintf(text, sizeof text, "atoll: 1\n%s\n", rows[i].text);
		policy = fixture_text(text);
		if (!policy || policy->unenforced_count < 1 ||
		    !str_equal(policy->unenforced[0].what, rows[i].what))
			fail_msg("%s: %s%s", rows[i].text, fixture_errors(),
				 policy && policy->unenforced_count ? policy->unenforced[0].what : "nothing");
		assert_int_equal(policy->unenforced[0].origin.line, 2);
	}
	assert_int_equal(fixture_text("atoll: 1\nnetwork: {default: ask, allow: [{host: a.org, ports: [443]}, "
				      "{cidr: 10.0.0.0/8}], ask: [b.org], deny: [c.org], "
				      "limits: {rate: 1MiB/s, total: 1GiB}}\n")
				 ->unenforced_count,
			 0);
	assert_int_equal(fixture_text("atoll: 1\nnetwork: {deny: [a.org]}\n"
				      "exec: {default: deny, deny: [/usr/bin/sudo, \"**/su\", {argv: [git, push]}], "
				      "ask: [/usr/bin/git]}\ntime: {rate: {exec: 5/s, file.write: 5/s}}\n")
				 ->unenforced_count,
			 0);
	assert_int_equal(fixture_text("atoll: 1\nnetwork: {host: true, default: allow}\n")->network.mode,
			 NETWORK_HOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_normalised),
		cmocka_unit_test(no_home_is_an_error_only_where_a_person_wrote_it),
		cmocka_unit_test(except_narrows_its_rule),
		cmocka_unit_test(mask_wins),
		cmocka_unit_test(the_plan_leaves_out_what_changes_nothing),
		cmocka_unit_test(masks_of_contents),
		cmocka_unit_test(drop_takes_inherited_rules_away),
		cmocka_unit_test(scalars_replace_and_lists_add),
		cmocka_unit_test(several_parents_share_their_own),
		cmocka_unit_test(the_level_on_the_command_line_replaces_the_one_of_the_chain),
		cmocka_unit_test(the_users_own_policies_are_found),
		cmocka_unit_test(shipped_names_come_first),
		cmocka_unit_test(missing_files_are_sources_too),
		cmocka_unit_test(atolls_own_files_are_out_of_reach),
		cmocka_unit_test(links_are_followed_for_masks),
		cmocka_unit_test(the_project_may_be_the_home),
		cmocka_unit_test(a_project_with_odd_bytes),
		cmocka_unit_test(masks_by_glob_are_for_the_gate),
		cmocka_unit_test(what_cannot_be_enforced_is_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
