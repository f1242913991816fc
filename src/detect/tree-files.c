/* SPDX-License-Identifier: Apache-2.0 */
#include "detect/tree-files.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"

enum { DEPTH_MAX = 64 };

struct counting {
	uint64_t files, left;        /* left: entries that may still be looked at */
};

static void count_below(struct counting *counting, int dir_fd, unsigned depth);

static void count_entry(struct counting *counting, int dir_fd, const struct dirent *entry, unsigned depth)
{
	cleanup_fd int fd = FD_NONE;

	counting->left--;
	if (entry->d_type != DT_DIR) {
		counting->files++;
		return;
	}
	fd = fd_open_at(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd >= 0 && depth < DEPTH_MAX)
		count_below(counting, take_fd(&fd), depth + 1);
}

/* Takes dir_fd. */
static void count_below(struct counting *counting, int dir_fd, unsigned depth)
{
	DIR *dir = path_list(dir_fd);
	struct dirent *entry;

	if (!dir)
		return;
	while (counting->left && (entry = readdir(dir)))
		if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, ".."))
			count_entry(counting, dirfd(dir), entry, depth);
	closedir(dir);
}

uint64_t tree_count_files(const char *path, uint64_t bound)
{
	struct counting counting = { .left = 2 * bound };
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	if (fd >= 0)
		count_below(&counting, take_fd(&fd), 0);
	/* Directories without end are no reason to look at all of them: as many as somebody cared for. */
	return counting.files > bound || !counting.left ? bound : counting.files;
}
