/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lang/compile/amend.h"

static const struct amendment allow = { "network", "allow", "x.org  # n" };

static void a_rule_gets_a_line_of_its_own(void **state)
{
	static const struct {
		const char *before, *after;
	} rows[] = {
		{ "atoll: 1\n", "atoll: 1\nnetwork:\n  allow:\n    - x.org  # n\n" },
		{ "atoll: 1", "atoll: 1\nnetwork:\n  allow:\n    - x.org  # n\n" },
		{ "# a\natoll: 1\nnetwork:\n  # b\n  allow:\n  - a.org # c\n  - b.org\nenv:\n  pass: [A]\n",
		  "# a\natoll: 1\nnetwork:\n  # b\n  allow:\n  - x.org  # n\n  - a.org # c\n  - b.org\nenv:\n"
		  "  pass: [A]\n" },
		{ "network:\n    default: ask # d\n\n    deny: [a.org]\natoll: 1\n",
		  "network:\n    allow:\n      - x.org  # n\n    default: ask # d\n\n    deny: [a.org]\natoll: 1\n" },
		{ "atoll: 1\nnetwork:\n  allow:\n    -\n      host: a.org\n",
		  "atoll: 1\nnetwork:\n  allow:\n    - x.org  # n\n    -\n      host: a.org\n" },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cleanup_buf struct buf out;

		buf_init(&out, 4096);
		assert_int_equal(amend_text(rows[i].before, strlen(rows[i].before), &allow, &out), 0);
		assert_string_equal(buf_text(&out), rows[i].after);
	}
}

static void where_it_has_no_line_nothing_is_changed(void **state)
{
	static const char *const rows[] = {
		"{atoll: 1, network: {allow: [a.org]}}", "atoll: 1\nnetwork: {allow: [a.org]}\n",
		"atoll: 1\nnetwork: {default: ask}\n",	 "atoll: 1\nnetwork:\n  allow: []\n",
		"atoll: 1\nnetwork:\n  allow: a.org\n",	 "- a\n",
		"atoll: 1\nnetwork:\n",			 "",
		"a: &x 1\nb: *x\n",
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		cleanup_buf struct buf out;

		buf_init(&out, 4096);
		assert_int_equal(amend_text(rows[i], strlen(rows[i]), &allow, &out), 1);
		assert_int_equal(out.size, 0);
	}
}

static void a_rule_says_what_was_granted_and_no_more(void **state)
{
	const char *argv[] = { "git", "push \"*\"", NULL };
	static const char *const expected[] = {
		"{host: \"a.org\", ports: [443]}  # n",
		"{cidr: \"192.0.2.1/32\", ports: [80]}  # n",
		"{cidr: \"2001:db8::1/128\"}  # n",
		"{host: \"a.org\", ports: [443], http: [{methods: [\"PUT\"], paths: [\"/\\\\*a\\\\[b\"]}]}  # n",
		"{host: \"a.org\", http: [{methods: [\"GET\"], paths: [\"/a%2Fb%25/%25x\"]}]}  # n",
		"{program: \"/usr/bin/git\", argv: [\"git\", \"push \\\"\\\\*\\\"\"]}  # n",
		"\"/data/\\x0ax: y\"  # n",
		"\"/data/\\\\[id\\\\]/\\\\*\\\\*\"  # n",
	};
	const struct grant_terms rows[] = {
		{ .kind = ACTION_NET_CONNECT, .subject = "a.org", .port = 443 },
		{ .kind = ACTION_NET_CONNECT, .subject = "192.0.2.1", .port = 80 },
		{ .kind = ACTION_NET_CONNECT, .subject = "2001:db8::1" },
		{ .kind = ACTION_HTTP_REQUEST, .subject = "a.org", .port = 443, .method = "PUT", .path = "/*a[b" },
		{ .kind = ACTION_HTTP_REQUEST, .subject = "a.org", .method = "GET", .path = "/a%2Fb%/%x" },
		{ .kind = ACTION_EXEC, .subject = "/usr/bin/git", .argv = argv },
		{ .kind = ACTION_FILE_READ, .subject = "/data/\nx: y" },
		{ .kind = ACTION_FILE_READ, .subject = "/data/[id]/**" },
	};
	struct amendment amendment;
	char item[AMEND_ITEM_SIZE];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		assert_int_equal(amend_rule(&rows[i], "n", item, &amendment), 0);
		assert_string_equal(amendment.item, expected[i]);
	}
}

static void what_no_rule_can_say_is_refused(void **state)
{
	const struct grant_terms rows[] = {
		{ .kind = ACTION_SYSCALL, .subject = "mount" },
		{ .kind = ACTION_FILE_READ, .subject = "/data/\xff" },
		{ .kind = ACTION_HTTP_REQUEST, .subject = "a.org", .path = "/" },
		{ .kind = ACTION_EXEC, .subject = "/tmp/*" },
		{ .kind = ACTION_EXEC, .subject = "/tmp/a\\b" },
		{ .kind = ACTION_KIND_COUNT, .subject = "x" },
	};
	struct amendment amendment;
	char item[AMEND_ITEM_SIZE];

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_int_equal(amend_rule(&rows[i], "n", item, &amendment), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_gets_a_line_of_its_own),
		cmocka_unit_test(where_it_has_no_line_nothing_is_changed),
		cmocka_unit_test(a_rule_says_what_was_granted_and_no_more),
		cmocka_unit_test(what_no_rule_can_say_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
