/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/str.h"
#include "jail/root.h"
#include "os/mount.h"
#include "os/path.h"

int root_fail(struct root *root, const struct jail_mount *mount, int r, const char *what)
{
	return err_set(root->err, ERR_WALL, -r, wall_names[WALL_MOUNTS], "%s %s (%s): %s", what, mount->target,
		       mount->rule ? mount->rule : "?", err_errno_name(-r));
}

int root_allow(struct root *root, int fd, bool is_directory, uint64_t rights)
{
	if (root->ruleset_fd < 0)
		return 0;
	return landlock_allow(root->ruleset_fd, root->abi, fd, is_directory, rights);
}

bool root_is_private(const struct root *root, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < root->private_count; i++)
		if (root->private_devices[i] == st.st_dev)
			return true;
	return false;
}

static void add_own(struct jail_report *report, dev_t device)
{
	if (report->own_device_count < ARRAY_SIZE(report->own_devices))
		report->own_devices[report->own_device_count++] = device;
}

int root_add_own(struct root *root, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	add_own(root->job->report, st.st_dev);
	return 0;
}

int root_add_private(struct root *root, int fd)
{
	struct stat st;

	if (root->private_count == ROOT_PRIVATE_MAX)
		return -E2BIG;
	if (fstat(fd, &st) < 0)
		return -errno;
	root->private_devices[root->private_count++] = st.st_dev;
	add_own(root->job->report, st.st_dev);
	return 0;
}

/* A directory of a tree that the sandbox writes, in which it could be renamed: neither a mount point nor read-only. */
static bool is_movable(const struct root *root, int fd)
{
	struct statvfs fs;

	if (root_is_private(root, fd))
		return false;
	if (fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_RDONLY)
		return false;
	return !mount_is_root(fd, "");
}

/* How many bytes of a target name directories that are held already: what holds one is never taken away again. */
static size_t held_length(const struct root *root, const char *target)
{
	size_t length = 0;

	for (size_t i = 0; root->held && target[i] && target[i] == root->held[i]; i++)
		if (target[i] == '/')
			length = i;
	return length;
}

/*
 * A mount holds its own name, but not the directories above it: `mv .git x` would take a read-only .git/hooks along
 * and make room for another one, which the host then runs. So every directory on the way is bound to itself, and
 * renaming it is EBUSY. The price is EXDEV for renames across it. The result is how many were.
 */
static int pin_parents(struct root *root, const char *target)
{
	char part[PATH_MAX];
	size_t length = strlen(target), held = held_length(root, target);
	int pinned = 0;

	if (length >= sizeof part)
		return -ENAMETOOLONG;
	memcpy(part, target, length + 1);
	for (char *at = strchr(part + held + 1, '/'); at; at = strchr(at + 1, '/')) {
		cleanup_fd int fd = FD_NONE, tree = FD_NONE;
		int r = 0;

		*at = 0;
		fd = path_open2(root->fd, part, O_PATH | O_DIRECTORY, 0, ROOT_INSIDE);
		*at = '/';
		if (fd < 0)
			return fd;
		if (!is_movable(root, fd))
			continue;
		r = tree = mount_clone(fd, "", true);
		if (r >= 0)
			r = mount_attach(tree, fd);
		if (r < 0)
			return r;
		pinned++;
	}
	root->held = target;
	return pinned;
}

/* One component below dir_fd, made where that is private. */
static int open_component(struct root *root, int dir_fd, const char *name)
{
	int fd = path_open2(dir_fd, name, O_PATH | O_DIRECTORY, 0, ROOT_INSIDE);

	if (fd != -ENOENT || !root_is_private(root, dir_fd))
		return fd;
	if (mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return path_open2(dir_fd, name, O_PATH | O_DIRECTORY, 0, ROOT_INSIDE);
}

/* The directory path[0…length) of the new root, made where that is private. "" is the root itself. */
static int open_directory(struct root *root, const char *path, size_t length)
{
	char part[PATH_MAX];
	int fd;

	if (length >= sizeof part)
		return -ENAMETOOLONG;
	memcpy(part, path, length);
	part[length] = 0;
	fd = path_open2(root->fd, length ? part : "/", O_PATH | O_DIRECTORY, 0, ROOT_INSIDE);
	if (fd != -ENOENT)
		return fd;
	fd = path_open2(root->fd, "/", O_PATH | O_DIRECTORY, 0, ROOT_INSIDE);
	for (char *name = part + 1; fd >= 0 && name <= part + length;) {
		cleanup_fd int parent = fd;
		size_t size = strcspn(name, "/");

		name[size] = 0;
		fd = open_component(root, parent, name);
		name += size + 1;
	}
	return fd;
}

const char *root_name_of(const char *target)
{
	return target[1] && !strchr(target + 1, '/') ? target + 1 : NULL;
}

int root_open_parent(struct root *root, const char *target, const char **ret_name)
{
	*ret_name = path_basename(target);
	return open_directory(root, target, (size_t)(*ret_name - target) - 1);
}

static int make_name(int dir_fd, const char *name, bool is_directory)
{
	if (is_directory ? mkdirat(dir_fd, name, 0755) < 0 : mknodat(dir_fd, name, S_IFREG | 0444, 0) < 0)
		return -errno;
	return 0;
}

int root_open_target(struct root *root, const char *target, bool is_directory)
{
	cleanup_fd int parent = FD_NONE;
	const char *name;

	parent = root_open_parent(root, target, &name);
	if (parent < 0)
		return parent;
	if (root_is_private(root, parent)) {
		int r = make_name(parent, name, is_directory);

		if (r < 0 && r != -EEXIST)
			return r;
	} else {
		int r = pin_parents(root, target);

		if (r < 0)
			return r;
		/* The parent may be a mount now; what is below the old one would not be seen. */
		if (r > 0) {
			close_fd(&parent);
			parent = root_open_parent(root, target, &name);
		}
		if (parent < 0)
			return parent;
	}
	return path_open2(parent, name, O_PATH, 0, ROOT_INSIDE);
}

int root_is_directory(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode);
}

/*
 * Most mounts go right below the root, onto a name that is not there yet: it is made, and there is nothing to resolve.
 * 1: the target is another, or there already.
 */
static int attach_at_root(struct root *root, const char *target, int tree, bool is_directory)
{
	const char *name = root_name_of(target);
	int r = name ? make_name(root->fd, name, is_directory) : -EEXIST;

	if (r < 0)
		return r == -EEXIST ? 1 : r;
	return mount_attach_at(tree, root->fd, name);
}

/* 1: an optional target that is not there. */
static int attach_below(struct root *root, const struct jail_mount *mount, int tree, bool is_directory)
{
	for (int tries = ROOT_TRIES;; tries--) {
		cleanup_fd int target = root_open_target(root, mount->target, is_directory);
		int r;

		if (target == -ENOENT && mount->flags & JAIL_OPTIONAL)
			return 1;
		if (target < 0)
			return target;
		r = mount_attach(tree, target);
		if (r != -ENOENT || tries == 1)
			return r;
	}
}

/* What is mounted above them has directories of its own. */
static void forget_held_below(struct root *root, const char *target)
{
	if (root->held && str_has_prefix(root->held, target))
		root->held = NULL;
}

int root_attach(struct root *root, const struct jail_mount *mount, int tree, uint64_t rights)
{
	int is_directory = root_is_directory(tree), r;

	if (is_directory < 0)
		return root_fail(root, mount, is_directory, "cannot look at");
	forget_held_below(root, mount->target);
	r = attach_at_root(root, mount->target, tree, is_directory);
	if (r > 0)
		r = attach_below(root, mount, tree, is_directory);
	if (r == 0)
		r = root_allow(root, tree, is_directory, rights);
	if (r >= 0)
		return 0;
	root_fail(root, mount, r, "cannot mount on");
	if (r == -ELOOP)
		err_hint(root->err, "a component of it is a symbolic link; name the path that it leads to");
	if (r == -ENOENT)
		err_hint(root->err, "it lies in a directory of the host, where atoll makes nothing: create it first");
	return r;
}

int root_open_masked(struct root *root, const char *target)
{
	char real[PATH_MAX];
	cleanup_fd int fd = path_open2(root->fd, target, O_PATH, 0, ROOT_INSIDE);
	int r = 0;

	if (fd == -ELOOP) {
		fd = path_open2(root->fd, target, O_PATH, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
		/* The new root lies on the old one, so this is the path inside. */
		r = fd < 0 ? fd : path_of_fd(fd, real, sizeof real);
		target = real;
	}
	if (fd < 0 || r < 0)
		return fd < 0 ? fd : r;
	/* Below what is a mount now, the same name is another. */
	r = pin_parents(root, target);
	/* It is gone with us. */
	if (target == real)
		root->held = NULL;
	return r < 0 ? r : r == 0 ? take_fd(&fd) : path_open2(root->fd, target, O_PATH, 0, ROOT_INSIDE);
}
