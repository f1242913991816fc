/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Policies at the levels below the one that they extend, as agents that are trusted less get them: each compiles, and
 * what a lower level allows every higher one allows too, for every path, host, program and variable that any names.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "fixture.h"

static struct lang *compiled[TRUST_COUNT];
static size_t count; /* levels, from none up */
static size_t compared;

static const struct policy *at(size_t level)
{
	return lang_policy(compiled[level]);
}

static void compile(const char *name, enum trust_level natural)
{
	fixture_request.policy = name;
	fixture_request.is_lowered = true;
	for (count = 0; count <= natural; count++) {
		char errors[2048];
		struct buf out;

		fixture_request.level = trust_level_names[count];
		if (lang_compile(&fixture_request, &compiled[count]) == 0)
			continue;
		buf_init_fixed(&out, errors, sizeof errors);
		lang_put_errors(compiled[count], &out);
		fail_msg("%s at %s: %s", name, trust_level_names[count], buf_text(&out));
	}
}

static void release(void)
{
	for (size_t i = 0; i < count; i++)
		lang_free(compiled[i]);
	count = 0;
}

/* As in test-levels.c: what reaches the host by itself. */
static int worth(enum action_kind kind, enum verdict verdict)
{
	return kind <= ACTION_FILE_APPLY && verdict != VERDICT_ALLOW ? 0 : (int)verdict;
}

/* What is written in place is never applied. */
static bool is_moot(const struct action *action, const struct policy *policy)
{
	return action->kind == ACTION_FILE_APPLY &&
	       policy_classify(policy, action->subject, &(size_t){ 0 }) == FILE_WRITE;
}

static void check(const char *name, const struct action *action)
{
	for (size_t i = 0; i + 1 < count; i++) {
		enum verdict low = policy_decide(at(i), action).verdict;
		enum verdict high = policy_decide(at(i + 1), action).verdict;

		compared++;
		if (worth(action->kind, low) > worth(action->kind, high) && !is_moot(action, at(i)))
			fail_msg("%s: %s %s: %s at %s, %s at %s", name, action_kind_names[action->kind],
				 action->subject, verdict_names[low], trust_level_names[i], verdict_names[high],
				 trust_level_names[i + 1]);
	}
}

static void check_path(const char *name, const char *path, const char *tail)
{
	char whole[4096];

	assert_int_equal(str_format(whole, sizeof whole, "%s%s", path, tail), 0);
	for (int kind = ACTION_FILE_READ; kind <= ACTION_EXEC; kind++)
		check(name, &(struct action){ .kind = kind, .subject = whole });
}

static void check_host(const char *name, const char *host)
{
	static const uint16_t ports[] = { 443, 80, 22 };

	for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
		for (int kind = ACTION_NET_CONNECT; kind <= ACTION_HTTP_REQUEST; kind++)
			check(name, &(struct action){ .kind = kind, .subject = host, .port = ports[i], .method = "GET",
						      .path = "/" });
}

static void check_numbers(const char *name)
{
	for (size_t i = 0; i + 1 < count; i++) {
		assert_int_equal(at(i)->level, i);
		assert_true(at(i)->exec.new_binaries <= at(i + 1)->exec.new_binaries);
		assert_true(at(i)->exec.namespaces <= at(i + 1)->exec.namespaces);
		assert_true(at(i)->network.default_verdict <= at(i + 1)->network.default_verdict);
		assert_int_equal(at(i)->degrade & ~at(i + 1)->degrade, 0);
		for (size_t r = 0; r < RESOURCE_COUNT; r++)
			if (at(i)->limits[r].value > at(i + 1)->limits[r].value)
				fail_msg("%s: %s is larger at %s", name, resource_name(r), trust_level_names[i]);
	}
}

static void check_level(const char *name, const struct policy *policy)
{
	static const char *const tails[] = { "", "/x", "/.env", "/.git/hooks/pre-commit", "x" };

	for (size_t i = 0; i < policy->files.exact_count; i++)
		for (size_t t = 0; t < ARRAY_SIZE(tails); t++)
			check_path(name, policy->files.rules[i].pattern, tails[t]);
	for (size_t i = 0; i < policy->network.count; i++)
		if (policy->network.rules[i].host)
			check_host(name, policy->network.rules[i].host);
	for (size_t i = 0; i < policy->exec.exact_count; i++)
		check_path(name, policy->exec.rules[i].program, "");
	for (size_t i = 0; i < policy->env.pass_count; i++)
		check(name, &(struct action){ .kind = ACTION_ENV, .subject = policy->env.pass[i].pattern });
}

static void check_policy(const char *name, enum trust_level natural)
{
	static const char *const hosts[] = { "example.org", "10.0.0.1", "169.254.169.254", "localhost", "::1" };

	compile(name, natural);
	for (size_t i = 0; i < count; i++)
		check_level(name, at(i));
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		check_host(name, hosts[i]);
	check_numbers(name);
	release();
}

static void shipped_policies_are_contained_at_each_level(void **state)
{
	fixture_reset();
	compared = 0;
	for (size_t i = 0; lang_shipped_names[i]; i++) {
		const struct policy *policy;

		fixture_request.level = NULL;
		fixture_request.policy = lang_shipped_names[i];
		policy = fixture_compile();
		assert_non_null(policy);
		if (policy->trust.has_level)
			check_policy(lang_shipped_names[i], policy->level);
	}
	assert_true(compared > 20000);
}

/* Lines that only a higher level has anything to do with. */
static void own_policies_are_contained_at_each_level(void **state)
{
	static const struct {
		enum trust_level natural;
		const char *text;
	} rows[] = {
		{ TRUST_MEDIUM, "extends: medium\ndrop: [~/.nvm, pypi.org]\nfiles: {write: [~/out], read: [~/in]}\n" },
		{ TRUST_MEDIUM, "extends: claude\ndrop: [.]\nfiles: {write: [.]}\n"
				"network: {allow: [a.org], ask: [b.org]}\n" },
		{ TRUST_HIGH, "extends: high\ndrop: [.]\nfiles: {stage: [.], write: [~/go]}\n" },
		{ TRUST_HIGH, "extends: high\nfiles: {write: [~/.config/nvim], mask: [~/x]}\n"
			      "exec: {deny: [/usr/bin/git]}\n" },
		{ TRUST_FULL, "extends: full\nnetwork: {deny: [evil.org]}\nresources: {memory: 1GiB}\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[512];

		fixture_reset();
		snprintf(text, sizeof text, "atoll: 1\n%s", rows[i].text);
		fixture_file("/t.yaml", text);
		check_policy("/t.yaml", rows[i].natural);
		/* What the project tightens at the level that it was written for is not in the way at another. */
		fixture_file("/home/u/p/.atoll.yaml", "atoll: 1\nfiles: {mask: [secret], read: [src], "
						      "stage: [~/.nvm]}\nexec: {new_binaries: true}\n"
						      "time: {wall: 1h}\n");
		check_policy("/t.yaml", rows[i].natural);
	}
}

/* What is left of the project's file counts. */
static void the_project_still_tightens(void **state)
{
	fixture_reset();
	fixture_file("/t.yaml", "atoll: 1\nextends: medium\n");
	fixture_file("/home/u/p/.atoll.yaml", "atoll: 1\nfiles: {mask: [secret]}\n"
					      "network: {allow: [pypi.org], deny: [x.org]}\n"
					      "exec: {new_binaries: true}\nresources: {memory: 100MiB}\n");
	compile("/t.yaml", TRUST_MEDIUM);
	for (size_t i = 0; i < count; i++) {
		struct action action = { .kind = ACTION_FILE_READ, .subject = "/home/u/p/secret" };

		assert_int_equal(policy_decide(at(i), &action).verdict, VERDICT_DENY);
		assert_int_equal(at(i)->limits[RESOURCE_MEMORY].value, 100 << 20);
		action = (struct action){ .kind = ACTION_NET_CONNECT, .subject = "pypi.org", .port = 443 };
		assert_int_equal(policy_decide(at(i), &action).verdict,
				 i < TRUST_MEDIUM ? VERDICT_DENY : VERDICT_ALLOW);
	}
	assert_false(at(TRUST_LOW)->exec.new_binaries);
	release();
	/* Not lowered, the same is an error. */
	fixture_request.is_lowered = false;
	fixture_request.level = "low";
	assert_null(fixture_compile());
}

static const struct trust_settings *settings(const char *text)
{
	static char whole[512];
	const struct policy *policy;

	snprintf(whole, sizeof whole, "atoll: 1\nextends: high\n%s\n", text);
	fixture_reset();
	policy = fixture_text(whole);
	return policy ? &policy->trust : NULL;
}

static void what_is_not_said_has_its_default(void **state)
{
	const struct trust_settings *trust = settings("");

	assert_false(trust->is_given);
	assert_true(trust->has_level);
	assert_int_equal(trust->ceiling, TRUST_HIGH);
	assert_int_equal(trust->start, TRUST_HIGH);
	assert_int_equal(trust->floor, TRUST_NONE);
	assert_int_equal(trust->half_life_ms, TRUST_HALF_LIFE_MS);
	trust = settings("trust: {agent: x, ceiling: medium, probation: {sessions: 4}}");
	assert_string_equal(trust->agent, "x");
	assert_int_equal(trust->start, TRUST_LOW);
	assert_int_equal(trust->ceiling, TRUST_MEDIUM);
	assert_int_equal(trust->probation_sessions, 4);
	assert_int_equal(trust->probation_at, TRUST_LOW);
	/* Lowered, the bounds stay those of the policy. */
	fixture_request.level = "none";
	fixture_request.is_lowered = true;
	trust = &fixture_compile()->trust;
	assert_int_equal(trust->ceiling, TRUST_MEDIUM);
	assert_int_equal(trust->start, TRUST_LOW);
}

static void contradictions_are_errors(void **state)
{
	static const char *const rows[][2] = {
		{ "trust: {ceiling: full}", "the policy extends high" },
		{ "trust: {start: high, ceiling: low}", "trust.start is high, above trust.ceiling, which is low" },
		{ "trust: {floor: medium, start: low}", "trust.floor is medium, above trust.start, which is low" },
		{ "trust: {ceiling: low, probation: {sessions: 2, at: low}}", "leads nowhere" },
		{ "trust: {agent: -x}", "the name of an agent" },
		{ "trust: {agent: a/b}", "the name of an agent" },
		{ "trust: {probation: {sessions: 0}}", "1 to 1000" },
		{ "trust: {probation: {at: low}}", "needs its number of sessions" },
		{ "trust: {half_life: 100d}", "from 1s to 23d" },
		{ "trust: {on_fall: scream}", "note, ask, tighten, freeze" },
		{ "trust: {level: low}", "unknown key" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_null(settings(rows[i][0]));
		if (!strstr(fixture_errors(), rows[i][1]))
			fail_msg("%s: %s", rows[i][0], fixture_errors());
	}
	fixture_reset();
	assert_null(fixture_text("atoll: 1\nfiles: {read: [/usr]}\ntrust: {agent: x}\n"));
	assert_non_null(strstr(fixture_errors(), "extends no trust level"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_policies_are_contained_at_each_level),
		cmocka_unit_test(own_policies_are_contained_at_each_level),
		cmocka_unit_test(the_project_still_tightens),
		cmocka_unit_test(what_is_not_said_has_its_default),
		cmocka_unit_test(contradictions_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
