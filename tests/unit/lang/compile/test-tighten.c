/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "fixture.h"

static const char base[] = "atoll: 1\nextends: medium\n"
			   "files: {read: [{path: /data, except: [/data/secret]}], ask: [~/asked]}\n"
			   "network: {allow: [{host: a.org, ports: [443]}, b.org, {host: listed.org, ports: [443], "
			   "http: [{methods: [GET], paths: [\"/v1/**\"]}]}, "
			   "{cidr: 192.0.2.0/24, http: [{paths: [/x]}]}, "
			   "{host: all.org, ports: [443], http: [{paths: [\"/**\"]}]}], deny: [{host: a.org, http: "
			   "[{paths: [/admin]}]}], limits: "
			   "{rate: 1MiB/s, out: 1MiB, cooldown: {denials: 20, within: 10s, pause: 1m}}}\n"
			   "exec: {default: ask, allow: [/usr/bin/git]}\n"
			   "time: {rate: {exec: 60/min}, cooldown: {denials: 5, within: 1s, pause: 2s}}\n"
			   "data: {secrets: mask}\naudit: {files: writes}\nstage: {auto: exec}\n"
			   "ask: {bell: false, review: false}\n"
			   "verify: {high: {likely: ask, certain: deny}, critical: ask}\n"
			   "trust: {agent: me, ceiling: medium, start: low, on_fall: ask, half_life: 12h, "
			   "probation: {sessions: 5, at: low}}\n";

static const struct policy *tighten(const char *text)
{
	static char whole[4096];

	snprintf(whole, sizeof whole, "atoll: 1\n%s\n", text);
	fixture_reset();
	fixture_file("/t.yaml", base);
	fixture_file("/home/u/p/.atoll.yaml", whole);
	fixture_request.policy = "/t.yaml";
	return fixture_compile();
}

static void every_widening_line_is_refused(void **state)
{
	static const char *const rows[] = {
		"files: {read: [/]}",
		"files: {read: [/root]}",
		"files: {write: [/usr]}",
		"files: {write: [~/.bashrc]}",
		"files: {read: [~]}",
		"files: {read: [/data/secret]}",
		"files: {scratch: [/nowhere]}",
		"files: {write: [.env]}",
		"files: {write: [.git/hooks]}",
		"files: {write: [\"**/x\"]}",
		"files: {ask: [/etc/shadow]}",
		"files: {ask: [\"**/x\"]}",
		"network: {default: allow}",
		"network: {default: allow, host: true}",
		"network: {allow: [evil.com]}",
		"network: {allow: [a.org]}",
		"network: {allow: [{host: a.org, ports: [80]}]}",
		"network: {ask: [evil.com]}",
		"network: {allow: [{cidr: 10.0.0.0/8}]}",
		"network: {allow: [{host: listed.org, ports: [443]}]}",
		"network: {ask: [{host: listed.org, ports: [443]}]}",
		"network: {allow: [{host: listed.org, ports: [443], http: [{paths: [\"/**\"]}]}]}",
		"network: {allow: [{cidr: 192.0.2.0/24}]}",
		"network: {allow: [{host: b.org, ports: [443], inject: {header: x, secret: y}}]}",
		"data: {canaries: [x]}",
		"network: {simulate: [{host: b.org, answer: {body: x}}]}",
		"network: {limits: {rate: 2MiB/s}}",
		"network: {limits: {out: 2MiB}}",
		"network: {limits: {cooldown: {denials: 21, within: 10s, pause: 1m}}}",
		"network: {limits: {cooldown: {denials: 20, within: 9s, pause: 1m}}}",
		"network: {limits: {cooldown: {denials: 20, within: 10s, pause: 59s}}}",
		"exec: {default: allow}",
		"exec: {allow: [/usr/bin/make]}",
		"time: {rate: {exec: 2/s}}",
		"time: {cooldown: {denials: 6, within: 1s, pause: 2s}}",
		"network: {publish: [8080]}",
		"agent: {command: [sh]}",
		"agent: {state: [~/.x/]}",
		"agent: {settings: [{path: /etc/x, content: y}]}",
		"exec: {namespaces: true}",
		"exec: {allow: [\"**/x\"]}",
		"exec: {allow: [/usr/bin/sudo]}",
		"resources: {memory: 1TiB}",
		"resources: {memory: unlimited}",
		"time: {wall: 48h}",
		"env: {pass: [AWS_SECRET_ACCESS_KEY]}",
		"env: {pass: [\"L*\"]}",
		"env: {set: {LD_PRELOAD: /x.so}}",
		"devices: [kvm]",
		"data: {secrets: flag}",
		"audit: {files: off}",
		"stage: {auto: off}",
		"verify: {critical: note}",
		"verify: {high: ask}",
		"verify: {unknown: off}",
		"ask: {timeout: 61s}",
		"ask: {bell: true}",
		"ask: {review: true}",
		"ask: {desktop: true}",
		"ask: {webhook: \"https://a.org/\"}",
		"verify: {external: {command: [/bin/true]}}",
		"ask: {webhook: {url: \"https://a.org/\"}}",
		"stage: {backend: fuse}",
		"trust: {agent: somebody}",
		"trust: {start: medium}",
		"trust: {ceiling: high}",
		"trust: {floor: low}",
		"trust: {raise: low}",
		"trust: {on_fall: note}",
		"trust: {half_life: 1h}",
		"trust: {probation: {sessions: 4}}",
		"trust: {probation: {sessions: 9, at: none}}",
		"degrade: [seccomp]",
		"extends: full",
		"drop: [.env]",
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (tighten(rows[i]))
			fail_msg("accepted: %s", rows[i]);
		if (strncmp(fixture_errors(), "/home/u/p/.atoll.yaml:2:", 24) != 0 ||
		    !strstr(fixture_errors(), "widens"))
			fail_msg("%s: %s", rows[i], fixture_errors());
	}
}

/* What a policy denies of a host, a project's rule does not let through. */
static void what_is_allowed_as_a_whole_may_be_said_again(void **state)
{
	static const char *const hosts[] = { "all.org", "b.org", "a.org" };
	struct action admin = { .kind = ACTION_HTTP_REQUEST, .subject = "a.org", .port = 443, .method = "GET",
				.path = "/admin" };
	const struct policy *policy;
	char text[200];

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		snprintf(text, sizeof text, "network: {allow: [{host: %s, ports: [443]}]}", hosts[i]);
		policy = tighten(text);
		if (!policy)
			fail_msg("%s: %s", text, fixture_errors());
		assert_int_equal(policy_decide(policy, &admin).verdict, VERDICT_DENY);
	}
}

/* What both allow is what the policy allows: its own rules say it. */
static void a_listed_host_stays_as_the_policy_has_it(void **state)
{
	struct action get = { .kind = ACTION_HTTP_REQUEST, .subject = "listed.org", .port = 443, .method = "GET",
			      .path = "/v1/x" };
	const struct policy *policy = tighten("network: {default: deny, allow: [{host: listed.org, listed: true}, "
					      "{host: b.org, listed: true}, {host: a.org, listed: true}]}");

	if (!policy)
		fail_msg("%s", fixture_errors());
	assert_int_equal(policy_decide(policy, &get).verdict, VERDICT_ALLOW);
	get.path = "/v2/x";
	assert_int_not_equal(policy_decide(policy, &get).verdict, VERDICT_ALLOW);
	get.path = "/v1/x";
	get.method = "POST";
	assert_int_not_equal(policy_decide(policy, &get).verdict, VERDICT_ALLOW);
	assert_int_equal(fixture_ask(ACTION_NET_CONNECT, "b.org"), VERDICT_ALLOW);
	get = (struct action){ .kind = ACTION_NET_CONNECT, .subject = "a.org", .port = 80 };
	assert_int_equal(policy_decide(policy, &get).verdict, VERDICT_DENY);
	/* It opens nothing that is not there, and is nothing for the policy itself. */
	assert_null(tighten("network: {allow: [{host: new.org, listed: true}]}"));
	assert_null(tighten("network: {allow: [{host: x.listed.org, listed: true}]}"));
	assert_null(tighten("network: {ask: [{host: listed.org, listed: true}]}"));
	assert_null(tighten("network: {allow: [{host: listed.org, listed: false}]}"));
	assert_null(tighten("network: {allow: [{host: listed.org, listed: true, inject: {header: x, secret: s}}]}"));
	fixture_reset();
	fixture_file("/t.yaml", "atoll: 1\nextends: medium\nnetwork: {allow: [{host: a.org, listed: true}]}\n");
	fixture_request.policy = "/t.yaml";
	assert_null(fixture_compile());
	assert_non_null(strstr(fixture_errors(), "/t.yaml:3:"));
	assert_non_null(strstr(fixture_errors(), "listed"));
}

/* "allow" means the public internet: a project that adds a private range to it would open more. */
/* Without a rule of its own it lets in what is public, and that alone can be listed. */
static void an_open_network_has_public_addresses(void **state)
{
	static const struct {
		const char *cidr;
		bool is_accepted;
	} rows[] = {
		{ "1.1.1.1/32", true }, { "8.8.0.0/16", true }, { "2606:4700::/32", true }, { "0.0.0.0/0", false },
		{ "10.1.2.3/32", false }, { "8.0.0.0/6", false }, { "127.0.0.1/32", false }, { "169.254.169.254/32",
		false },
		{ "::/0", false }, { "2000::/3", false }, { "fd00::/8", false }, { "64:ff9b::/96", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char whole[200];

		snprintf(whole, sizeof whole, "atoll: 1\nnetwork: {default: deny, allow: [{cidr: \"%s\"}]}\n",
			 rows[i].cidr);
		fixture_reset();
		fixture_file("/t.yaml", "atoll: 1\nextends: low\nnetwork: {default: allow}\n");
		fixture_file("/home/u/p/.atoll.yaml", whole);
		fixture_request.policy = "/t.yaml";
		if ((fixture_compile() != NULL) != rows[i].is_accepted)
			fail_msg("%s: %s", rows[i].cidr, fixture_errors());
	}
}

static void an_open_network_has_no_private_addresses(void **state)
{
	static const struct {
		const char *text;
		bool is_accepted;
	} rows[] = {
		{ "network: {allow: [{cidr: 10.0.0.0/8}]}", false },
		{ "network: {allow: [{cidr: 127.0.0.1/32, ports: [5432]}]}", false },
		{ "network: {allow: [{cidr: 192.0.2.0/24}]}", true },
		{ "network: {allow: [{host: any.org, ports: [443]}]}", true },
		{ "network: {default: deny}", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char whole[200];

		snprintf(whole, sizeof whole, "atoll: 1\n%s\n", rows[i].text);
		fixture_reset();
		fixture_file("/t.yaml", "atoll: 1\nextends: medium\n"
					"network: {default: allow, allow: [{cidr: 192.0.2.0/24}]}\n");
		fixture_file("/home/u/p/.atoll.yaml", whole);
		fixture_request.policy = "/t.yaml";
		if ((fixture_compile() != NULL) != rows[i].is_accepted)
			fail_msg("%s: %s", rows[i].text, fixture_errors());
	}
}

static void trust_is_tightened(void **state)
{
	const struct policy *policy = tighten("trust: {agent: me, ceiling: medium, on_fall: freeze, half_life: 2d, "
					      "probation: {sessions: 50, at: low}}");

	assert_non_null(policy);
	assert_int_equal(policy->trust.ceiling, TRUST_MEDIUM);
	assert_int_equal(policy->trust.on_fall, TRUST_FALL_FREEZE);
	assert_int_equal(policy->trust.probation_sessions, 50);
	/* What lies below a lower ceiling comes down with it. */
	policy = tighten("trust: {ceiling: none}");
	assert_non_null(policy);
	assert_int_equal(policy->trust.start, TRUST_NONE);
}

static void tightening_takes_effect(void **state)
{
	const struct policy *policy;

	assert_non_null(
		tighten("files: {read: [., src/gen], mask: [secrets, \"**/*.pem\"], scratch: [build]}"));
	assert_int_equal(fixture_class("/home/u/p/x"), FILE_READ);
	assert_int_equal(fixture_class("/home/u/p/build"), FILE_SCRATCH);
	assert_int_equal(fixture_class("/home/u/p/secrets/x"), FILE_MASK);
	assert_int_equal(fixture_class("/usr/x.pem"), FILE_MASK);
	assert_int_equal(fixture_class("/home/u/.ssh"), FILE_MASK);
	policy = tighten("resources: {memory: 1GiB}\nnetwork: {deny: [b.org], ask: [{host: a.org, ports: "
			 "[443]}]}\nexec: {deny: [/usr/bin/git], new_binaries: false}");
	assert_non_null(policy);
	assert_int_equal(policy->limits[RESOURCE_MEMORY].value, 1 << 30);
	assert_int_equal(fixture_ask(ACTION_NET_CONNECT, "b.org"), VERDICT_DENY);
	assert_int_equal(fixture_ask(ACTION_NET_CONNECT, "a.org"), VERDICT_ASK);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/usr/bin/git"), VERDICT_DENY);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/home/u/p/x"), VERDICT_DENY);
	assert_non_null(
		tighten("network: {limits: {rate: 30MiB/min}}\naudit: {files: all}\ndata: {secrets: deny}"));
}

/* What a rule of the user leaves out is not covered again by a nearer rule of the project. */
static void exceptions_stay(void **state)
{
	assert_non_null(tighten("files: {read: [/data, /data/x]}"));
	assert_int_equal(fixture_class("/data/secret"), FILE_HIDDEN);
	assert_int_equal(fixture_class("/data/y"), FILE_READ);
}

/* Where the policy lets no program run, none runs because the project made the place read-only. */
static void what_may_not_be_executed_stays_so(void **state)
{
	fixture_reset();
	fixture_file("/t.yaml", "atoll: 1\nextends: medium\nfiles: {write: [{path: /data, exec: false}]}\n");
	fixture_file("/home/u/p/.atoll.yaml", "atoll: 1\nfiles: {read: [/data, /data/bin]}\n");
	fixture_request.policy = "/t.yaml";
	assert_non_null(fixture_compile());
	assert_int_equal(fixture_class("/data/bin/x"), FILE_READ);
	assert_true(fixture_plan("/data")->flags & FILE_NOEXEC);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/data/x"), VERDICT_DENY);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/data/bin/x"), VERDICT_DENY);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/usr/bin/x"), VERDICT_ALLOW);
	/* Level low executes nothing that can be written inside. */
	fixture_reset();
	fixture_file("/t.yaml", "atoll: 1\nextends: low\n");
	fixture_file("/home/u/p/.atoll.yaml", "atoll: 1\nfiles: {read: [.]}\n");
	fixture_request.policy = "/t.yaml";
	assert_non_null(fixture_compile());
	assert_int_equal(fixture_class("/home/u/p/x"), FILE_READ);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/home/u/p/x"), VERDICT_DENY);
}

/* Whoever may write where the project's file names a path could plant a link there. */
static void a_planted_link_gives_nothing(void **state)
{
	fixture_reset();
	fixture_file("/t.yaml", "atoll: 1\nextends: medium\nfiles: {write: [/data]}\n");
	fixture_file("/home/u/p/.atoll.yaml", "atoll: 1\nfiles: {read: [/data/planted], mask: [/data/other]}\n");
	fixture_link("/data/planted", "/home/u/letters");
	fixture_link("/data/other", "/usr/share");
	fixture_request.policy = "/t.yaml";
	assert_non_null(fixture_compile());
	assert_int_equal(fixture_class("/data/planted"), FILE_READ);
	assert_int_not_equal(fixture_class("/home/u/letters"), FILE_READ);
	assert_int_equal(fixture_class("/usr/share"), FILE_MASK);
}

static void the_users_policy_may_widen(void **state)
{
	fixture_reset();
	fixture_file("/t.yaml", "atoll: 1\nextends: medium\nfiles: {write: [/data]}\n");
	fixture_request.policy = "/t.yaml";
	assert_non_null(fixture_compile());
	assert_int_equal(fixture_class("/data"), FILE_WRITE);
}

static void a_broken_project_file_is_not_passed_over(void **state)
{
	assert_null(tighten("files: [\n"));
	assert_non_null(strstr(fixture_errors(), "/home/u/p/.atoll.yaml"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_widening_line_is_refused),
		cmocka_unit_test(what_is_allowed_as_a_whole_may_be_said_again),
		cmocka_unit_test(a_listed_host_stays_as_the_policy_has_it),
		cmocka_unit_test(an_open_network_has_public_addresses),
		cmocka_unit_test(an_open_network_has_no_private_addresses),
		cmocka_unit_test(trust_is_tightened),
		cmocka_unit_test(tightening_takes_effect),
		cmocka_unit_test(exceptions_stay),
		cmocka_unit_test(what_may_not_be_executed_stays_so),
		cmocka_unit_test(a_planted_link_gives_nothing),
		cmocka_unit_test(the_users_policy_may_widen),
		cmocka_unit_test(a_broken_project_file_is_not_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
