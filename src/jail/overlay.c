/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. A staged tree is an overlayfs that belongs to the sandbox's user namespace: the host's directory
 * below, layers of earlier runs and of whiteouts between, and on top the directory that takes what is written. The
 * kernel takes its layers from mounts of the caller's own mount namespace alone (clone_private_mount). As a user
 * the child opens them there by path, while the old root can still be reached. As root it could not reach them, and
 * what the parent sends are mounts of no namespace: the child attaches them at the target, one upon the other, and
 * the overlay covers them. Layers are named by their descriptors, relative to /proc/self/fd: no path is walked, no
 * ':' or ',' in a name means anything, and all of them fit into the 256 bytes of one option.
 *
 * The kernel refuses layers that lie in one another (ELOOP, ovl_check_overlapping_layers): a home that holds the state
 * directory could not be staged. It asks for dentries, and those of an overlay are its own; so such a tree comes as
 * the bottom of a read-only overlay, in which a whiteout on a tmpfs stands for the state directory. The layers then lie
 * in nothing that the upper overlay looks at, and nothing it writes can be seen below: what overlayfs calls
 * undefined, a lower tree that changes, does not come to pass. Two overlays are as many as the kernel stacks.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/str.h"
#include "jail/root.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/path.h"

enum { PARTS_MAX = JAIL_LAYERS_MAX + 2, OPTION_SIZE = 256 };

struct parts {
	int fds[PARTS_MAX]; /* as source_part() numbers them: host, live, between */
	size_t count;
	int upper, work;
};

static void parts_close(struct parts *parts)
{
	for (size_t i = 0; i < parts->count; i++)
		close(parts->fds[i]);
	close_fd(&parts->upper);
	close_fd(&parts->work);
}

int root_attach_layer(struct root *root, const struct jail_mount *mount, int tree)
{
	cleanup_fd int target = root_open_target(root, mount->target, true);

	return target < 0 ? target : mount_attach(tree, target);
}

static int part_open(struct root *root, const struct jail_mount *part)
{
	cleanup_fd int fd = root->job->spec->run_as_root ? source_receive(root->job, root->err) :
							   source_open(part, root->err);
	int r;

	if (fd < 0 || !root->job->spec->run_as_root)
		return take_fd(&fd);
	r = root_attach_layer(root, part, fd);
	return r < 0 ? root_fail(root, part, r, "cannot take the layers of") : take_fd(&fd);
}

static int parts_open(struct root *root, const struct jail_mount *mount, struct parts *parts)
{
	struct jail_mount part;

	while (source_part(mount, parts->count, &part)) {
		int fd = part_open(root, &part);

		if (fd < 0)
			return fd;
		parts->fds[parts->count++] = fd;
	}
	parts->upper = path_open2(parts->fds[1], "upper", O_RDONLY | O_DIRECTORY, 0, RESOLVE_BENEATH);
	parts->work = path_open2(parts->fds[1], "work", O_PATH | O_DIRECTORY, 0, RESOLVE_BENEATH);
	if (parts->upper < 0 || parts->work < 0)
		return root_fail(root, mount, parts->upper < 0 ? parts->upper : parts->work,
				 "cannot open what takes the changes of");
	return 0;
}

/* Of the file system at dir_fd, whose directories are made on the way; path is normalised. */
static int make_whiteout(int dir_fd, const char *path)
{
	cleanup_fd int fd = FD_NONE;
	char name[NAME_MAX + 1];

	for (const char *end; (end = strchr(path, '/')); path = end + 1) {
		int next;

		if ((size_t)(end - path) >= sizeof name)
			return -ENAMETOOLONG;
		memcpy(name, path, (size_t)(end - path));
		name[end - path] = 0;
		if (mkdirat(fd < 0 ? dir_fd : fd, name, 0755) < 0)
			return -errno;
		next = path_open2(fd < 0 ? dir_fd : fd, name, O_PATH | O_DIRECTORY, 0, ROOT_INSIDE);
		if (next < 0)
			return next;
		close_fd(&fd);
		fd = next;
	}
	return mknodat(fd < 0 ? dir_fd : fd, path, S_IFCHR, makedev(0, 0)) < 0 ? -errno : 0;
}

/* "TOP:…:BOTTOM" as descriptors. */
static int format_lower(char out[OPTION_SIZE], const int *fds, size_t count)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		int r = root_format_number(out + used, OPTION_SIZE - used, (uint64_t)fds[i]);

		if (r < 0)
			return r;
		used += strlen(out + used);
		if (used + 1 >= OPTION_SIZE)
			return -E2BIG;
		out[used++] = ':';
	}
	out[used - 1] = 0;
	return 0;
}

/* An overlay whose options name descriptors of this process. */
static int overlay_of_fds(const struct mount_option *options, size_t count, uint64_t attributes)
{
	int tree;

	if (chdir("/proc/self/fd") < 0)
		return -errno;
	tree = mount_new("overlay", options, count, attributes);
	if (chdir("/") < 0) {
		close_fd(&tree);
		return -errno;
	}
	return tree;
}

int overlay_read_only(const int *fds, size_t count, uint64_t attributes)
{
	char lower[OPTION_SIZE];
	const struct mount_option options[] = { { "lowerdir", lower }, { "userxattr", NULL }, { "xino", "off" } };
	int r = format_lower(lower, fds, count);

	return r < 0 ? r : overlay_of_fds(options, ARRAY_SIZE(options), attributes);
}

/* Puts the host's directory without what layers->hidden names in the place of the host's directory. */
static int hide(struct root *root, const struct jail_mount *mount, struct parts *parts)
{
	const uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY;
	cleanup_fd int cover = root_new_tmpfs(1 << 20, PATH_MAX, "0755", attributes & ~(uint64_t)MOUNT_ATTR_RDONLY);
	cleanup_fd int tree = FD_NONE;
	int r = cover < 0 ? cover : make_whiteout(cover, mount->layers->hidden);

	if (r == 0)
		r = root_attach_layer(root, mount, cover);
	if (r == 0)
		r = tree = overlay_read_only((const int[]){ cover, parts->fds[0] }, 2, attributes);
	if (r >= 0)
		r = root_attach_layer(root, mount, tree);
	if (r < 0)
		return r;
	close_fd(&parts->fds[0]);
	parts->fds[0] = take_fd(&tree);
	return 0;
}

static int overlay_new(const struct parts *parts, uint64_t attributes)
{
	char lower[OPTION_SIZE], upper[16], work[16];
	/*
	 * userxattr: in a user namespace trusted.* cannot be set. volatile: a copy-up does not wait for the disk (a
	 * fifth of the time); what a power cut then takes is the staged data of a run that was under way.
	 */
	const struct mount_option options[] = {
		{ "lowerdir", lower }, { "upperdir", upper }, { "workdir", work }, { "userxattr", NULL },
		{ "xino", "auto" },    { "index", "off" },    { "volatile", NULL },
	};
	int fds[PARTS_MAX], r;

	memcpy(fds, parts->fds + 2, (parts->count - 2) * sizeof *fds);
	fds[parts->count - 2] = parts->fds[0];
	r = format_lower(lower, fds, parts->count - 1);
	if (r == 0)
		r = root_format_number(upper, sizeof upper, (uint64_t)parts->upper);
	if (r == 0)
		r = root_format_number(work, sizeof work, (uint64_t)parts->work);
	return r < 0 ? r : overlay_of_fds(options, ARRAY_SIZE(options), attributes);
}

/* Without user.* attributes a directory that is made where one was removed would show the old one's files. */
static int check_xattrs(const struct parts *parts)
{
	char value;

	return fgetxattr(parts->upper, "user.overlay.opaque", &value, 1) < 0 && errno != ENODATA ? -errno : 0;
}

static int refuse(struct root *root, const struct jail_mount *mount, int r)
{
	err_set(root->err, ERR_WALL, -r, wall_names[WALL_MOUNTS],
		"the kernel cannot stage %s (%s) with its changes kept in %s: %s", mount->source,
		mount->rule ? mount->rule : "?", mount->layers->live, err_errno_name(-r));
	err_hint(root->err,
		 "point XDG_STATE_HOME at ext4, xfs, btrfs or a tmpfs that takes user.* attributes, and see that "
		 "overlayfs is there (Linux 5.11, as root 5.19); have fuse-overlayfs do it (`stage: {backend: fuse}`, "
		 "the package of that name and /dev/fuse); or write the tree in place (`files.write`)");
	return r;
}

int root_mount_overlay(struct root *root, const struct jail_mount *mount)
{
	struct parts parts = { .upper = FD_NONE, .work = FD_NONE };
	uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			      (mount->flags & JAIL_NOEXEC ? MOUNT_ATTR_NOEXEC : 0);
	cleanup_fd int tree = FD_NONE;
	int r = parts_open(root, mount, &parts);

	if (r == 0) {
		r = check_xattrs(&parts);
		if (r == 0 && mount->layers->hidden)
			r = hide(root, mount, &parts);
		if (r == 0)
			r = tree = overlay_new(&parts, attributes);
		if (r >= 0)
			r = root_add_own(root, tree);
		if (r < 0)
			r = refuse(root, mount, r);
	}
	parts_close(&parts);
	if (r < 0)
		return r;
	return root_attach(root, mount, tree,
			   ROOT_READ | ROOT_WRITE | (mount->flags & JAIL_NOEXEC ? 0 : LANDLOCK_EXECUTE));
}
