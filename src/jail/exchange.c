/* SPDX-License-Identifier: Apache-2.0 */

/* What the parent and its children tell one another while the jail is built. */

#include <errno.h>
#include <unistd.h>

#include "jail/job.h"

int child_await(const struct jail_job *job)
{
	char byte;
	ssize_t size;

	do {
		size = read(job->child_socket, &byte, 1);
	} while (size < 0 && errno == EINTR);
	return size == 1 ? 0 : size < 0 ? -errno : -EPIPE;
}

int child_error(struct err *told, struct err *err)
{
	told->stage[sizeof told->stage - 1] = 0;
	told->message[sizeof told->message - 1] = 0;
	told->hint[sizeof told->hint - 1] = 0;
	if (err)
		*err = *told;
	return told->errnum > 0 ? -told->errnum : -EINVAL;
}
