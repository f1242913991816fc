/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a proposal is made of, from records that are written here: it compiles, it allows what was done, and it is no
 * wider than what is said. That a second run under it passes is tried in tests/integration/test_policy_learn.py.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"
#include "learn/propose.h"
#include "learn/usage.h"
#include "session.h"

static const char base_text[] = "atoll: 1\nextends: none\n";
static const char before_text[] =
	"atoll: 1\nextends: none\ndrop: [.]\n"
	"files: {read: [/data, /home/u/lib], stage: [.], scratch: [/scratch]}\n"
	"exec: {new_binaries: true}\n"
	"resources: {memory: 1GiB, processes: 100}\n"
	"network: {allow: [{host: \"*.wild.example\", ports: [443]}, {cidr: 10.0.0.0/8, ports: [5432]},\n"
	"  {host: api.example, ports: [443], http: [{methods: [GET], paths: [\"/v1/**\"]}]}]}\n";

static struct buf out;

static int propose_with(const char *before, const struct propose_usage *usage)
{
	struct propose_request request = {
		.before = session_policy(SESSION_BEFORE, before),
		.base = session_policy(SESSION_OTHER, base_text),
		.session = "abcdefghijkl",
	};

	if (usage)
		request.usage = *usage;
	buf_done(&out);
	buf_init(&out, 1 << 20);
	return propose(&request, session_log(), &out);
}

/* The proposal, which compiles, and is what fixture_ask() asks. */
static const char *proposed(void)
{
	assert_int_equal(propose_with(before_text, NULL), 0);
	if (!fixture_text(buf_text(&out)))
		fail_msg("%s\n%s", fixture_errors(), buf_text(&out));
	return buf_text(&out);
}

static void started(const char *program, const char *detail)
{
	session_record("exec.start", program, "allow", detail);
}

static bool has(const char *text, const char *part)
{
	return strstr(text, part) != NULL;
}

static int end(void **state)
{
	session_end();
	buf_done(&out);
	return 0;
}

static void programs_are_listed_by_what_was_started(void **state)
{
	started("\"/usr/bin/cat\"", "\"argv\":[\"cat\"]");
	started("\"/usr/bin/cat\"", "\"argv\":[\"cat\"]");
	started("\"/usr/bin/python3\"", "\"path\":\"/usr/bin/python3.11\"");
	started("\"venv/bin/python\"", "\"path\":\"/usr/bin/python3.12\"");
	started("\"./run.sh\"", "\"path\":\"/home/u/p/run.sh\",\"interpreters\":[\"/usr/bin/env\",\"/usr/bin/dash\"]");
	started("\"/usr/local/bin/gone\"", "\"errno\":\"ENOENT\"");
	proposed();
	assert_true(has(buf_text(&out), "default: deny"));
	assert_true(has(buf_text(&out), "\"/usr/bin/cat\"  # 2 times, first record 1"));
	/* By the name that stays, but for a link that the session could have turned elsewhere. */
	assert_true(has(buf_text(&out), "\"/usr/bin/python3\"") && !has(buf_text(&out), "python3.11"));
	assert_true(has(buf_text(&out), "\"/usr/bin/python3.12\""));
	assert_true(has(buf_text(&out), "\"./run.sh\"") && has(buf_text(&out), "new_binaries: true"));
	assert_true(!has(buf_text(&out), "gone"));
	assert_int_equal(fixture_ask(ACTION_EXEC, "/usr/bin/env"), VERDICT_ALLOW);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/usr/bin/dash"), VERDICT_ALLOW);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/home/u/p/run.sh"), VERDICT_ALLOW);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/home/u/p/other.sh"), VERDICT_DENY);
	assert_int_equal(fixture_ask(ACTION_EXEC, "/usr/bin/true"), VERDICT_DENY);
}

static void what_was_made_makes_no_list(void **state)
{
	static const char *const made[][2] = {
		{ "\"/home/u/p/made\"", "\"new\":[\"/home/u/p/made\"]" },
		{ "\"made\"", "" },
		{ "\"/scratch/made\"", "" },
		{ "\"./run.sh\"", "\"path\":\"/home/u/p/run.sh\",\"interpreters\":[\"/home/u/p/sh\"],"
				  "\"new\":[\"/home/u/p/sh\"]" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		started("\"/usr/bin/cat\"", "");
		started(made[i][0], made[i][1]);
		proposed();
		assert_true(!has(buf_text(&out), "default: deny") && has(buf_text(&out), "new_binaries: true"));
		assert_int_equal(fixture_ask(ACTION_EXEC, "/usr/bin/true"), VERDICT_ALLOW);
		session_end();
	}
}

static void read_eight(const char *directory, int count)
{
	char path[128];

	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof path, "\"%s/file%d\"", directory, i);
		session_record("file.open", path, "allow", "\"flags\":\"O_RDONLY\"");
	}
}

static void files_are_generalised_only_where_it_says_so(void **state)
{
	started("\"/usr/bin/cat\"", "");
	session_record("file.open", "\"/data/one\"", "allow", "\"count\":4");
	session_record("file.open", "\"/data\"", "allow", "\"flags\":\"O_RDONLY|O_DIRECTORY\"");
	read_eight("/data/few", PROPOSE_SIBLINGS - 1);
	read_eight("/data/many", PROPOSE_SIBLINGS);
	proposed();
	assert_true(has(buf_text(&out), "\"/data/one\"  # 4 times by sh, first record 2"));
	assert_true(has(buf_text(&out), "\"/data/many\"") && has(buf_text(&out), "stands for 8 files"));
	assert_true(!has(buf_text(&out), "\"/data/few\"") && has(buf_text(&out), "\"/data/few/file6\""));
	assert_int_equal(fixture_ask(ACTION_FILE_READ, "/data/one"), VERDICT_ALLOW);
	assert_int_equal(fixture_ask(ACTION_FILE_READ, "/data/many/other"), VERDICT_ALLOW);
	assert_int_equal(fixture_ask(ACTION_FILE_READ, "/data/few/other"), VERDICT_DENY);
	assert_int_equal(fixture_ask(ACTION_FILE_READ, "/data/two"), VERDICT_DENY);
	assert_int_not_equal(fixture_ask(ACTION_FILE_WRITE, "/home/u/p/x"), VERDICT_STAGE);
	session_end();
	/* A home is never a rule. */
	started("\"/usr/bin/cat\"", "");
	read_eight("/home/u/lib", 40);
	session_record("file.write", "\"/home/u/p/x\"", "allow", "");
	proposed();
	assert_int_not_equal(fixture_ask(ACTION_FILE_READ, "/home/u/other"), VERDICT_ALLOW);
	assert_int_equal(fixture_ask(ACTION_FILE_WRITE, "/home/u/p/x"), VERDICT_STAGE);
}

static enum verdict ask_port(const char *host, uint16_t port)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = host, .port = port };

	return policy_decide(lang_policy(fixture_lang()), &action).verdict;
}

static void hosts_are_exact(void **state)
{
	struct action request = { .kind = ACTION_HTTP_REQUEST, .subject = "api.example", .port = 443, .method = "GET",
				  .path = "/v1/x" };

	started("\"/usr/bin/curl\"", "");
	session_record("net.connect", "\"a.wild.example\"", "allow", "\"port\":443");
	session_record("net.connect", "\"10.1.2.3\"", "allow", "\"port\":5432");
	session_record("net.dns", "\"b.wild.example\"", "allow", "");
	session_record("net.connect", "\"api.example\"", "allow", "\"port\":443");
	proposed();
	assert_int_equal(ask_port("a.wild.example", 443), VERDICT_ALLOW);
	assert_int_equal(ask_port("a.wild.example", 80), VERDICT_DENY);
	assert_int_equal(ask_port("c.wild.example", 443), VERDICT_DENY);
	assert_int_equal(ask_port("b.wild.example", 443), VERDICT_ALLOW);
	assert_true(has(buf_text(&out), "only looked up"));
	assert_int_equal(ask_port("10.1.2.3", 5432), VERDICT_ALLOW);
	assert_int_equal(ask_port("10.1.2.4", 5432), VERDICT_DENY);
	/* The conditions of the rule are kept. */
	assert_int_equal(policy_decide(lang_policy(fixture_lang()), &request).verdict, VERDICT_ALLOW);
	request.path = "/v2/x";
	assert_int_equal(policy_decide(lang_policy(fixture_lang()), &request).verdict, VERDICT_DENY);
}

static void what_was_refused_is_told_and_stays_so(void **state)
{
	started("\"/usr/bin/cat\"", "");
	session_record("file.open", "\"/home/u/.ssh/id\"", "deny", "\"errno\":\"EACCES\"");
	session_record("net.dns", "\"unlisted.example\"", "deny", "");
	session_record("exec.start", "\"/usr/bin/sudo\"", "deny", "\"errno\":\"ENOENT\"");
	proposed();
	assert_true(has(buf_text(&out), "#   file.read /home/u/.ssh/id (record 2)"));
	assert_true(has(buf_text(&out), "#   net.dns unlisted.example (record 3)"));
	assert_true(has(buf_text(&out), "#   exec /usr/bin/sudo (record 4)"));
	assert_int_equal(fixture_ask(ACTION_FILE_READ, "/home/u/.ssh/id"), VERDICT_DENY);
	assert_int_equal(ask_port("unlisted.example", 443), VERDICT_DENY);
}

static void limits_are_twice_what_was_used_and_no_more_than_there_was(void **state)
{
	struct propose_usage usage = { .memory_bytes = 40 << 20, .processes = 90, .cpu_ms = 1000, .wall_ms = 61000 };

	started("\"/usr/bin/cat\"", "");
	assert_int_equal(propose_with(before_text, &usage), 0);
	assert_true(has(buf_text(&out), "memory: 128MiB  # used: 40MiB"));
	assert_true(has(buf_text(&out), "processes: 100\n"));
	assert_non_null(fixture_text(buf_text(&out)));
	assert_int_equal(lang_policy(fixture_lang())->limits[RESOURCE_WALL_MS].value, 180000);
}

/* Who looks now and then has not seen the most. */
static void only_what_was_counted_is_a_measure(void **state)
{
	static const char *const holders[] = { "cgroup", "supervised" };
	struct propose_usage usage;
	char report[512];

	for (size_t i = 0; i < ARRAY_SIZE(holders); i++) {
		int size = snprintf(report, sizeof report,
				    "{\"wall_ms\":5,\"usage\":{\"memory_peak\":7,\"processes_peak\":8,\"cpu_ms\":-1},"
				    "\"enforcement\":{\"limits\":{\"memory\":\"%s\",\"processes\":\"cgroup\"}}}",
				    holders[i]);

		assert_int_equal(usage_parse(report, (size_t)size, &usage), 0);
		assert_int_equal(usage.memory_bytes, i == 0 ? 7 : 0);
		assert_int_equal(usage.processes, 8);
		assert_true(usage.wall_ms == 5 && usage.cpu_ms == 0);
	}
	assert_int_equal(usage_parse("{\"usage\":{}}", 12, &usage), 0);
	assert_int_equal(usage.memory_bytes, 0);
	assert_int_equal(usage_parse("nothing", 7, &usage), -EBADMSG);
}

/* A log is written by what runs inside, as far as names go. */
static void hostile_names_are_text(void **state)
{
	static const char *const names[] = {
		"\"/data/a\\nb: c\"", "\"/data/\\\"]}\"", "\"/data/\\u001b[2J\"", "\"/data/*\"", "\"/data/#x\"",
		"{\"b64\":\"L2RhdGEv//4=\"}", "\"/data/\\u0000x\"", "7", "null",
	};
	struct action action = { .kind = ACTION_FILE_READ, .subject = "/data/other" };

	started("\"/usr/bin/cat\"", "");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		session_record("file.open", names[i], "allow", "");
		session_record("exec.start", names[i], "allow", "\"path\":7,\"interpreters\":[7,{}],\"new\":\"x\"");
		session_record("net.connect", names[i], "allow", "\"port\":99999");
	}
	session_line("no record");
	session_line("{}");
	proposed();
	assert_true(!strchr(buf_text(&out), '\x1b'));
	assert_int_equal(policy_decide(lang_policy(fixture_lang()), &action).verdict, VERDICT_DENY);
	assert_true(has(buf_text(&out), "Records that could not be read"));
}

static void where_nothing_can_be_learnt(void **state)
{
	assert_int_equal(propose_with(before_text, NULL), -ENODATA);
	session_end();
	session_record("file.open", "\"/data/one\"", "allow", "");
	assert_int_equal(propose_with(before_text, NULL), -ENODATA);
	session_end();
	started("\"/usr/bin/cat\"", "");
	assert_int_equal(propose_with("atoll: 1\nextends: full\n", NULL), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(programs_are_listed_by_what_was_started, end),
		cmocka_unit_test_teardown(what_was_made_makes_no_list, end),
		cmocka_unit_test_teardown(files_are_generalised_only_where_it_says_so, end),
		cmocka_unit_test_teardown(hosts_are_exact, end),
		cmocka_unit_test_teardown(what_was_refused_is_told_and_stays_so, end),
		cmocka_unit_test_teardown(limits_are_twice_what_was_used_and_no_more_than_there_was, end),
		cmocka_unit_test(only_what_was_counted_is_a_measure),
		cmocka_unit_test_teardown(hostile_names_are_text, end),
		cmocka_unit_test_teardown(where_nothing_can_be_learnt, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
