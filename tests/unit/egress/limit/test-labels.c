/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "egress/limit/labels.h"
#include "policy/decide.h"

static const uint8_t seed[16] = "0123456789abcdef";
static const char *const excepted[] = { "open.a.org", NULL };

/* In the order of their keys. */
static struct net_limits own;
static struct net_rule rules[] = {
	{ .verdict = VERDICT_ALLOW, .host = "*.a.org", .except = excepted, .origin = { "network.allow[0]", "", 0 } },
	{ .verdict = VERDICT_ALLOW, .host = "*.b.org", .limits = &own, .origin = { "network.allow[1]", "", 0 } },
	{ .verdict = VERDICT_DENY, .host = "*.c.org", .origin = { "network.deny[0]", "", 0 } },
	{ .verdict = VERDICT_ALLOW, .host = "exact.d.org", .origin = { "network.allow[2]", "", 0 } },
};
static struct policy policy;
static struct labels *labels;
static struct labels_hit hit;

static int begin(void **state)
{
	memset(&own, 0, sizeof own);
	memset(&hit, 0, sizeof hit);
	policy = (struct policy){ .network.rules = rules, .network.count = 4, .network.exact_count = 4 };
	labels = labels_new(seed);
	return labels ? 0 : -1;
}

static int end(void **state)
{
	labels_free(labels);
	return 0;
}

/* The bytes that are new; -1: refused. */
static int take_label(const char *host)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = host, .port = 443 };
	size_t bytes;
	int r = labels_take(labels, &policy, &action, &bytes, &hit);

	assert_true(r == 0 || r == 1);
	return r ? -1 : (int)bytes;
}

static void what_a_wildcard_stands_for_counts_once(void **state)
{
	assert_int_equal(take_label("abc.a.org"), 3);
	assert_int_equal(take_label("abc.a.org"), 0);
	assert_int_equal(take_label("x.abc.a.org"), 5);
	assert_int_equal(take_label("open.a.org"), 0);
	assert_int_equal(take_label("exact.d.org"), 0);
	assert_int_equal(take_label("a.c.org"), 0);
	assert_int_equal(take_label("nowhere.org"), 0);
}

/* 256 names of one or two letters, connected to in an order that is a text: a byte for each. */
static void the_order_of_known_names_counts(void **state)
{
	char host[32];
	int said = 0;

	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 256; i++) {
			snprintf(host, sizeof host, "%x.a.org", i);
			assert_int_equal(take_label(host), round ? 1 : i < 16 ? 1 : 2);
		}
	/* The same again says nothing; one of two is a bit. */
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(take_label(host), 0);
	assert_int_equal(take_label("a.b.org") + take_label("b.b.org"), 2);
	for (unsigned i = 0; i < 64; i++)
		said += take_label(i % 2 ? "b.b.org" : "a.b.org");
	assert_int_equal(said, 64 / 8);
	for (unsigned i = 0; i < 64; i++)
		said += take_label("b.b.org");
	assert_int_equal(said, 64 / 8);
}

static void a_rule_that_says_nothing_has_a_limit(void **state)
{
	char host[128];
	int passed = 0;

	for (int i = 0; i < 200; i++) {
		snprintf(host, sizeof host, "%060d.a.org", i);
		passed += take_label(host) == 60;
	}
	assert_int_equal(passed, NET_LABELS_DEFAULT / 60);
	assert_string_equal(hit.rule, "network.allow[0]");
	assert_int_equal(hit.amount, NET_LABELS_DEFAULT);
	assert_false(hit.is_first);
	/* What was let out once still is, and what is short enough, and other rules have their own. */
	assert_int_equal(take_label("000000000000000000000000000000000000000000000000000000000000.a.org"), 0);
	assert_int_equal(take_label("ab.a.org"), 2);
	assert_int_equal(take_label("abc.b.org"), 3);
	/* Another policy goes on where this one was. */
	rules[0].origin.id = "network.allow[7]";
	assert_int_equal(take_label("another-one-that-is-new-and-too-long-for-what-is-left.a.org"), -1);
	assert_string_equal(hit.rule, "network.allow[7]");
	rules[0].origin.id = "network.allow[0]";
	/* Where every name can be reached, this is none of the ways out. */
	policy.network.default_verdict = VERDICT_ALLOW;
	assert_int_equal(take_label("another-one-that-is-new-and-too-long-for-what-is-left.a.org"), 53);
}

static void rules_and_the_session_say_how_much(void **state)
{
	own.of[NET_LIMIT_LABELS].amount = 8;
	assert_int_equal(take_label("1234.b.org"), 4);
	assert_int_equal(take_label("12345.b.org"), -1);
	assert_true(hit.is_first);
	assert_int_equal(take_label("4321.b.org"), 4);
	assert_int_equal(take_label("z.b.org"), -1);
	own.of[NET_LIMIT_LABELS].amount = UINT64_MAX;
	/* Not remembered, so each time. */
	assert_int_equal(take_label("123456789.b.org"), 9);
	assert_int_equal(take_label("123456789.b.org"), 9);
	policy.network.limits.of[NET_LIMIT_LABELS].amount = 10;
	assert_int_equal(take_label("12345678.a.org"), 8);
	assert_int_equal(take_label("123.b.org"), -1);
	assert_null(hit.rule);
	/* Nothing of what was refused counts. */
	assert_int_equal(take_label("12.b.org"), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_a_wildcard_stands_for_counts_once, begin, end),
		cmocka_unit_test_setup_teardown(the_order_of_known_names_counts, begin, end),
		cmocka_unit_test_setup_teardown(a_rule_that_says_nothing_has_a_limit, begin, end),
		cmocka_unit_test_setup_teardown(rules_and_the_session_say_how_much, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
