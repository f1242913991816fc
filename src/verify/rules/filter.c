/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/rules/filter.h"

#include <string.h>

/*
 * Each pattern has a key that is in every text that it matches: the whole text where it has no wildcards, else four or
 * three bytes in a row of its longest part without. Keys lead to the bits of the vectors that have them. A text is gone
 * through once, and each place looked up. Case is folded (a byte's 0x20 is set on both sides), since some comparisons
 * ignore it.
 */

enum { FOLD = 0x20, LONG_GRAM = 4, SHORT_GRAM = 3 };

struct filter_key {
	uint64_t key;
	uint32_t next;   /* of the same hash: index + 1 */
	uint16_t bit;
};

/* What keys of one length have that those of another have not. */
enum { KEY_SHORT = 1, KEY_LONG = 2 };

static uint64_t gram_key(uint32_t gram, unsigned kind)
{
	return (uint64_t)kind << 32 | gram;
}

static uint64_t mix(uint64_t key, uint64_t bytes)
{
	return (key ^ (bytes | 0x0101010101010101 * FOLD)) * 0x9fb21c651e98df25;
}

static uint64_t whole_key(const char *text)
{
	size_t size = strlen(text);
	uint64_t key = size, bytes = 0;

	for (; size >= sizeof bytes; size -= sizeof bytes, text += sizeof bytes) {
		memcpy(&bytes, text, sizeof bytes);
		key = mix(key, bytes);
		key ^= key >> 32;
	}
	for (bytes = 0; size; size--)
		bytes = bytes << 8 | (unsigned char)*text++;
	/* Never one of gram_key(). */
	return mix(key, bytes) | 1ULL << 63;
}

static uint32_t hash_of(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15 >> 49);
}

_Static_assert(FILTER_SEEN == 1 << 15, "hash_of() has 15 bits");

bool is_path_pattern(const char *pattern)
{
	return pattern[0] == '/' || pattern[0] == '~' || strncmp(pattern, "**", 2) == 0 || strncmp(pattern, "./",
		2) == 0;
}

/*
 * The last bytes of the longest part without wildcards. What stands behind a "[" may be anything, and a "/" beside a
 * star need not be there: two stars may be no folder at all.
 */
static bool find_gram(const char *pattern, uint64_t *ret_key)
{
	const char *best = NULL;
	size_t best_size = 0;
	uint32_t gram = 0;

	for (const char *at = pattern; *at && *at != '[';) {
		size_t size = strcspn(at, "*?[\\");
		const char *begin = at, *end = at + size;

		if (begin > pattern && begin[-1] == '*' && size && *begin == '/')
			begin++;
		if (*end == '*' && end > begin && end[-1] == '/')
			end--;
		if ((size_t)(end - begin) > best_size) {
			best = end;
			best_size = (size_t)(end - begin);
		}
		at += size;
		if (*at == '\\')
			at += at[1] ? 2 : 1;
		else if (*at && *at != '[')
			at++;
	}
	if (best_size < SHORT_GRAM)
		return false;
	best_size = best_size < LONG_GRAM ? SHORT_GRAM : LONG_GRAM;
	for (const char *at = best - best_size; at < best; at++)
		gram = gram << 8 | (unsigned char)(*at | FOLD);
	*ret_key = gram_key(gram, best_size == LONG_GRAM ? KEY_LONG : KEY_SHORT);
	return true;
}

/* False: it may match anything. */
static bool find_key(const char *pattern, uint64_t *ret_key)
{
	if (strpbrk(pattern, "*?[\\"))
		return find_gram(pattern, ret_key);
	*ret_key = whole_key(pattern);
	return true;
}

static const struct filter_key *first_key(const struct filter *filter, uint32_t hash)
{
	uint32_t at = filter->heads[hash % FILTER_HEADS];

	return at ? (const struct filter_key *)filter->keys.items + (at - 1) : NULL;
}

static const struct filter_key *next_key(const struct filter *filter, const struct filter_key *key)
{
	return key->next ? (const struct filter_key *)filter->keys.items + (key->next - 1) : NULL;
}

static bool add_key(struct filter *filter, struct arena *arena, uint64_t key, uint16_t bit)
{
	uint32_t hash = hash_of(key), *head = &filter->heads[hash % FILTER_HEADS];
	struct filter_key *added = vec_add(arena, &filter->keys, sizeof *added);

	if (!added)
		return false;
	*added = (struct filter_key){ .key = key, .next = *head, .bit = bit };
	*head = (uint32_t)filter->keys.count;
	filter->seen[hash / 64] |= 1ULL << hash % 64;
	return true;
}

/* The keys of a vector for which there is none in the end lead to a bit that nobody asks for: no harm. */
static uint16_t add_vector(struct filter *filter, struct arena *arena, const struct vec *patterns, uint16_t bit)
{
	const char *const *items = patterns->items;

	for (size_t i = 0; i < patterns->count; i++) {
		uint64_t key;

		if (!find_key(items[i], &key) || !add_key(filter, arena, key, bit))
			return FILTER_ALWAYS;
		if (is_path_pattern(items[i]) && !strpbrk(items[i], "*?["))
			filter->by_glob.bits[bit / 64] |= 1ULL << bit % 64;
	}
	return bit;
}

/* Tells most vectors apart. */
static uint64_t sum_of(const struct vec *patterns)
{
	const char *const *items = patterns->items;

	return (whole_key(items[0]) * 31 + whole_key(items[patterns->count - 1])) * 31 + patterns->count;
}

static bool is_same(const struct filter_known *known, const struct vec *patterns)
{
	const char *const *items = known->items, *const *others = patterns->items;

	if (known->count != patterns->count)
		return false;
	for (size_t i = 0; i < patterns->count; i++)
		if (strcmp(items[i], others[i]) != 0)
			return false;
	return true;
}

/* The same patterns have the same bit, wherever they stand. */
static uint16_t find_bit(struct filter *filter, struct arena *arena, const struct vec *patterns)
{
	uint64_t sum = sum_of(patterns);
	struct filter_known *known = &filter->known_sums[hash_of(sum) % FILTER_KNOWN];
	uint16_t bit = (uint16_t)(1 + filter->vector_count % (FILTER_BITS - 1));

	if (is_same(known, patterns))
		return known->bit;
	filter->vector_count++;
	bit = add_vector(filter, arena, patterns, bit);
	*known = (struct filter_known){ patterns->items, patterns->count, bit };
	return bit;
}

uint16_t filter_add(struct filter *filter, struct arena *arena, const struct vec *patterns)
{
	uint64_t place = (uint64_t)(uintptr_t)patterns->items + patterns->count;
	struct filter_known *known = &filter->known_items[hash_of(place) % FILTER_KNOWN];

	if (!patterns->count)
		return FILTER_ALWAYS;
	if (known->items != patterns->items || known->count != patterns->count)
		*known = (struct filter_known){ patterns->items, patterns->count, find_bit(filter, arena, patterns) };
	return known->bit;
}

static void note_key(const struct filter *filter, uint64_t key, struct filter_hits *hits)
{
	uint32_t hash = hash_of(key);

	if (!(filter->seen[hash / 64] >> hash % 64 & 1))
		return;
	for (const struct filter_key *at = first_key(filter, hash); at; at = next_key(filter, at))
		if (at->key == key)
			hits->bits[at->bit / 64] |= 1ULL << at->bit % 64;
}

void filter_note_whole(const struct filter *filter, const char *text, struct filter_hits *hits)
{
	note_key(filter, whole_key(text), hits);
}

void filter_note(const struct filter *filter, const char *text, struct filter_hits *hits)
{
	uint32_t gram = 0;

	/* At the begin zeroes stand in it, which no key has. */
	for (const char *at = text; *at; at++) {
		gram = gram << 8 | (unsigned char)(*at | FOLD);
		note_key(filter, gram_key(gram, KEY_LONG), hits);
		note_key(filter, gram_key(gram & 0xffffff, KEY_SHORT), hits);
	}
	filter_note_whole(filter, text, hits);
}

void filter_note_globs(const struct filter *filter, struct filter_hits *hits)
{
	for (size_t i = 0; i < FILTER_BITS / 64; i++)
		hits->bits[i] |= filter->by_glob.bits[i];
}

void filter_note_all(struct filter_hits *hits)
{
	memset(hits->bits, 0xff, sizeof hits->bits);
}
