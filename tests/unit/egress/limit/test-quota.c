/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "egress/limit/quota.h"

#define SECOND_NS 1000000000ULL

static struct net_limits own = { 0 };
static struct net_rule rules[] = { { .verdict = VERDICT_ALLOW, .host = "a.org", .limits = &own,
				     .origin = { "network.allow[0]", "", 1 } } };
static const uint32_t limited[] = { 0 };
static struct policy policy;
static struct quota *quota;
static struct quota_share session, both;
static char told[256];

static void note(void *context, const struct quota_hit *hit)
{
	size_t used = strlen(told);

	snprintf(told + used, sizeof told - used, "%s:%s ", hit->rule ? hit->rule : "session",
		 net_limit_names[hit->kind]);
}

static void start(void)
{
	quota_free(quota);
	assert_int_equal(quota_new(&quota, &policy, 0, note, NULL), 0);
	session = (struct quota_share){ quota, 0 };
	both = (struct quota_share){ quota, 1 };
	told[0] = 0;
}

static int begin(void **state)
{
	memset(&own, 0, sizeof own);
	policy = (struct policy){ .network.rules = rules, .network.count = 1, .network.limited = limited,
				  .network.limited_count = 1 };
	return 0;
}

static int end(void **state)
{
	quota_free(quota);
	quota = NULL;
	return 0;
}

static void limit(struct net_limits *limits, enum net_limit kind, uint64_t amount, uint64_t period_ms)
{
	limits->of[kind] = (struct net_amount){ amount, period_ms };
}

static int connect_at(const struct quota_share *share, const char *host, uint64_t now_ns)
{
	struct quota_hit hit;

	return quota_connect(share, host, now_ns, &hit) == 0 ? -1 : (int)hit.kind;
}

static void without_limits_all_of_it(void **state)
{
	start();
	assert_int_equal(quota_ask(&both, QUOTA_OUT, 1 << 20, 5), 1 << 20);
	quota_use(&both, QUOTA_OUT, 1 << 20);
	assert_false(quota_is_used_up(&both, QUOTA_OUT, 5));
	for (int i = 0; i < 10000; i++)
		assert_int_equal(connect_at(&both, "x", 5), -1);
	assert_string_equal(told, "");
}

/* Asked at odd moments, it gives the rate and one burst more at the most. */
static void the_rate_holds_however_it_is_asked(void **state)
{
	uint64_t moved = 0;

	limit(&policy.network.limits, NET_LIMIT_RATE, 1000000, 1000);
	start();
	for (uint64_t now = 0; now < 10 * SECOND_NS; now += SECOND_NS / 777) {
		enum quota_way way = now % 2 ? QUOTA_IN : QUOTA_OUT;
		size_t part = quota_ask(&session, way, 100000, now);

		quota_use(&session, way, part);
		moved += part;
	}
	assert_in_range(moved, 9900000, 10200000);
	/* Held back twice within a minute: one episode. */
	for (int i = 0; i < 2; i++) {
		quota_use(&session, QUOTA_IN, quota_ask(&session, QUOTA_IN, 1 << 30, 11 * SECOND_NS));
		assert_int_equal(quota_ask(&session, QUOTA_IN, 1, 11 * SECOND_NS), 0);
	}
	assert_string_equal(told, "session:rate ");
	/* What was not used for an hour is not saved up. */
	assert_in_range(quota_ask(&session, QUOTA_IN, 1 << 30, 3600 * SECOND_NS), 1, 200000);
}

static void slow_rates_move_too(void **state)
{
	uint64_t moved = 0;

	limit(&policy.network.limits, NET_LIMIT_RATE, 60, 60000);
	start();
	for (uint64_t now = 0; now < 100 * SECOND_NS; now += SECOND_NS / 50) {
		size_t part = quota_ask(&session, QUOTA_IN, 4096, now);

		quota_use(&session, QUOTA_IN, part);
		moved += part;
	}
	assert_in_range(moved, 98, 102);
	assert_string_equal(told, "session:rate ");
}

static void totals_are_exact(void **state)
{
	limit(&policy.network.limits, NET_LIMIT_TOTAL, 1000, 0);
	limit(&policy.network.limits, NET_LIMIT_OUT, 300, 0);
	start();
	assert_int_equal(quota_ask(&session, QUOTA_OUT, 600, 0), 300);
	quota_use(&session, QUOTA_OUT, 300);
	assert_true(quota_is_used_up(&session, QUOTA_OUT, 0));
	assert_false(quota_is_used_up(&session, QUOTA_IN, 0));
	assert_int_equal(quota_ask(&session, QUOTA_IN, 1 << 20, 0), 700);
	assert_int_equal(connect_at(&session, "x", 0), NET_LIMIT_OUT);
	quota_use(&session, QUOTA_IN, 700);
	assert_true(quota_is_used_up(&session, QUOTA_IN, SECOND_NS));
	assert_true(quota_is_used_up(&session, QUOTA_IN, 1000 * SECOND_NS));
	assert_string_equal(told, "session:out session:total ");
}

static void a_rule_counts_for_itself(void **state)
{
	limit(&own, NET_LIMIT_IN, 100, 0);
	limit(&policy.network.limits, NET_LIMIT_TOTAL, 1000, 0);
	start();
	assert_int_equal(quota_ask(&both, QUOTA_IN, 600, 0), 100);
	quota_use(&both, QUOTA_IN, 100);
	assert_true(quota_is_used_up(&both, QUOTA_IN, 0));
	assert_false(quota_is_used_up(&session, QUOTA_IN, 0));
	assert_int_equal(quota_ask(&session, QUOTA_IN, 5000, 0), 900);
	assert_string_equal(told, "network.allow[0]:in ");
}

static void connections_and_hosts_are_counted(void **state)
{
	limit(&policy.network.limits, NET_LIMIT_CONNECTIONS, 2, 0);
	limit(&policy.network.limits, NET_LIMIT_HOSTS, 3, 0);
	start();
	assert_int_equal(connect_at(&session, "c", 0), -1);
	assert_int_equal(connect_at(&session, "a", 0), -1);
	assert_int_equal(connect_at(&session, "b", 0), NET_LIMIT_CONNECTIONS);
	quota_disconnect(&session);
	assert_int_equal(connect_at(&session, "b", 0), -1);
	quota_disconnect(&session);
	/* What was refused is no host; those that were reached stay reachable. */
	assert_int_equal(connect_at(&session, "d", 0), NET_LIMIT_HOSTS);
	assert_int_equal(connect_at(&session, "a", 0), -1);
	assert_string_equal(told, "session:connections session:hosts ");
	assert_int_equal(connect_at(&session, "a", 30 * SECOND_NS), NET_LIMIT_CONNECTIONS);
	assert_string_equal(told, "session:connections session:hosts ");
	assert_int_equal(connect_at(&session, "a", 300 * SECOND_NS), NET_LIMIT_CONNECTIONS);
	assert_string_equal(told, "session:connections session:hosts session:connections ");
}

static void new_connections_and_requests_have_a_pace(void **state)
{
	struct quota_hit hit;
	uint64_t wait_ms;
	int made = 0;

	limit(&policy.network.limits, NET_LIMIT_NEW_CONNECTIONS, 60, 60000);
	limit(&own, NET_LIMIT_REQUESTS, 6, 60000);
	start();
	for (uint64_t now = 0; now < 120 * SECOND_NS; now += SECOND_NS / 4)
		made += connect_at(&session, "x", now) == -1;
	assert_in_range(made, 178, 181); /* a period's worth at once, and then as it comes */
	for (int i = 0; i < 6; i++)
		assert_int_equal(quota_request(&both, SECOND_NS, &hit, &wait_ms), 0);
	assert_int_equal(quota_request(&both, SECOND_NS, &hit, &wait_ms), 1);
	assert_string_equal(hit.rule, "network.allow[0]");
	assert_in_range(wait_ms, 9900, 10001);
	assert_int_equal(quota_request(&session, SECOND_NS, &hit, &wait_ms), 0);
	assert_int_equal(quota_request(&both, SECOND_NS + wait_ms * 1000000, &hit, &wait_ms), 0);
}

/* Another policy: what was used stays used, where it is still about the same. */
static void a_change_forgets_nothing(void **state)
{
	struct net_limits more = { 0 };
	struct net_rule changed[] = { { .verdict = VERDICT_ALLOW, .host = "b.org", .limits = &more,
					.origin = { "network.allow[0]", "", 1 } },
				      { .verdict = VERDICT_ALLOW, .host = "a.org", .limits = &more,
					.origin = { "network.allow[1]", "", 2 } } };
	struct policy next = { .network.rules = changed, .network.count = 2, .network.limited = (uint32_t[]){ 0, 1 },
			       .network.limited_count = 2 };

	limit(&policy.network.limits, NET_LIMIT_TOTAL, 1000, 0);
	limit(&policy.network.limits, NET_LIMIT_HOSTS, 1, 0);
	limit(&policy.network.limits, NET_LIMIT_CONNECTIONS, 1, 0);
	limit(&own, NET_LIMIT_OUT, 100, 0);
	start();
	assert_int_equal(connect_at(&both, "a.org", 0), -1);
	quota_use(&both, QUOTA_OUT, 80);
	next.network.limits = policy.network.limits;
	limit(&next.network.limits, NET_LIMIT_TOTAL, 500, 0);
	limit(&more, NET_LIMIT_OUT, 90, 0);
	assert_int_equal(quota_change(quota, &next, SECOND_NS), 0);
	assert_int_equal(quota_ask(&session, QUOTA_IN, 5000, SECOND_NS), 420);
	assert_int_equal(quota_ask(&(struct quota_share){ quota, 1 << 1 }, QUOTA_OUT, 500, SECOND_NS), 10);
	assert_int_equal(quota_ask(&(struct quota_share){ quota, 1 << 0 }, QUOTA_OUT, 500, SECOND_NS), 90);
	assert_int_equal(connect_at(&session, "b.org", SECOND_NS), NET_LIMIT_HOSTS);
	quota_hold(&(struct quota_share){ quota, 1 << 1 });
	assert_int_equal(connect_at(&session, "a.org", SECOND_NS), NET_LIMIT_CONNECTIONS);
	/* Back again: no second life for what is used up. */
	assert_int_equal(quota_change(quota, &policy, SECOND_NS), 0);
	assert_int_equal(quota_ask(&both, QUOTA_OUT, 500, SECOND_NS), 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_limits_all_of_it, begin, end),
		cmocka_unit_test_setup_teardown(the_rate_holds_however_it_is_asked, begin, end),
		cmocka_unit_test_setup_teardown(slow_rates_move_too, begin, end),
		cmocka_unit_test_setup_teardown(totals_are_exact, begin, end),
		cmocka_unit_test_setup_teardown(a_rule_counts_for_itself, begin, end),
		cmocka_unit_test_setup_teardown(connections_and_hosts_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(new_connections_and_requests_have_a_pace, begin, end),
		cmocka_unit_test_setup_teardown(a_change_forgets_nothing, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
