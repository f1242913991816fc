/* SPDX-License-Identifier: Apache-2.0 */

/* The arguments of a file call, from its registers and its caller's memory. */

#include <errno.h>
#include <fcntl.h>

#include "os/identity.h"
#include "watch/file/job.h"

uint64_t file_job_own(const struct file_job *job, unsigned index)
{
	int last = -1;

	for (size_t i = 0; i < FILE_PATHS_MAX; i++) {
		const struct file_argument *argument = &job->call->arguments[i];
		int at = argument->naming == FILE_NAMES_FD ? argument->dir_fd : argument->path;

		if (argument->naming != FILE_NAMES_NOTHING && at > last)
			last = at;
	}
	return job->request->data.args[(unsigned)(last + 1) + index];
}
int file_job_dir_fd(const struct file_job *job, size_t index)
{
	int at = job->call->arguments[index].dir_fd;

	return at < 0 ? AT_FDCWD : (int)job->request->data.args[at];
}

int file_job_read_path(struct file_job *job, size_t index)
{
	const struct file_argument *argument = &job->call->arguments[index];
	uint64_t address = job->request->data.args[argument->path];
	ssize_t length;

	/* utimensat(fd, NULL, …) is futimens(3). */
	if (!address && job->naming[index] == FILE_NAMES_OBJECT && job->call->may_have_no_path) {
		job->naming[index] = FILE_NAMES_FD;
		return 0;
	}
	length = remote_read_string(job->remote, address, job->text[index], PATH_MAX + 1);
	if (length == -EPERM) {
		identity_return();
		length = remote_read_string(job->remote, address, job->text[index], PATH_MAX + 1);
	}
	if (length < 0)
		return length == -EFAULT ? EFAULT : EACCES;
	if (length == PATH_MAX)
		return ENAMETOOLONG;
	return length || job->naming[index] == FILE_NAMES_TEXT ? 0 : ENOENT;
}
