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

int net_host_compare(const char *a, const char *b)
{
	return strcmp(a + (*a == '*'), b + (*b == '*'));
}

int file_parents_fill(uint32_t *parents, const struct file_rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t parent = (uint32_t)i - 1; /* UINT32_MAX for the first */

		if (rules[i].flags & FILE_GLOB)
			return -EINVAL;
		if (i && path_compare(rules[i - 1].pattern, rules[i].pattern) > 0)
			return -EINVAL;
		while (parent != UINT32_MAX && !path_is_below(rules[i].pattern, rules[parent].pattern))
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
