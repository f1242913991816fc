/* SPDX-License-Identifier: Apache-2.0 */
#include "box/private.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"

static bool is_known(const struct watch_options *options, dev_t device)
{
	for (size_t i = 0; i < options->private_device_count; i++)
		if (options->private_devices[i] == device)
			return true;
	return false;
}

/*
 * An overlay is private too: a socket that the host has in the tree is another inode in it, and the kernel finds who
 * listens by the inode.
 */
static bool is_private(enum jail_mount_kind kind)
{
	return kind == JAIL_TMPFS || kind == JAIL_OVERLAY;
}

/* A host tree is mounted right over it: what is found under the name then is not private. */
static bool is_covered(const char *target, const struct jail_mount *mounts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!is_private(mounts[i].kind) && mounts[i].kind != JAIL_DIRECTORY &&
		    str_equal(mounts[i].target, target))
			return true;
	return false;
}

static void add(int root_fd, const char *target, struct watch_options *options)
{
	cleanup_fd int fd = path_open2(root_fd, target, O_PATH | O_DIRECTORY, 0,
				       RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS);
	struct statfs kind;
	struct stat status;

	if (fd < 0 || fstatfs(fd, &kind) < 0 || fstat(fd, &status) < 0 ||
	    (kind.f_type != TMPFS_MAGIC && kind.f_type != OVERLAYFS_SUPER_MAGIC))
		return;
	if (options->private_device_count < WATCH_DEVICES_MAX && !is_known(options, status.st_dev))
		options->private_devices[options->private_device_count++] = status.st_dev;
}

void private_devices_find(pid_t init_pid, const struct jail_mount *mounts, size_t count,
			  struct watch_options *options)
{
	static const char *const always[] = { "/", "/dev/shm" };
	cleanup_fd int root_fd = FD_NONE;
	char path[32];

	options->private_device_count = 0;
	if (str_format(path, sizeof path, "/proc/%d/root", init_pid) == 0)
		root_fd = fd_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	if (root_fd < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		if (!is_covered(always[i], mounts, count))
			add(root_fd, always[i], options);
	for (size_t i = 0; i < count; i++)
		if (is_private(mounts[i].kind) && !is_covered(mounts[i].target, mounts, count))
			add(root_fd, mounts[i].target, options);
}
