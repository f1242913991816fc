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
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/str.h"
#include "jail/job.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/landlock.h"
#include "os/mount.h"
#include "os/path.h"

enum {
	PRIVATE_MAX = 64,
	INSIDE = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS,
	READ = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR,
	/* Everything but device nodes. */
	WRITE = LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_REMOVE_DIR | LANDLOCK_REMOVE_FILE |
		LANDLOCK_MAKE_DIR | LANDLOCK_MAKE_REG |
		LANDLOCK_MAKE_SOCK | LANDLOCK_MAKE_FIFO | LANDLOCK_MAKE_SYM | LANDLOCK_REFER,
};

struct root {
	struct jail_job *job;
	int fd;                            /* of the new root's mount */
	int ruleset_fd, abi;
	dev_t private_devices[PRIVATE_MAX]; /* file systems in which names may be made; [0] is the root's */
	size_t private_count;
	int mask_file, mask_directory;     /* mode 0, in the root, unlinked at the end */
	struct err *err;
};

static int fail(struct root *root, const struct jail_mount *mount, int r, const char *what)
{
	return err_set(root->err, ERR_WALL, -r, wall_names[WALL_MOUNTS], "%s %s (%s): %s", what, mount->target,
		       mount->rule ? mount->rule : "?", err_errno_name(-r));
}

static int allow(struct root *root, int fd, bool is_directory, uint64_t rights)
{
	if (root->ruleset_fd < 0)
		return 0;
	return landlock_allow(root->ruleset_fd, root->abi, fd, is_directory, rights);
}

static bool is_private(const struct root *root, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < root->private_count; i++)
		if (root->private_devices[i] == st.st_dev)
			return true;
	return false;
}

static int add_private(struct root *root, int fd)
{
	struct stat st;

	if (root->private_count == PRIVATE_MAX)
		return -E2BIG;
	if (fstat(fd, &st) < 0)
		return -errno;
	root->private_devices[root->private_count++] = st.st_dev;
	return 0;
}

/* ---- targets ---- */

/* A directory of a tree that the sandbox writes, in which it could be renamed: neither a mount point nor read-only. */
static bool is_movable(const struct root *root, int fd)
{
	struct statvfs fs;

	if (is_private(root, fd))
		return false;
	if (fstatvfs(fd, &fs) == 0 && fs.f_flag & ST_RDONLY)
		return false;
	return !mount_is_root(fd);
}

/*
 * A mount holds its own name, but not the directories above it: `mv .git x` would take a read-only .git/hooks along
 * and make room for another one, which the host then runs. So every directory on the way is bound to itself, and
 * renaming it is EBUSY. The price is EXDEV for renames across it.
 */
static int pin_parents(struct root *root, const char *target)
{
	char part[PATH_MAX];
	size_t length = strlen(target);

	if (length >= sizeof part)
		return -ENAMETOOLONG;
	memcpy(part, target, length + 1);
	for (char *at = strchr(part + 1, '/'); at; at = strchr(at + 1, '/')) {
		cleanup_fd int fd = FD_NONE, tree = FD_NONE;
		int r = 0;

		*at = 0;
		fd = path_open2(root->fd, part, O_PATH | O_DIRECTORY, 0, INSIDE);
		*at = '/';
		if (fd < 0)
			return fd;
		if (is_movable(root, fd))
			r = tree = mount_clone(fd, "", true);
		if (r >= 0 && tree >= 0)
			r = mount_attach(tree, fd);
		if (r < 0)
			return r;
	}
	return 0;
}

/* One component below dir_fd, made where that is private. */
static int open_component(struct root *root, int dir_fd, const char *name)
{
	int fd = path_open2(dir_fd, name, O_PATH | O_DIRECTORY, 0, INSIDE);

	if (fd != -ENOENT || !is_private(root, dir_fd))
		return fd;
	if (mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	return path_open2(dir_fd, name, O_PATH | O_DIRECTORY, 0, INSIDE);
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
	fd = path_open2(root->fd, length ? part : "/", O_PATH | O_DIRECTORY, 0, INSIDE);
	if (fd != -ENOENT)
		return fd;
	fd = path_open2(root->fd, "/", O_PATH | O_DIRECTORY, 0, INSIDE);
	for (char *name = part + 1; fd >= 0 && name <= part + length;) {
		cleanup_fd int parent = fd;
		size_t size = strcspn(name, "/");

		name[size] = 0;
		fd = open_component(root, parent, name);
		name += size + 1;
	}
	return fd;
}

/* The directory that holds a target, and the target's last component. */
static int open_parent(struct root *root, const char *target, const char **ret_name)
{
	*ret_name = path_basename(target);
	return open_directory(root, target, (size_t)(*ret_name - target) - 1);
}

static int open_target(struct root *root, const char *target, bool is_directory)
{
	cleanup_fd int parent = FD_NONE;
	const char *name;

	parent = open_parent(root, target, &name);
	if (parent < 0)
		return parent;
	if (is_private(root, parent)) {
		if (is_directory ? mkdirat(parent, name, 0755) < 0 : mknodat(parent, name, S_IFREG | 0444, 0) < 0)
			if (errno != EEXIST)
				return -errno;
	} else {
		int r = pin_parents(root, target);

		if (r < 0)
			return r;
		/* The parent may be a mount now; what is below the old one would not be seen. */
		close_fd(&parent);
		parent = open_parent(root, target, &name);
		if (parent < 0)
			return parent;
	}
	return path_open2(parent, name, O_PATH, 0, INSIDE);
}

static int is_directory_fd(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode);
}

static int attach(struct root *root, const struct jail_mount *mount, int tree, uint64_t rights)
{
	cleanup_fd int target = FD_NONE;
	int is_directory = is_directory_fd(tree), r;

	if (is_directory < 0)
		return fail(root, mount, is_directory, "cannot look at");
	target = open_target(root, mount->target, is_directory);
	if (target == -ENOENT && mount->flags & JAIL_OPTIONAL)
		return 0;
	if (target < 0) {
		r = fail(root, mount, target, "cannot mount on");
		if (target == -ELOOP)
			err_hint(root->err, "a component of it is a symbolic link; name the path that it leads to");
		if (target == -ENOENT)
			err_hint(root->err,
				 "it lies in a tree of the host, where atoll makes nothing: create it first");
		return r;
	}
	r = mount_attach(tree, target);
	if (r == 0)
		r = allow(root, tree, is_directory, rights);
	return r < 0 ? fail(root, mount, r, "cannot mount on") : 0;
}

/* ---- one function for each kind ---- */

static int mount_bind(struct root *root, const struct jail_mount *mount)
{
	cleanup_fd int tree = root->job->spec->run_as_root ? source_receive(root->job, root->err) :
							     source_tree(mount, root->err);
	uint64_t rights = READ;

	if (tree < 0)
		return tree == -ENOENT ? 0 : tree;
	if (mount->kind == JAIL_DEVICE)
		rights |= LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_IOCTL_DEV;
	else if (!(mount->flags & (JAIL_RDONLY | JAIL_AGENT_APPEND)))
		rights |= WRITE;
	if (!(mount->flags & JAIL_NOEXEC) && mount->kind == JAIL_BIND)
		rights |= LANDLOCK_EXECUTE;
	return attach(root, mount, tree, rights);
}

/* "NUMBER" for a mount option. */
static int number_text(char *out, size_t size, uint64_t value)
{
	char digits[24];
	size_t count = 0;

	do {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	if (count >= size)
		return -ENAMETOOLONG;
	for (size_t i = 0; i < count; i++)
		out[i] = digits[count - 1 - i];
	out[count] = 0;
	return 0;
}

static int new_tmpfs(uint64_t size_bytes, uint64_t inodes, const char *mode, uint64_t attributes)
{
	char size[24], nodes[24];
	struct mount_option options[3] = { { "mode", mode } };
	size_t count = 1;

	if (size_bytes && number_text(size, sizeof size, size_bytes) == 0)
		options[count++] = (struct mount_option){ "size", size };
	if (inodes && number_text(nodes, sizeof nodes, inodes) == 0)
		options[count++] = (struct mount_option){ "nr_inodes", nodes };
	return mount_new("tmpfs", options, count, attributes);
}

static int mount_tmpfs(struct root *root, const struct jail_mount *mount)
{
	/* The shared places of a host are sticky and open to all; anything else is the user's own. */
	bool is_shared = str_equal(mount->target, "/tmp") || str_equal(mount->target, "/var/tmp") ||
			 str_equal(mount->target, "/dev/shm");
	uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (mount->flags & JAIL_NOEXEC ? MOUNT_ATTR_NOEXEC :
								      0);
	cleanup_fd int tree = new_tmpfs(mount->size_bytes, mount->inodes, is_shared ? "1777" : "0700", attributes);
	int r;

	if (tree < 0)
		return fail(root, mount, tree, "cannot make a tmpfs for");
	r = add_private(root, tree);
	if (r < 0)
		return fail(root, mount, r, "too many private directories, with");
	return attach(root, mount, tree, READ | WRITE | (mount->flags & JAIL_NOEXEC ? 0 : LANDLOCK_EXECUTE));
}

static int mask_source(struct root *root, bool is_directory)
{
	int *fd = is_directory ? &root->mask_directory : &root->mask_file;
	const char *name = is_directory ? ".mask-directory" : ".mask-file";

	if (*fd >= 0)
		return *fd;
	if (is_directory ? mkdirat(root->fd, name, 0) < 0 : mknodat(root->fd, name, S_IFREG, 0) < 0)
		return -errno;
	return *fd = path_open2(root->fd, name, O_PATH, 0, INSIDE);
}

/* Covers what target_fd names with nothing: mode 0 and read-only, so that no write succeeds into nowhere. */
static int cover(struct root *root, int target_fd)
{
	cleanup_fd int tree = FD_NONE;
	int is_directory = is_directory_fd(target_fd), source, r;

	if (is_directory < 0)
		return is_directory;
	source = mask_source(root, is_directory);
	if (source < 0)
		return source;
	tree = mount_clone(source, "", false);
	if (tree < 0)
		return tree;
	r = mount_seal(tree, false, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
		       FD_NONE);
	return r < 0 ? r : mount_attach(tree, target_fd);
}

/* What a mask covers, with its parents pinned: the target, or what it leads to through links. */
static int open_masked(struct root *root, const char *target)
{
	char real[PATH_MAX];
	cleanup_fd int fd = path_open2(root->fd, target, O_PATH, 0, INSIDE);
	int r = 0;

	if (fd == -ELOOP) {
		fd = path_open2(root->fd, target, O_PATH, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
		/* The new root lies on the old one, so this is the path inside. */
		r = fd < 0 ? fd : path_of_fd(fd, real, sizeof real);
		target = real;
	}
	if (fd < 0 || r < 0)
		return fd < 0 ? fd : r;
	r = pin_parents(root, target);
	return r < 0 ? r : path_open2(root->fd, target, O_PATH, 0, INSIDE);
}

static int mount_mask(struct root *root, const struct jail_mount *mount)
{
	cleanup_fd int target = open_masked(root, mount->target);
	int r;

	/* EACCES: it lies inside something that is masked already. */
	if (target == -ENOENT || target == -ENOTDIR || target == -EACCES)
		return 0;
	r = target < 0 ? target : cover(root, target);
	return r < 0 ? fail(root, mount, r, "cannot mask") : 0;
}

static int write_content(int parent, const char *name, const struct jail_mount *mount)
{
	cleanup_fd int fd = fd_open_at(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0444);

	return fd < 0 ? fd : fd_write_full(fd, mount->content, mount->content_size);
}

static int mount_file(struct root *root, const struct jail_mount *mount)
{
	static const char temporary[] = ".content";
	cleanup_fd int parent = FD_NONE, source = FD_NONE, tree = FD_NONE;
	const char *name;
	struct stat st;
	int r;

	parent = open_parent(root, mount->target, &name);
	if (parent < 0 || fstat(parent, &st) < 0)
		return fail(root, mount, parent < 0 ? parent : -errno, "cannot reach");
	/* In the root itself, which becomes read-only, the file needs no mount. */
	if (st.st_dev == root->private_devices[0]) {
		r = write_content(parent, name, mount);
		if (r < 0)
			return fail(root, mount, r, "cannot write");
		source = path_open2(parent, name, O_PATH, 0, INSIDE);
		r = source < 0 ? source : allow(root, source, false, READ);
		return r < 0 ? fail(root, mount, r, "cannot allow") : 0;
	}
	r = write_content(root->fd, temporary, mount);
	if (r == 0)
		r = source = path_open2(root->fd, temporary, O_PATH, 0, INSIDE);
	if (r >= 0)
		r = tree = mount_clone(source, "", false);
	if (r >= 0)
		r = mount_seal(tree, false,
			       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, FD_NONE);
	if (r < 0)
		return fail(root, mount, r, "cannot write");
	r = attach(root, mount, tree, READ);
	if (r == 0 && unlinkat(root->fd, temporary, 0) < 0)
		return fail(root, mount, -errno, "cannot clean up behind");
	return r;
}

static int mount_directory(struct root *root, const struct jail_mount *mount)
{
	cleanup_fd int fd = open_target(root, mount->target, true);
	int r = fd < 0 ? fd : allow(root, fd, true, LANDLOCK_READ_DIR);

	return r < 0 ? fail(root, mount, r, "cannot make") : 0;
}

static int make_link(struct root *root, const char *target, const char *text)
{
	cleanup_fd int parent = FD_NONE;
	const char *name;

	parent = open_parent(root, target, &name);
	if (parent < 0)
		return parent;
	if (!is_private(root, parent))
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
	return r < 0 ? fail(root, mount, r, "cannot link") : 0;
}

/* ---- /proc ---- */

/*
 * What stands in /proc besides the processes belongs to the host's root, whom no sandbox has mapped, and asks for
 * capabilities that no sandbox has: irq, bus, timer_list, kallsyms' addresses and their like are closed by their
 * modes. Mounts, at 12 µs each, are the second wall where most is at stake, and the only one for keys, which
 * shows the user's own. The rest of /proc stays writable for /proc/self (oom_score_adj, comm, mem for debuggers and
 * JITs): no Landlock rule can name the directories of processes that do not exist yet.
 */
static const char *const proc_read_only[] = { "sys", "sysrq-trigger" };
static const char *const proc_masked[] = { "kcore", "keys" };

static int proc_restrict(struct root *root, int proc)
{
	for (size_t i = 0; i < ARRAY_SIZE(proc_read_only); i++) {
		cleanup_fd int target = path_open2(proc, proc_read_only[i], O_PATH, 0, INSIDE);
		cleanup_fd int tree = FD_NONE;
		int r;

		if (target == -ENOENT)
			continue;
		r = target < 0 ? target : (tree = mount_clone(target, "", false));
		if (r >= 0)
			r = mount_seal(tree, false,
				       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
				       FD_NONE);
		if (r >= 0)
			r = mount_attach(tree, target);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(proc_masked); i++) {
		cleanup_fd int target = path_open2(proc, proc_masked[i], O_PATH, 0, INSIDE);
		int r = target == -ENOENT ? 0 : target < 0 ? target : cover(root, target);

		if (r < 0)
			return r;
	}
	return 0;
}

static int mount_proc(struct root *root, const struct jail_mount *mount)
{
	cleanup_fd int proc = mount_new("proc", NULL, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	int r;

	if (proc < 0) {
		r = fail(root, mount, proc, "cannot mount");
		/* The kernel wants to see an unmasked /proc before it gives out another one (mount_too_revealing()). */
		if (proc == -EPERM)
			err_hint(root->err,
				 "in a container whose /proc is masked, start the container with an unmasked one "
					    "(podman: --security-opt unmask=ALL, docker: systempaths=unconfined)");
		return r;
	}
	/* No user namespaces below this one, whatever gets past seccomp: only a capability could raise it again. */
	if (root->job->spec->seccomp == JAIL_SECCOMP_STRICT) {
		r = fd_write_file_at(proc, "sys/user/max_user_namespaces", "0");
		if (r < 0)
			return fail(root, mount, r, "cannot forbid user namespaces through");
	}
	r = attach(root, mount, proc, READ | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE);
	if (r < 0)
		return r;
	r = proc_restrict(root, proc);
	return r < 0 ? fail(root, mount, r, "cannot restrict") : 0;
}

/* ---- /dev ---- */

static int dev_nodes(struct root *root, int dev)
{
	/* random gives what urandom gives since Linux 5.6: a link spares a mount. */
	static const char *const nodes[] = { "null", "zero", "full", "urandom", "tty" };
	cleanup_fd int host = fd_open_at(AT_FDCWD, "/dev", O_PATH | O_DIRECTORY, 0);

	if (host < 0)
		return host;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		cleanup_fd int tree = mount_clone(host, nodes[i], false);
		cleanup_fd int target = FD_NONE;
		struct stat st;
		int r;

		if (tree < 0)
			return tree;
		if (fstat(tree, &st) < 0 || !S_ISCHR(st.st_mode))
			return -ENODEV;
		if (mknodat(dev, nodes[i], S_IFREG | 0444, 0) < 0)
			return -errno;
		target = path_open2(dev, nodes[i], O_PATH, 0, INSIDE);
		r = target < 0 ? target : mount_attach(tree, target);
		if (r < 0)
			return r;
	}
	return 0;
}

static int dev_links(int dev)
{
	static const char *const links[][2] = {
		{ "random", "urandom" }, { "ptmx", "pts/ptmx" }, { "fd", "/proc/self/fd" }, { "stdin",
											     "/proc/self/fd/0" },
		{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlinkat(links[i][1], dev, links[i][0]) < 0)
			return -errno;
	return 0;
}

static int attach_new(int dev, const char *name, int tree)
{
	cleanup_fd int target = FD_NONE;

	if (tree < 0)
		return tree;
	if (mkdirat(dev, name, 0755) < 0)
		return -errno;
	target = path_open2(dev, name, O_PATH | O_DIRECTORY, 0, INSIDE);
	return target < 0 ? target : mount_attach(tree, target);
}

static int dev_file_systems(struct root *root, const struct jail_mount *mount, int dev)
{
	static const struct mount_option options[] = { { "newinstance", NULL }, { "ptmxmode", "0666" }, { "mode",
													 "0620" } };
	cleanup_fd int pts = FD_NONE, shm = FD_NONE;
	int r;

	pts = mount_new("devpts", options, ARRAY_SIZE(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	r = attach_new(dev, "pts", pts);
	if (r < 0)
		return r;
	/* Programs that make code in shared memory map it by fd; nothing is executed from here by name. */
	shm = new_tmpfs(mount->size_bytes, mount->inodes, "1777", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	r = attach_new(dev, "shm", shm);
	if (r == 0)
		r = add_private(root, shm);
	return r < 0 ? r : allow(root, shm, true, READ | WRITE);
}

/* No mount of its own: the root is read-only in the end, and so is /dev then. */
static int mount_dev(struct root *root, const struct jail_mount *mount)
{
	cleanup_fd int dev = open_target(root, mount->target, true);
	int r = dev;

	if (r >= 0)
		r = dev_nodes(root, dev);
	if (r == 0)
		r = dev_links(dev);
	if (r == 0)
		r = dev_file_systems(root, mount, dev);
	if (r == 0)
		r = allow(root, dev, true, READ | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_IOCTL_DEV);
	return r < 0 ? fail(root, mount, r, "cannot build") : 0;
}

static int (*const kinds[JAIL_MOUNT_KIND_COUNT])(struct root *, const struct jail_mount *) = {
	[JAIL_BIND] = mount_bind,           [JAIL_TMPFS] = mount_tmpfs,     [JAIL_MASK] = mount_mask,
	[JAIL_FILE] = mount_file,           [JAIL_DIRECTORY] = mount_directory, [JAIL_SYMLINK] = mount_symlink,
	[JAIL_PROC] = mount_proc,           [JAIL_DEV] = mount_dev,         [JAIL_DEVICE] = mount_bind,
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
	root->fd = new_tmpfs(content, inodes, "0755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	old_root = fd_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	r = root->fd < 0 ? root->fd : old_root < 0 ? old_root : mount_attach(root->fd, old_root);
	if (r == 0)
		r = add_private(root, root->fd);
	if (r == 0)
		r = allow(root, root->fd, true, LANDLOCK_READ_DIR);
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
	for (size_t i = 0; r == 0 && i < job->spec->mount_count; i++)
		r = kinds[job->spec->mounts[i].kind](&root, &job->spec->mounts[i]);
	return r < 0 ? r : root_close(&root);
}
