/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/model/decode.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "verify/model/words.h"

static struct word_draft begin_like(struct arena *arena, const struct word *text, uint32_t flags)
{
	struct word_draft draft;

	word_begin(&draft, arena, text->span);
	draft.flags = (text->flags & ~(uint32_t)WORD_GLOB) | flags;
	draft.origins = text->origins;
	return draft;
}

/* Digits of `bits` bits each; -1: none, -2: to be skipped. */
static bool decode_digits(struct arena *arena, const struct word *text, unsigned bits, int (*digit)(char),
			  struct word *ret_decoded)
{
	struct word_draft draft = begin_like(arena, text, WORD_FROM_DECODED);
	uint32_t collected = 0, digits = 0;
	unsigned have = 0;

	for (uint32_t i = 0; i < text->size; i++) {
		int value = digit(text->text[i]);

		if (value == -2)
			continue;
		if (value < 0 && text->text[i] == '=')
			break;
		if (value < 0) {
			(void)word_end(&draft);
			return false;
		}
		collected = collected << bits | (uint32_t)value;
		have += bits;
		digits++;
		if (have >= 8) {
			char byte = (char)(collected >> (have - 8));

			have -= 8;
			collected &= (1U << have) - 1;
			word_put(&draft, &byte, 1);
		}
	}
	*ret_decoded = word_end(&draft);
	return digits >= 2;
}

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	if (c == '/' || c == '_')
		return 63;
	return isspace((unsigned char)c) ? -2 : -1;
}

static int base32_digit(char c)
{
	c = (char)toupper((unsigned char)c);
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= '2' && c <= '7')
		return c - '2' + 26;
	return isspace((unsigned char)c) ? -2 : -1;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)tolower((unsigned char)c);
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return isspace((unsigned char)c) || c == ':' || c == '\\' || c == 'x' ? -2 : -1;
}

bool decode_base64(struct arena *arena, const struct word *text, struct word *ret_decoded)
{
	return decode_digits(arena, text, 6, base64_digit, ret_decoded);
}

bool decode_base32(struct arena *arena, const struct word *text, struct word *ret_decoded)
{
	return decode_digits(arena, text, 5, base32_digit, ret_decoded);
}

bool decode_hex(struct arena *arena, const struct word *text, struct word *ret_decoded)
{
	return decode_digits(arena, text, 4, hex_digit, ret_decoded);
}

static struct word decode_reversed(struct arena *arena, const struct word *text)
{
	struct word_draft draft = begin_like(arena, text, WORD_FROM_DECODED);

	for (uint32_t i = text->size; i > 0; i--) {
		if (text->text[i - 1] == WORD_UNKNOWN)
			word_put_unknown(&draft, NULL, 0);
		else
			word_put(&draft, &text->text[i - 1], 1);
	}
	return word_end(&draft);
}

static void put_rune(struct word_draft *draft, uint32_t rune)
{
	char bytes[4] = { (char)rune };
	size_t size = 1;

	if (rune >= 0x10000) {
		bytes[0] = (char)(0xf0 | rune >> 18);
		bytes[1] = (char)(0x80 | (rune >> 12 & 0x3f));
		bytes[2] = (char)(0x80 | (rune >> 6 & 0x3f));
		bytes[3] = (char)(0x80 | (rune & 0x3f));
		size = 4;
	} else if (rune >= 0x800) {
		bytes[0] = (char)(0xe0 | rune >> 12);
		bytes[1] = (char)(0x80 | (rune >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (rune & 0x3f));
		size = 3;
	} else if (rune >= 0x80) {
		bytes[0] = (char)(0xc0 | rune >> 6);
		bytes[1] = (char)(0x80 | (rune & 0x3f));
		size = 2;
	}
	word_put(draft, bytes, size);
}

/* A number of at most max digits at text; how many there are. */
static size_t read_digits(const char *text, size_t max, unsigned base, uint32_t *ret_value)
{
	uint32_t value = 0;
	size_t count = 0;

	while (count < max) {
		int digit = hex_digit(text[count]);

		if (digit < 0 || (unsigned)digit >= base)
			break;
		value = value * base + (uint32_t)digit;
		count++;
	}
	*ret_value = value;
	return count;
}

/* What stands behind a backslash; how many bytes of it are used. */
static size_t put_escape(struct word_draft *draft, const char *at, bool *is_hidden)
{
	static const char letters[] = "abefnrtv\\'\"?E", bytes[] = "\a\b\x1b\f\n\r\t\v\\'\"?\x1b";
	const char *letter = *at ? strchr(letters, *at) : NULL;
	uint32_t value = 0;
	size_t used = 0;

	if (letter) {
		word_put(draft, &bytes[letter - letters], 1);
		return 1;
	}
	if (*at == 'x')
		used = read_digits(at + 1, 2, 16, &value) + 1;
	else if (*at == 'u' || *at == 'U')
		used = read_digits(at + 1, *at == 'u' ? 4 : 8, 16, &value) + 1;
	else if (*at >= '0' && *at <= '7')
		used = read_digits(at, *at == '0' ? 4 : 3, 8, &value);
	if (used == 0 || (used == 1 && !isdigit((unsigned char)*at))) {
		word_put(draft, "\\", 1);
		return 0;
	}
	*is_hidden |= value > ' ' && value < 0x7f;
	if (*at == 'u' || *at == 'U')
		put_rune(draft, value > 0x10ffff ? '?' : value);
	else
		word_put(draft, (const char[]){ (char)value }, 1);
	return used;
}

struct word decode_escapes(struct arena *arena, const struct word *text, bool *ret_is_hidden)
{
	struct word_draft draft = begin_like(arena, text, 0);
	bool is_hidden = false;

	for (uint32_t i = 0; i < text->size; i++) {
		if (text->text[i] == WORD_UNKNOWN)
			word_put_unknown(&draft, NULL, 0);
		else if (text->text[i] != '\\')
			word_put(&draft, &text->text[i], 1);
		else
			i += (uint32_t)put_escape(&draft, text->text + i + 1, &is_hidden);
	}
	if (is_hidden)
		draft.flags |= WORD_FROM_DECODED;
	*ret_is_hidden = is_hidden;
	return word_end(&draft);
}

static struct word joined(struct arena *arena, const struct word *words, size_t count)
{
	struct word_draft draft;

	word_begin(&draft, arena, count ? (struct span){ words[0].span.start, words[count - 1].span.end }
					: (struct span){ 0, 0 });
	for (size_t i = 0; i < count; i++) {
		if (i)
			word_put(&draft, " ", 1);
		word_put_word(&draft, &words[i]);
	}
	return word_end(&draft);
}

static bool echo_output(struct arena *arena, const struct word *words, size_t count, const struct word *document,
			struct word *ret_output)
{
	bool has_escapes = false, is_hidden;
	size_t at = 1;

	(void)document;
	while (at < count && words[at].text[0] == '-' && words[at].text[1] &&
	       strspn(words[at].text + 1, "neE") == words[at].size - 1) {
		has_escapes |= strchr(words[at].text, 'e') != NULL;
		at++;
	}
	*ret_output = joined(arena, words + at, count - at);
	if (has_escapes)
		*ret_output = decode_escapes(arena, ret_output, &is_hidden);
	return true;
}

/* One conversion of printf's format; how many bytes of it are used. */
static size_t put_conversion(struct word_draft *draft, const char *format, const struct word *argument)
{
	size_t used = strspn(format, "-+ #0123456789.*");
	bool is_hidden;

	if (format[used] == '%') {
		word_put(draft, "%", 1);
	} else if (format[used] == 'b' && argument) {
		struct word decoded = decode_escapes(draft->arena, argument, &is_hidden);

		word_put_word(draft, &decoded);
	} else if (argument) {
		word_put_word(draft, argument);
	}
	return format[used] ? used + 1 : used;
}

static bool printf_output(struct arena *arena, const struct word *words, size_t count, const struct word *document,
			  struct word *ret_output)
{
	struct word_draft draft;
	struct word format;
	bool is_hidden;
	size_t next = 2;

	(void)document;
	if (count > 1 && word_is(&words[1], "--"))
		words++, count--;
	if (count < 2 || words[1].text[0] == '-')
		return false;
	format = decode_escapes(arena, &words[1], &is_hidden);
	draft = begin_like(arena, &format, 0);
	for (unsigned round = 0; round < 256 && (round == 0 || next < count); round++) {
		size_t before = next;

		for (uint32_t i = 0; i < format.size; i++) {
			if (format.text[i] == WORD_UNKNOWN) {
				word_put_unknown(&draft, NULL, 0);
			} else if (format.text[i] != '%') {
				word_put(&draft, &format.text[i], 1);
			} else {
				bool is_percent = format.text[i + 1] == '%';

				i += (uint32_t)put_conversion(&draft, format.text + i + 1,
							      next < count ? &words[next] : NULL);
				next += !is_percent;
			}
		}
		if (next == before)
			break;
	}
	*ret_output = word_end(&draft);
	return true;
}

static bool has_option(const struct word *words, size_t count, const char *short_option, const char *long_option)
{
	for (size_t i = 1; i < count; i++) {
		const char *text = words[i].text;

		if (str_equal(text, long_option) || (text[0] == '-' && text[1] != '-' && strpbrk(text, short_option)))
			return true;
	}
	return false;
}

static bool base64_output(struct arena *arena, const struct word *words, size_t count, const struct word *document,
			  struct word *ret_output)
{
	if (!document || !has_option(words, count, "dD", "--decode"))
		return false;
	return str_has_suffix(words[0].text, "32") ? decode_base32(arena, document, ret_output)
						    : decode_base64(arena, document, ret_output);
}

static bool xxd_output(struct arena *arena, const struct word *words, size_t count, const struct word *document,
		       struct word *ret_output)
{
	if (!document || !has_option(words, count, "r", "-revert"))
		return false;
	return decode_hex(arena, document, ret_output);
}

static bool openssl_output(struct arena *arena, const struct word *words, size_t count, const struct word *document,
			   struct word *ret_output)
{
	if (!document || count < 2 || !has_option(words, count, "d", "-d") ||
	    (!word_is(&words[1], "base64") && !has_option(words, count, "\x7f", "-base64") &&
	     !has_option(words, count, "\x7f", "-a")))
		return false;
	return decode_base64(arena, document, ret_output);
}

static bool rev_output(struct arena *arena, const struct word *words, size_t count, const struct word *document,
		       struct word *ret_output)
{
	if (!document || count > 1)
		return false;
	*ret_output = decode_reversed(arena, document);
	return true;
}

static bool cat_output(struct arena *arena, const struct word *words, size_t count, const struct word *document,
		       struct word *ret_output)
{
	if (!document || (count > 1 && !word_is(&words[1], "-")))
		return false;
	*ret_output = *document;
	return true;
}

/* which NAME, command -v NAME, type -P NAME: where programs lie. Whoever starts what they say starts that program. */
static bool which_output(struct arena *arena, const struct word *words, size_t count, const struct word *document,
			 struct word *ret_output)
{
	struct word_draft draft;
	size_t at = 1;

	(void)document;
	if (!str_equal(words[0].text, "which") && !has_option(words, count, "vpP", "-v"))
		return false;
	while (at < count && words[at].text[0] == '-')
		at++;
	if (at >= count || !words[at].size || strchr(words[at].text, '/'))
		return false;
	draft = begin_like(arena, &words[at], 0);
	word_put(&draft, "/usr/bin/", strlen("/usr/bin/"));
	word_put_word(&draft, &words[at]);
	*ret_output = word_end(&draft);
	return true;
}

/* A set of tr: ranges and escapes made whole. Its size, or 0 where it is not simple. */
static size_t tr_set(const struct word *word, char out[512])
{
	size_t size = 0;

	if (!word_is_exact(word) || strstr(word->text, "[:"))
		return 0;
	for (const char *at = word->text; *at && size < 256; at++) {
		unsigned char first = (unsigned char)*at, last;

		if (*at == '\\' && at[1])
			first = (unsigned char)(*++at == 'n' ? '\n' : *at == 't' ? '\t' : *at);
		last = at[1] == '-' && at[2] ? (unsigned char)at[2] : first;
		if (at[1] == '-' && at[2])
			at += 2;
		for (unsigned c = first; c <= last && size < 500; c++)
			out[size++] = (char)c;
	}
	return size;
}

/*
 * Whether what tr does to a byte hides a text: another letter in its place, or a mark between letters taken away.
 * Upper case, other separators and no ends of lines are what everybody uses it for.
 */
static bool tr_hides(unsigned char from, const char *to)
{
	unsigned char other = to ? (unsigned char)*to : 0;

	if (!to)
		return isalnum(from) || strchr("@_#^%~!*+", from) != NULL;
	return isalnum(other) && tolower(from) != tolower(other);
}

static bool tr_output(struct arena *arena, const struct word *words, size_t count, const struct word *document,
		      struct word *ret_output)
{
	bool deletes = count > 2 && word_is(&words[1], "-d");
	char from[512], to[512];
	size_t from_size, to_size;
	struct word_draft draft;

	if (!document || count != 3)
		return false;
	from_size = tr_set(&words[deletes ? 2 : 1], from);
	to_size = deletes ? 0 : tr_set(&words[2], to);
	if (!from_size || (!deletes && !to_size))
		return false;
	draft = begin_like(arena, document, 0);
	for (uint32_t i = 0; i < document->size; i++) {
		const char *found = memchr(from, document->text[i], from_size);
		size_t at = found ? (size_t)(found - from) : 0;
		const char *becomes = deletes ? NULL : &to[at < to_size ? at : to_size - 1];

		if (found && document->text[i] != WORD_UNKNOWN && tr_hides((unsigned char)*found, becomes))
			draft.flags |= WORD_FROM_DECODED;
		if (document->text[i] == WORD_UNKNOWN) {
			word_put_unknown(&draft, NULL, 0);
		} else if (!found) {
			word_put(&draft, &document->text[i], 1);
		} else if (!deletes) {
			word_put(&draft, becomes, 1);
		}
	}
	*ret_output = word_end(&draft);
	return true;
}

static const struct {
	const char *name;
	bool (*output)(struct arena *arena, const struct word *words, size_t count, const struct word *document,
		       struct word *ret_output);
} programs[] = {
	{ "base32", base64_output }, { "base64", base64_output }, { "cat", cat_output },
	{ "command", which_output }, { "echo", echo_output },
	{ "openssl", openssl_output }, { "printf", printf_output }, { "rev", rev_output }, { "tee", cat_output },
	{ "tr", tr_output }, { "type", which_output }, { "which", which_output }, { "xxd", xxd_output },
};

bool decode_output(struct arena *arena, const struct word *words, size_t count, const struct word *document,
		   struct word *ret_output)
{
	const char *name;

	if (!count || !word_is_exact(&words[0]))
		return false;
	name = strrchr(words[0].text, '/') ? strrchr(words[0].text, '/') + 1 : words[0].text;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		if (str_equal(programs[i].name, name))
			return programs[i].output(arena, words, count, document, ret_output);
	}
	return false;
}
