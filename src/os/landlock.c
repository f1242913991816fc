/* SPDX-License-Identifier: Apache-2.0 */
#include "os/landlock.h"

#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

enum {
	CREATE_VERSION = 1, RULE_PATH_BENEATH = 1,
	SCOPE_ABSTRACT_UNIX = 1 << 0, SCOPE_SIGNAL = 1 << 1,
	FILE_RIGHTS = LANDLOCK_EXECUTE | LANDLOCK_WRITE_FILE | LANDLOCK_READ_FILE | LANDLOCK_TRUNCATE |
		      LANDLOCK_IOCTL_DEV,
};

struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;   /* ABI 4 */
	uint64_t scoped;               /* ABI 6 */
};

struct path_beneath_attr {
	uint64_t allowed_access;
	int32_t parent_fd;
} __attribute__((packed));

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

uint64_t landlock_rights(int abi)
{
	if (abi < 1)
		return 0;
	if (abi < 2)
		return (LANDLOCK_MAKE_SYM << 1) - 1;
	if (abi < 3)
		return (LANDLOCK_REFER << 1) - 1;
	if (abi < 5)
		return (LANDLOCK_TRUNCATE << 1) - 1;
	return (LANDLOCK_IOCTL_DEV << 1) - 1;
}

static int new_ruleset(int abi, const struct ruleset_attr *attr)
{
	/* An older kernel refuses a larger structure only if the rest is not zero, but says so with E2BIG: be exact. */
	size_t size = abi >= LANDLOCK_ABI_SCOPES ? sizeof *attr : abi >= 4 ? offsetof(struct ruleset_attr, scoped) :
									      sizeof attr->handled_access_fs;
	long fd = syscall(SYS_landlock_create_ruleset, attr, size, 0);

	return fd < 0 ? -errno : (int)fd;
}

int landlock_ruleset_new(int abi, bool scopes)
{
	return new_ruleset(abi, &(struct ruleset_attr){
		.handled_access_fs = landlock_rights(abi),
		.scoped = scopes && abi >= LANDLOCK_ABI_SCOPES ? SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL : 0,
	});
}

int landlock_scopes_new(int abi)
{
	if (abi < LANDLOCK_ABI_SCOPES)
		return -EOPNOTSUPP;
	return new_ruleset(abi, &(struct ruleset_attr){ .scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL });
}

int landlock_allow(int ruleset_fd, int abi, int path_fd, bool is_directory, uint64_t rights)
{
	struct path_beneath_attr attr = {
		.allowed_access = rights & landlock_rights(abi) & (is_directory ? ~0ULL : (uint64_t)FILE_RIGHTS),
		.parent_fd = path_fd,
	};

	if (!attr.allowed_access)
		return 0;
	return syscall(SYS_landlock_add_rule, ruleset_fd, RULE_PATH_BENEATH, &attr, 0) < 0 ? -errno : 0;
}

int landlock_restrict(int ruleset_fd)
{
	return syscall(SYS_landlock_restrict_self, ruleset_fd, 0) < 0 ? -errno : 0;
}
