/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/model/words.h"

#include <string.h>

#include "base/buf.h"

void word_begin(struct word_draft *draft, struct arena *arena, struct span span)
{
	*draft = (struct word_draft){ .arena = arena, .flags = WORD_EXACT, .span = span };
	buf_init(&draft->text, WORD_SIZE_MAX);
}

static void put_raw(struct word_draft *draft, const char *bytes, size_t size)
{
	size_t room = WORD_SIZE_MAX - 1 - draft->text.size;

	if (size > room) {
		size = room;
		draft->flags = (draft->flags | WORD_CUT) & ~(uint32_t)WORD_EXACT;
	}
	buf_put(&draft->text, bytes, size);
}

void word_put(struct word_draft *draft, const char *bytes, size_t size)
{
	size_t begin = 0;

	for (size_t i = 0; i < size; i++) {
		if (bytes[i] && bytes[i] != WORD_UNKNOWN)
			continue;
		put_raw(draft, bytes + begin, i - begin);
		put_raw(draft, "?", 1);
		begin = i + 1;
	}
	put_raw(draft, bytes + begin, size - begin);
}

void word_put_unknown(struct word_draft *draft, const struct origins *origins, uint32_t flags)
{
	const struct buf *text = &draft->text;

	/* One mark for what is unknown in a row. */
	if (!text->size || text->bytes[text->size - 1] != WORD_UNKNOWN)
		put_raw(draft, (const char[]){ WORD_UNKNOWN }, 1);
	draft->flags = (draft->flags | flags) & ~(uint32_t)WORD_EXACT;
	if (origins)
		origins_join(&draft->origins, origins);
}

void word_put_word(struct word_draft *draft, const struct word *word)
{
	put_raw(draft, word->text, word->size);
	if (!(word->flags & WORD_EXACT))
		draft->flags &= ~(uint32_t)WORD_EXACT;
	draft->flags |= word->flags & ~(uint32_t)WORD_EXACT;
	origins_join(&draft->origins, &word->origins);
}

struct word word_end(struct word_draft *draft)
{
	struct word word = { .flags = draft->flags, .span = draft->span, .origins = draft->origins, .text = "" };
	const char *text = NULL;

	if (buf_error(&draft->text) == 0)
		text = arena_text_n(draft->arena, draft->text.bytes ? draft->text.bytes : (const uint8_t *)"",
				    draft->text.size);
	if (text) {
		word.text = text;
		word.size = (uint32_t)draft->text.size;
	} else {
		word.flags &= ~(uint32_t)WORD_EXACT;
	}
	buf_done(&draft->text);
	return word;
}

struct word word_of(struct arena *arena, struct span span, const char *text)
{
	struct word_draft draft;

	word_begin(&draft, arena, span);
	word_put(&draft, text, strlen(text));
	return word_end(&draft);
}

struct word word_unknown(struct arena *arena, struct span span, uint32_t flags)
{
	struct word_draft draft;

	word_begin(&draft, arena, span);
	word_put_unknown(&draft, NULL, flags);
	return word_end(&draft);
}

bool word_is_exact(const struct word *word)
{
	return word && word->flags & WORD_EXACT;
}

bool word_is(const struct word *word, const char *text)
{
	return word_is_exact(word) && strcmp(word->text, text) == 0;
}
