/* SPDX-License-Identifier: Apache-2.0 */

/* What the process that compares texts answers, and what is left of it when a text ends it. */

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "text/worker.h"

static struct text_worker worker = TEXT_WORKER_NONE;

static struct text_piece text(const char *bytes)
{
	return (struct text_piece){ bytes, strlen(bytes) };
}

static int begin(void **state)
{
	struct err err = { 0 };

	return text_worker_start(&worker, &err);
}

static int end(void **state)
{
	text_worker_stop(&worker);
	return 0;
}

static void lines_are(const char *before, const char *after, const char *expected)
{
	struct text_piece a = text(before), b = text(after);
	struct buf out;

	buf_init(&out, TEXT_RESULT_MAX);
	assert_int_equal(text_worker_lines(&worker, &a, &b, &out), 0);
	assert_string_equal(buf_text(&out), expected);
	buf_done(&out);
}

static void lines(void **state)
{
	lines_are("", "", "");
	lines_are("same\n", "same\n", "");
	lines_are("a\nb\n", "a\nc\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
	lines_are("", "new\n", "@@ -0,0 +1 @@\n+new\n");
	lines_are("old\n", "", "@@ -1 +0,0 @@\n-old\n");
	lines_are("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
	lines_are("a\n", "b", "@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n");
}

static void binary(void **state)
{
	static const char none[] = "index 0000000000000000000000000000000000000000..";
	struct text_piece absent = { NULL, 0 }, bytes = { "\0\1\2", 3 };
	struct buf out;

	buf_init(&out, TEXT_RESULT_MAX);
	assert_int_equal(text_worker_binary(&worker, &absent, &bytes, &out), 0);
	assert_memory_equal(out.bytes, none, sizeof none - 1);
	assert_non_null(strstr(buf_text(&out), "\nGIT binary patch\nliteral 3\n"));
	buf_reset(&out);
	assert_int_equal(text_worker_binary(&worker, &bytes, &bytes, &out), 0);
	assert_int_equal(out.size, 0);
	buf_done(&out);
}

static void merges(void **state)
{
	static const struct {
		const char *base, *host, *session, *expected;
		int result;
	} cases[] = {
		{ "a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n", TEXT_MERGE_CLEAN },
		{ "a\n", "same\n", "same\n", "same\n", TEXT_MERGE_CLEAN },
		{ "a\n", "h\n", "s\n", "<<<<<<< host\nh\n=======\ns\n>>>>>>> session\n", TEXT_MERGE_MARKED },
		{ "", "h\n", "s\n", "<<<<<<< host\nh\n=======\ns\n>>>>>>> session\n", TEXT_MERGE_MARKED },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct text_piece base = text(cases[i].base), host = text(cases[i].host);
		struct text_piece session = text(cases[i].session);
		struct buf out;

		buf_init(&out, TEXT_RESULT_MAX);
		assert_int_equal(text_worker_merge(&worker, &base, &host, &session, &out), cases[i].result);
		assert_string_equal(buf_text(&out), cases[i].expected);
		buf_done(&out);
	}
}

static void bounds(void **state)
{
	struct text_piece large = { calloc(1, TEXT_SIZE_MAX + 1), TEXT_SIZE_MAX + 1 }, none = text("");
	struct buf out;

	assert_non_null(large.bytes);
	buf_init(&out, TEXT_RESULT_MAX);
	assert_int_equal(text_worker_lines(&worker, &none, &large, &out), -EFBIG);
	large.size = TEXT_SIZE_MAX;
	assert_int_equal(text_worker_lines(&worker, &none, &large, &out), 0);
	buf_done(&out);
	/* A line of one byte becomes two: more than a caller wants. */
	buf_init(&out, 100);
	assert_true(text_worker_lines(&worker, &none, &large, &out) < 0);
	buf_done(&out);
	free((void *)large.bytes);
}

/* The one child of a process. */
static pid_t child_of(pid_t pid)
{
	char name[64];
	int child = 0;
	FILE *file;

	snprintf(name, sizeof name, "/proc/%d/task/%d/children", pid, pid);
	file = fopen(name, "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &child), 1);
	fclose(file);
	return child;
}

enum { BUSY_SIZE = 2 << 20 };

/* Different lines only, in opposite orders: that keeps it busy. */
static char *fill(bool is_reversed)
{
	enum { LINE = 8, COUNT = BUSY_SIZE / LINE };
	char *bytes = malloc(BUSY_SIZE + 1);

	assert_non_null(bytes);
	for (int i = 0; i < COUNT; i++)
		snprintf(bytes + (size_t)i * LINE, LINE + 1, "%07x\n", is_reversed ? COUNT - i : i);
	return bytes;
}

static void a_text_that_ends_it_spoils_nothing_else(void **state)
{
	struct text_piece a = { fill(false), BUSY_SIZE }, b = { fill(true), BUSY_SIZE };
	pid_t keeper = child_of(getpid()), victim = child_of(keeper), killer;
	struct buf out;
	int r;

	killer = fork();
	if (killer == 0) {
		nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
		/* Not SIGSEGV, of which the worker of a unit test has cmocka's handler. */
		_exit(kill(victim, SIGKILL) < 0);
	}
	buf_init(&out, TEXT_RESULT_MAX);
	r = text_worker_lines(&worker, &a, &b, &out);
	/* On a machine that is busy it may have been killed before. */
	assert_true(r == -EIO || r == 0);
	assert_int_equal(waitpid(killer, NULL, 0), killer);
	buf_done(&out);
	lines_are("a\nb\n", "a\nc\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
	assert_int_not_equal(child_of(keeper), victim);
	free((void *)a.bytes);
	free((void *)b.bytes);
}

static void without_a_worker_there_is_no_answer(void **state)
{
	struct text_piece a = text("a"), b = text("b");
	pid_t keeper = child_of(getpid());
	struct buf out;
	int r;

	assert_int_equal(kill(keeper, SIGKILL), 0);
	buf_init(&out, TEXT_RESULT_MAX);
	/* The worker's end follows its keeper's, a moment later. */
	do {
		buf_reset(&out);
		r = text_worker_lines(&worker, &a, &b, &out);
	} while (r == 0);
	assert_int_equal(r, -EPIPE);
	assert_int_equal(out.size, 0);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),
		cmocka_unit_test(binary),
		cmocka_unit_test(merges),
		cmocka_unit_test(bounds),
		cmocka_unit_test(a_text_that_ends_it_spoils_nothing_else),
		cmocka_unit_test(without_a_worker_there_is_no_answer),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
