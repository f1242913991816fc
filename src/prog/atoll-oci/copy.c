/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "os/fd.h"
#include "prog/atoll-oci/job.h"

enum { PROGRAM_MAX = 64 << 20 };

extern char **environ;

int copy_self(char **argv, struct err *err)
{
	cleanup_fd int self = fd_open_at(AT_FDCWD, "/proc/self/exe", O_RDONLY, 0), copy = FD_NONE;
	cleanup_free char *bytes = NULL;
	size_t size;
	int r, seals = self < 0 ? 0 : fcntl(self, F_GET_SEALS);

	if (seals > 0 && seals & F_SEAL_WRITE)
		return 0;
	r = fd_read_file_at(AT_FDCWD, "/proc/self/exe", PROGRAM_MAX, &bytes, &size);
	if (r == 0) {
		copy = fd_memfd_sealed("atoll-oci", bytes, size);
		r = copy < 0 ? copy : 0;
	}
	if (r == 0) {
		fexecve(copy, argv, environ);
		r = -errno;
	}
	return err_set(err, ERR_INTERNAL, -r, "start", "cannot run from a sealed copy of itself: %s", strerror(-r));
}
