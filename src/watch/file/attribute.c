/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "base/str.h"
#include "watch/file/job.h"

#ifndef XATTR_SIZE_MAX
#define XATTR_SIZE_MAX 65536
#endif

enum { SETID = S_ISUID | S_ISGID };

static int outcome(int r)
{
	return r < 0 ? errno : 0;
}

int file_prepare_mode(struct file_job *job)
{
	job->mode = (mode_t)file_job_own(job, 0) & 07777;
	return 0;
}

/* On a directory these bits give nobody anything. */
int file_check_mode(const struct file_job *job)
{
	return job->mode & SETID && !S_ISDIR(job->places[0].status.st_mode) ? FILE_JOB_REFUSED : 0;
}

/* Kernels differ about the mode of a link; that there is none is what the newer ones say. */
int file_run_chmod(struct file_job *job)
{
	char link[FILE_LINK_SIZE];

	if (S_ISLNK(job->places[0].status.st_mode))
		return EOPNOTSUPP;
	return outcome(chmod(file_link(job->places[0].fd, link), job->mode));
}

/* One id exists inside. */
static bool find_id(uint32_t asked, uint32_t inside, uint32_t outside, uint32_t *ret_id)
{
	*ret_id = asked == UINT32_MAX ? UINT32_MAX : outside;
	return asked == UINT32_MAX || asked == inside;
}

int file_run_chown(struct file_job *job)
{
	const struct file_view *view = job->caller.view;
	uint32_t uid, gid;

	if (!find_id((uint32_t)file_job_own(job, 0), view->uid_inside, view->uid, &uid) ||
	    !find_id((uint32_t)file_job_own(job, 1), view->gid_inside, view->gid, &gid))
		return EINVAL;
	return outcome(fchownat(job->places[0].fd, "", uid, gid, AT_EMPTY_PATH));
}

/* ---- times ---- */

static int copy(struct file_job *job, uint64_t address, void *out, size_t size)
{
	return -remote_read(job->remote, address, out, size);
}

int file_prepare_utime(struct file_job *job)
{
	struct utimbuf buffer;
	uint64_t address = file_job_own(job, 0);
	int errnum = address ? copy(job, address, &buffer, sizeof buffer) : 0;

	job->has_times = address && !errnum;
	if (job->has_times) {
		job->times[0] = (struct timespec){ .tv_sec = buffer.actime };
		job->times[1] = (struct timespec){ .tv_sec = buffer.modtime };
	}
	return errnum;
}

int file_prepare_utimes(struct file_job *job)
{
	struct timeval buffer[2];
	uint64_t address = file_job_own(job, 0);
	int errnum = address ? copy(job, address, buffer, sizeof buffer) : 0;

	job->has_times = address && !errnum;
	for (int i = 0; job->has_times && i < 2; i++) {
		if (buffer[i].tv_usec < 0 || buffer[i].tv_usec >= 1000000)
			return EINVAL;
		job->times[i] = (struct timespec){ buffer[i].tv_sec, buffer[i].tv_usec * 1000 };
	}
	return errnum;
}

int file_prepare_utimens(struct file_job *job)
{
	uint64_t address = file_job_own(job, 0);

	job->has_times = address;
	return address ? copy(job, address, job->times, sizeof job->times) : 0;
}

int file_run_times(struct file_job *job)
{
	return outcome(utimensat(job->places[0].fd, "", job->has_times ? job->times : NULL, AT_EMPTY_PATH));
}

/* ---- extended attributes ---- */

/*
 * What is not the user's asks for capabilities that nobody inside has, but that we may: root would set
 * security.capability. Access lists name ids, which for root's sandbox are not those of the caller.
 */
static int check_value_name(const struct file_job *job)
{
	const struct file_view *view = job->caller.view;

	if (str_has_prefix(job->value_name, "user."))
		return 0;
	if (str_has_prefix(job->value_name, "system.posix_acl_"))
		return view->uid == view->uid_inside ? 0 : EOPNOTSUPP;
	return str_has_prefix(job->value_name, "security.") || str_has_prefix(job->value_name, "trusted.") ?
		       EPERM : EOPNOTSUPP;
}

static int prepare_value_name(struct file_job *job)
{
	ssize_t length = remote_read_string(job->remote, file_job_own(job, 0), job->value_name, sizeof job->value_name);

	if (length < 0)
		return (int)-length;
	if (!length || (size_t)length == sizeof job->value_name - 1)
		return ERANGE;
	return check_value_name(job);
}

int file_prepare_set_value(struct file_job *job)
{
	uint64_t address = file_job_own(job, 1), size = file_job_own(job, 2);
	int errnum = prepare_value_name(job);

	job->flags = (int)file_job_own(job, 3);
	if (errnum)
		return errnum;
	if (job->flags & ~(XATTR_CREATE | XATTR_REPLACE))
		return EINVAL;
	if (size > XATTR_SIZE_MAX)
		return E2BIG;
	job->value = malloc(size + 1);
	if (!job->value)
		return ENOMEM;
	job->value_size = size;
	return size ? copy(job, address, job->value, size) : 0;
}

int file_prepare_remove_value(struct file_job *job)
{
	return prepare_value_name(job);
}

int file_run_set_value(struct file_job *job)
{
	char link[FILE_LINK_SIZE];

	/* A link has no attributes of its user's. */
	if (S_ISLNK(job->places[0].status.st_mode))
		return EPERM;
	return outcome(setxattr(file_link(job->places[0].fd, link), job->value_name, job->value, job->value_size,
				job->flags));
}

int file_run_remove_value(struct file_job *job)
{
	char link[FILE_LINK_SIZE];

	if (S_ISLNK(job->places[0].status.st_mode))
		return EPERM;
	return outcome(removexattr(file_link(job->places[0].fd, link), job->value_name));
}
