/* SPDX-License-Identifier: Apache-2.0 */
#include "notify/desktop-text.h"

#include <string.h>

#include "base/num.h"

/* A reader that is told that there is no markup and looks for it all the same finds none either. */
static const struct {
	char byte;
	const char *text[2];
} special[] = {
	{ '&', { "\\x26", "&amp;" } }, { '<', { "\\x3c", "&lt;" } }, { '>', { "\\x3e", "&gt;" } },
};

static void put_byte(struct buf *out, char byte, enum desktop_form form)
{
	for (size_t i = 0; i < ARRAY_SIZE(special); i++)
		if (special[i].byte == byte) {
			buf_put_text(out, special[i].text[form]);
			return;
		}
	buf_put_char(out, byte);
}

/* Escaped for terminals already: valid UTF-8 in one line. False: it was cut. */
static bool put(struct buf *out, const char *text, size_t max, enum desktop_form form)
{
	size_t size = strlen(text), end = size;

	if (size > max) {
		end = max;
		while (end && ((unsigned char)text[end] & 0xc0) == 0x80)
			end--;
	}
	for (size_t i = 0; i < end; i++)
		put_byte(out, text[i], form);
	if (end < size)
		buf_put_text(out, "…");
	return end == size;
}

static void put_state(struct buf *out, const struct notify_question *question)
{
	char left[32];

	num_format_duration_human(question->left_ms, left);
	if (question->state == ASKING_WAITS && question->waiting > 1)
		buf_printf(out, "\n%u of it wait, and are refused in %s", question->waiting, left);
	else if (question->state == ASKING_WAITS)
		buf_printf(out, "\nit waits, and is refused in %s", left);
	else
		buf_put_text(out, "\nit was refused; an answer is for the next try");
}

bool desktop_body_put(struct buf *out, const struct notify_question *question, const char *session,
		      enum desktop_form form)
{
	bool is_whole = put(out, question->what, DESKTOP_WHAT_MAX, form);

	if (question->who) {
		buf_put_text(out, "\nby ");
		put(out, question->who, DESKTOP_REST_MAX, form);
	}
	buf_put_text(out, "\nbecause ");
	put(out, question->why, DESKTOP_REST_MAX, form);
	put_state(out, question);
	if (!is_whole)
		buf_printf(out, "\nit is too long to be allowed from here: atoll ask %s", session);
	if (!question->words)
		return is_whole;
	/* The last line, so that nothing of ours seems to follow from it. */
	buf_put_text(out, "\nthe agent says (check it): “");
	put(out, question->words, DESKTOP_REST_MAX, form);
	buf_put_text(out, "”");
	return is_whole;
}

void desktop_alert_put(struct buf *out, const char *what, enum desktop_form form)
{
	put(out, what, DESKTOP_WHAT_MAX, form);
}
