/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/doctor/self-test-show.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "os/pty.h"
#include "prog/atoll/verb/say.h"

enum { TABLE_MAX = 8 << 20 };

struct counts {
	size_t held, broke, other;
};

/* "NAME\tCASES\tOUTCOME\tNOTE\tWHAT" becomes "held   NAME  WHAT (NOTE)". */
static void put_row(struct buf *out, char *line, struct counts *counts, bool has_colour)
{
	char *fields[5];
	const char *colour;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		fields[i] = line;
		line = strchrnul(line, '\t');
		if (*line)
			*line++ = 0;
	}
	counts->held += str_equal(fields[2], "held");
	counts->broke += str_equal(fields[2], "broke");
	counts->other += !str_equal(fields[2], "held") && !str_equal(fields[2], "broke");
	colour = !has_colour			 ? ""
		 : str_equal(fields[2], "broke") ? "\033[1;31m"
		 : str_equal(fields[2], "held")	 ? "\033[32m"
						 : "";
	buf_printf(out, "%s%-6s%s %-28s %s", colour, fields[2], *colour ? "\033[0m" : "", fields[0],
		   fields[4]);
	if (*fields[3])
		buf_printf(out, " (%s)", fields[3]);
	buf_put_char(out, '\n');
}

/* What comes out of a sandbox is hostile, even the doctor's own: tabs and lines are ours, the rest is
 * escaped. */
static void put_table(struct buf *out, struct buf *text, struct counts *counts)
{
	bool has_colour = pty_has_colour(STDOUT_FILENO, getenv("TERM"), getenv("NO_COLOR"));
	char *line = (char *)(uintptr_t)buf_text(text);

	while (*line) {
		char *end = strchrnul(line, '\n');
		char *next = *end ? end + 1 : end;

		*end = 0;
		for (char *at = line; *at; at++)
			if ((unsigned char)*at < 0x20 && *at != '\t')
				*at = '?';
		put_row(out, line, counts, has_colour);
		line = next;
	}
	buf_printf(out, "%zu tried: %zu held, %zu broke, %zu could not be tried here\n",
		   counts->held + counts->broke + counts->other, counts->held, counts->broke, counts->other);
}

int self_test_show(struct buf *text, bool json, int status, struct err *err)
{
	cleanup_buf struct buf out = { 0 };
	struct counts counts = { 0 };
	int r;

	/* 125 to 127 are ours, and the reason is on stderr already. */
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
	buf_init(&out, TABLE_MAX);
	if (json)
		buf_put(&out, text->bytes, text->size);
	else
		put_table(&out, text, &counts);
	if (!json && !counts.held)
		return err_set(err, ERR_INTERNAL, ENODATA, "doctor", "atoll-probe tried nothing");
	r = say_out(&out, err);
	return r < 0 ? r : WEXITSTATUS(status);
}
