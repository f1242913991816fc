/* SPDX-License-Identifier: Apache-2.0 */
#include "image/target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"

enum { IN_ROOT = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };

void image_target_init(struct image_target *target, int root_fd)
{
	*target = (struct image_target){ .root_fd = root_fd };
	hash_stream_begin(&target->identity);
}

int image_path(const char *name, char out[PATH_MAX])
{
	size_t used = 0;

	while (*name) {
		size_t size = strcspn(name, "/");

		if (size == 2 && name[0] == '.' && name[1] == '.')
			return -EINVAL;
		if (size > NAME_MAX || used + size + 2 > PATH_MAX)
			return -ENAMETOOLONG;
		if (size && !(size == 1 && name[0] == '.')) {
			if (used)
				out[used++] = '/';
			memcpy(out + used, name, size);
			used += size;
		}
		name += size;
		name += *name == '/';
	}
	out[used] = 0;
	return used > 0;
}

static int open_directory(const struct image_target *target, const char *path)
{
	return path_open2(target->root_fd, *path ? path : ".", O_PATH | O_DIRECTORY, 0, IN_ROOT);
}

/* Each that is missing is made; what leads to one that is there is followed within the target. */
static int make_directories(struct image_target *target, char *path)
{
	for (char *at = path; at; ) {
		cleanup_fd int parent = FD_NONE, there = FD_NONE;
		char *end = strchr(at, '/');

		if (end)
			*end = 0;
		there = open_directory(target, path);
		if (there == -ENOENT) {
			const char *name = at;

			if (at > path)
				at[-1] = 0;
			parent = open_directory(target, at > path ? path : "");
			if (at > path)
				at[-1] = '/';
			if (parent < 0)
				return parent;
			if (mkdirat(parent, name, 0755) < 0)
				return -errno;
			target->counts.directories++;
		} else if (there < 0) {
			return there;
		}
		if (end)
			*end = '/';
		at = end ? end + 1 : NULL;
	}
	return open_directory(target, path);
}

/* The directory that holds path, and the name in it. */
static int open_parent(struct image_target *target, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX];
	int fd;

	*ret_name = slash ? slash + 1 : path;
	if (!slash)
		return open_directory(target, "");
	memcpy(directory, path, (size_t)(slash - path));
	directory[slash - path] = 0;
	fd = open_directory(target, directory);
	return fd == -ENOENT ? make_directories(target, directory) : fd;
}

/* The name is free then. 1: it is a directory that may stay. */
static int make_room(int parent, const char *name, bool is_directory)
{
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (S_ISDIR(st.st_mode))
		return is_directory ? 1 : path_remove_tree(parent, name);
	return unlinkat(parent, name, 0) < 0 ? -errno : 0;
}

static void identify(struct image_target *target, char kind, const char *path, const void *bytes, size_t size)
{
	hash_stream_add(&target->identity, &kind, 1);
	hash_stream_add(&target->identity, path, strlen(path) + 1);
	hash_stream_add(&target->identity, bytes, size);
}

static int count(struct image_target *target, uint64_t *counter)
{
	struct image_counts *counts = &target->counts;

	if (counts->files + counts->directories + counts->links >= IMAGE_ENTRIES_MAX)
		return -E2BIG;
	++*counter;
	if (target->progress)
		target->progress(counts);
	return 0;
}

/* Counts the entry, and makes its place free. The directory that it is in, or -errno; *ret_is_there: a directory is. */
static int begin_entry(struct image_target *target, uint64_t *counter, const char *path, bool is_directory,
		       const char **ret_name, bool *ret_is_there)
{
	cleanup_fd int parent = FD_NONE;
	int r = count(target, counter);

	if (r < 0)
		return r;
	parent = open_parent(target, path, ret_name);
	if (parent < 0)
		return parent;
	r = make_room(parent, *ret_name, is_directory);
	*ret_is_there = r > 0;
	return r < 0 ? r : take_fd(&parent);
}

int image_put_directory(struct image_target *target, const char *path, mode_t mode)
{
	const mode_t taken = (mode & 01777) | 0700;
	const char *name;
	bool is_there;
	cleanup_fd int parent = begin_entry(target, &target->counts.directories, path, true, &name, &is_there);

	if (parent < 0)
		return parent;
	identify(target, 'd', path, &taken, sizeof taken);
	if (!is_there && mkdirat(parent, name, 0700) < 0)
		return -errno;
	return fchmodat(parent, name, taken, 0) < 0 ? -errno : 0;
}

int image_put_symlink(struct image_target *target, const char *path, const char *text)
{
	const char *name;
	bool is_there;
	cleanup_fd int parent = begin_entry(target, &target->counts.links, path, false, &name, &is_there);

	if (parent < 0)
		return parent;
	identify(target, 'l', path, text, strlen(text) + 1);
	return symlinkat(text, parent, name) < 0 ? -errno : 0;
}

int image_put_link(struct image_target *target, const char *path, const char *to)
{
	cleanup_fd int parent = FD_NONE, other = FD_NONE;
	const char *name, *other_name;
	struct stat st;
	int r = count(target, &target->counts.links);

	if (r < 0)
		return r;
	other = open_parent(target, to, &other_name);
	if (other < 0)
		return other;
	if (fstatat(other, other_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	parent = open_parent(target, path, &name);
	if (parent < 0 || str_equal(path, to))
		return parent < 0 ? parent : 0;
	r = make_room(parent, name, false);
	if (r < 0)
		return r;
	identify(target, 'h', path, to, strlen(to) + 1);
	return linkat(other, other_name, parent, name, 0) < 0 ? -errno : 0;
}

int image_put_file(struct image_target *target, const char *path, mode_t mode)
{
	const mode_t taken = (mode & 0777) | 0400;
	const char *name;
	bool is_there;
	cleanup_fd int parent = begin_entry(target, &target->counts.files, path, false, &name, &is_there);
	cleanup_fd int fd = FD_NONE;

	if (parent < 0)
		return parent;
	identify(target, 'f', path, &taken, sizeof taken);
	fd = fd_open_at(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fd;
	return fchmod(fd, taken) < 0 ? -errno : take_fd(&fd);
}

int image_write(struct image_target *target, int fd, const void *bytes, size_t size, uint64_t offset, uint64_t *end)
{
	struct image_counts *counts = &target->counts;
	uint64_t to = offset + size, more = to > *end ? to - *end : 0;

	if (offset > IMAGE_BYTES_MAX || size > IMAGE_BYTES_MAX || more > IMAGE_BYTES_MAX - counts->bytes)
		return -EFBIG;
	identify(target, 'b', "", &offset, sizeof offset);
	hash_stream_add(&target->identity, bytes, size);
	counts->bytes += more;
	*end += more;
	for (size_t done = 0; done < size;) {
		ssize_t n = pwrite(fd, (const char *)bytes + done, size - done, (off_t)(offset + done));

		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* FD_NONE: the directory is not there, so that nothing below it is. */
static int open_parent_that_is(const struct image_target *target, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char directory[PATH_MAX] = "";
	int fd;

	*ret_name = slash ? slash + 1 : path;
	if (slash)
		memcpy(directory, path, (size_t)(slash - path));
	fd = open_directory(target, directory);
	return fd == -ENOENT || fd == -ENOTDIR ? FD_NONE : fd;
}

int image_remove(struct image_target *target, const char *path)
{
	cleanup_fd int parent = FD_NONE;
	const char *name;
	int r;

	parent = open_parent_that_is(target, path, &name);
	if (parent < 0)
		return parent == FD_NONE ? 0 : parent;
	identify(target, 'w', path, "", 0);
	r = make_room(parent, name, true);
	return r == 1 ? path_remove_tree(parent, name) : r;
}

int image_empty(struct image_target *target, const char *path)
{
	int fd = path_open2(target->root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY, 0, IN_ROOT), r = 0;
	const struct dirent *entry;
	DIR *list;

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
	identify(target, 'o', path, "", 0);
	list = path_list(fd);
	if (!list)
		return -errno;
	fd = dirfd(list);
	while (r == 0 && (entry = readdir(list)))
		if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, "..")) {
			r = make_room(fd, entry->d_name, true);
			r = r == 1 ? path_remove_tree(fd, entry->d_name) : r;
		}
	closedir(list);
	return r;
}

/* apt-get reaches the network as a user of its own, whom a sandbox does not have. */
static const char apt_text[] = "// Of atoll: in a sandbox there is one user.\nAPT::Sandbox::User \"root\";\n";

/* Set-id bits mean nothing inside, and there is nobody else to become. */
static const char sudo_text[] =
	"#!/bin/sh\n"
	"# Of atoll: whoever works here has uid 0 already, so that nothing changes.\n"
	"while [ $# -gt 0 ]; do\n"
	"	case \"$1\" in\n"
	"	-E|-H|-n|-S|--preserve-env|--set-home|--non-interactive|--stdin) shift ;;\n"
	"	-u|--user)\n"
	"		case \"$2\" in\n"
	"		root|'#0') shift 2 ;;\n"
	"		*) echo \"sudo: there is no user but root in this sandbox\" >&2; exit 1 ;;\n"
	"		esac ;;\n"
	"	--) shift; break ;;\n"
	"	-*) echo \"sudo: $1 is not known in this sandbox, where everything is root's\" >&2; exit 1 ;;\n"
	"	*) break ;;\n"
	"	esac\n"
	"done\n"
	"[ $# -gt 0 ] || { echo 'usage: sudo [-EHnS] [-u root] COMMAND...' >&2; exit 1; }\n"
	"exec env \"$@\"\n";

static int put_text(struct image_target *target, const char *path, mode_t mode, const char *text)
{
	cleanup_fd int fd = image_put_file(target, path, mode);

	return fd < 0 ? fd : image_write(target, fd, text, strlen(text), 0, &(uint64_t){ 0 });
}

static bool is_there(const struct image_target *target, const char *path)
{
	cleanup_fd int fd = path_open2(target->root_fd, path, O_PATH, 0, IN_ROOT);

	return fd >= 0;
}

static int complete_programs(struct image_target *target)
{
	static const char sudo[] = "usr/local/bin/sudo";
	int r = is_there(target, "etc/apt/apt.conf.d") ?
			put_text(target, "etc/apt/apt.conf.d/zz-atoll", 0644, apt_text) : 0;

	return r == 0 && is_there(target, "bin/sh") && !is_there(target, sudo) ?
		       put_text(target, sudo, 0755, sudo_text) : r;
}

int image_complete(struct image_target *target)
{
	static const char *const directories[] = {
		"dev", "etc", "home", "proc", "root", "run", "sys", "tmp", "usr", "usr/bin", "var", "var/tmp",
	};
	static const char *const files[] = { "etc/hosts", "etc/resolv.conf" };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(directories); i++) {
		cleanup_fd int fd = open_directory(target, directories[i]);

		r = fd >= 0 ? 0 : image_put_directory(target, directories[i], 0755);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++) {
		cleanup_fd int fd = image_put_file(target, files[i], 0644);

		r = fd < 0 ? fd : 0;
	}
	return r < 0 ? r : complete_programs(target);
}
