/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/str.h"
#include "os/mount.h"
#include "os/path.h"
#include "watch/file/job.h"

/*
 * What an overlay that a user mounts does otherwise than other file systems, and somebody notices.
 *
 * Directories that a lower layer has are not renamed (EXDEV): gate-file/directory-move.c does that. fuse-overlayfs does
 * not rename them either, and what it shows of a directory's attributes is not all of them: there mv(1) and its like
 * copy as ever.
 *
 * A hard link to a file that a lower layer had when it was looked at last has another inode number than the file, as
 * the new name is looked up anew and its origin is found by nobody without rights on the host. Programs live with that,
 * but for git, which ends with "hardlink different from source" when it clones a repository beside it. Told EXDEV, it
 * copies. (To exchange the names, so that the link has the old number, would take the locks of whoever has the file
 * open away from its name.)
 */

bool file_move_is_refused(const struct file_job *job)
{
	const struct file_place *from = &job->places[0], *to = &job->places[1];
	struct statfs fs;
	uint64_t a, b;

	return job->call->run == file_run_rename && job->moves_directory && fstatfs(from->dir_fd, &fs) == 0 &&
	       fs.f_type == OVERLAYFS_SUPER_MAGIC && mount_id(from->dir_fd, &a) == 0 &&
	       mount_id(to->dir_fd, &b) == 0 && a == b;
}

/* Of a repository's objects; not what git makes of one a moment before. */
static bool may_be_git_object(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && strstr(path, "objects/") && !str_has_prefix(name + 1, "tmp_");
}

/* What most programs rename: a file. In as few calls as can be, for each rename pays for this look. */
static bool is_file(struct file_job *job)
{
	const char *path = job->text[0];
	cleanup_fd int base = FD_NONE, fd = FD_NONE;
	struct stat status;

	if (path[0] != '/') {
		base = file_caller_open_any(&job->caller, file_job_dir_fd(job, 0));
		if (base < 0)
			return false;
	}
	fd = path_open2(base < 0 ? job->caller.root_fd : base, path, O_PATH | O_NOFOLLOW, 0,
			(base < 0 ? RESOLVE_IN_ROOT : RESOLVE_BENEATH) | RESOLVE_NO_MAGICLINKS);
	return fd >= 0 && fstat(fd, &status) == 0 && !S_ISDIR(status.st_mode);
}

bool file_move_goes_on(struct file_job *job)
{
	if (job->call->run == file_run_link)
		return file_job_read_path(job, 0) || !may_be_git_object(job->text[0]);
	if (job->call->number == SYS_renameat2 && file_job_own(job, 0)) {
		uint32_t flags = (uint32_t)file_job_own(job, 0);

		/* The kernel's to refuse; and of an exchange the other one may be a directory. */
		return flags != RENAME_NOREPLACE && flags != RENAME_EXCHANGE;
	}
	/* What is missing may have been moved by this very call. */
	return file_job_read_path(job, 0) || is_file(job);
}

bool file_link_is_another(const struct file_job *job)
{
	const struct file_place *made = &job->places[1];
	struct stat status;

	if (!may_be_git_object(job->text[0]) || fstatat(made->dir_fd, made->name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
	    status.st_ino == job->places[0].status.st_ino)
		return false;
	return unlinkat(made->dir_fd, made->name, 0) == 0;
}
