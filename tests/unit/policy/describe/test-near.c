/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/describe/near.h"

static const struct file_rule files[] = {
	{ .pattern = "/home/u", .class = FILE_SCRATCH, .origin = { "files.scratch[0]", "", 0 } },
	{ .pattern = "/home/u/.ssh", .class = FILE_MASK, .origin = { "files.mask[0]", "", 0 } },
	{ .pattern = "/usr", .class = FILE_READ, .origin = { "files.read[0]", "", 0 } },
};
static const uint32_t parents[] = { UINT32_MAX, 0, UINT32_MAX };

static struct policy make_policy(enum trust_level level)
{
	return (struct policy){ .level = level, .files.rules = files, .files.count = ARRAY_SIZE(files),
				.files.exact_count = ARRAY_SIZE(files), .files.parents = parents };
}

static bool may_ask(const struct policy *policy, enum action_kind kind, const char *subject)
{
	struct action action = { .kind = kind, .subject = subject, .port = 443 };
	struct decision decision = policy_decide(policy, &action);

	return policy_may_be_asked(policy, &action, &decision);
}

static void only_what_no_rule_refuses_can_be_asked_for(void **state)
{
	struct policy medium = make_policy(TRUST_MEDIUM), none = make_policy(TRUST_NONE);

	assert_true(may_ask(&medium, ACTION_FILE_READ, "/srv/data"));
	assert_true(may_ask(&medium, ACTION_FILE_WRITE, "/srv/data"));
	assert_true(may_ask(&medium, ACTION_FILE_READ, "/home/u/data"));
	assert_false(may_ask(&medium, ACTION_FILE_READ, "/home/u/.ssh/id"));
	assert_false(may_ask(&medium, ACTION_FILE_WRITE, "/usr/bin/x"));
	assert_false(may_ask(&medium, ACTION_FILE_APPLY, "/srv/data"));
	assert_false(may_ask(&medium, ACTION_FILE_READ, "srv"));
	assert_false(may_ask(&medium, ACTION_NET_CONNECT, "example.org"));
	assert_false(may_ask(&none, ACTION_FILE_READ, "/srv/data"));
	assert_false(may_ask(&none, ACTION_FILE_READ, "/home/u/data"));
	assert_true(policy_takes_grants(&medium));
	assert_false(policy_hears_requests(&none));
}

static void a_rule_that_asks_is_heard_at_every_level(void **state)
{
	static const struct path_rule asks[] = { { .pattern = "/srv/data", .origin = { "files.ask[0]", "", 0 } } };
	struct policy none = make_policy(TRUST_NONE);

	none.files.asks = asks;
	none.files.ask_count = 1;
	assert_true(may_ask(&none, ACTION_FILE_READ, "/srv/data/x"));
	assert_false(may_ask(&none, ACTION_FILE_READ, "/srv/other"));
	assert_true(policy_hears_requests(&none));
}

static void places_near_come_first(void **state)
{
	static const struct file_plan_entry plan[] = {
		{ "/home/u/.cargo/bin", FILE_READ, FILE_OPTIONAL, 0 }, { "/home/u/data/2023", FILE_READ, 0, 0 },
		{ "/home/u/data/2023/x", FILE_MASK, 0, 0 },	       { "/home/u/p", FILE_STAGE, 0, 0 },
		{ "/usr", FILE_READ, 0, 0 },
	};
	struct policy policy = { .files.plan = plan, .files.plan_count = ARRAY_SIZE(plan), .project = "/home/u/p" };
	struct action action = { .kind = ACTION_FILE_READ, .subject = "/home/u/data/2024" };
	const char *names[POLICY_NEAR_MAX];

	assert_int_equal(policy_near(&policy, &action, names), 2);
	assert_string_equal(names[0], "/home/u/data/2023");
	assert_string_equal(names[1], "/home/u/p");
	action.kind = ACTION_FILE_WRITE;
	assert_int_equal(policy_near(&policy, &action, names), 1);
	assert_string_equal(names[0], "/home/u/p");
}

static void hosts_near_are_of_the_same_domain(void **state)
{
	static const struct net_rule rules[] = {
		{ .verdict = VERDICT_ALLOW, .host = "api.example.org" },
		{ .verdict = VERDICT_DENY, .host = "x.example.org" },
		{ .verdict = VERDICT_ALLOW, .host = "*.example.org" },
		{ .verdict = VERDICT_ALLOW, .host = "other.org" },
		{ .verdict = VERDICT_ALLOW, .cidr = "10.0.0.0/8" },
	};
	struct policy policy = { .network.rules = rules, .network.count = ARRAY_SIZE(rules) };
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = "www.example.org", .port = 22 };
	const char *names[POLICY_NEAR_MAX];

	assert_int_equal(policy_near(&policy, &action, names), 2);
	assert_string_equal(names[0], "api.example.org");
	action.subject = "localhost";
	assert_int_equal(policy_near(&policy, &action, names), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_no_rule_refuses_can_be_asked_for),
		cmocka_unit_test(a_rule_that_asks_is_heard_at_every_level),
		cmocka_unit_test(places_near_come_first),
		cmocka_unit_test(hosts_near_are_of_the_same_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
