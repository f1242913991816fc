/* SPDX-License-Identifier: Apache-2.0 */
/* What a trial runs under is never more than its policy, whatever is asked, and writes nothing straight to the host. */
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
#include "policy/trial.h"

static const char *const texts[] = {
	"atoll: 1\nextends: none\n",
	"atoll: 1\nextends: low\n",
	"atoll: 1\nextends: medium\n",
	"atoll: 1\nextends: high\n",
	"atoll: 1\nextends: full\n",
	"atoll: 1\nextends: claude\n",
	"atoll: 1\nextends: medium\naudit: {network: off, exec: off}\ndevices: [fuse, kvm]\n"
	"files: {write: [~/w, ~/w/door.sock, ~/file.txt, ~/gone], read: [~/w/read], mask: [~/w/masked]}\n"
	"network: {publish: [8080], allow: [{host: a.example, ports: [443]}, {cidr: 192.0.2.0/24}]}\n"
	"ask: {desktop: true, webhook: \"https://hook.example/\"}\nstage: {auto: exec}\n",
	"atoll: 1\nextends: medium\nnetwork: {default: allow, host: true}\n",
	"atoll: 1\nextends: medium\nverify: {external: {command: [/usr/bin/judge], when: all}}\n",
};

static const char *const paths[] = {
	"/home/u/p",	     "/home/u/p/src/a.c", "/home/u/p/.env",   "/home/u/p/.git/hooks/x", "/home/u",
	"/home/u/w",	     "/home/u/w/a",	  "/home/u/w/read/a", "/home/u/w/masked",	"/home/u/w/door.sock",
	"/home/u/file.txt",  "/home/u/gone",	  "/home/u/.ssh/id",  "/home/u/.claude/x",	"/home/u/.cache/pip/x",
	"/home/u/.npm/a",    "/home/u/.bashrc",	  "/etc/passwd",      "/etc/shadow",		"/usr/bin/sudo",
	"/usr/bin/git",	     "/tmp/x",		  "/var/log/x",	      "/srv/x",			"/",
	"/proc/self/environ", "/dev/null",	  "/run/user/1000/x",
};
static const char *const hosts[] = {
	"a.example", "192.0.2.7",	"github.com",	      "pypi.org", "api.anthropic.com",
	"127.0.0.1", "169.254.169.254", "x.unlisted.example", "fuse",	  "kvm",
	"PATH",	     "ptrace",
};
static const uint16_t ports[] = { 22, 53, 80, 443, 8080 };

static enum policy_trial_place place_of(const char *path)
{
	if (strstr(path, ".sock"))
		return POLICY_TRIAL_DOOR;
	if (strstr(path, "gone"))
		return POLICY_TRIAL_NOTHING;
	return strstr(path, ".txt") ? POLICY_TRIAL_FILE : POLICY_TRIAL_DIRECTORY;
}

static enum policy_trial_place to_be_read(const char *path)
{
	return POLICY_TRIAL_FILE;
}

static void check(const struct policy *policy, const struct policy *trial, const struct action *action)
{
	enum verdict before = policy_decide(policy, action).verdict, now = policy_decide(trial, action).verdict;

	if (now > before)
		fail_msg("%s %s:%u: %s, and %s in a trial", action_kind_names[action->kind], action->subject,
			 action->port, verdict_names[before], verdict_names[now]);
	/* A verdict of allow is one for the host, but for what is private anyway. */
	if (action->kind == ACTION_FILE_WRITE && now == VERDICT_ALLOW && strncmp(action->subject, "/home", 5) == 0)
		fail_msg("%s is written straight in a trial", action->subject);
}

static void check_grid(const struct policy *policy, const struct policy *trial)
{
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		for (enum action_kind kind = ACTION_FILE_READ; kind <= ACTION_EXEC; kind++)
			check(policy, trial, &(struct action){ .kind = kind, .subject = paths[i] });
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		for (enum action_kind kind = ACTION_NET_CONNECT; kind < ACTION_KIND_COUNT; kind++)
			for (size_t port = 0; port < ARRAY_SIZE(ports); port++)
				check(policy, trial,
				      &(struct action){ .kind = kind, .subject = hosts[i], .method = "POST",
							.path = "/v1/x", .port = ports[port] });
}

static void check_places(const struct policy *trial)
{
	for (size_t i = 0; i < trial->files.count; i++)
		assert_int_not_equal(trial->files.rules[i].class, FILE_WRITE);
	for (size_t i = 0; i < trial->files.plan_count; i++)
		assert_int_not_equal(trial->files.plan[i].class, FILE_WRITE);
	assert_int_not_equal(trial->network.mode, NETWORK_HOST);
	assert_int_equal(trial->network.publish_count, 0);
	assert_int_equal(trial->device_count, 0);
	assert_int_equal(trial->audit.network, AUDIT_ALL);
	assert_int_equal(trial->audit.exec, AUDIT_ALL);
	assert_int_equal(trial->stage.snapshots, STAGE_AUTO_OFF);
	assert_false(external_is_given(&trial->external));
	assert_false(trial->ask.bell || trial->ask.prompt || trial->ask.review || trial->ask.desktop ||
		     trial->ask.webhook_answers);
	assert_null(trial->ask.webhook);
}

static void it_is_only_ever_tighter(void **state)
{
	enum policy_trial_place (*const kinds[])(const char *) = { place_of, to_be_read };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		for (size_t kind = 0; kind < ARRAY_SIZE(kinds); kind++) {
			const struct policy *policy;
			struct policy_trial_plan plan;

			fixture_reset();
			policy = fixture_text(texts[i]);
			assert_string_equal(fixture_errors(), "");
			assert_int_equal(policy_trial_make(&plan, policy, kinds[kind]), 0);
			check_grid(policy, &plan.policy);
			check_places(&plan.policy);
			policy_trial_done(&plan);
		}
	}
}

static enum file_class planned(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->files.plan_count; i++)
		if (str_equal(policy->files.plan[i].path, path))
			return policy->files.plan[i].class;
	return FILE_HIDDEN;
}

static void each_place_has_its_class(void **state)
{
	const struct action masked = { .kind = ACTION_FILE_READ, .subject = "/home/u/w/masked" };
	const struct policy *policy;
	struct policy_trial_plan plan;

	fixture_reset();
	policy = fixture_text(texts[6]);
	/* The control. */
	assert_int_equal(planned(policy, "/home/u/w"), FILE_WRITE);
	assert_int_equal(policy_trial_make(&plan, policy, place_of), 0);
	assert_int_equal(planned(&plan.policy, "/home/u/w"), FILE_STAGE);
	assert_int_equal(planned(&plan.policy, "/home/u/file.txt"), FILE_READ);
	assert_int_equal(planned(&plan.policy, "/home/u/w/read"), FILE_READ);
	assert_int_equal(policy_decide(&plan.policy, &masked).verdict, VERDICT_DENY);
	assert_true(plan.is_changed);
	policy_trial_done(&plan);
	assert_int_equal(policy_trial_make(&plan, policy, to_be_read), 0);
	assert_int_equal(planned(&plan.policy, "/home/u/w"), FILE_READ);
	policy_trial_done(&plan);
}

/* What says that nothing is lost must not say so where something is. */
static void it_knows_what_it_took_away(void **state)
{
	static const struct {
		const char *text;
		bool is_changed;
	} cases[] = {
		{ "atoll: 1\nextends: medium\n", false },
		{ "atoll: 1\nextends: medium\nfiles: {write: [~/gone]}\n", false },
		{ "atoll: 1\nextends: medium\nfiles: {write: [~/w]}\n", true },
		{ "atoll: 1\nextends: medium\nfiles: {write: [~/door.sock]}\n", true },
		{ "atoll: 1\nextends: medium\ndevices: [fuse]\n", true },
		{ "atoll: 1\nextends: medium\nnetwork: {default: allow, host: true}\n", true },
		{ "atoll: 1\nextends: medium\nverify: {external: {command: [/usr/bin/judge]}}\n", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct policy_trial_plan plan;
		const struct policy *policy;

		fixture_reset();
		policy = fixture_text(cases[i].text);
		assert_string_equal(fixture_errors(), "");
		assert_int_equal(policy_trial_make(&plan, policy, place_of), 0);
		if (plan.is_changed != cases[i].is_changed)
			fail_msg("%s", cases[i].text);
		policy_trial_done(&plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_only_ever_tighter),
		cmocka_unit_test(each_place_has_its_class),
		cmocka_unit_test(it_knows_what_it_took_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
