/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/quotas.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "box/session.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/quota.h"
#include "stage/record.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

/* Of one that does not run: it has no limit by then, unless nobody could take it away. */
static void collect(int sessions_fd, const char *session)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_fd int dir_fd = FD_NONE, stage_fd = FD_NONE;

	if (!session_id_is_valid(session))
		return;
	dir_fd = fd_open_at(sessions_fd, session, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir_fd < 0 || session_load(dir_fd, &record) < 0 || record.is_live)
		return;
	stage_fd = fd_open_at(dir_fd, STAGE_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (stage_fd >= 0)
		(void)!stage_quota_end(&stage_quota_kernel, stage_fd); /* a limit that holds nobody does no harm */
}

void quotas_collect(const char *state_dir)
{
	struct dirent *entry;
	char path[PATH_MAX];
	DIR *dir;

	if (geteuid() != 0 || str_format(path, sizeof path, "%s/sessions", state_dir) < 0)
		return;
	dir = opendir(path);
	if (!dir)
		return;
	if (quota_is_enforced(dirfd(dir))) {
		while ((entry = readdir(dir)))
			collect(dirfd(dir), entry->d_name);
		(void)!stage_quota_sweep(&stage_quota_kernel, dirfd(dir));
	}
	closedir(dir);
}

/* How root gets quotas on the file system that the state directory lies on. */
static const char *fix_for(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return "";
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
		return "unmount its file system, `tune2fs -O project,quota -Q prjquota DEVICE`, and mount it with "
		       "`-o prjquota`";
	case XFS_SUPER_MAGIC:
		return "mount its file system with `-o prjquota` (the root file system: `rootflags=prjquota` on the "
		       "kernel's command line)";
	}
	return "point XDG_STATE_HOME at ext4 or XFS mounted with `-o prjquota`";
}

void doctor_disk(struct findings *findings)
{
	static const char what[] = "disk limit";
	cleanup_fd int fd = FD_NONE;
	struct finding *finding;
	char state[PATH_MAX];
	struct err err;

	if (session_state_dir(state, sizeof state, true, &err) == 0)
		fd = fd_open_at(AT_FDCWD, state, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return;
	if (geteuid() != 0) {
		findings_add(findings, FINDING_NOTE, what,
			     "of what is staged: by counting, then writes fail; quotas are for root alone");
		return;
	}
	if (quota_is_enforced(fd)) {
		findings_add(findings, FINDING_OK, what, "of what is staged: by the file system (project quotas)");
		return;
	}
	finding = findings_add(findings, FINDING_NOTE, what,
			       "of what is staged: by counting, for %.150s has no project quotas", state);
	snprintf(finding->fix, sizeof finding->fix, "%s", fix_for(fd));
}
