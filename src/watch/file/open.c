/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "os/remote/userns.h"
#include "watch/file/job.h"

/*
 * A directory that is to be read is opened where it is found: that is all that happens to it, and nobody gets it
 * before it was judged. So is a file that was given before and lies where the sandbox cannot put anything else. What
 * else there is could notice being opened (a FIFO's other end, a terminal).
 *
 * What was found is opened again through /proc/self/fd, so that it is that very object, on the mount where it was
 * found: what that forbids stays forbidden, and the kernel looks at its mode as for the caller. It is opened without
 * blocking, because a FIFO waits for its other end and a lease for its holder, who may be the caller itself; whoever
 * really would wait gets a process of its own to wait in (files.c).
 */

enum {
	CREATING = O_CREAT | (O_TMPFILE & ~O_DIRECTORY),
	SETID = S_ISUID | S_ISGID,
	/* What the opening of a found object takes over. */
	REOPEN_FLAGS = O_ACCMODE | O_APPEND | O_TRUNC | O_DSYNC | O_SYNC | O_DIRECT | O_DIRECTORY | O_NOATIME |
		       O_TMPFILE,
	STATUS_FLAGS = O_APPEND | O_DIRECT | O_NOATIME,
};

static bool is_temporary(int flags)
{
	return (flags & O_TMPFILE) == O_TMPFILE;
}

static bool is_writing(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC || is_temporary(flags);
}

static int prepare_flags(struct file_job *job, int flags, mode_t mode)
{
	if (flags & CREATING && mode & SETID)
		return FILE_JOB_REFUSED;
	/* These the filter lets go by. */
	if (flags & O_PATH)
		return EINVAL;
	if (is_temporary(flags) && (flags & O_ACCMODE) == O_RDONLY)
		return EINVAL;
	/* O_CREAT with O_DIRECTORY means nothing; kernels since 6.4 say so. */
	if ((flags & (O_CREAT | O_DIRECTORY)) == (O_CREAT | O_DIRECTORY) && !is_temporary(flags))
		return EINVAL;
	job->flags = flags;
	job->mode = mode & 07777;
	/* A link is not followed where a file is to be new. */
	if (flags & O_NOFOLLOW || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		job->how[0] |= FILE_PATH_NOFOLLOW;
	/* With a slash behind it, what is there is not asked for: that makes no file. */
	if (flags & O_CREAT && !is_temporary(flags))
		job->how[0] |= str_has_suffix(job->text[0], "/") ? FILE_PATH_PARENT : FILE_PATH_MAKES;
	if (flags & O_DIRECTORY)
		job->how[0] |= FILE_PATH_DIRECTORY;
	if (!(flags & (REOPEN_FLAGS | CREATING) & ~O_DIRECTORY))
		job->how[0] |= FILE_PATH_READ;
	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) && job->how[0] & FILE_PATH_MAKES)
		job->how[0] |= FILE_PATH_NEW;
	job->access = is_writing(flags) ? WATCH_FILE_WRITE : WATCH_FILE_READ;
	return 0;
}

int file_prepare_open(struct file_job *job)
{
	return prepare_flags(job, (int)file_job_own(job, 0), (mode_t)file_job_own(job, 1));
}

int file_prepare_creat(struct file_job *job)
{
	return prepare_flags(job, O_CREAT | O_WRONLY | O_TRUNC, (mode_t)file_job_own(job, 0));
}

/* /dev/tty is the terminal of whoever opens it: of ours there is nothing inside. */
static int open_terminal(struct file_job *job)
{
	dev_t terminal = file_caller_terminal(&job->caller);
	char path[32];
	struct stat status;
	int fd;

	if (!terminal || str_format(path, sizeof path, "/dev/pts/%u", minor(terminal)) < 0)
		return -ENXIO;
	fd = path_open2(job->caller.root_fd, path, (unsigned)job->open_flags | O_NONBLOCK | O_NOCTTY, 0,
			RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
	if (fd >= 0 && (fstat(fd, &status) < 0 || status.st_rdev != terminal)) {
		close(fd);
		return -ENXIO;
	}
	return fd;
}

static bool is_terminal_alias(const struct stat *status)
{
	return S_ISCHR(status->st_mode) && status->st_rdev == makedev(5, 0);
}

/* fd was opened without blocking, which is not what the caller asked for. */
static int put_result(struct file_job *job, int fd)
{
	if (!(job->flags & O_NONBLOCK) && fcntl(fd, F_SETFL, job->open_flags & STATUS_FLAGS) < 0) {
		close(fd);
		return EIO;
	}
	job->result_fd = fd;
	return 0;
}

static bool would_block(const struct file_job *job, const struct stat *status, int r)
{
	if (job->flags & O_NONBLOCK)
		return false;
	if (S_ISFIFO(status->st_mode))
		return (job->flags & O_ACCMODE) != O_RDWR;
	return S_ISREG(status->st_mode) && r == -EAGAIN;
}

/* What /proc shows is made when it is asked for. */
static void remember_quiet(const struct file_job *job, int fd)
{
	const struct file_place *place = &job->places[0];

	if (job->how[0] & FILE_PATH_READ && S_ISREG(place->status.st_mode) && str_equal(place->path, job->text[0]) &&
	    !path_is_below(place->path, "/proc"))
		file_view_add_quiet(job->caller.view, place->path, fd);
}

/* They ask in whose user namespace they were opened, each time that they are written to. */
static bool asks_who_opened_it(const struct file_job *job)
{
	static const char *const names[] = { "uid_map", "gid_map", "projid_map", "setgroups" };
	const struct file_place *place = &job->places[0];

	if (job->access != WATCH_FILE_WRITE || !S_ISREG(place->status.st_mode) || !path_is_below(place->path, "/proc"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_equal(path_basename(place->path), names[i]))
			return true;
	return false;
}

static int open_object(struct file_job *job)
{
	struct file_place *place = &job->places[0];
	const struct stat *status = &place->status;
	int fd;

	if ((job->flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return EEXIST;
	if (S_ISLNK(status->st_mode))
		return job->flags & O_DIRECTORY ? ENOTDIR : ELOOP;
	if (job->flags & O_CREAT && S_ISDIR(status->st_mode))
		return EISDIR;
	job->open_flags = job->flags & REOPEN_FLAGS;
	if (place->is_open)
		return put_result(job, take_fd(&place->fd));
	if (S_ISFIFO(status->st_mode) && would_block(job, status, 0))
		return FILE_JOB_BLOCKS;
	if (is_terminal_alias(status))
		fd = open_terminal(job);
	else if (asks_who_opened_it(job))
		fd = userns_open(job->caller.pid, place->fd, job->open_flags | O_NONBLOCK);
	else
		fd = file_open_again(job->caller.view, place->fd, job->open_flags | O_NONBLOCK, job->mode);
	if (fd < 0)
		return would_block(job, status, fd) ? FILE_JOB_BLOCKS : -fd;
	remember_quiet(job, fd);
	return put_result(job, fd);
}

/* Exclusively: what stands there by now was not judged. */
static int create(struct file_job *job)
{
	const struct file_place *place = &job->places[0];
	int fd;

	if (place->name[0] && place->name[1] && str_has_suffix(place->name, "/"))
		return EISDIR;
	/* A new file has nobody to wait for. */
	job->open_flags = job->flags & (REOPEN_FLAGS | O_NONBLOCK);
	fd = fd_open_at(place->dir_fd, place->name, job->open_flags | O_CREAT | O_EXCL | O_NOFOLLOW, job->mode);
	if (fd < 0)
		return -fd;
	job->result_fd = fd;
	return 0;
}

bool file_open_makes(const struct file_job *job)
{
	return job->call->run == file_run_open &&
	       (is_temporary(job->flags) || (job->flags & O_CREAT && job->places[0].fd < 0));
}

int file_run_open(struct file_job *job)
{
	bool makes = file_open_makes(job);
	mode_t old = 0;
	int r;

	if (job->how[0] & FILE_PATH_PARENT)
		return EISDIR;
	if (job->places[0].fd < 0 && !(job->flags & O_CREAT))
		return ENOENT;
	if (makes)
		old = umask(job->caller.umask);
	r = job->places[0].fd < 0 ? create(job) : open_object(job);
	if (makes)
		umask(old);
	return r;
}

int file_prepare_truncate(struct file_job *job)
{
	struct rlimit limit;

	if ((int64_t)file_job_own(job, 0) < 0)
		return EINVAL;
	if (prlimit(job->caller.pid, RLIMIT_FSIZE, NULL, &limit) < 0)
		return EACCES;
	job->size_max = limit.rlim_cur;
	return 0;
}

int file_run_truncate(struct file_job *job)
{
	const struct stat *status = &job->places[0].status;
	cleanup_fd int fd = FD_NONE;
	off_t size = (off_t)file_job_own(job, 0);

	if (!S_ISREG(status->st_mode))
		return S_ISDIR(status->st_mode) ? EISDIR : EINVAL;
	if (job->size_max != RLIM_INFINITY && (rlim_t)size > job->size_max && size > status->st_size)
		return EFBIG;
	/* A lease that would have to be broken first: EAGAIN, where the kernel waits. */
	fd = file_open_again(job->caller.view, job->places[0].fd, O_WRONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return -fd;
	return ftruncate(fd, size) < 0 ? errno : 0;
}
