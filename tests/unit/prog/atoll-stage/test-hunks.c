/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "prog/atoll-stage/review/hunks.h"

/* The worker is not asked here. */
int text_worker_lines(struct text_worker *worker, const struct text_piece *before, const struct text_piece *after,
		      struct buf *out)
{
	(void)worker, (void)before, (void)after, (void)out;
	return -1;
}

static struct text_piece piece(const char *text)
{
	return (struct text_piece){ text, strlen(text) };
}

static int parse(struct hunks *hunks, const char *difference, const char *old, const char *new)
{
	struct text_piece pieces[] = { piece(difference), piece(old), piece(new) };

	return hunks_parse(hunks, &pieces[0], &pieces[1], &pieces[2]);
}

static void assert_result(struct hunks *hunks, const char *text)
{
	struct buf out;

	buf_init(&out, 1 << 20);
	hunks_put_result(hunks, &out);
	assert_string_equal(buf_text(&out), text);
	buf_done(&out);
}

static const char two_old[] = "a\nb\nc\nd\n", two_new[] = "A\nb\nc\nD\ne\n";
static const char two[] = "@@ -1,4 +1,5 @@\n-a\n+A\n b\n c\n-d\n+D\n+e\n";

static void blocks_are_taken_by_themselves(void **state)
{
	struct hunks hunks = { 0 };

	(void)state;
	assert_int_equal(parse(&hunks, two, two_old, two_new), 0);
	assert_int_equal(hunks.count, 2);
	assert_int_equal(hunks_end(&hunks, 0), 2);
	assert_result(&hunks, two_old);
	hunks.blocks[1].is_taken = true;
	assert_result(&hunks, "a\nb\nc\nD\ne\n");
	hunks.blocks[0].is_taken = true;
	assert_result(&hunks, two_new);
	hunks_split(&hunks, 0);
	assert_int_equal(hunks_end(&hunks, 0), 1);
	hunks_done(&hunks);
}

static void a_text_from_nothing_and_to_nothing(void **state)
{
	struct hunks hunks = { 0 };

	(void)state;
	assert_int_equal(parse(&hunks, "@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n", "", "a\nb"), 0);
	hunks.blocks[0].is_taken = true;
	assert_result(&hunks, "a\nb");
	hunks_done(&hunks);
	assert_int_equal(parse(&hunks, "@@ -1,2 +0,0 @@\n-a\n-b\n", "a\nb\n", ""), 0);
	hunks.blocks[0].is_taken = true;
	assert_result(&hunks, "");
	hunks_done(&hunks);
}

/* What a worker says that fell to the texts: each would show, or apply, something else than what is there. */
static void what_does_not_fit_the_texts_is_refused(void **state)
{
	static const struct {
		const char *difference, *old, *new;
	} cases[] = {
		{ "", "a\n", "evil\n" },                                   /* hides all of it */
		{ "@@ -1,4 +1,5 @@\n-a\n+A\n b\n c\n d\n", two_old, two_new }, /* hides the second block */
		{ "@@ -9,1 +9,1 @@\n-a\n+A\n", "a\n", "A\n" },
		{ "@@ -1,1 +1,1 @@\n-a\n-a\n+A\n", "a\n", "A\n" },
		{ "@@ -1 +1 @@\n-a\n+A\n@@ -1 +1 @@\n-a\n+A\n", "a\n", "A\n" },
		{ "@@ -99999999999999999999 +1 @@\n-a\n+A\n", "a\n", "A\n" },
		{ "@@ -0 +1 @@\n-a\n+A\n", "a\n", "A\n" },
		{ "@@ -x +1 @@\n", "a\n", "A\n" }, { "@@ -1", "a\n", "A\n" }, { "\n", "a\n", "A\n" },
		{ "what\n", "a\n", "A\n" }, { "@@", "a\n", "A\n" },
	};
	struct hunks hunks = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(parse(&hunks, cases[i].difference, cases[i].old, cases[i].new), -EBADMSG);
}

static void put_line(void *context, const char *line, size_t size)
{
	buf_put(context, line, size);
	buf_put_char(context, '\n');
}

static void a_hunk_is_shown_from_the_texts(void **state)
{
	struct hunks hunks = { 0 };
	struct buf out;

	(void)state;
	buf_init(&out, 1 << 20);
	assert_int_equal(parse(&hunks, two, two_old, two_new), 0);
	hunks_show(&hunks, 0, put_line, &out);
	assert_string_equal(buf_text(&out), two);
	hunks_split(&hunks, 0);
	buf_reset(&out);
	hunks_show(&hunks, 1, put_line, &out);
	assert_string_equal(buf_text(&out), "@@ -2,3 +2,4 @@\n b\n c\n-d\n+D\n+e\n");
	hunks_done(&hunks);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_taken_by_themselves),
		cmocka_unit_test(a_text_from_nothing_and_to_nothing),
		cmocka_unit_test(what_does_not_fit_the_texts_is_refused),
		cmocka_unit_test(a_hunk_is_shown_from_the_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
