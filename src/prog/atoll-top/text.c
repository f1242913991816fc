/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-top/text.h"

#include <langinfo.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

static bool has_utf8;

/* One character as it is shown: its bytes, and the columns that it takes. */
struct shown {
	const char *bytes;
	size_t size, width;
};

void text_init(void)
{
	has_utf8 = str_equal(nl_langinfo(CODESET), "UTF-8");
}

/* The bytes of text that are used up; 0 at its end. */
static size_t next(const char *text, size_t left, struct shown *ret_shown)
{
	uint32_t rune = 0;
	size_t used = left ? utf8_decode((const uint8_t *)text, left, &rune) : 0;
	int width = used && rune >= 0x20 && rune != 0x7f && (rune < 0x80 || has_utf8) && !utf8_is_unsafe(rune)
			    ? wcwidth((wchar_t)rune) : 0;

	if (!left)
		return 0;
	*ret_shown = width > 0 ? (struct shown){ text, used, (size_t)width } : (struct shown){ "?", 1, 1 };
	return used ? used : 1;
}

size_t text_width(const char *text)
{
	size_t left = strlen(text), width = 0, used;
	struct shown shown;

	while ((used = next(text, left, &shown))) {
		width += shown.width;
		text += used;
		left -= used;
	}
	return width;
}

static void put_blanks(struct buf *out, size_t count)
{
	for (; count; count--)
		buf_put_char(out, ' ');
}

void text_put(struct buf *out, const char *text, size_t width, enum text_side side)
{
	size_t wanted = text_width(text), left = strlen(text), room = wanted > width && width ? width - 1 : width;
	size_t put = 0, used;
	struct shown shown;

	if (side == TEXT_RIGHT && wanted < width)
		put_blanks(out, width - wanted);
	while ((used = next(text, left, &shown)) && put + shown.width <= room) {
		buf_put(out, shown.bytes, shown.size);
		put += shown.width;
		text += used;
		left -= used;
	}
	if (wanted > width && width) {
		buf_put_text(out, has_utf8 ? "…" : "~");
		put++;
	}
	if (side == TEXT_LEFT || wanted > width)
		put_blanks(out, width > put ? width - put : 0);
}

void text_to_wide(const char *text, wchar_t *out, size_t size)
{
	size_t left = strlen(text), count = 0;

	while (left && count + 1 < size) {
		uint32_t rune = '?';
		size_t used = utf8_decode((const uint8_t *)text, left, &rune);

		out[count++] = (wchar_t)rune;
		text += used ? used : 1;
		left -= used ? used : 1;
	}
	out[count] = 0;
}
