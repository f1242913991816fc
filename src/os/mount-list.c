/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mount-list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "os/fd.h"

enum { TEXT_MAX = 4 << 20, POINTS_MAX = 4096 };

/* Space, tab, newline and backslash are written as \ooo. In place. */
static void decode(char *text)
{
	char *out = text;

	for (const char *in = text; *in; in++) {
		bool is_escape = in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' &&
				 in[3] >= '0' && in[3] <= '7';

		*out++ = is_escape ? (char)((in[1] - '0') << 6 | (in[2] - '0') << 3 | (in[3] - '0')) : *in;
		in += is_escape ? 3 : 0;
	}
	*out = 0;
}

/* The fifth field of a line, decoded; NULL where there is none. */
static char *point_of(char *line)
{
	char *field = line;

	for (int i = 0; i < 4; i++) {
		field = strchr(field, ' ');
		if (!field)
			return NULL;
		field++;
	}
	field[strcspn(field, " ")] = 0;
	decode(field);
	return field;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorted; mounts upon one another are one. */
static void tidy(char **points, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(points, count, sizeof *points, compare);
	for (size_t i = 0; i < count; i++) {
		if (kept && str_equal(points[kept - 1], points[i]))
			free(points[i]);
		else
			points[kept++] = points[i];
	}
	points[kept] = NULL;
}

int mount_points_parse(char *text, const char *path, char ***ret_points)
{
	char **points = calloc(1, sizeof *points), *rest = text, *line;
	size_t count = 0;
	int r = points ? 0 : -ENOMEM;

	while (r == 0 && (line = strsep(&rest, "\n"))) {
		char *point = *line ? point_of(line) : NULL, **grown;

		if (*line && !point)
			r = -EBADMSG;
		if (!point || str_equal(point, path) || !path_is_below(point, path))
			continue;
		grown = count < POINTS_MAX ? realloc(points, (count + 2) * sizeof *points) : NULL;
		if (!grown) {
			r = count < POINTS_MAX ? -ENOMEM : -E2BIG;
			break;
		}
		points = grown;
		points[count] = str_dup(point);
		r = points[count] ? 0 : -ENOMEM;
		count += points[count] != NULL;
		points[count] = NULL;
	}
	if (r < 0) {
		strv_free(points);
		return r;
	}
	tidy(points, count);
	*ret_points = points;
	return 0;
}

int mount_points_below(const char *path, char ***ret_points)
{
	cleanup_free char *text = NULL;
	size_t size;
	int r = fd_read_file_at(AT_FDCWD, "/proc/self/mountinfo", TEXT_MAX, &text, &size);

	if (r < 0)
		return r == -EFBIG ? -E2BIG : r;
	return mount_points_parse(text, path, ret_points);
}
