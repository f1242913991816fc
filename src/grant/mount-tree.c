/* SPDX-License-Identifier: Apache-2.0 */
#include "grant/mount-tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/mount-list.h"
#include "os/path.h"

/*
 * Masks are put over the tree where nobody inside can see it yet: the restricted copy is attached over the original in
 * the child's own mounts, covered there, and what then stands at that place is copied as a whole, covers included. So
 * the sandbox gets it by one move, and never sees a masked name, not for a moment.
 */

enum { NO_LINKS = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };

/* Views of the kernel and of other processes: not files that anybody could have meant. */
static bool is_kernels_own(int fd)
{
	static const unsigned long kinds[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
		SECURITYFS_MAGIC, BPF_FS_MAGIC, DEVPTS_SUPER_MAGIC, EFIVARFS_MAGIC, NSFS_MAGIC, SELINUX_MAGIC,
		PSTOREFS_MAGIC, BINFMTFS_MAGIC,
	};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if ((unsigned long)fs.f_type == kinds[i])
			return true;
	return false;
}

static int open_wish(const struct mount_tree_wish *wish, bool *ret_is_directory, enum mount_step *ret_step)
{
	cleanup_fd int fd = path_open2(AT_FDCWD, wish->path, O_PATH, 0, NO_LINKS);
	struct stat st;

	*ret_step = fd == -ELOOP ? MOUNT_LINK : MOUNT_GONE;
	if (fd < 0)
		return fd;
	/* The shown one is held open, so that its number means nothing else. */
	if (wish->shown_fd >= 0 && !fd_is_same_file(fd, wish->shown_fd))
		return -ESTALE;
	*ret_step = MOUNT_KIND;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) || is_kernels_own(fd))
		return -EINVAL;
	*ret_is_directory = S_ISDIR(st.st_mode);
	return take_fd(&fd);
}

/* A /proc in somebody's chroot shows the processes of the host. */
static int check_below(const struct mount_tree_wish *wish)
{
	char **points;
	int r = mount_points_below(wish->path, &points);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && points[i]; i++) {
		cleanup_fd int fd = path_open2(AT_FDCWD, points[i], O_PATH, 0, NO_LINKS);

		if (fd < 0 || is_kernels_own(fd))
			r = -EINVAL;
	}
	strv_free(points);
	return r;
}

static int restrict_tree(const struct mount_tree_wish *wish, int tree)
{
	uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	int r;

	if (!wish->is_writable)
		attributes |= MOUNT_ATTR_RDONLY;
	if (wish->is_noexec)
		attributes |= MOUNT_ATTR_NOEXEC;
	r = mount_seal(tree, true, attributes | (wish->idmap_fd >= 0 ? MOUNT_ATTR_IDMAP : 0), wish->idmap_fd);
	/* A file system that cannot be idmapped: what everybody may read can be read all the same. */
	if (r == -EINVAL && wish->idmap_fd >= 0 && !wish->is_writable)
		r = mount_seal(tree, true, attributes, FD_NONE);
	return r;
}

/* ---- masks ---- */

/* What is below the wish's path of an absolute one, or NULL. */
static const char *name_below(const struct mount_tree_wish *wish, const char *path)
{
	return path && !str_equal(path, wish->path) && path_is_below(path, wish->path) ? path + strlen(wish->path) + 1 :
											 NULL;
}

/* The name of the i-th thing that is covered wherever it is seen: masks by path, and programs that may not run. */
static const char *covered_name(const struct mount_tree_wish *wish, size_t i)
{
	const struct policy *policy = wish->policy;
	const struct exec_rule *rule;

	if (i < policy->files.count)
		return policy->files.rules[i].class == FILE_MASK && !(policy->files.rules[i].flags & FILE_GLOB) ?
			       name_below(wish, policy->files.rules[i].pattern) : NULL;
	rule = &policy->exec.rules[i - policy->files.count];
	return rule->verdict == VERDICT_DENY && !(rule->program_flags & FILE_GLOB) ? name_below(wish, rule->program) :
										     NULL;
}

struct covers {
	int store_fd;        /* a tmpfs with what covers, attached where the child needs nothing any more */
};

/* Modes of 0, and read-only, so that their owner cannot change them. */
static int covers_open(struct covers *covers)
{
	static const struct mount_option options[] = { { "mode", "0700" }, { "size", "64k" } };
	cleanup_fd int proc = fd_open_at(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0);
	int r = proc;

	if (r >= 0)
		r = covers->store_fd = mount_new("tmpfs", options, ARRAY_SIZE(options), 0);
	if (r >= 0)
		r = mount_attach(covers->store_fd, proc);
	if (r == 0 && (mkdirat(covers->store_fd, "directory", 0) < 0 ||
		       mknodat(covers->store_fd, "file", S_IFREG, 0) < 0))
		r = -errno;
	return r;
}

static int cover(const struct covers *covers, int target_fd)
{
	cleanup_fd int source = FD_NONE, tree = FD_NONE;
	struct stat st;
	int r;

	if (fstat(target_fd, &st) < 0)
		return -errno;
	r = source = path_open2(covers->store_fd, S_ISDIR(st.st_mode) ? "directory" : "file", O_PATH, 0, NO_LINKS);
	if (r >= 0)
		r = tree = mount_clone(source, "", false);
	if (r >= 0)
		r = mount_seal(tree, false,
			       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, FD_NONE);
	return r < 0 ? r : mount_attach(tree, target_fd);
}

/* A link is refused: what it leads to may be seen under its own name, and it may lead elsewhere tomorrow. */
static int cover_name(const struct mount_tree_wish *wish, struct covers *covers, int top, const char *name)
{
	cleanup_fd int target = path_open2(top, name, O_PATH, 0, NO_LINKS | RESOLVE_BENEATH);
	int r = 0;

	/* In a tree that is written, a name that is missing could be made inside, and trusted outside. */
	if (target == -ENOENT || target == -ENOTDIR)
		return wish->is_writable ? target : 0;
	if (target < 0)
		return target;
	if (covers->store_fd < 0)
		r = covers_open(covers);
	return r < 0 ? r : cover(covers, target);
}

static bool has_covered(const struct mount_tree_wish *wish)
{
	for (size_t i = 0; i < wish->policy->files.count + wish->policy->exec.count; i++)
		if (covered_name(wish, i))
			return true;
	return false;
}

/* Takes tree; the fd of what is to be brought in instead. */
static int cover_names(const struct mount_tree_wish *wish, int source, int tree)
{
	cleanup_fd int attached = tree, top = FD_NONE;
	struct covers covers = { FD_NONE };
	int r = mount_attach(attached, source);

	if (r == 0)
		r = top = path_open2(AT_FDCWD, wish->path, O_PATH, 0, NO_LINKS);
	for (size_t i = 0; r >= 0 && i < wish->policy->files.count + wish->policy->exec.count; i++) {
		const char *name = covered_name(wish, i);

		if (name)
			r = cover_name(wish, &covers, top, name);
	}
	close_fd(&covers.store_fd);
	return r < 0 ? r : mount_clone(top, "", true);
}

int mount_tree_make(const struct mount_tree_wish *wish, bool *ret_is_directory, enum mount_step *ret_step)
{
	cleanup_fd int source = open_wish(wish, ret_is_directory, ret_step), tree = FD_NONE;
	int r;

	if (source < 0)
		return source;
	*ret_step = MOUNT_BELOW;
	r = check_below(wish);
	if (r < 0)
		return r;
	*ret_step = MOUNT_TREE;
	tree = mount_clone(source, "", true);
	r = tree < 0 ? tree : restrict_tree(wish, tree);
	if (r < 0 || !has_covered(wish))
		return r < 0 ? r : take_fd(&tree);
	*ret_step = MOUNT_MASK;
	return cover_names(wish, source, take_fd(&tree));
}
