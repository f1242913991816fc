/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Making words: values as far as they are known, joined from parts. Used by all walkers.
 * Pure but for memory.
 */

#include "base/buf.h"
#include "verify/model/operation.h"

/* A word under construction; init with words_begin(). */
struct word_draft {
	struct arena *arena;
	struct buf text; /* up to WORD_SIZE_MAX; what is beyond makes it inexact */
	uint32_t flags;
	struct origins origins;
	struct span span;
};

/* An empty word at span, of which nothing is unknown; all parts will live in the arena. */
void word_begin(struct word_draft *draft, struct arena *arena, struct span span);

/* Known bytes. NUL ends nothing: it and WORD_UNKNOWN become '?' (what the source has of them is no mark of ours). */
void word_put(struct word_draft *draft, const char *bytes, size_t size);

/* A part that is not known: from these operations (NULL: from nowhere known), with these flags (WORD_FROM_*). */
void word_put_unknown(struct word_draft *draft, const struct origins *origins, uint32_t flags);

/* A whole word, with its unknown parts, flags and origins. */
void word_put_word(struct word_draft *draft, const struct word *word);

/* Ends the draft and frees what it holds beside the arena. Exact when nothing unknown was put. */
struct word word_end(struct word_draft *draft);

/* A constant of our own, copied: exact, from no operation. */
struct word word_of(struct arena *arena, struct span span, const char *text);

/* One of which nothing is known but the flags (WORD_FROM_*): its text is WORD_UNKNOWN alone. */
struct word word_unknown(struct arena *arena, struct span span, uint32_t flags);

/* Whether all of the text is known for certain; and whether it is this text then. */
bool word_is_exact(const struct word *word);
bool word_is(const struct word *word, const char *text);
