/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What an expression of Python or JavaScript is worth, as far as it can be known without running it: a text
 * with holes, a number, a list, a map, a function of the file, something that a library has by that name;
 * which operations it came from; and what else it may be. Values never change and live in the judgement's
 * arena. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verify/model/operation.h"

enum {
	VALUE_OTHERS_MAX = 8,	/* alternatives of one value */
	VALUE_ITEMS_MAX = 4096, /* of a list or map */
	VALUE_NAME_MAX = 160,
	VALUE_TEXT_MAX = 64 << 10, /* bytes of a text that was put together */
	/* From so much memory of a judgement on, long texts and lists are no longer put together. */
	VALUE_ARENA_MAX = 24 << 20,
	VALUE_SHORT_MAX = 1024,	     /* bytes of a text, */
	VALUE_ITEMS_SHORT_MAX = 128, /* and items of a list, that are still */
};

enum value_kind {
	VALUE_UNKNOWN,
	VALUE_TEXT,
	VALUE_NUMBER,
	VALUE_LIST,
	VALUE_MAP,
	VALUE_FUNCTION, /* of the file */
};

struct gathered;

struct value {
	uint8_t kind;
	uint32_t flags; /* WORD_FROM_* */
	struct origins origins;
	const char *name; /* what the language calls it ("os.system"), its result ("open()"), or NULL */
	const char
		*text; /* VALUE_TEXT: size bytes, holes are WORD_UNKNOWN; value_chars() ends it with a NUL */
	uint32_t size;
	struct value_room *room; /* the memory that text stands in, where more may be put behind it */
	int64_t number;		 /* VALUE_NUMBER */
	const struct value *const *items; /* VALUE_LIST, VALUE_MAP */
	const char *const *keys;	  /* VALUE_MAP; NULL for one that is not known */
	uint32_t count;
	bool is_cut;	      /* a list or map that has more than is known */
	const struct gathered *gathered; /* of all items, where that was put together already; or NULL */
	uint32_t node, scope; /* VALUE_FUNCTION: where it stands, what it sees */
	const struct value
		*subject; /* what it was made from: the path of a file object, the URL of a request */
	const struct value *other; /* what else it may be */
};

/* Static: nothing is known and it came from nowhere. Every function below takes NULL for it, and returns it
 * without memory. */
extern const struct value value_nothing;

/* A new one, zeroed; NULL without memory. */
struct value *value_new(struct arena *arena, enum value_kind kind);

/* bytes are copied; NUL and WORD_UNKNOWN in them become '?' unless holes says that the latter are holes. */
const struct value *value_text(struct arena *arena, const char *bytes, size_t size, uint32_t flags);
const struct value *value_text_holes(struct arena *arena, const char *bytes, size_t size, uint32_t flags);
const struct value *value_number(struct arena *arena, int64_t number);

/* What the language or a library calls so: unknown but for that. The name is borrowed and must outlive the value. */
const struct value *value_named(struct arena *arena, const char *name);

/* A list of items (copied array). */
const struct value *value_list(struct arena *arena, const struct value *const *items, size_t count);

/* Unknown, but from where all of value (its items too) is from. */
const struct value *value_taint(struct arena *arena, const struct value *value);

/* The same value, into which whatever flowed into `from` flows too: its origins and flags are joined. */
const struct value *value_also_from(struct arena *arena, const struct value *value, const struct value *from);

/* The same value with flags or an origin added, under another name, or made from a subject. */
const struct value *value_with_flags(struct arena *arena, const struct value *value, uint32_t flags);
const struct value *value_with_origin(struct arena *arena, const struct value *value, uint32_t operation);
const struct value *value_with_name(struct arena *arena, const struct value *value, const char *name);
const struct value *value_with_subject(struct arena *arena, const struct value *value,
				       const struct value *subject);

/* The value alone, without what else it may be. */
const struct value *value_alone(struct arena *arena, const struct value *value);

/* One value that may be a or b, each with what else it may be, up to VALUE_OTHERS_MAX; equal ones once. */
const struct value *value_either(struct arena *arena, const struct value *a, const struct value *b);

/* Texts joined, of every alternative; numbers become text. */
const struct value *value_concat(struct arena *arena, const struct value *a, const struct value *b);

/* Where all of it is from: its own origins and those of items and alternatives. Returns the flags. */
uint32_t value_origins(const struct value *value, struct origins *origins);

/* Whether it is a text without holes. */
bool value_is_exact(const struct value *value);

/* Its text; "\x01" where it is none. NUL-terminated. */
const char *value_chars(struct arena *arena, const struct value *value, uint32_t *ret_size);

/* The value itself (not what else it may be) as a word at span: holes are WORD_UNKNOWN, numbers decimal. */
struct word value_word(struct arena *arena, const struct value *value, struct span span);

/* What a known key leads to in a VALUE_MAP, the last one of that name; NULL: no map, or no such key. */
const struct value *value_item(const struct value *map, const char *key);

/* "base" + separator + "member", or NULL where that is too long. */
const char *value_name_join(struct arena *arena, const char *base, const char *separator, const char *member);
