/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/order.h"

#include <errno.h>
#include <string.h>

#include "base/str.h"

static int rank(char c)
{
	return c == 0 ? 0 : c == '/' ? 1 : (unsigned char)c + 2;
}

int path_compare(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return rank(*a) - rank(*b);
}

size_t path_count_up_to(const struct file_rule *rules, size_t count, const char *path)
{
	/* How many bytes of path the rules just outside low and high begin with: all between them as many. */
	size_t low = 0, high = count, low_common = 0, high_common = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2, common = low_common < high_common ? low_common : high_common;
		const char *pattern = rules[middle].pattern;

		while (pattern[common] && pattern[common] == path[common])
			common++;
		if (rank(pattern[common]) <= rank(path[common])) {
			low = middle + 1;
			low_common = common;
		} else {
			high = middle;
			high_common = common;
		}
	}
	return low;
}

int net_host_compare(const char *a, const char *b)
{
	return strcmp(a + (*a == '*'), b + (*b == '*'));
}

/*
 * How many bytes a and b begin with in common, up to the end of either. This is most of what loading a
 * snapshot costs, so it goes by words where the memory behind the strings is known to be there.
 */
static size_t common_length(const char *a, const char *b, const char *end)
{
	size_t length = 0, room = !end ? 0 : (size_t)(end - (a > b ? a : b));

	for (; length + 8 <= room; length += 8) {
		uint64_t x, y, zero;

		memcpy(&x, a + length, 8);
		memcpy(&y, b + length, 8);
		/* The lowest set bit is in the first NUL of a or at the first difference (little-endian). */
		zero = (x - 0x0101010101010101) & ~x & 0x8080808080808080;
		if ((x ^ y) | zero)
			return length + (size_t)__builtin_ctzll((x ^ y) | zero) / 8;
	}
	while (a[length] && a[length] == b[length])
		length++;
	return length;
}

int file_parents_fill(uint32_t *parents, uint32_t *lengths, const struct file_rule *rules, size_t count,
		      const char *end)
{
	for (size_t i = 0; i < count; i++) {
		const char *path = rules[i].pattern, *before = i ? rules[i - 1].pattern : "";
		uint32_t parent = (uint32_t)i - 1; /* UINT32_MAX for the first */
		size_t common = i ? common_length(before, path, end) : 0;

		if (rules[i].flags & FILE_GLOB || rank(before[common]) > rank(path[common]))
			return -EINVAL;
		if (i)
			lengths[parent] = before[common] ? UINT32_MAX : (uint32_t)common;
		/* What lies above path is the rule before it, or above that one; no longer than what both
		 * share. */
		while (parent != UINT32_MAX &&
		       (lengths[parent] > common ||
			(lengths[parent] > 1 && path[lengths[parent]] && path[lengths[parent]] != '/')))
			parent = parents[parent];
		parents[i] = parent;
	}
	return 0;
}

int path_depth(const char *path)
{
	int depth = 0;

	if (!path[1])
		return 0;
	for (; *path; path++)
		depth += *path == '/';
	return depth;
}
