/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "verify/model/decode.h"
#include "verify/script/text.h"

enum { ITEMS_MAX = SCRIPT_REPEAT_MAX };

/* Unknown, from there, and hidden until now. */
static const struct value *hidden(struct script *script, const struct value *from)
{
	uint32_t flags = WORD_FROM_DECODED | (value_is_exact(from) ? (uint32_t)WORD_OBSCURED : 0);

	return value_with_flags(script->arena, value_taint(script->arena, from), flags);
}

typedef bool (*decoder)(struct arena *arena, const struct word *text, struct word *ret_decoded);

static const struct value *decode_with(struct script *script, const struct call *call,
				       const struct value *from, decoder decode)
{
	struct word word = value_word(script->arena, from, script_span(script, call->node)), decoded;

	if (!value_is_exact(from) || !decode(script->arena, &word, &decoded))
		return hidden(script, from);
	return value_also_from(script->arena,
			       value_text_holes(script->arena, decoded.text, decoded.size,
						decoded.flags | WORD_FROM_DECODED),
			       from);
}

const struct value *text_from_base64(struct script *script, const struct call *call)
{
	return decode_with(script, call, text_first(call), decode_base64);
}

const struct value *text_from_base32(struct script *script, const struct call *call)
{
	return decode_with(script, call, text_first(call), decode_base32);
}

const struct value *text_from_hex(struct script *script, const struct call *call)
{
	return decode_with(script, call, text_first(call), decode_hex);
}

const struct value *text_from_packed(struct script *script, const struct call *call)
{
	return hidden(script, text_first(call));
}

static const struct value *rot13(struct script *script, const struct value *from)
{
	uint32_t size;
	const char *bytes = text_exact(script, from, &size);
	char *copy = bytes ? arena_text_n(script->arena, bytes, size) : NULL;

	if (!copy)
		return hidden(script, from);
	for (uint32_t i = 0; i < size; i++) {
		int base = islower((unsigned char)copy[i]) ? 'a' : isupper((unsigned char)copy[i]) ? 'A' : 0;

		if (base)
			copy[i] = (char)((copy[i] - base + 13) % 26 + base);
	}
	return value_text(script->arena, copy, size, WORD_FROM_DECODED);
}

/* codecs.decode(x, "rot13"), Buffer.from(x, "base64"), x.decode("hex") */
static const struct value *from_named(struct script *script, const struct call *call,
				      const struct value *from, const struct value *codec)
{
	uint32_t size;
	const char *name = text_exact(script, codec, &size);

	if (!name)
		return codec->kind == VALUE_UNKNOWN ? from : hidden(script, from);
	if (str_has_prefix(name, "rot"))
		return rot13(script, from);
	if (str_has_prefix(name, "base64"))
		return decode_with(script, call, from, decode_base64);
	if (str_has_prefix(name, "hex"))
		return decode_with(script, call, from, decode_hex);
	if (str_has_prefix(name, "zlib") || str_has_prefix(name, "zip") || str_has_prefix(name, "bz2"))
		return hidden(script, from);
	return from;
}

/* A list of numbers as the characters they stand for. */
static const struct value *characters(struct script *script, const struct value *const *items, size_t count)
{
	char text[ITEMS_MAX * 4];
	size_t size = 0;

	for (size_t i = 0; i < count; i++) {
		uint32_t rune = (uint32_t)items[i]->number;

		if (items[i]->kind != VALUE_NUMBER || items[i]->number < 0 || items[i]->number > 0x10ffff ||
		    i >= ITEMS_MAX)
			return NULL;
		if (rune < 0x80) {
			text[size++] = (char)rune;
		} else {
			text[size++] = (char)(0xc0 | (rune >> 6 & 0x1f));
			text[size++] = (char)(0x80 | (rune & 0x3f));
		}
	}
	return value_text(script->arena, text, size, WORD_FROM_DECODED);
}

const struct value *text_from_codes(struct script *script, const struct call *call)
{
	const struct value *made = characters(script, call->arguments, call->count);

	if (call->count == 1 && call->arguments[0]->kind == VALUE_LIST)
		made = characters(script, call->arguments[0]->items, call->arguments[0]->count);
	return made ? made : hidden(script, text_first(call));
}

/* bytes([114, 109]), Buffer.from([…]), Buffer.from(text, codec) */
const struct value *text_to_bytes(struct script *script, const struct call *call)
{
	const struct value *from = text_first(call), *made;

	/* bytes(int(x, 2) for x in …) */
	if (from->kind == VALUE_UNKNOWN && !from->name && !script->language->index_is_member && call->callee->name &&
	    str_has_prefix(call->callee->name, "byte"))
		return value_with_flags(script->arena, from, WORD_OBSCURED);
	if (from->kind != VALUE_LIST)
		return from_named(script, call, from, text_argument(call, 1));
	made = characters(script, from->items, from->count);
	return made ? made : hidden(script, from);
}

const struct value *text_from_codec(struct script *script, const struct call *call)
{
	return from_named(script, call, text_first(call), text_argument(call, 1));
}

const struct value *text_decode(struct script *script, const struct call *call)
{
	return from_named(script, call, call->self, text_argument(call, 0));
}

const struct value *text_from_percent(struct script *script, const struct call *call)
{
	uint32_t size, made = 0;
	const char *bytes = text_exact(script, text_first(call), &size);
	char *copy = bytes ? arena_text_n(script->arena, bytes, size) : NULL;

	if (!copy)
		return text_first(call);
	for (uint32_t i = 0; i < size; i++) {
		char digits[3] = { bytes[i], i + 1 < size ? bytes[i + 1] : 0, 0 };

		if (bytes[i] == '%' && i + 2 < size && isxdigit((unsigned char)bytes[i + 1]) &&
		    isxdigit((unsigned char)bytes[i + 2])) {
			memcpy(digits, bytes + i + 1, 2);
			copy[made++] = (char)strtol(digits, NULL, 16);
			i += 2;
		} else {
			copy[made++] = bytes[i];
		}
	}
	return value_text(script->arena, copy, made, made < size ? WORD_FROM_DECODED : 0);
}
