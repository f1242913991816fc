/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a kernel with quotas has, for tests/vm/quota-tests: "quota-limits DIRECTORY" prints whether projects are limited
 * on its file system, and "BYTES INODES" of each limit in the range of sessions, one a line. "quota-limits leave
 * DIRECTORY" tries to get it out of its project, "quota-limits set DIRECTORY" gives it one as an administrator does.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "os/fd.h"
#include "stage/quota.h"

enum { ADMIN_PROJECT = 1000 };

static const struct quota_limit admin_limit = { 24 << 20, 0 };

int main(int argc, char **argv)
{
	cleanup_fd int fd = argc > 1 ? fd_open_at(AT_FDCWD, argv[argc - 1], O_RDONLY | O_DIRECTORY, 0) : FD_NONE;
	struct quota_state state;
	uint32_t project = STAGE_QUOTA_FIRST;

	if (fd < 0)
		return 2;
	if (argc == 3 && strcmp(argv[1], "leave") == 0)
		return quota_assign(fd, 0) < 0;
	if (argc == 3 && strcmp(argv[1], "set") == 0)
		return quota_assign(fd, ADMIN_PROJECT) < 0 || quota_limit(fd, ADMIN_PROJECT, &admin_limit) < 0;
	if (!quota_is_enforced(fd)) {
		puts("not enforced");
		return 1;
	}
	puts("enforced");
	for (; quota_next(fd, project, &project, &state) == 0 && project - STAGE_QUOTA_FIRST < STAGE_QUOTA_COUNT;
	     project++)
		if (state.limit.bytes || state.limit.inodes)
			printf("%llu %llu\n", (unsigned long long)state.limit.bytes,
			       (unsigned long long)state.limit.inodes);
	return 0;
}
