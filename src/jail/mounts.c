/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. The new root is a small tmpfs that is mounted on top of the old root, filled, made read-only
 * and pivoted into. Each mount is made detached, attributed, attached by fd, and given its Landlock rule through the
 * same fd. A target is resolved inside the new root only, through no symbolic link: a link in a
 * host tree that was bound before must not lead a mount elsewhere. Names are made in private file systems
 * (the root and the tmpfs of the sandbox) and never in a host tree. Masks are the exception that follows links: what
 * a masked name leads to is what must not be read.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "jail/root.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/path.h"

/* ---- one function for each kind ---- */

static int mount_bind(struct root *root, const struct jail_mount *mount)
{
	cleanup_fd int tree = root->job->spec->run_as_root ? source_receive(root->job, root->err) :
							     source_tree(mount, root->err);
	uint64_t rights = ROOT_READ;

	if (tree < 0)
		return tree == -ENOENT ? 0 : tree;
	if (mount->kind == JAIL_DEVICE)
		rights |= LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_IOCTL_DEV;
	else if (!(mount->flags & (JAIL_RDONLY | JAIL_AGENT_APPEND)))
		rights |= ROOT_WRITE;
	if (!(mount->flags & JAIL_NOEXEC) && mount->kind == JAIL_BIND)
		rights |= LANDLOCK_EXECUTE;
	return mount->flags & (JAIL_LAYERED | JAIL_SPREAD) && root_is_directory(tree) == 1 ?
		       root_mount_layered(root, mount, tree, rights) : root_attach(root, mount, tree, rights);
}

static int mount_tmpfs(struct root *root, const struct jail_mount *mount)
{
	/* The shared places of a host are sticky and open to all; anything else is the user's own. */
	bool is_shared = str_equal(mount->target, "/tmp") || str_equal(mount->target, "/var/tmp") ||
			 str_equal(mount->target, "/dev/shm");
	uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (mount->flags & JAIL_NOEXEC ? MOUNT_ATTR_NOEXEC :
								      0);
	cleanup_fd int tree = root_new_tmpfs(mount->size_bytes, mount->inodes, is_shared ? "1777" : "0700", attributes);
	int r;

	if (tree < 0)
		return root_fail(root, mount, tree, "cannot make a tmpfs for");
	r = root_add_private(root, tree);
	if (r < 0)
		return root_fail(root, mount, r, "too many private directories, with");
	return root_attach(root, mount, tree, ROOT_READ | ROOT_WRITE | (mount->flags & JAIL_NOEXEC ? 0 :
									LANDLOCK_EXECUTE));
}

/* 1: there is nothing to cover. */
static int cover_path(struct root *root, const char *path)
{
	cleanup_fd int target = root_open_masked(root, path);

	/* EACCES: it lies inside something that is masked already. */
	if (target == -ENOENT || target == -ENOTDIR || target == -EACCES)
		return 1;
	return target < 0 ? target : root_cover(root, target);
}

static int mount_mask(struct root *root, const struct jail_mount *mount)
{
	int r, tries = ROOT_TRIES;

	do
		r = cover_path(root, mount->target);
	while (r == -ENOENT && --tries);
	return r < 0 ? root_fail(root, mount, r, "cannot mask") : 0;
}

static int write_content(int parent, const char *name, const struct jail_mount *mount)
{
	mode_t mode = mount->flags & JAIL_PLANTED ? 0600 : 0444;
	cleanup_fd int fd = fd_open_at(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);

	return fd < 0 ? fd : fd_write_full(fd, mount->content, mount->content_size);
}

static int mount_file(struct root *root, const struct jail_mount *mount)
{
	static const char temporary[] = ".content";
	cleanup_fd int parent = FD_NONE, source = FD_NONE, tree = FD_NONE;
	const char *name;
	struct stat st;
	int r;

	parent = root_open_parent(root, mount->target, &name);
	if (mount->flags & JAIL_OPTIONAL && (parent == -ENOENT || parent == -EROFS))
		return 0;
	if (parent < 0 || fstat(parent, &st) < 0)
		return root_fail(root, mount, parent < 0 ? parent : -errno, "cannot reach");
	/* In the root itself, which becomes read-only, the file needs no mount; nor does one that may be written to. */
	if (st.st_dev == root->private_devices[0] || (mount->flags & JAIL_PLANTED && root_is_private(root, parent))) {
		r = write_content(parent, name, mount);
		if (r < 0)
			return root_fail(root, mount, r, "cannot write");
		source = path_open2(parent, name, O_PATH, 0, ROOT_INSIDE);
		r = source < 0 ? source : root_allow(root, source, false, ROOT_READ);
		return r < 0 ? root_fail(root, mount, r, "cannot allow") : 0;
	}
	r = write_content(root->fd, temporary, mount);
	if (r == 0)
		r = source = path_open2(root->fd, temporary, O_PATH, 0, ROOT_INSIDE);
	if (r >= 0)
		r = tree = mount_clone(source, "", false);
	if (r >= 0)
		r = mount_seal(tree, false,
			       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, FD_NONE);
	if (r < 0)
		return root_fail(root, mount, r, "cannot write");
	r = root_attach(root, mount, tree, ROOT_READ);
	if (r == 0 && unlinkat(root->fd, temporary, 0) < 0)
		return root_fail(root, mount, -errno, "cannot clean up behind");
	return r;
}

/* That directories may be listed is a right of the whole root. */
static int mount_directory(struct root *root, const struct jail_mount *mount)
{
	const char *name;
	cleanup_fd int parent = root_open_parent(root, mount->target, &name);
	int r = parent < 0 ? parent : root_is_private(root, parent) ? 0 : -EROFS;

	if (r == 0 && mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
		r = -errno;
	return r < 0 ? root_fail(root, mount, r, "cannot make") : 0;
}

static int make_link(struct root *root, const char *target, const char *text)
{
	cleanup_fd int parent = FD_NONE;
	const char *name = root_name_of(target);

	if (name)
		return symlinkat(text, root->fd, name) < 0 ? -errno : 0;
	parent = root_open_parent(root, target, &name);
	if (parent < 0)
		return parent;
	if (!root_is_private(root, parent))
		return -EROFS;
	return symlinkat(text, parent, name) < 0 ? -errno : 0;
}

static int mount_symlink(struct root *root, const struct jail_mount *mount)
{
	char text[PATH_MAX];
	int r;

	memcpy(text, mount->content, mount->content_size); /* jail_spec_check() has seen that it fits */
	text[mount->content_size] = 0;
	r = make_link(root, mount->target, text);
	return r < 0 ? root_fail(root, mount, r, "cannot link") : 0;
}

static int mount_socket(struct root *root, const struct jail_mount *mount)
{
	cleanup_fd int parent = FD_NONE;
	const char *name;
	int r;

	parent = root_open_parent(root, mount->target, &name);
	r = parent < 0 ? parent : mknodat(parent, name, S_IFSOCK | 0666, 0) < 0 ? -errno : 0;
	return r < 0 ? root_fail(root, mount, r, "cannot make") : 0;
}

static int (*const kinds[JAIL_MOUNT_KIND_COUNT])(struct root *, const struct jail_mount *) = {
	[JAIL_BIND] = mount_bind,           [JAIL_TMPFS] = mount_tmpfs,     [JAIL_MASK] = mount_mask,
	[JAIL_FILE] = mount_file,           [JAIL_DIRECTORY] = mount_directory, [JAIL_SYMLINK] = mount_symlink,
	[JAIL_PROC] = root_mount_proc,           [JAIL_DEV] = root_mount_dev,         [JAIL_DEVICE] = mount_bind,
	[JAIL_SOCKET] = mount_socket,
	[JAIL_OVERLAY] = root_mount_overlay, [JAIL_FUSE] = root_mount_fuse,
};

/* ---- the whole ---- */

static int root_open(struct root *root)
{
	uint64_t content = 1 << 20, inodes = 256;
	cleanup_fd int old_root = FD_NONE;
	int r;

	for (size_t i = 0; i < root->job->spec->mount_count; i++) {
		content += root->job->spec->mounts[i].content_size + 8192;
		for (const char *at = root->job->spec->mounts[i].target; *at; at++)
			inodes += *at == '/';
	}
	root->fd = root_new_tmpfs(content, inodes, "0755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	old_root = fd_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	r = root->fd < 0 ? root->fd : old_root < 0 ? old_root : mount_attach(root->fd, old_root);
	if (r == 0)
		r = root_add_private(root, root->fd);
	if (r == 0)
		r = root_allow(root, root->fd, true, root->job->spec->takes_grants ? ROOT_READ : LANDLOCK_READ_DIR);
	if (r == 0)
		return 0;
	err_set(root->err, ERR_WALL, -r, wall_names[WALL_MOUNTS], "cannot make the new root: %s", err_errno_name(-r));
	if (r == -EACCES || r == -EPERM)
		err_hint(root->err,
			 "a security module restricts mounts in user namespaces here (AppArmor on Ubuntu does): "
				    "install atoll's profile, see `atoll doctor`");
	return r;
}

static int root_close(struct root *root)
{
	int r = 0;

	if (root->mask_file >= 0 && unlinkat(root->fd, ".mask-file", 0) < 0)
		r = -errno;
	if (root->mask_directory >= 0 && unlinkat(root->fd, ".mask-directory", AT_REMOVEDIR) < 0)
		r = -errno;
	if (r == 0)
		r = mount_seal(root->fd, false, MOUNT_ATTR_RDONLY, FD_NONE);
	if (r == 0) {
		root->job->report->stage_end_ns[JAIL_STAGE_MOUNTS] = clock_monotonic_ns();
		r = mount_pivot(root->fd);
		root->job->report->stage_end_ns[JAIL_STAGE_PIVOT] = clock_monotonic_ns();
	}
	return r < 0 ? err_set(root->err, ERR_WALL, -r, wall_names[WALL_MOUNTS], "cannot enter the new root: %s",
			       err_errno_name(-r)) : 0;
}

/* As root the parent makes the trees, and waits with them itself. */
static int await_late(struct root *root)
{
	if (root->job->spec->run_as_root || child_await(root->job) == 0)
		return 0;
	return err_set(root->err, ERR_INTERNAL, EPIPE, "jail", "the parent process has ended");
}

static int mount_all(struct root *root)
{
	const struct jail_spec *spec = root->job->spec;
	bool has_waited = false;
	int r = 0;

	for (size_t i = 0; r == 0 && i < spec->mount_count; i++) {
		if (spec->mounts[i].flags & JAIL_LATE && !has_waited) {
			r = await_late(root);
			has_waited = true;
		}
		if (r == 0 && !root_has_layered(root, &spec->mounts[i]))
			r = kinds[spec->mounts[i].kind](root, &spec->mounts[i]);
	}
	return r;
}

/* They are the last to be known. */
static int mount_masks(struct root *root)
{
	const struct jail_report *report = root->job->report;
	int r = 0;

	if (!root->job->spec->calls.masks)
		return 0;
	if (child_await(root->job) < 0)
		return err_set(root->err, ERR_INTERNAL, EPIPE, "jail", "the parent process has ended");
	for (size_t i = 0; r == 0 && i < report->mask_count; i++)
		r = mount_mask(root, &report->masks[i]);
	return r;
}

int child_mounts(struct jail_job *job, int ruleset_fd, int abi, struct err *err)
{
	struct root root = {
		.job = job, .fd = FD_NONE, .ruleset_fd = ruleset_fd, .abi = abi, .mask_file = FD_NONE,
			.mask_directory = FD_NONE,
		.err = err,
	};
	int r;

	if (jail_wall_is_broken(job->spec, WALL_MOUNTS))
		return err_set(err, ERR_WALL, EPERM, wall_names[WALL_MOUNTS], "cannot make the new root: %s",
			       err_errno_name(EPERM));
	r = root_open(&root);
	if (r == 0)
		r = mount_all(&root);
	if (r == 0)
		r = mount_masks(&root);
	return r < 0 ? r : root_close(&root);
}
