/* SPDX-License-Identifier: Apache-2.0 */
/* What a trial's log comes to: each thing in its group, once, and whatever was in it shown as harmless text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "learn/effects.h"
#include "learn/observed.h"
#include "os/fd.h"

#define LINE(type, rest) "{\"v\":1,\"seq\":1,\"ts\":\"t\",\"session\":\"k3v9q2m4x7dt\",\"type\":\"" type "\"" rest "}\n"
#define CONNECT(verdict, rule, host, port) \
	LINE("net.connect", ",\"verdict\":\"" verdict "\",\"rule\":\"" rule "\",\"subject\":\"" host \
			    "\",\"detail\":{\"port\":" port "}")
#define DECIDED(type, verdict, rule, subject) \
	LINE(type, ",\"verdict\":\"" verdict "\",\"rule\":\"" rule "\",\"subject\":\"" subject "\"")
#define FINDING(action) \
	LINE("exec.verify", ",\"detail\":{\"findings\":[{\"id\":\"x.y\",\"severity\":\"high\",\"reason\":\"r\"," \
			    "\"action\":\"" action "\"}]}")
#define END LINE("session.end", "")

static struct effects read_log(const char *text)
{
	cleanup_fd int fd = fd_memfd_new("log");
	struct effects effects;

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	assert_int_equal(effects_read(&effects, fd), 0);
	return effects;
}

static void shown(const struct effects *effects, char *out, size_t size)
{
	cleanup_buf struct buf text;

	buf_init(&text, 1 << 20);
	effects_format(effects, 4, &text);
	assert_int_equal(snprintf(out, size, "%s", buf_text(&text)) < (int)size, 1);
}

static void each_is_in_its_group(void **state)
{
	static const struct {
		const char *line;
		int group;               /* -1: none */
	} cases[] = {
		{ CONNECT("allow", "", "a.example", "443"), EFFECTS_OUTGOING },
		{ CONNECT("deny", "builtin.replay", "a.example", "443"), EFFECTS_OUTGOING },
		{ CONNECT("deny", "builtin.trial", "192.0.2.1", "9"), EFFECTS_OUTGOING },
		{ CONNECT("replay", "", "a.example", "443"), EFFECTS_OUTGOING },
		{ CONNECT("deny", "network.default", "b.example", "443"), EFFECTS_REFUSED },
		{ DECIDED("net.dns", "allow", "", "a.example"), -1 },
		{ DECIDED("file.write", "allow", "", "/a"), -1 },
		{ DECIDED("file.write", "deny", "files.read[0]", "/a"), EFFECTS_REFUSED },
		{ LINE("ask.open", ",\"rule\":\"exec.ask[0]\",\"subject\":\"/usr/bin/touch\""), EFFECTS_ASKED },
		{ FINDING("note"), EFFECTS_FOUND },
		{ FINDING("off"), -1 },
		{ LINE("alert", ",\"subject\":\"/home/u/.env\",\"detail\":{\"alert\":\"canary.touched\"}"),
		  EFFECTS_FOUND },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char log[2048];
		struct effects effects;

		snprintf(log, sizeof log, "%s%s", cases[i].line, END);
		effects = read_log(log);
		for (int group = 0; group < EFFECTS_GROUP_COUNT; group++)
			if (effects.numbers.of[group] != (group == cases[i].group))
				fail_msg("group %d has %llu: %s", group, (unsigned long long)effects.numbers.of[group],
					 cases[i].line);
		assert_int_equal(effects.numbers.unreadable, 0);
		assert_int_equal(effects.numbers.has_end, 1);
		effects_done(&effects);
	}
}

static void a_request_and_its_connection_are_one(void **state)
{
	struct effects effects = read_log(
		CONNECT("allow", "", "a.example", "443") CONNECT("allow", "", "a.example", "8443")
		LINE("net.http", ",\"verdict\":\"allow\",\"subject\":\"a.example\",\"detail\":{\"port\":443,"
				 "\"method\":\"GET\",\"path\":\"/x\"}") END);
	char text[4096];

	assert_int_equal(effects.numbers.of[EFFECTS_OUTGOING], 2);
	shown(&effects, text, sizeof text);
	assert_string_equal(text, "  would go out:\n    net.connect a.example:8443\n"
				  "    http.request GET https://a.example/x\n");
	effects_done(&effects);
}

static void what_is_asked_about_is_not_refused_too(void **state)
{
	struct effects effects = read_log(
		LINE("ask.open", ",\"rule\":\"network.default\",\"subject\":\"a.example\"")
		DECIDED("net.dns", "deny", "network.default", "a.example")
		DECIDED("net.dns", "deny", "network.deny[0]", "a.example") END);

	assert_int_equal(effects.numbers.of[EFFECTS_ASKED], 1);
	assert_int_equal(effects.numbers.of[EFFECTS_REFUSED], 1);
	effects_done(&effects);
}

static void a_log_that_is_not_whole_is_no_proof(void **state)
{
	static const char *const logs[] = { "", "nonsense\n" END, LINE("net.connect", ",\"subject\":7") END,
					    DECIDED("net.dns", "allow", "", "a") };

	for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
		struct effects effects = read_log(logs[i]);

		if (!effects.numbers.unreadable && effects.numbers.has_end)
			fail_msg("%s", logs[i]);
		effects_done(&effects);
	}
}

static void nothing_that_was_logged_is_more_than_text(void **state)
{
	struct effects effects = read_log(
		CONNECT("allow", "", "a\\nwould go out: nothing\\u001b[2J", "1")
		LINE("alert", ",\"subject\":\"x\\ny\",\"exe\":{\"b64\":\"/wo=\"},"
			      "\"detail\":{\"alert\":\"canary.sent\",\"host\":\"h\\u0007\"}") END);
	char text[4096];

	shown(&effects, text, sizeof text);
	assert_null(strchr(text, '\033'));
	assert_null(strchr(text, '\a'));
	assert_null(strstr(text, "\nwould"));
	assert_non_null(strstr(text, "canary.sent"));
	effects_done(&effects);
}

static void many_are_counted_and_some_are_shown(void **state)
{
	static char log[1 << 20];
	size_t used = 0;
	struct effects effects;
	char text[4096];

	for (int i = 0; i < 5000; i++)
		used += (size_t)snprintf(log + used, sizeof log - used, DECIDED("net.dns", "deny", "r", "n%d"), i);
	snprintf(log + used, sizeof log - used, END);
	effects = read_log(log);
	assert_int_equal(effects.numbers.of[EFFECTS_REFUSED], 5000);
	shown(&effects, text, sizeof text);
	assert_non_null(strstr(text, "n3  [r]\n    and 4996 more\n"));
	effects_done(&effects);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_in_its_group),
		cmocka_unit_test(a_request_and_its_connection_are_one),
		cmocka_unit_test(what_is_asked_about_is_not_refused_too),
		cmocka_unit_test(a_log_that_is_not_whole_is_no_proof),
		cmocka_unit_test(nothing_that_was_logged_is_more_than_text),
		cmocka_unit_test(many_are_counted_and_some_are_shown),
	};

	observed_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
