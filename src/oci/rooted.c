/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/rooted.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"

enum { STEPS_MAX = PATH_MAX };

int rooted_open(int root_fd, const char *path, int flags)
{
	return path_open2(root_fd, path, (uint64_t)flags, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

/* Makes one name in a directory that the kernel has looked up: what is there by now is taken, never followed. */
static int make_entry(int dir_fd, const char *name, bool is_directory)
{
	int fd;

	if (is_directory)
		return mkdirat(dir_fd, name, 0755) < 0 && errno != EEXIST ? -errno : 0;
	fd = fd_open_at(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
	if (fd < 0)
		return fd == -EEXIST ? 0 : fd;
	close_fd(&fd);
	return 0;
}

/* path[..length] is there, path[..end] is not: makes the one component between them. */
static int make_step(int root_fd, const char *path, size_t length, size_t end, bool is_directory)
{
	char part[PATH_MAX], name[NAME_MAX + 1];
	cleanup_fd int dir = FD_NONE;
	int r = str_format(part, sizeof part, "/%.*s", (int)length, path);

	if (r == 0)
		r = str_format(name, sizeof name, "%.*s", (int)(end - length - (path[length] == '/')),
			       path + length + (path[length] == '/'));
	if (r < 0)
		return r;
	dir = rooted_open(root_fd, part, O_PATH | O_DIRECTORY);
	return dir < 0 ? dir : make_entry(dir, name, is_directory);
}

int rooted_make(int root_fd, const char *path, bool is_directory)
{
	char whole[PATH_MAX], part[PATH_MAX];
	size_t length = 0, end = 0;
	int fd, r = path_join(whole, sizeof whole, "/", path);

	if (r < 0)
		return r;
	fd = rooted_open(root_fd, whole, O_PATH);
	for (int steps = 0; fd == -ENOENT && whole[end] && steps < STEPS_MAX; steps++) {
		int there;

		end = length + 1 + strcspn(whole + length + 1, "/");
		r = str_format(part, sizeof part, "%.*s", (int)end, whole);
		if (r < 0)
			return r;
		there = rooted_open(root_fd, part, O_PATH);
		if (there == -ENOENT) {
			r = make_step(root_fd, whole, length, end, is_directory || whole[end]);
			if (r < 0)
				return r;
		} else if (there < 0) {
			return there;
		}
		close_fd(&there);
		length = end;
		if (!whole[end])
			fd = rooted_open(root_fd, whole, O_PATH);
	}
	return fd;
}

int rooted_make_parent(int root_fd, const char *path, const char **ret_name)
{
	const char *name = path_basename(path);
	char parent[PATH_MAX];
	int r;

	if (!*name || str_equal(name, ".") || str_equal(name, ".."))
		return -EINVAL;
	r = str_format(parent, sizeof parent, "/%.*s", (int)(name - path), path);
	if (r < 0)
		return r;
	*ret_name = name;
	return rooted_make(root_fd, parent, true);
}

int rooted_make_node(int root_fd, const char *path, mode_t mode, dev_t device, uid_t uid, gid_t gid)
{
	cleanup_fd int node = FD_NONE;
	const char *name;
	cleanup_fd int dir = rooted_make_parent(root_fd, path, &name);

	if (dir < 0)
		return dir;
	if (mknodat(dir, name, mode, device) < 0)
		return -errno;
	node = fd_open_at(dir, name, O_PATH | O_NOFOLLOW, 0);
	if (node < 0)
		return node;
	if (fchownat(node, "", uid, gid, AT_EMPTY_PATH) < 0)
		return -errno;
	return path_chmod(node, mode);
}

int rooted_make_link(int root_fd, const char *path, const char *target)
{
	const char *name;
	cleanup_fd int dir = rooted_make_parent(root_fd, path, &name);

	if (dir < 0)
		return dir;
	return symlinkat(target, dir, name) < 0 && errno != EEXIST ? -errno : 0;
}
