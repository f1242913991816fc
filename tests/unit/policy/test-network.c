/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "policy/decide-net.h"
#include "policy/order.h"

static const uint16_t https[] = { 443 };
static const char *const post[] = { "POST", NULL }, *const v1[] = { "/v1/**", NULL };
static const struct http_rule http[] = { { post, v1, { "http", "p.yaml", 1 } } };
static const char *const except[] = { "bad.example.org", NULL };
/* Sorted by net_host_compare(): "*.example.org" by ".example.org". */
static const struct net_rule rules[] = {
	{ .verdict = VERDICT_DENY,
	  .host = "*.evil.example.org",
	  .origin = { "network.deny[0]", "p.yaml", 2 } },
	{ .verdict = VERDICT_ALLOW,
	  .host = "*.example.org",
	  .except = except,
	  .origin = { "network.allow[0]", "p.yaml", 1 } },
	{ .verdict = VERDICT_ALLOW,
	  .host = "allowed.com",
	  .ports = https,
	  .port_count = 1,
	  .origin = { "network.allow[1]", "p.yaml", 3 } },
	{ .verdict = VERDICT_ALLOW,
	  .host = "api.com",
	  .ports = https,
	  .port_count = 1,
	  .http = http,
	  .http_count = 1,
	  .origin = { "network.allow[2]", "p.yaml", 4 } },
	{ .verdict = VERDICT_ASK, .host = "ask.com", .origin = { "network.ask[0]", "p.yaml", 5 } },
	{ .verdict = VERDICT_ALLOW, .cidr = "10.1.0.0/16", .origin = { "network.allow[3]", "p.yaml", 6 } },
	{ .verdict = VERDICT_DENY, .cidr = "169.254.0.0/16", .origin = { "network.deny[1]", "p.yaml", 7 } },
	{ .verdict = VERDICT_ALLOW, .cidr = "64:ff9b::/96", .origin = { "network.allow[4]", "p.yaml", 8 } },
};
static const struct policy policy = {
	.network.rules = rules,
	.network.count = ARRAY_SIZE(rules),
	.network.exact_count = 5,
	.network.mode = NETWORK_GATE,
};

static enum verdict connect_to(const char *host, uint16_t port)
{
	return policy_decide(&policy,
			     &(struct action){ .kind = ACTION_NET_CONNECT, .subject = host, .port = port })
		.verdict;
}

static void a_refusal_says_when_only_the_port_is_wrong(void **state)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = "allowed.com", .port = 80 };

	assert_non_null(strstr(policy_decide(&policy, &action).hint, "add the port"));
	action.subject = "denied.com";
	assert_non_null(strstr(policy_decide(&policy, &action).hint, "list the host"));
	/* That another name below is listed is nothing that its neighbour is told. */
	action.subject = "bad.example.org";
	assert_null(strstr(policy_decide(&policy, &action).hint, "add the port"));
}

static void hosts(void **state)
{
	static const struct {
		const char *host;
		uint16_t port;
		enum verdict verdict;
	} rows[] = {
		{ "allowed.com", 443, VERDICT_ALLOW },
		{ "ALLOWED.com", 443, VERDICT_ALLOW },
		{ "allowed.com", 80, VERDICT_DENY },
		{ "evilallowed.com", 443, VERDICT_DENY },
		{ "allowed.com.evil.com", 443, VERDICT_DENY },
		{ "allowed.com.", 443, VERDICT_DENY },
		{ "user@allowed.com", 443, VERDICT_DENY },
		{ "allowed.com%00", 443, VERDICT_DENY },
		{ "a.example.org", 22, VERDICT_ALLOW },
		{ "a.b.example.org", 22, VERDICT_ALLOW },
		{ "example.org", 22, VERDICT_DENY },
		{ "xexample.org", 22, VERDICT_DENY },
		{ "bad.example.org", 22, VERDICT_DENY },
		{ "x.evil.example.org", 22, VERDICT_DENY },
		{ "ask.com", 1, VERDICT_ASK },
		{ "10.1.2.3", 1, VERDICT_ALLOW },
		{ "::ffff:10.1.2.3", 1, VERDICT_ALLOW },
		{ "10.2.2.3", 1, VERDICT_DENY },
		{ "0x0a.1.2.3", 1, VERDICT_DENY },
		{ "167838211", 1, VERDICT_DENY },
		{ "012.1.2.3", 1, VERDICT_DENY },
		{ "169.254.169.254", 80, VERDICT_DENY },
		{ "::ffff:169.254.169.254", 80, VERDICT_DENY },
		/* NAT64: the allowed prefix must not lead to a denied address. */
		{ "64:ff9b::1.2.3.4", 80, VERDICT_ALLOW },
		{ "64:ff9b::169.254.169.254", 80, VERDICT_DENY },
		{ "2002:a9fe:a9fe::", 80, VERDICT_DENY },
		{ "127.0.0.1", 80, VERDICT_ALLOW },
		{ "localhost", 80, VERDICT_ALLOW },
		{ "other.com", 443, VERDICT_DENY },
		{ "", 443, VERDICT_DENY },
		{ "a..com", 443, VERDICT_DENY },
		{ "-a.com", 443, VERDICT_DENY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (connect_to(rows[i].host, rows[i].port) != rows[i].verdict)
			fail_msg("%s:%u is %s", rows[i].host, rows[i].port,
				 verdict_names[connect_to(rows[i].host, rows[i].port)]);
}

static void names_are_not_resolved_before_they_are_allowed(void **state)
{
	struct action dns = { .kind = ACTION_NET_DNS, .subject = "secret.evil.com" };

	assert_int_equal(policy_decide(&policy, &dns).verdict, VERDICT_DENY);
	dns.subject = "allowed.com";
	assert_int_equal(policy_decide(&policy, &dns).verdict, VERDICT_ALLOW);
}

static bool is_private(const char *address)
{
	static const char *const private[] = { "10.", "100.64.", "172.16.", "172.31.", "192.168.", "fc00:" };

	for (size_t i = 0; i < ARRAY_SIZE(private); i++)
		if (str_has_prefix(address, private[i]))
			return true;
	return false;
}

/* N7: what a name may be resolved to, and what is open by default. */
static void addresses_that_are_not_public(void **state)
{
	static const struct {
		const char *address;
		bool is_public;
	} rows[] = {
		{ "1.1.1.1", true },           { "192.0.1.1", true },         { "172.32.0.1", true },
		{ "100.128.0.1", true },       { "2606:4700::1111", true },   { "3ffe::1", true },
		{ "0.0.0.0", false },          { "10.255.0.1", false },       { "100.64.0.1", false },
		{ "100.100.100.200", false },  { "127.0.0.1", false },        { "169.254.169.254", false },
		{ "172.16.0.1", false },       { "172.31.255.255", false },   { "192.0.0.192", false },
		{ "192.168.1.1", false },      { "198.18.0.1", false },       { "198.19.255.255", false },
		{ "203.0.113.7", false },      { "224.0.0.1", false },        { "255.255.255.255", false },
		{ "168.63.129.16", false },    { "::", false },               { "::1", false },
		{ "::ffff:127.0.0.1", false }, { "::ffff:1.1.1.1", true },    { "::127.0.0.1", false },
		{ "64:ff9b::1.1.1.1", false }, { "64:ff9b:1::1", false },     { "fe80::1", false },
		{ "fd00:ec2::254", false },    { "fc00::1", false },          { "ff02::1", false },
		{ "2001::1", false },          { "2001:db8::1", false },      { "2002:7f00:1::", false },
		{ "2001:4860:4860::8888", true },
	};
	static const struct policy open_policy = { .network = { .mode = NETWORK_GATE,
								.default_verdict = VERDICT_ALLOW } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct action action = { .kind = ACTION_NET_CONNECT, .subject = rows[i].address, .port = 80 };
		enum verdict verdict = rows[i].is_public ? VERDICT_ALLOW : VERDICT_DENY;
		uint8_t bytes[16] = { [10] = 0xff, 0xff };

		if (inet_pton(AF_INET, rows[i].address, bytes + 12) != 1)
			assert_int_equal(inet_pton(AF_INET6, rows[i].address, bytes), 1);
		/* Of these a person can tell what they are. */
		if (is_private(rows[i].address))
			verdict = VERDICT_ASK;
		if (policy_decide_resolved(&open_policy, bytes, 80, false).verdict != verdict)
			fail_msg("%s resolved", rows[i].address);
		/* The sandbox's own loopback stays its own. */
		if (bytes[12] != 127 && !IN6_IS_ADDR_LOOPBACK((struct in6_addr *)bytes) &&
		    policy_decide(&open_policy, &action).verdict != verdict)
			fail_msg("%s", rows[i].address);
	}
}

static void cidr_rules_name_addresses_that_names_lead_to(void **state)
{
	static const uint8_t listed[16] = { [10] = 0xff, 0xff, 10, 1, 2, 3 };
	static const uint8_t beside[16] = { [10] = 0xff, 0xff, 10, 2, 2, 3 };
	static const uint8_t metadata[16] = { [10] = 0xff, 0xff, 169, 254, 169, 254 };
	static const uint8_t nat64[16] = { 0, 0x64, 0xff, 0x9b, [12] = 169, 254, 169, 254 };

	assert_int_equal(policy_decide_resolved(&policy, listed, 443, false).verdict, VERDICT_ALLOW);
	assert_int_equal(policy_decide_resolved(&policy, beside, 443, false).verdict, VERDICT_DENY);
	assert_string_equal(policy_decide_resolved(&policy, metadata, 443, false).rule.id, "network.deny[1]");
	assert_string_equal(policy_decide_resolved(&policy, nat64, 443, false).rule.id, "network.deny[1]");
}

/* A rule that denies one port of a host does not take its name away. */
static void names_with_a_denied_port(void **state)
{
	static const uint16_t ssh[] = { 22 };
	static const struct net_rule two[] = {
		{ .verdict = VERDICT_ALLOW, .host = "a.com", .origin = { "network.allow[0]", "p.yaml", 1 } },
		{ .verdict = VERDICT_DENY, .host = "a.com", .ports = ssh, .port_count = 1,
		  .origin = { "network.deny[0]", "p.yaml", 2 } },
		{ .verdict = VERDICT_DENY, .host = "b.com", .origin = { "network.deny[1]", "p.yaml", 3 } },
	};
	static const struct policy with = {
		.network.rules = two, .network.count = 3, .network.exact_count = 3, .network.mode = NETWORK_GATE,
		.network.default_verdict = VERDICT_ALLOW,
	};
	struct action action = { .kind = ACTION_NET_DNS, .subject = "a.com" };

	assert_int_equal(policy_decide(&with, &action).verdict, VERDICT_ALLOW);
	action.subject = "b.com";
	assert_int_equal(policy_decide(&with, &action).verdict, VERDICT_DENY);
	action = (struct action){ .kind = ACTION_NET_CONNECT, .subject = "a.com", .port = 22 };
	assert_int_equal(policy_decide(&with, &action).verdict, VERDICT_DENY);
	action.port = 443;
	assert_int_equal(policy_decide(&with, &action).verdict, VERDICT_ALLOW);
}

static void requests(void **state)
{
	struct action request = { .kind = ACTION_HTTP_REQUEST,
				  .subject = "api.com",
				  .port = 443,
				  .method = "POST",
				  .path = "/v1/messages" };

	assert_int_equal(policy_decide(&policy, &request).verdict, VERDICT_ALLOW);
	request.method = "GET";
	assert_int_equal(policy_decide(&policy, &request).verdict, VERDICT_DENY);
	request.method = "POST";
	request.path = "/v2/x";
	assert_int_equal(policy_decide(&policy, &request).verdict, VERDICT_DENY);
	request.path = NULL;
	assert_int_equal(policy_decide(&policy, &request).verdict, VERDICT_DENY);
}

/* What answers some requests only leaves the connection to the rules about the host; what answers all, does not. */
static void simulated_hosts(void **state)
{
	static const struct action get = { .kind = ACTION_HTTP_REQUEST, .subject = "single.com", .port = 443,
					   .method = "GET", .path = "/v1/x" };
	static const struct net_answer whole_answer = { .status = 200 }, part_answer = { .status = 404 };
	static const struct net_rule two[] = {
		{ .verdict = VERDICT_ALLOW, .host = "part.com", .origin = { "network.allow[0]", "p.yaml", 1 } },
		{ .verdict = VERDICT_SIMULATE, .host = "part.com", .http = http, .http_count = 1,
		  .answer = &part_answer, .origin = { "network.simulate[0]", "p.yaml", 2 } },
		{ .verdict = VERDICT_SIMULATE, .host = "single.com", .ports = https, .port_count = 1, .http = http,
		  .http_count = 1, .answer = &part_answer, .origin = { "network.simulate[1]", "p.yaml", 3 } },
		{ .verdict = VERDICT_SIMULATE, .host = "whole.com", .answer = &whole_answer,
		  .origin = { "network.simulate[2]", "p.yaml", 4 } },
	};
	struct policy with = { .network.rules = two, .network.count = 4, .network.exact_count = 4,
			       .network.mode = NETWORK_GATE };
	static const struct {
		const char *host;
		enum action_kind kind;
		enum verdict verdict, verdict_when_open;
	} rows[] = {
		{ "part.com", ACTION_NET_DNS, VERDICT_ALLOW, VERDICT_ALLOW },
		{ "part.com", ACTION_NET_CONNECT, VERDICT_ALLOW, VERDICT_ALLOW },
		{ "part.com", ACTION_HTTP_REQUEST, VERDICT_SIMULATE, VERDICT_SIMULATE },
		{ "single.com", ACTION_NET_DNS, VERDICT_SIMULATE, VERDICT_ALLOW },
		{ "single.com", ACTION_NET_CONNECT, VERDICT_SIMULATE, VERDICT_ALLOW },
		{ "single.com", ACTION_HTTP_REQUEST, VERDICT_SIMULATE, VERDICT_SIMULATE },
		{ "whole.com", ACTION_NET_DNS, VERDICT_SIMULATE, VERDICT_SIMULATE },
		{ "whole.com", ACTION_NET_CONNECT, VERDICT_SIMULATE, VERDICT_SIMULATE },
		{ "whole.com", ACTION_HTTP_REQUEST, VERDICT_SIMULATE, VERDICT_SIMULATE },
		{ "other.com", ACTION_NET_CONNECT, VERDICT_DENY, VERDICT_ALLOW },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct action action = { .kind = rows[i].kind, .subject = rows[i].host, .port = 443, .method = "POST",
					 .path = "/v1/x" };
		struct decision decision;

		with.network.default_verdict = VERDICT_DENY;
		decision = policy_decide(&with, &action);
		assert_int_equal(decision.verdict, rows[i].verdict);
		assert_int_equal(decision.answer != NULL,
				 rows[i].kind == ACTION_HTTP_REQUEST && rows[i].verdict == VERDICT_SIMULATE);
		with.network.default_verdict = VERDICT_ALLOW;
		assert_int_equal(policy_decide(&with, &action).verdict, rows[i].verdict_when_open);
	}
	with.network.default_verdict = VERDICT_DENY;
	assert_int_equal(policy_decide(&with, &get).verdict, VERDICT_DENY);
}

static int compare_rules(const void *a, const void *b)
{
	return net_host_compare(((const struct net_rule *)a)->host, ((const struct net_rule *)b)->host);
}

/*
 * A host of which some requests are listed gets no others, however open the network is: by name, below a name, by
 * address, and on other ports than those that the rule names.
 */
static void listed_requests_where_the_network_is_open(void **state)
{
	static const char *const admin[] = { "/admin/**", NULL }, *const itself[] = { "other.api.com", NULL };
	static const struct http_rule denied = { .paths = admin };
	static const struct net_rule listed[] = {
		{ .verdict = VERDICT_ALLOW, .host = "*.wild.com", .http = http, .http_count = 1,
		  .origin = { "network.allow[0]" } },
		{ .verdict = VERDICT_ALLOW, .host = "api.com", .ports = https, .port_count = 1, .http = http,
		  .http_count = 1, .origin = { "network.allow[1]" } },
		{ .verdict = VERDICT_DENY, .host = "forge.com", .http = &denied, .http_count = 1,
		  .origin = { "network.deny[0]" } },
		{ .verdict = VERDICT_ALLOW, .host = "key.com", .ports = https, .port_count = 1,
		  .inject = { .kind = INJECT_RAW, .name = "x", .secret = "s" }, .origin = { "network.allow[2]" } },
		{ .verdict = VERDICT_ALLOW, .host = "other.api.com", .http = http, .http_count = 1,
		  .except = itself, .origin = { "network.allow[3]" } },
		{ .verdict = VERDICT_ALLOW, .cidr = "8.8.8.0/24", .ports = https, .port_count = 1, .http = http,
		  .http_count = 1, .origin = { "network.allow[4]" } },
	};
	enum { D = VERDICT_DENY, K = VERDICT_ASK, A = VERDICT_ALLOW };
	static const struct {
		const char *host;
		uint16_t port;
		/* A connection; a request that is listed; another. Of each: where others are denied, asked, allowed. */
		int connection[3], listed[3], other[3];
	} rows[] = {
		{ "api.com", 443, { A, A, A }, { A, A, A }, { D, K, D } },
		{ "api.com", 80, { D, K, D }, { D, K, D }, { D, K, D } },
		{ "x.wild.com", 8080, { A, A, A }, { A, A, A }, { D, K, D } },
		{ "8.8.8.8", 443, { A, A, A }, { A, A, A }, { D, K, D } },
		{ "8.8.8.8", 80, { D, K, D }, { D, K, D }, { D, K, D } },
		{ "forge.com", 443, { D, K, A }, { D, K, A }, { D, K, A } },
		{ "key.com", 443, { A, A, A }, { A, A, A }, { A, A, A } },
		{ "key.com", 80, { D, K, A }, { D, K, A }, { D, K, A } },
		{ "other.api.com", 443, { D, K, A }, { D, K, A }, { D, K, A } },
		{ "unlisted.com", 443, { D, K, A }, { D, K, A }, { D, K, A } },
	};
	struct net_rule sorted[ARRAY_SIZE(listed)];
	struct policy with = { .network.rules = sorted, .network.count = ARRAY_SIZE(listed), .network.exact_count = 5,
			       .network.mode = NETWORK_GATE };

	memcpy(sorted, listed, sizeof sorted);
	qsort(sorted, with.network.exact_count, sizeof *sorted, compare_rules);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		for (int otherwise = 0; otherwise < 3; otherwise++) {
			static const enum verdict otherwises[] = { VERDICT_DENY, VERDICT_ASK, VERDICT_ALLOW };
			struct action action = { .kind = ACTION_NET_CONNECT, .subject = rows[i].host,
						 .port = rows[i].port, .method = "POST", .path = "/v1/messages" };

			with.network.default_verdict = otherwises[otherwise];
			assert_int_equal(policy_decide(&with, &action).verdict, rows[i].connection[otherwise]);
			action.kind = ACTION_HTTP_REQUEST;
			assert_int_equal(policy_decide(&with, &action).verdict, rows[i].listed[otherwise]);
			action.path = "/v2";
			assert_int_equal(policy_decide(&with, &action).verdict, rows[i].other[otherwise]);
		}
}

/* Of a name that leads there. */
static void listed_requests_of_an_address(void **state)
{
	static const struct net_rule rule = { .verdict = VERDICT_ALLOW, .cidr = "8.8.8.0/24", .ports = https,
					      .port_count = 1, .http = http, .http_count = 1,
					      .origin = { "network.allow[0]" } };
	static const uint8_t inside[16] = { [10] = 0xff, 0xff, 8, 8, 8, 8 };
	static const uint8_t outside[16] = { [10] = 0xff, 0xff, 8, 8, 4, 4 };
	static const struct policy with = { .network.rules = &rule, .network.count = 1, .network.mode = NETWORK_GATE,
					    .network.default_verdict = VERDICT_ALLOW };

	assert_int_equal(policy_decide_resolved(&with, inside, 443, false).verdict, VERDICT_DENY);
	assert_int_equal(policy_decide_resolved(&with, inside, 80, false).verdict, VERDICT_DENY);
	assert_int_equal(policy_decide_resolved(&with, outside, 80, false).verdict, VERDICT_ALLOW);
}

static void no_rules_are_no_network(void **state)
{
	static const struct policy empty = { .network.mode = NETWORK_NONE };
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = "example.org", .port = 443 };
	struct decision decision = policy_decide(&empty, &action);

	assert_int_equal(decision.verdict, VERDICT_DENY);
	assert_string_equal(decision.rule.id, "network.default");
}

static void texts_of_rules(void **state)
{
	assert_true(net_host_is_valid("*.example.org"));
	assert_true(net_host_is_valid("xn--bcher-kva.example"));
	assert_false(net_host_is_valid("*"));
	assert_false(net_host_is_valid("a.*.org"));
	assert_false(net_host_is_valid("Example.org"));
	assert_false(net_host_is_valid("1.2.3.4"));
	assert_true(net_cidr_is_valid("10.0.0.0/8"));
	assert_true(net_cidr_is_valid("fd00::/8"));
	assert_true(net_cidr_is_valid("0.0.0.0/0"));
	assert_false(net_cidr_is_valid("10.0.0.1/8"));
	assert_false(net_cidr_is_valid("10.0.0.0/33"));
	assert_false(net_cidr_is_valid("10.0.0.0"));
	assert_false(net_cidr_is_valid("x/8"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts),
		cmocka_unit_test(a_refusal_says_when_only_the_port_is_wrong),
		cmocka_unit_test(names_are_not_resolved_before_they_are_allowed),
		cmocka_unit_test(addresses_that_are_not_public),
		cmocka_unit_test(cidr_rules_name_addresses_that_names_lead_to),
		cmocka_unit_test(names_with_a_denied_port),
		cmocka_unit_test(requests),
		cmocka_unit_test(simulated_hosts),
		cmocka_unit_test(listed_requests_where_the_network_is_open),
		cmocka_unit_test(listed_requests_of_an_address),
		cmocka_unit_test(no_rules_are_no_network),
		cmocka_unit_test(texts_of_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
