/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/record/store.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"

enum { NAME_SIZE = 128, MODE = 0600 };

static int write_new(int dir_fd, const char *name, const void *bytes, size_t size)
{
	cleanup_fd int fd = fd_open_at(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, MODE);
	int r = fd < 0 ? fd : fd_write_full(fd, bytes, size);

	if (r == 0 && fsync(fd) < 0)
		r = -errno;
	return r;
}

int stage_store_file(int dir_fd, const char *name, const void *bytes, size_t size)
{
	char temporary[NAME_SIZE], suffix[SESSION_ID_SIZE];
	int r = random_session_id(suffix);

	if (r == 0)
		r = str_format(temporary, sizeof temporary, "%s.tmp.%s", name, suffix);
	if (r < 0)
		return r;
	r = write_new(dir_fd, temporary, bytes, size);
	if (r == 0 && renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	/*
	 * The directory is not synced: after a power cut the old file is there or the new one, and as file systems keep
	 * the order of such changes, never one that names what was made before it and is missing. Who removes what
	 * the old one named syncs first. Each sync costs milliseconds, and a snapshot should not.
	 */
	if (r < 0)
		unlinkat(dir_fd, temporary, 0);
	return r;
}

int stage_load_file(int dir_fd, const char *name, size_t max, char **ret_bytes, size_t *ret_size)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	return fd_read_file_at(dir_fd, name, max, ret_bytes, ret_size);
}

bool stage_session_is_valid(const char *text)
{
	return strlen(text) == SESSION_ID_SIZE - 1 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") == SESSION_ID_SIZE - 1;
}
