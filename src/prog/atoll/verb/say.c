/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/verb/say.h"

#include <string.h>

#include "base/names.h"
#include "base/utf8.h"
#include "os/fd.h"
#include "os/pty.h"
#include "policy/policy.h"

/* Messages are escaped where they are made; this holds back what nobody thought of. */
static void put_safe(struct buf *line, const char *text)
{
	const uint8_t *at = (const uint8_t *)text;
	size_t left = strlen(text);

	while (left) {
		uint32_t rune = 0;
		size_t used = utf8_decode(at, left, &rune);

		if (!used || rune < 0x20 || rune == 0x7f || utf8_is_unsafe(rune))
			buf_put_char(line, '?');
		else
			buf_put(line, at, used);
		at += used ? used : 1;
		left -= used ? used : 1;
	}
}

void say_error(const struct err *err)
{
	bool has_colour = pty_has_colour(STDERR_FILENO, getenv("TERM"), getenv("NO_COLOR"));
	const char *advice = err_advice(err);
	char memory[2048];
	struct buf line;

	buf_init_fixed(&line, memory, sizeof memory);
	buf_put_text(&line, has_colour ? "\033[1;31matoll:\033[0m " : "atoll: ");
	if (*err->stage) {
		put_safe(&line, err->stage);
		buf_put_text(&line, ": ");
	}
	put_safe(&line, err->message);
	if (*advice) {
		buf_put_text(&line, err_joint(err));
		put_safe(&line, advice);
	}
	buf_put_char(&line, '\n');
	/* Nobody is left to tell when stderr itself is gone. */
	if (fd_write_full(STDERR_FILENO, line.bytes, line.size) < 0)
		return;
}

int say_out(struct buf *text, struct err *err)
{
	int r = buf_error(text);

	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, text->bytes, text->size);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "output", "stdout cannot be written: %s", strerror(-r));
	return 0;
}

void say_notice(const char *text)
{
	if (fd_write_full(STDERR_FILENO, text, strlen(text)) < 0)
		return; /* nobody reads */
}
