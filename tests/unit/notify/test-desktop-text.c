/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "notify/desktop-text.h"

static struct buf out;
static struct notify_question question;

static int setup(void **state)
{
	buf_init(&out, DESKTOP_BODY_MAX);
	question = (struct notify_question){
		.number = 3, .state = ASKING_WAITS, .waiting = 1, .left_ms = 60000,
		.what = "connect to a.org, port 443",
		.who = "/usr/bin/curl", .why = "the default of the network (network.default)",
		.json = "{}",
	};
	return 0;
}

static int teardown(void **state)
{
	buf_done(&out);
	return 0;
}

static const char *body(enum desktop_form form, bool is_whole)
{
	buf_reset(&out);
	assert_int_equal(desktop_body_put(&out, &question, "k3v9q2m4x7dt", form), is_whole);
	assert_int_equal(buf_error(&out), 0);
	return buf_text(&out);
}

static void it_says_what_who_why_and_until_when(void **state)
{
	assert_string_equal(body(DESKTOP_MARKUP, true),
			    "connect to a.org, port 443\nby /usr/bin/curl\n"
			    "because the default of the network (network.default)\n"
			    "it waits, and is refused in 1 min 00 s");
	question.waiting = 4;
	assert_non_null(strstr(body(DESKTOP_PLAIN, true), "4 of it wait"));
	question.state = ASKING_LISTED;
	assert_non_null(strstr(body(DESKTOP_PLAIN, true), "for the next try"));
}

static void nothing_in_it_is_markup(void **state)
{
	question.what = question.who = question.why = question.words = "<a href=\"x\">&lt;";
	assert_non_null(strstr(body(DESKTOP_MARKUP, true), "&lt;a href=\"x\"&gt;&amp;lt;"));
	assert_null(strpbrk(body(DESKTOP_MARKUP, true), "<>"));
	assert_non_null(strstr(body(DESKTOP_PLAIN, true), "\\x3ca href=\"x\"\\x3e\\x26lt;"));
	assert_null(strpbrk(body(DESKTOP_PLAIN, true), "<>&"));
}

static void words_of_the_agent_come_last(void **state)
{
	const char *at;

	question.words = "please";
	at = strrchr(body(DESKTOP_PLAIN, true), '\n');
	assert_string_equal(at, "\nthe agent says (check it): “please”");
}

static void what_is_asked_is_shown_whole_or_not_to_be_allowed(void **state)
{
	char what[DESKTOP_WHAT_MAX + 2], words[DESKTOP_REST_MAX + 9];

	memset(what, 'x', sizeof what);
	what[DESKTOP_WHAT_MAX] = 0;
	question.what = what;
	assert_null(strstr(body(DESKTOP_MARKUP, true), "…"));
	what[DESKTOP_WHAT_MAX] = 'x';
	what[DESKTOP_WHAT_MAX + 1] = 0;
	assert_non_null(strstr(body(DESKTOP_MARKUP, false), "atoll ask k3v9q2m4x7dt"));
	/* Cut between characters. */
	memset(what, 'x', sizeof what);
	memcpy(what + DESKTOP_WHAT_MAX - 1, "ü", 3);
	assert_non_null(strstr(body(DESKTOP_MARKUP, false), "x…\n"));
	question.what = "y";
	memset(words, '<', sizeof words);
	words[sizeof words - 1] = 0;
	question.words = words;
	assert_non_null(strstr(body(DESKTOP_MARKUP, true), "&lt;…”"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(it_says_what_who_why_and_until_when, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_in_it_is_markup, setup, teardown),
		cmocka_unit_test_setup_teardown(words_of_the_agent_come_last, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_asked_is_shown_whole_or_not_to_be_allowed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
