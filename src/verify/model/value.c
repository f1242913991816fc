/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/model/value.h"

#include <inttypes.h>
#include <string.h>

#include "base/str.h"

enum { DEPTH_MAX = 8, TAINT_VALUES_MAX = 2048, ROOM_MIN = 512 };

static const char hole[] = { WORD_UNKNOWN, 0 };

const struct value value_nothing = { .kind = VALUE_UNKNOWN };

struct value *value_new(struct arena *arena, enum value_kind kind)
{
	struct value *value = arena_alloc(arena, sizeof *value);

	if (value)
		value->kind = (uint8_t)kind;
	return value;
}

static const struct value *value_or_nothing(const struct value *value)
{
	return value ? value : &value_nothing;
}

/* A copy to be changed; NULL without memory. */
static struct value *value_copy(struct arena *arena, const struct value *from)
{
	struct value *value = value_new(arena, VALUE_UNKNOWN);

	if (value && from)
		*value = *from;
	return value;
}

const struct value *value_text_holes(struct arena *arena, const char *bytes, size_t size, uint32_t flags)
{
	struct value *value = value_new(arena, VALUE_TEXT);

	if (!value)
		return &value_nothing;
	if (size > WORD_SIZE_MAX)
		size = WORD_SIZE_MAX;
	value->text = arena_text_n(arena, bytes, size);
	value->size = (uint32_t)size;
	value->flags = flags;
	return value->text ? value : &value_nothing;
}

const struct value *value_text(struct arena *arena, const char *bytes, size_t size, uint32_t flags)
{
	char *copy = arena_text_n(arena, bytes, size > WORD_SIZE_MAX ? WORD_SIZE_MAX : size);
	struct value *value = value_new(arena, VALUE_TEXT);

	if (!copy || !value)
		return &value_nothing;
	value->text = copy;
	value->size = (uint32_t)(size > WORD_SIZE_MAX ? WORD_SIZE_MAX : size);
	value->flags = flags;
	for (uint32_t i = 0; i < value->size; i++)
		if (!copy[i] || copy[i] == WORD_UNKNOWN)
			copy[i] = '?';
	if (size > WORD_SIZE_MAX)
		copy[value->size - 1] = WORD_UNKNOWN;
	return value;
}

const struct value *value_number(struct arena *arena, int64_t number)
{
	struct value *value = value_new(arena, VALUE_NUMBER);

	if (!value)
		return &value_nothing;
	value->number = number;
	return value;
}

const struct value *value_named(struct arena *arena, const char *name)
{
	struct value *value = name ? value_new(arena, VALUE_UNKNOWN) : NULL;

	if (!value)
		return &value_nothing;
	value->name = name;
	return value;
}

/* Where all items of a list are from. */
struct gathered {
	struct origins origins;
	uint32_t flags;
};

/* NULL without memory: it is gone through each time then. */
static const struct gathered *gather_items(struct arena *arena, const struct value *const *items, size_t count)
{
	struct gathered *gathered = arena_alloc(arena, sizeof *gathered);

	for (size_t i = 0; gathered && i < count; i++)
		gathered->flags |= value_origins(items[i], &gathered->origins);
	return gathered;
}

const struct value *value_list(struct arena *arena, const struct value *const *items, size_t count)
{
	size_t max = arena->size > VALUE_ARENA_MAX ? VALUE_ITEMS_SHORT_MAX : VALUE_ITEMS_MAX;
	size_t kept = count > max ? max : count;
	struct value *value = value_new(arena, VALUE_LIST);
	const struct value **copy = arena_alloc(arena, kept * sizeof *copy + 1);

	if (!value || !copy)
		return &value_nothing;
	for (size_t i = 0; i < kept; i++)
		copy[i] = value_or_nothing(items[i]);
	value->items = copy;
	value->count = (uint32_t)kept;
	value->is_cut = kept < count;
	/* What was cut is from where it is from all the same. */
	if (count)
		value->gathered = gather_items(arena, items, count);
	return value;
}

/* Lists in lists of the same lists are small to write and endless to look at. */
static uint32_t gather(const struct value *value, struct origins *origins, unsigned depth, unsigned *left)
{
	uint32_t flags = 0;

	for (; value && *left; value = value->other) {
		--*left;
		flags |= value->flags;
		origins_join(origins, &value->origins);
		if (value->gathered) {
			flags |= value->gathered->flags;
			origins_join(origins, &value->gathered->origins);
			continue;
		}
		for (uint32_t i = 0; depth < DEPTH_MAX && i < value->count && *left; i++)
			flags |= gather(value->items[i], origins, depth + 1, left);
	}
	origins->is_cut |= !*left;
	return flags & (WORD_FROM_DECODED | WORD_FROM_INPUT | WORD_FROM_ENVIRONMENT);
}

uint32_t value_origins(const struct value *value, struct origins *origins)
{
	unsigned left = TAINT_VALUES_MAX;

	return gather(value, origins, 0, &left);
}

const struct value *value_taint(struct arena *arena, const struct value *value)
{
	struct origins origins = { 0 };
	uint32_t flags = value_origins(value, &origins);
	struct value *taint;

	if (!flags && !origins.count)
		return &value_nothing;
	taint = value_new(arena, VALUE_UNKNOWN);
	if (!taint)
		return &value_nothing;
	taint->flags = flags;
	taint->origins = origins;
	return taint;
}

const struct value *value_also_from(struct arena *arena, const struct value *value, const struct value *from)
{
	struct origins origins = { 0 };
	uint32_t flags = value_origins(from, &origins);
	struct value *copy;

	if (!flags && !origins.count)
		return value_or_nothing(value);
	copy = value_copy(arena, value);
	if (!copy)
		return value_or_nothing(value);
	copy->flags |= flags;
	origins_join(&copy->origins, &origins);
	return copy;
}

const struct value *value_with_flags(struct arena *arena, const struct value *value, uint32_t flags)
{
	struct value *copy = value_copy(arena, value);

	if (!copy)
		return value_or_nothing(value);
	copy->flags |= flags;
	return copy;
}

const struct value *value_with_origin(struct arena *arena, const struct value *value, uint32_t operation)
{
	struct value *copy = operation == OPERATION_NONE ? NULL : value_copy(arena, value);

	if (!copy)
		return value_or_nothing(value);
	origins_add(&copy->origins, operation);
	return copy;
}

const struct value *value_with_name(struct arena *arena, const struct value *value, const char *name)
{
	struct value *copy = value_copy(arena, value);

	if (!copy)
		return value_or_nothing(value);
	copy->name = name;
	return copy;
}

const struct value *value_with_subject(struct arena *arena, const struct value *value,
				       const struct value *subject)
{
	struct value *copy = value_copy(arena, value);

	if (!copy)
		return value_or_nothing(value);
	copy->subject = subject;
	return copy;
}

const struct value *value_alone(struct arena *arena, const struct value *value)
{
	struct value *copy;

	if (!value || !value->other)
		return value_or_nothing(value);
	copy = value_copy(arena, value);
	if (!copy)
		return &value_nothing;
	copy->other = NULL;
	return copy;
}

static bool is_same(const struct value *a, const struct value *b)
{
	if (a == b)
		return true;
	if (a->kind != b->kind || a->name != b->name || a->flags != b->flags ||
	    a->origins.count != b->origins.count)
		return false;
	if (memcmp(a->origins.at, b->origins.at, a->origins.count * sizeof a->origins.at[0]) != 0)
		return false;
	switch (a->kind) {
	case VALUE_UNKNOWN:
		return true;
	case VALUE_TEXT:
		return a->size == b->size && memcmp(a->text, b->text, a->size) == 0;
	case VALUE_NUMBER:
		return a->number == b->number;
	case VALUE_FUNCTION:
		return a->node == b->node;
	default:
		return a->items == b->items;
	}
}

/* Adds to all what value may be and is not there yet; how many there are then. */
static size_t add_others(const struct value **all, size_t count, const struct value *value)
{
	for (; value && count < VALUE_OTHERS_MAX; value = value->other) {
		bool is_there = false;

		for (size_t i = 0; i < count; i++)
			is_there |= is_same(all[i], value);
		if (!is_there)
			all[count++] = value;
	}
	return count;
}

static size_t count_others(const struct value *value)
{
	size_t count = 0;

	for (; value && count <= VALUE_OTHERS_MAX; value = value->other)
		count++;
	return count;
}

const struct value *value_either(struct arena *arena, const struct value *a, const struct value *b)
{
	const struct value *all[VALUE_OTHERS_MAX];
	const struct value *made = NULL;
	size_t count, of_a, of_b;

	a = value_or_nothing(a);
	b = value_or_nothing(b);
	if (is_same(a, b) && !a->other && !b->other)
		return a;
	of_a = add_others(all, 0, a);
	count = add_others(all, of_a, b);
	/* Most often b is nothing new: values never change, so that what is there already is shared. */
	if (count == of_a && of_a == count_others(a))
		return a;
	of_b = count_others(b);
	if (count == of_a + of_b) {
		made = b;
		count = of_a;
	}
	for (size_t i = count; i > 0; i--) {
		struct value *copy = value_copy(arena, all[i - 1]);

		if (!copy)
			break;
		copy->other = made;
		made = copy;
	}
	return value_or_nothing(made);
}

const char *value_chars(struct arena *arena, const struct value *value, uint32_t *ret_size)
{
	const char *text = hole;
	char *decimal;

	if (value && value->kind == VALUE_TEXT) {
		const char *ended = value->text[value->size] ? arena_text_n(arena, value->text, value->size)
							     : value->text;

		*ret_size = ended ? value->size : 0;
		return ended ? ended : "";
	}
	if (value && value->kind == VALUE_NUMBER) {
		decimal = arena_format(arena, "%" PRId64, value->number);
		if (decimal)
			text = decimal;
	}
	*ret_size = (uint32_t)strlen(text);
	return text;
}

/*
 * A text that grows piece by piece would cost the square of its size. So a long one gets room behind it, and
 * whoever appends to the last version of it writes there; older versions know their size and are not changed
 * by that.
 */
struct value_room {
	uint32_t used, capacity;
	char bytes[];
};

static struct value_room *room_new(struct arena *arena, uint32_t size)
{
	uint32_t capacity = size < ROOM_MIN ? size : size * 2;
	struct value_room *room = arena_alloc(arena, sizeof *room + capacity + 1);

	if (room)
		room->capacity = capacity;
	return room;
}

static void room_put(struct value_room *room, const char *bytes, uint32_t size)
{
	memcpy(room->bytes + room->used, bytes, size);
	room->used += size;
	room->bytes[room->used] = '\0';
}

/* The two texts, one after the other, in value. False without memory. */
static bool join_texts(struct arena *arena, struct value *value, const struct value *a, const struct value *b)
{
	uint32_t a_size, b_size;
	const char *a_text = a->kind == VALUE_TEXT ? a->text : value_chars(arena, a, &a_size);
	const char *b_text = value_chars(arena, b, &b_size);
	struct value_room *room = a->kind == VALUE_TEXT ? a->room : NULL;
	bool is_cut = false;

	if (a->kind == VALUE_TEXT)
		a_size = a->size;
	/* Two holes are no more than one, and a text beyond the bound ends with one. */
	if (a_size && a_text[a_size - 1] == WORD_UNKNOWN && b_size && b_text[0] == WORD_UNKNOWN)
		b_text++, b_size--;
	if (arena->size > VALUE_ARENA_MAX && a_size + b_size > VALUE_SHORT_MAX)
		return false;
	if (a_size + b_size > VALUE_TEXT_MAX) {
		b_size = a_size >= VALUE_TEXT_MAX ? 0 : VALUE_TEXT_MAX - a_size;
		is_cut = b_size > 0;
	}
	if (!room || room->used != a_size || room->capacity - room->used < b_size) {
		room = room_new(arena, a_size + b_size);
		if (!room)
			return false;
		room_put(room, a_text, a_size);
	}
	room_put(room, b_text, b_size);
	if (is_cut)
		room->bytes[room->used - 1] = WORD_UNKNOWN;
	value->text = room->bytes;
	value->size = room->used;
	value->room = room;
	return true;
}

static const struct value *concat_two(struct arena *arena, const struct value *a, const struct value *b)
{
	struct value *value = value_new(arena, VALUE_TEXT);

	if (!value || !join_texts(arena, value, a, b))
		return value_also_from(arena, value_taint(arena, a), b);
	value->name = a->kind == VALUE_TEXT ? a->name : NULL;
	value->flags = value_origins(a->kind == VALUE_TEXT ? NULL : a, &value->origins);
	value->flags |= value_origins(b->kind == VALUE_TEXT ? NULL : b, &value->origins);
	value->flags |= a->flags | b->flags;
	origins_join(&value->origins, &a->origins);
	origins_join(&value->origins, &b->origins);
	return value;
}

const struct value *value_concat(struct arena *arena, const struct value *a, const struct value *b)
{
	const struct value *made = NULL;
	unsigned count = 0;

	a = value_or_nothing(a);
	b = value_or_nothing(b);
	for (const struct value *x = a; x; x = x->other) {
		for (const struct value *y = b; y && count < VALUE_OTHERS_MAX; y = y->other, count++) {
			const struct value *one = concat_two(arena, x, y);

			made = made ? value_either(arena, made, one) : one;
		}
	}
	return value_or_nothing(made);
}

bool value_is_exact(const struct value *value)
{
	return value && value->kind == VALUE_TEXT && !memchr(value->text, WORD_UNKNOWN, value->size);
}

struct word value_word(struct arena *arena, const struct value *value, struct span span)
{
	struct word word = { .span = span };

	value = value_or_nothing(value);
	word.text = value_chars(arena, value, &word.size);
	if (value->kind == VALUE_TEXT || value->kind == VALUE_NUMBER) {
		word.flags = value->flags;
		word.origins = value->origins;
		if (!memchr(word.text, WORD_UNKNOWN, word.size))
			word.flags |= WORD_EXACT;
	} else {
		word.flags = value_origins(value, &word.origins) | (value->flags & WORD_OBSCURED);
	}
	return word;
}

const struct value *value_item(const struct value *map, const char *key)
{
	if (!map || map->kind != VALUE_MAP)
		return NULL;
	for (uint32_t i = map->count; i > 0; i--)
		if (map->keys[i - 1] && str_equal(map->keys[i - 1], key))
			return map->items[i - 1];
	return NULL;
}

const char *value_name_join(struct arena *arena, const char *base, const char *separator, const char *member)
{
	if (strlen(base) + strlen(separator) + strlen(member) > VALUE_NAME_MAX)
		return NULL;
	return arena_format(arena, "%s%s%s", base, separator, member);
}
