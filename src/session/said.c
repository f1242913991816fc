/* SPDX-License-Identifier: Apache-2.0 */
#include "session/said.h"

#include <fcntl.h>
#include <string.h>

#include "base/str.h"
#include "os/fd.h"

enum { FILE_SIZE_MAX = 16 << 10 };

static bool is_name(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

	return *name && strlen(name) <= SAID_NAME_MAX && strspn(name, letters) == strlen(name);
}

static bool has_line(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n')
		if (strcspn(text, "\n") == length && memcmp(text, name, length) == 0)
			return true;
	return false;
}

bool said_first_time(const char *state_dir, const char *name)
{
	cleanup_fd int dir_fd = fd_open_at(AT_FDCWD, state_dir, O_PATH | O_DIRECTORY, 0);
	cleanup_free char *before = NULL, *after = NULL;
	size_t size = 0;
	int r = dir_fd < 0 ? dir_fd : fd_read_file_at(dir_fd, SAID_FILE, FILE_SIZE_MAX, &before, &size);

	/* Two runs at a time can both say it. */
	if (!is_name(name) || (r < 0 && r != -ENOENT) || (before && has_line(before, name)))
		return false;
	after = str_printf("%s%s\n", before ? before : "", name);
	return after && strlen(after) <= FILE_SIZE_MAX &&
	       fd_replace_file_at(dir_fd, SAID_FILE, after, strlen(after), 0600) == 0;
}
