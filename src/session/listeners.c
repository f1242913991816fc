/* SPDX-License-Identifier: Apache-2.0 */
#include "session/listeners.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "os/fd.h"
#include "session/directories.h"
#include "session/record.h"

enum { LOCK_PATIENCE_MS = 1000 };

/* Negative: -errno. */
static int open_lock(bool makes, struct err *err)
{
	char runtime[PATH_MAX], path[PATH_MAX];
	int r = session_runtime_dir(runtime, sizeof runtime, makes, err);

	if (r == 0)
		r = str_format(path, sizeof path, "%s/listeners.lock", runtime);
	return r < 0 ? r : fd_open_at(AT_FDCWD, path, O_RDWR | O_NOFOLLOW | (makes ? O_CREAT : 0), 0600);
}

int listeners_join(int *ret_fd, struct err *err)
{
	cleanup_fd int fd = open_lock(true, err);
	int r = fd < 0 ? fd : fd_lock_within(fd, LOCK_SH, LOCK_PATIENCE_MS);

	if (r < 0)
		return err_set(err, ERR_STATE, -r, "ask", "the run-time directory cannot be used: %s",
			       err_errno_name(-r));
	*ret_fd = take_fd(&fd);
	return 0;
}

bool listeners_are_there(void)
{
	struct err ignored;
	cleanup_fd int fd = open_lock(false, &ignored);

	/* Ours for as long as this descriptor lives, should nobody else have it. */
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}
