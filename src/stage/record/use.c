/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/record/use.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "stage/record/record.h"

enum { PATIENCE_MS = 10000 };

/* By its name, for it may have been renamed (with its session, or alone) while we waited. */
static int check_name(int stage_fd, const char *session)
{
	char path[sizeof "../..//" STAGE_DIRECTORY + SESSION_ID_SIZE];
	struct stat opened, named;
	int r = str_format(path, sizeof path, "../../%s/" STAGE_DIRECTORY, session);

	if (r < 0)
		return r;
	if (fstat(stage_fd, &opened) < 0 || fstatat(stage_fd, path, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino ? 0 : -ENOENT;
}

int stage_use(int stage_fd, const char *session)
{
	int r = fd_lock_within(stage_fd, LOCK_SH, PATIENCE_MS);

	return r < 0 ? r : check_name(stage_fd, session);
}

int stage_claim(int stage_fd, unsigned patience_ms)
{
	return fd_lock_within(stage_fd, LOCK_EX, patience_ms);
}

void stage_release(int stage_fd)
{
	flock(stage_fd, LOCK_UN);
}
