/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. In a read-only tree of the host a mount can cover only a name that is there, and what covers it
 * can be seen. So a tree in which names are masked, or files of ours shown, becomes the bottom of a read-only overlay:
 * a layer above it holds whiteouts for the names and the files themselves. What is masked is absent then, also when the
 * host makes it later, and a file can stand where the host has none. The layer is the directory of the root that the
 * tree is mounted on, which nobody sees any more, or a tmpfs of its own where that directory is not ours.
 *
 * The kernel gives no layer of a tree in which something else is mounted that its user may not take away, as containers
 * have it in /etc; and not every file system can be one. There the names are covered by mounts, as in every other tree.
 * Where a file of ours would have no name to cover, a directory of ours takes the tree's place, and shows each of its
 * entries by a mount of its own. What the host makes in it later is not seen then.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/str.h"
#include "jail/root.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/path.h"

enum { IN_TREE = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };

/* The same directory in both trees. */
struct step {
	int host, layer; /* owned */
};

static void step_done(struct step *step)
{
	close_fd(&step->host);
	close_fd(&step->layer);
}

static bool is_for_layer(const struct jail_mount *mount)
{
	return mount->kind == JAIL_MASK || (mount->kind == JAIL_FILE && !(mount->flags & JAIL_PLANTED));
}

/* Whether the mount with this index is the one whose tree shows the name. */
static bool is_shown_by(const struct root *root, size_t index, const char *name)
{
	const struct jail_spec *spec = root->job->spec;
	const char *tree = spec->mounts[index].target;

	if (str_equal(name, tree) || !path_is_below(name, tree))
		return false;
	for (size_t i = 0; i < spec->mount_count; i++) {
		const char *other = spec->mounts[i].target;

		if (i != index && !is_for_layer(&spec->mounts[i]) && path_is_below(other, tree) &&
		    path_is_below(name, other))
			return false;
	}
	return true;
}

/* One that the host does not have, for a file of ours. */
static int make_step(struct step *step, const struct step *at, const char *name)
{
	int fd = mkdirat(at->layer, name, 0755) < 0 && errno != EEXIST ? -errno :
		       path_open2(at->layer, name, O_PATH | O_DIRECTORY, 0, IN_TREE);

	if (fd < 0)
		return fd;
	step_done(step);
	*step = (struct step){ FD_NONE, fd };
	return 0;
}

/* One directory further in both, with the host's mode. 1: the host has no such directory, and none is to be made. */
static int step_into(struct step *step, const struct step *at, const char *name, bool makes)
{
	struct step next = { FD_NONE, FD_NONE };
	struct stat st;

	next.host = at->host < 0 ? -ENOENT : path_open2(at->host, name, O_PATH | O_DIRECTORY, 0, IN_TREE);
	if (next.host == -ENOENT && makes)
		return make_step(step, at, name);
	if (next.host < 0)
		return next.host == -ENOENT || next.host == -ENOTDIR || next.host == -ELOOP || next.host == -EXDEV ||
		       next.host == -EACCES ? 1 : next.host;
	if (fstat(next.host, &st) == 0 && (mkdirat(at->layer, name, st.st_mode & 0777) == 0 || errno == EEXIST))
		next.layer = path_open2(at->layer, name, O_PATH | O_DIRECTORY, 0, IN_TREE);
	else
		next.layer = -errno;
	if (next.layer < 0) {
		int r = next.layer;

		step_done(&next);
		return r;
	}
	step_done(step);
	*step = next;
	return 0;
}

/* A name that is a link of the host's is left to a mount, which follows it. */
static bool is_link(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
}

static int put_name(const struct step *at, const char *name, const struct jail_mount *mount)
{
	cleanup_fd int fd = FD_NONE;

	if (mount->kind == JAIL_MASK)
		return mknodat(at->layer, name, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST ? -errno : 0;
	fd = fd_open_at(at->layer, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0444);
	return fd < 0 ? fd : fd_write_full(fd, mount->content, mount->content_size);
}

/* path is relative to both trees. 1: not in this layer. */
static int put(const struct step *trees, const char *path, const struct jail_mount *mount)
{
	struct step step = { FD_NONE, FD_NONE };
	const struct step *at = trees;
	char name[NAME_MAX + 1];
	int r = 0;

	for (const char *end; r == 0 && (end = strchr(path, '/')); path = end + 1) {
		if ((size_t)(end - path) >= sizeof name) {
			r = 1;
			break;
		}
		memcpy(name, path, (size_t)(end - path));
		name[end - path] = 0;
		r = step_into(&step, at, name, mount->kind == JAIL_FILE);
		at = &step;
	}
	if (r == 0)
		r = at->host >= 0 && is_link(at->host, path) ? 1 : put_name(at, path, mount);
	step_done(&step);
	return r;
}

/* The names that a layer holds, by the index of their mounts. */
struct held {
	uint64_t bits[ROOT_LAYERED_MAX / 64];
	size_t count;
};

/* Fills the layer of the mount with this index. */
static int fill(const struct root *root, size_t index, const struct step *trees, struct held *held)
{
	const struct jail_spec *spec = root->job->spec;
	size_t length = strlen(spec->mounts[index].target);

	for (size_t i = index + 1; i < spec->mount_count && i < ROOT_LAYERED_MAX; i++) {
		const struct jail_mount *mount = &spec->mounts[i];
		int r = 1;

		if (is_for_layer(mount) && is_shown_by(root, index, mount->target))
			r = put(trees, mount->target + length + 1, mount);
		if (r < 0)
			return r;
		if (r == 0) {
			held->bits[i / 64] |= UINT64_C(1) << i % 64;
			held->count++;
		}
	}
	return 0;
}

bool root_has_layered(const struct root *root, const struct jail_mount *mount)
{
	size_t index = (size_t)(mount - root->job->spec->mounts);

	return index < ROOT_LAYERED_MAX && root->layered[index / 64] >> index % 64 & 1;
}

static bool has_names(const struct root *root, size_t index)
{
	const struct jail_spec *spec = root->job->spec;

	for (size_t i = index + 1; i < spec->mount_count && i < ROOT_LAYERED_MAX; i++)
		if (is_for_layer(&spec->mounts[i]) && is_shown_by(root, index, spec->mounts[i].target))
			return true;
	return false;
}

static uint64_t content_bytes(const struct jail_spec *spec)
{
	uint64_t bytes = 1 << 20;

	for (size_t i = 0; i < spec->mount_count; i++)
		bytes += spec->mounts[i].kind == JAIL_FILE ? spec->mounts[i].content_size + 8192 : 0;
	return bytes;
}

/* The overlay cannot be had: its layer, which is attached upon the tree, goes again. */
static int take_away(int layer_fd)
{
	cleanup_fd int proc = fd_open_at(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY, 0);
	int r = proc < 0 ? proc : mount_detach(layer_fd, proc);

	return chdir("/") < 0 ? -errno : r;
}

/* What takes the names: the fd, or -errno. */
static int layer_open(struct root *root, const struct jail_mount *mount, bool *ret_is_own)
{
	cleanup_fd int target = root_open_target(root, mount->target, true);
	struct stat st;

	if (target >= 0 && fstat(target, &st) == 0 && st.st_dev == root->private_devices[0]) {
		*ret_is_own = false;
		return take_fd(&target);
	}
	*ret_is_own = true;
	return root_new_tmpfs(content_bytes(root->job->spec), 1 << 14, "0755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

/* The overlay upon the tree, which is attached. 0 also where none can be had. */
static int lay_upon(struct root *root, const struct jail_mount *mount, const struct step *trees, bool is_own,
		    int *ret_whole)
{
	const uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY |
				    (mount->flags & JAIL_NOEXEC ? MOUNT_ATTR_NOEXEC : 0);
	cleanup_fd int whole = FD_NONE;
	int r = is_own ? mount_attach(trees->layer, trees->host) : 0;

	if (r < 0)
		return root_fail(root, mount, r, "cannot lay names upon");
	whole = overlay_read_only((const int[]){ trees->layer, trees->host }, 2, attributes);
	if (whole < 0) {
		r = is_own ? take_away(trees->layer) : 0;
		return r < 0 ? root_fail(root, mount, r, "cannot uncover") : 0;
	}
	r = mount_attach(whole, is_own ? trees->layer : trees->host);
	if (r < 0)
		return root_fail(root, mount, r, "cannot mount on");
	*ret_whole = take_fd(&whole);
	return 0;
}

/* ---- where no layer can be had ---- */

/* Some 10 µs each. */
enum { ENTRIES_MAX = 1024 };

struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

static int copy_link(int from, int to, const char *name)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(from, name, text, sizeof text - 1);

	if (length < 0)
		return -errno;
	text[length] = 0;
	return symlinkat(text, to, name) < 0 ? -errno : 0;
}

/* What went away meanwhile is not there. */
static int show_entry(int from, int to, const char *name)
{
	cleanup_fd int tree = FD_NONE;
	struct stat st;
	int r;

	if (str_equal(name, ".") || str_equal(name, ".."))
		return 0;
	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISLNK(st.st_mode))
		return copy_link(from, to, name);
	r = S_ISDIR(st.st_mode) ? mkdirat(to, name, 0755) : mknodat(to, name, S_IFREG | 0444, 0);
	if (r < 0)
		return -errno;
	tree = mount_clone(from, name, true);
	return tree == -ENOENT ? 0 : tree < 0 ? tree : mount_attach_at(tree, to, name);
}

static int show_entries(int from, int to)
{
	cleanup_fd int directory = fd_open_at(from, ".", O_RDONLY | O_DIRECTORY, 0);
	_Alignas(struct entry) char bytes[4096];
	unsigned count = 0;
	long size;
	int r = directory < 0 ? directory : 0;

	while (r == 0 && (size = syscall(SYS_getdents64, directory, bytes, sizeof bytes)) != 0) {
		r = size < 0 ? -errno : 0;
		for (long at = 0; r == 0 && at < size;) {
			const struct entry *entry = (const void *)(bytes + at);

			r = ++count > ENTRIES_MAX ? -E2BIG : show_entry(from, to, entry->name);
			at += entry->size;
		}
	}
	return r;
}

/* The name of a file of ours, empty: its mount comes later. One in a directory of the host's is not made. */
static int make_place(int to, const char *path)
{
	cleanup_fd int at = fd_open_at(to, ".", O_PATH | O_DIRECTORY, 0);
	char name[NAME_MAX + 1];

	for (const char *end; at >= 0 && (end = strchr(path, '/')); path = end + 1) {
		int next;

		if ((size_t)(end - path) >= sizeof name)
			return -ENAMETOOLONG;
		memcpy(name, path, (size_t)(end - path));
		name[end - path] = 0;
		if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
			return errno == EROFS ? 0 : -errno;
		next = path_open2(at, name, O_PATH | O_DIRECTORY, 0, IN_TREE & ~(uint64_t)RESOLVE_NO_XDEV);
		close(at);
		at = next;
	}
	if (at < 0)
		return at;
	return mknodat(at, path, S_IFREG | 0444, 0) < 0 && errno != EEXIST && errno != EROFS ? -errno : 0;
}

static int make_places(const struct root *root, size_t index, int to)
{
	const struct jail_spec *spec = root->job->spec;
	size_t length = strlen(spec->mounts[index].target);
	int r = 0;

	for (size_t i = index + 1; r == 0 && i < spec->mount_count && i < ROOT_LAYERED_MAX; i++)
		if (spec->mounts[i].kind == JAIL_FILE && is_for_layer(&spec->mounts[i]) &&
		    is_shown_by(root, index, spec->mounts[i].target))
			r = make_place(to, spec->mounts[i].target + length + 1);
	return r;
}

static bool lacks_names(const struct root *root, size_t index, int tree_fd)
{
	const struct jail_spec *spec = root->job->spec;
	size_t length = strlen(spec->mounts[index].target);

	for (size_t i = index + 1; i < spec->mount_count && i < ROOT_LAYERED_MAX; i++) {
		cleanup_fd int fd = FD_NONE;

		if (spec->mounts[i].kind != JAIL_FILE || !is_for_layer(&spec->mounts[i]) ||
		    !is_shown_by(root, index, spec->mounts[i].target))
			continue;
		fd = path_open2(tree_fd, spec->mounts[i].target + length + 1, O_PATH, 0, RESOLVE_IN_ROOT);
		if (fd == -ENOENT)
			return true;
	}
	return false;
}

/* A directory of ours upon the attached tree. 0 also where it cannot be had: then the files have no place. */
static int spread_out(struct root *root, const struct jail_mount *mount, int tree_fd, uint64_t rights)
{
	size_t index = (size_t)(mount - root->job->spec->mounts);
	cleanup_fd int own = FD_NONE;
	int r;

	if (!lacks_names(root, index, tree_fd))
		return 0;
	own = root_new_tmpfs(1 << 20, 4 * ENTRIES_MAX, "0755", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	r = own < 0 ? own : mount_attach(own, tree_fd);
	if (r < 0)
		return root_fail(root, mount, r, "cannot make a directory upon");
	r = show_entries(tree_fd, own);
	if (r == 0)
		r = make_places(root, index, own);
	if (r == 0)
		r = mount_seal(own, false, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
				   (mount->flags & JAIL_NOEXEC ? MOUNT_ATTR_NOEXEC : 0), FD_NONE);
	if (r == 0)
		r = root_allow(root, own, true, rights);
	return r < 0 ? take_away(own) : 0;
}

int root_mount_layered(struct root *root, const struct jail_mount *mount, int tree_fd, uint64_t rights)
{
	size_t index = (size_t)(mount - root->job->spec->mounts);
	cleanup_fd int layer = FD_NONE, whole = FD_NONE;
	struct held held = { .count = 0 };
	bool is_own;
	int r = 0;

	if (mount->flags & JAIL_LAYERED && index < ROOT_LAYERED_MAX && has_names(root, index)) {
		r = layer = layer_open(root, mount, &is_own);
		if (r >= 0)
			r = fill(root, index, &(struct step){ tree_fd, layer }, &held);
	}
	if (r < 0)
		return root_fail(root, mount, r, "cannot lay names upon");
	r = root_attach(root, mount, tree_fd, rights);
	if (r == 0 && held.count)
		r = lay_upon(root, mount, &(struct step){ tree_fd, layer }, is_own, &whole);
	if (r < 0)
		return r;
	if (whole < 0)
		return held.count || mount->flags & JAIL_SPREAD ? spread_out(root, mount, tree_fd, rights) : 0;
	r = root_allow(root, whole, true, rights);
	if (r < 0)
		return root_fail(root, mount, r, "cannot mount on");
	for (size_t i = 0; i < ARRAY_SIZE(held.bits); i++)
		root->layered[i] |= held.bits[i];
	return 0;
}
