/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/address-block.h"
#include "base/cleanup.h"
#include "policy/decide.h"
#include "policy/host-port.h"

static void what_is_written_is_read(void **state)
{
	struct host_port port = { 0 };

	assert_int_equal(host_port_parse("11434", &port), 0);
	assert_int_equal(port.port, 11434);
	assert_null(port.name);
	assert_int_equal(host_port_parse("65535=ollama.local", &port), 0);
	assert_int_equal(port.port, 65535);
	assert_string_equal(port.name, "ollama.local");
}

static void everything_else_is_refused(void **state)
{
	static const struct {
		const char *text;
		int error;
	} rows[] = {
		{ "", -EINVAL }, { "0", -EINVAL }, { "65536", -EINVAL }, { "-1", -EINVAL }, { "80 ", -EINVAL },
		{ "=x", -EINVAL }, { "1:2", -EINVAL }, { "127.0.0.1:80", -EINVAL },
		{ "53", -EPERM }, { "53=x", -EPERM },
		{ "80=", -EILSEQ }, { "80=*.x", -EILSEQ }, { "80=localhost", -EILSEQ }, { "80=A", -EILSEQ },
		{ "80=a b", -EILSEQ }, { "80=a\nb", -EILSEQ }, { "80=127.0.0.1", -EILSEQ }, { "80=a=b", -EILSEQ },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct host_port port = { 0 };

		assert_int_equal(host_port_parse(rows[i].text, &port), rows[i].error);
		assert_true(*host_port_problem(rows[i].error));
	}
}

static void loopback_has_names(void **state)
{
	static const char *const own[] = { "localhost", "127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1" };
	static const char *const others[] = { "", "localhost.", "a.localhost", "128.0.0.1", "::2", "127.1" };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		assert_true(address_host_is_loopback(own[i]));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(address_host_is_loopback(others[i]));
}

static const struct host_port listed[] = { { 11434, "ollama", { "network.host_ports[0]", "p", 1 } } };
static const uint16_t model_port[] = { 11434 };

static enum verdict decide(const struct policy *policy, enum action_kind kind, const char *host, uint16_t port,
			   bool is_outward)
{
	struct action action = { .kind = kind, .subject = host, .port = port, .is_outward = is_outward,
				 .method = "GET", .path = "/api/tags" };

	return policy_decide(policy, &action).verdict;
}

/* By each of its names, that port and no other; what is not listed is the sandbox's own, and never the machine's. */
static void one_port_leads_out(void **state)
{
	static const struct policy policy = { .network.mode = NETWORK_GATE, .network.host_ports = listed,
					      .network.host_port_count = 1 };
	static const char *const names[] = { "localhost", "127.0.0.1", "::1" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(decide(&policy, ACTION_NET_CONNECT, names[i], 11434, true), VERDICT_ALLOW);
		assert_int_equal(decide(&policy, ACTION_HTTP_REQUEST, names[i], 11434, true), VERDICT_ALLOW);
		assert_int_equal(decide(&policy, ACTION_NET_CONNECT, names[i], 11435, false), VERDICT_ALLOW);
		assert_int_equal(decide(&policy, ACTION_NET_CONNECT, names[i], 11435, true), VERDICT_DENY);
		assert_int_equal(decide(&policy, ACTION_HTTP_REQUEST, names[i], 11435, true), VERDICT_DENY);
	}
	assert_int_equal(decide(&policy, ACTION_NET_LISTEN, "0.0.0.0", 11434, false), VERDICT_DENY);
	assert_int_equal(decide(&policy, ACTION_NET_LISTEN, "0.0.0.0", 11435, false), VERDICT_ALLOW);
	assert_int_equal(decide(&policy, ACTION_NET_CONNECT, "10.0.0.1", 11434, true), VERDICT_DENY);
}

/* A refusal by name or by number wins, and a list of requests is one here as everywhere. */
static void rules_narrow_it(void **state)
{
	static const char *const get[] = { "GET", NULL }, *const paths[] = { "/api/version", NULL };
	static const struct http_rule requests[] = { { get, paths, { 0 } } };
	struct net_rule by_name = { .verdict = VERDICT_DENY, .host = "localhost", .ports = model_port,
				    .port_count = 1 };
	struct net_rule by_number = { .verdict = VERDICT_DENY, .cidr = "127.0.0.0/8" };
	struct net_rule asks = { .verdict = VERDICT_ASK, .host = "localhost" };
	struct net_rule lists = { .verdict = VERDICT_ALLOW, .host = "localhost", .http = requests, .http_count = 1 };
	struct policy policy = { .network.mode = NETWORK_GATE, .network.host_ports = listed,
				 .network.host_port_count = 1, .network.default_verdict = VERDICT_ALLOW,
				 .network.count = 1 };

	policy.network.exact_count = 1;
	policy.network.rules = &by_name;
	assert_int_equal(decide(&policy, ACTION_NET_CONNECT, "127.0.0.1", 11434, true), VERDICT_DENY);
	policy.network.rules = &asks;
	assert_int_equal(decide(&policy, ACTION_NET_CONNECT, "::1", 11434, true), VERDICT_ASK);
	policy.network.rules = &lists;
	assert_int_equal(decide(&policy, ACTION_NET_CONNECT, "localhost", 11434, true), VERDICT_ALLOW);
	assert_int_equal(decide(&policy, ACTION_HTTP_REQUEST, "localhost", 11434, true), VERDICT_DENY);
	assert_true(policy_intercepts(&policy, "localhost", 11434));
	policy.network.exact_count = 0;
	policy.network.rules = &by_number;
	assert_int_equal(decide(&policy, ACTION_NET_CONNECT, "localhost", 11434, true), VERDICT_DENY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(everything_else_is_refused),
		cmocka_unit_test(loopback_has_names),
		cmocka_unit_test(one_port_leads_out),
		cmocka_unit_test(rules_narrow_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
