/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

int sealed_snapshot_load(int fd, struct snapshot **ret_snapshot)
{
	off_t end = lseek(fd, 0, SEEK_END); /* fstat(2) takes a path as well, and so is none of our calls */
	size_t size = (size_t)end;
	void *bytes;
	int r;

	/* Sealed: nobody can change or cut off what was validated. */
	if (fcntl(fd, F_GET_SEALS) != SEALS || end < 0)
		return -EPERM;
	if (!size || size > SNAPSHOT_SIZE_MAX)
		return -EFBIG;
	bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	r = snapshot_load(ret_snapshot, bytes, size);
	if (r < 0)
		munmap(bytes, size);
	return r;
}
