/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

enum { UMOUNT_DETACH = 2 /* MNT_DETACH; <sys/mount.h> and <linux/mount.h> exclude each other in glibc 2.36 */ };

int mount_new(const char *type, const struct mount_option *options, size_t count, uint64_t attributes)
{
	cleanup_fd int context = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
	long fd;

	if (context < 0)
		return -errno;
	for (size_t i = 0; i < count; i++) {
		unsigned command = options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

		if (syscall(SYS_fsconfig, context, command, options[i].name, options[i].value, 0) < 0)
			return -errno;
	}
	if (syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC, (unsigned)attributes);
	return fd < 0 ? -errno : (int)fd;
}

int mount_clone(int dir_fd, const char *path, bool recursive)
{
	unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (recursive ? AT_RECURSIVE : 0) |
			 (*path ? 0 : AT_EMPTY_PATH);
	long fd = syscall(SYS_open_tree, dir_fd, path, flags);

	return fd < 0 ? -errno : (int)fd;
}

int mount_seal(int fd, bool recursive, uint64_t attributes, int userns_fd)
{
	struct mount_attr attr = {
		.attr_set = attributes,
		.propagation = MS_PRIVATE,
		.userns_fd = userns_fd >= 0 ? (uint64_t)userns_fd : 0,
	};
	unsigned flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0);

	return syscall(SYS_mount_setattr, fd, "", flags, &attr, sizeof attr) < 0 ? -errno : 0;
}

int mount_change(int fd, bool recursive, const struct mount_change *change)
{
	struct mount_attr attr = {
		.attr_set = change->set,
		.attr_clr = change->clear,
		.propagation = change->propagation,
		.userns_fd = change->set & MOUNT_ATTR_IDMAP ? (uint64_t)change->userns_fd : 0,
	};
	unsigned flags = AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0);

	return syscall(SYS_mount_setattr, fd, "", flags, &attr, sizeof attr) < 0 ? -errno : 0;
}

int mount_attach_at(int mount_fd, int dir_fd, const char *name)
{
	unsigned flags = MOVE_MOUNT_F_EMPTY_PATH | (*name ? 0 : MOVE_MOUNT_T_EMPTY_PATH);

	return syscall(SYS_move_mount, mount_fd, "", dir_fd, name, flags) < 0 ? -errno : 0;
}

int mount_allow_writes(int fd)
{
	struct mount_attr attr = { .attr_clr = MOUNT_ATTR_RDONLY };

	return syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 ? -errno : 0;
}

int mount_make_private(void)
{
	struct mount_attr attr = { .propagation = MS_PRIVATE };

	return syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof attr) < 0 ? -errno : 0;
}

int mount_detach(int fd, int proc_fd)
{
	char path[32];
	int r = str_format(path, sizeof path, "self/fd/%d", fd);

	/* umount2(2) takes no descriptor. */
	if (r == 0 && (fchdir(proc_fd) < 0 || syscall(SYS_umount2, path, UMOUNT_DETACH) < 0))
		r = -errno;
	return r;
}

int mount_attach(int mount_fd, int target_fd)
{
	return mount_attach_at(mount_fd, target_fd, "");
}

bool mount_is_root(int dir_fd, const char *name)
{
	/* struct statx by words: musl 1.2.3 has none, and <linux/stat.h> repeats its macros. */
	enum { ATTRIBUTES = 1, WORDS = 256 / 8, MOUNT_ROOT = 0x2000 };
	uint64_t words[WORDS] = { 0 };

	return syscall(SYS_statx, dir_fd, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, words) == 0 &&
	       words[ATTRIBUTES] & MOUNT_ROOT;
}

int mount_id(int fd, uint64_t *ret_id)
{
	enum { MASK = 0, MOUNT_ID = 18, WORDS = 256 / 8, MNT_ID = 0x1000 };
	uint64_t words[WORDS] = { 0 };

	if (syscall(SYS_statx, fd, "", AT_EMPTY_PATH, MNT_ID, words) < 0)
		return -errno;
	if (!((uint32_t)words[MASK] & MNT_ID))
		return -ENODATA;
	*ret_id = words[MOUNT_ID];
	return 0;
}

int mount_pivot(int root_fd)
{
	/*
	 * With "." for both, the old root is put on top of the new one: no directory for it is needed
	 * (pivot_root(2), NOTES).
	 */
	if (fchdir(root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || chdir("/") < 0)
		return -errno;
	return 0;
}

int mount_detach_old_root(void)
{
	/* umount2(2) alone takes what is mounted on top of a path, also of the root directory. */
	return syscall(SYS_umount2, "/", UMOUNT_DETACH) < 0 ? -errno : 0;
}
