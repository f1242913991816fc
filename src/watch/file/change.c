/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/mount.h"
#include "watch/file/job.h"

/*
 * Names are made, moved and removed in the directories that were found. Between the judgement and the call nobody
 * inside can change what such a name means: every call that could comes here too, one after the other.
 */

enum { SETID = S_ISUID | S_ISGID };

static int outcome(int r)
{
	return r < 0 ? errno : 0;
}

int file_prepare_node(struct file_job *job)
{
	mode_t mode = (mode_t)file_job_own(job, 0);

	return S_ISCHR(mode) || S_ISBLK(mode) || mode & SETID ? FILE_JOB_REFUSED : 0;
}

int file_prepare_rename(struct file_job *job)
{
	job->flags = (int)file_job_own(job, 0);
	/* A whiteout is a device node. */
	return job->flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE) ? job->flags & RENAME_WHITEOUT ? EPERM : EINVAL : 0;
}

int file_prepare_unlink(struct file_job *job)
{
	job->flags = (int)file_job_own(job, 0);
	return job->flags & ~AT_REMOVEDIR ? EINVAL : 0;
}

/*
 * What is mounted in the sandbox is no mount point in our own mount namespace. There the kernel lets it be renamed,
 * with what is mounted on it, and removed, by which that is unmounted; inside it would answer EBUSY. Where nothing can
 * be written the kernel, which is asked then, says EROFS before it looks at mounts.
 */
static bool is_busy(const struct file_place *place)
{
	struct statvfs fs;

	return mount_is_root(place->dir_fd, place->name) &&
	       !(fstatvfs(place->dir_fd, &fs) == 0 && fs.f_flag & ST_RDONLY);
}

static int remove_name(const struct file_place *place, int flags)
{
	return is_busy(place) ? EBUSY : outcome(unlinkat(place->dir_fd, place->name, flags));
}

int file_run_rename(struct file_job *job)
{
	const struct file_place *from = &job->places[0], *to = &job->places[1];

	if (is_busy(from) || is_busy(to))
		return EBUSY;
	return outcome((int)syscall(SYS_renameat2, from->dir_fd, from->name, to->dir_fd, to->name, job->flags));
}

int file_run_link(struct file_job *job)
{
	char link[FILE_LINK_SIZE];
	int r = linkat(AT_FDCWD, file_link(job->places[0].fd, link), job->places[1].dir_fd, job->places[1].name,
		       AT_SYMLINK_FOLLOW);

	return r == 0 && file_link_is_another(job) ? EXDEV : outcome(r);
}

int file_run_symlink(struct file_job *job)
{
	return outcome(symlinkat(job->text[0], job->places[1].dir_fd, job->places[1].name));
}

int file_run_unlink(struct file_job *job)
{
	return remove_name(&job->places[0], job->flags);
}

int file_run_rmdir(struct file_job *job)
{
	return remove_name(&job->places[0], AT_REMOVEDIR);
}

int file_run_mkdir(struct file_job *job)
{
	mode_t old = umask(job->caller.umask);
	int r = mkdirat(job->places[0].dir_fd, job->places[0].name, (mode_t)file_job_own(job, 0) & 07777);

	r = outcome(r);
	umask(old);
	return r;
}

int file_run_mknod(struct file_job *job)
{
	mode_t old = umask(job->caller.umask);
	int r = mknodat(job->places[0].dir_fd, job->places[0].name, (mode_t)file_job_own(job, 0), 0);

	r = outcome(r);
	umask(old);
	return r;
}
