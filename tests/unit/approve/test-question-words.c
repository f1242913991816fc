/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "approve/question-words.h"
#include "policy/grants.h"

static const uint8_t hash[ASKING_HASH_SIZE];

static struct asking_question question(struct asking_shown shown)
{
	shown.rule = "files.ask[0]";
	shown.why = "the policy asks a person for this path";
	return (struct asking_question){ .number = 3, .hash = hash, .waiting = 1, .times = 1, .left_ms = 1000,
					 .shown = shown };
}

static void assert_words(struct asking_shown shown, const char *expected)
{
	cleanup_buf struct buf out;

	buf_init(&out, 1 << 16);
	question_words_put(&out, &shown);
	assert_string_equal(buf_text(&out), expected);
}

static void each_kind_is_a_sentence(void **state)
{
	char *argv[] = { (char *)"git", (char *)"push", (char *)"a b", NULL };

	assert_words((struct asking_shown){ .kind = ACTION_NET_CONNECT, .subject = "a.org", .port = 443 },
		     "connect to a.org, port 443");
	assert_words((struct asking_shown){ .kind = ACTION_NET_CONNECT, .subject = "a.org" },
		     "connect to a.org, any port");
	assert_words((struct asking_shown){ .kind = ACTION_FILE_READ, .flags = GRANT_BELOW, .subject = "/data" },
		     "read /data and everything below it");
	assert_words((struct asking_shown){ .kind = ACTION_EXEC, .subject = "/usr/bin/git", .argv = argv,
					    .cwd = "/home/a" },
		     "run /usr/bin/git as \"git\" \"push\" \"a b\" in /home/a");
	assert_words((struct asking_shown){ .kind = ACTION_HTTP_REQUEST, .subject = "a.org", .port = 443,
					    .method = "PUT", .path = "/v1" },
		     "send PUT to a.org:443/v1, with any query");
}

/* Whatever comes from inside: no line of its own, no escape sequence, no end of its quotes. */
static void nothing_from_inside_can_imitate_a_question(void **state)
{
	static const char evil[] = "/a\r\n4  read /b\x1b[2J\x1b]0;x\a\xe2\x80\xae gnp.exe\" \\ \xff\x7f";
	char *argv[] = { (char *)evil, NULL };
	struct asking_shown shown = { .kind = ACTION_EXEC, .subject = evil, .argv = argv, .program = evil, .cwd = evil,
				      .words = evil };
	struct asking_question asked = question(shown);
	cleanup_buf struct buf out;
	size_t lines = 0;

	buf_init(&out, 1 << 16);
	question_words_put_question(&out, &asked, "3", 0);
	assert_null(strpbrk(buf_text(&out), "\r\x1b\a\x7f\xff"));
	assert_null(strstr(buf_text(&out), "\xe2\x80\xae"));
	for (const char *at = buf_text(&out); (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, 4);
	assert_null(strstr(buf_text(&out), "\n4  read"));
	/* The quote in it is escaped, so what stands in quotes is the agent's to the end. */
	assert_non_null(strstr(buf_text(&out), "gnp.exe\\\" \\\\"));
}

/* Blanks would set words to where the terminal begins its next line, and what looks like a space may be none. */
static void nothing_from_inside_is_set_to_a_line_of_its_own(void **state)
{
	char *argv[] = { (char *)"a         b \"           c", (char *)" d ",
			 (char *)"a\xc2\xa0" "b\xe3\x80\x80\xe2\xa0\x80", NULL };

	assert_words((struct asking_shown){ .kind = ACTION_EXEC, .subject = "/x", .argv = argv, .cwd = "/p" },
		     "run /x as \"a        \\x20b \\\"        \\x20\\x20\\x20c\" \" d \" "
		     "\"a\\u{00A0}b\\u{3000}\\u{2800}\" in /p");
}

/* A word that looks like two is told from two. */
static void arguments_are_told_apart(void **state)
{
	char *one[] = { (char *)"a\" \"b", NULL }, *two[] = { (char *)"a", (char *)"b", NULL };

	assert_words((struct asking_shown){ .kind = ACTION_EXEC, .subject = "/x", .argv = one, .cwd = "/p" },
		     "run /x as \"a\\\" \\\"b\" in /p");
	assert_words((struct asking_shown){ .kind = ACTION_EXEC, .subject = "/x", .argv = two, .cwd = "/p" },
		     "run /x as \"a\" \"b\" in /p");
	assert_words((struct asking_shown){ .kind = ACTION_EXEC, .subject = "/x" },
		     "run /x with any arguments in any directory");
}

/* A path that says what a question says is in quotes, so that its end is seen. */
static void paths_are_told_from_words(void **state)
{
	char *argv[] = { (char *)"x", NULL };

	assert_words((struct asking_shown){ .kind = ACTION_EXEC, .subject = "/x as \"ls\" in /home", .argv = argv,
					    .cwd = "/p q" },
		     "run \"/x as \\\"ls\\\" in /home\" as \"x\" in \"/p q\"");
	assert_words((struct asking_shown){ .kind = ACTION_FILE_READ, .subject = "/a and everything below it" },
		     "read \"/a and everything below it\"");
	assert_words((struct asking_shown){ .kind = ACTION_FILE_WRITE, .subject = "/plain/path-1_2.c" },
		     "write /plain/path-1_2.c");
}

static void a_long_path_is_shown_whole(void **state)
{
	struct asking_shown shown = { .kind = ACTION_FILE_READ };
	cleanup_buf struct buf out;
	char path[4097] = "/";

	memset(path + 1, 'x', sizeof path - 3);
	path[sizeof path - 2] = 'E';
	shown.subject = path;
	buf_init(&out, 1 << 16);
	question_words_put(&out, &shown);
	assert_int_equal(out.size, strlen("read ") + sizeof path - 1);
	assert_int_equal(out.bytes[out.size - 1], 'E');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_is_a_sentence),
		cmocka_unit_test(nothing_from_inside_can_imitate_a_question),
		cmocka_unit_test(nothing_from_inside_is_set_to_a_line_of_its_own),
		cmocka_unit_test(arguments_are_told_apart),
		cmocka_unit_test(paths_are_told_from_words),
		cmocka_unit_test(a_long_path_is_shown_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
