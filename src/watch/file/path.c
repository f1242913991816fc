/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/file/path.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"

/*
 * Theory of operation. The usual path is resolved by the kernel in one openat2(2): absolute ones in the caller's root,
 * relative ones beneath its directory, never through a magic link. What that leaves (".." above the directory, an
 * absolute link on the way, /proc/self, which is us to the kernel, a magic link) is walked component by component.
 *
 * Every component that the walk opens is opened without following, so that a name which changes under us leads to one
 * thing or the other, never to our own root. A magic link of /proc/PID leads wherever that process has a descriptor: it
 * is followed where the caller may (the link belongs to the sandbox's user), and what it leads to must lie on a mount
 * of the sandbox or nowhere at all, like a pipe. What the decision is then made on is not the text but the real path of
 * the object that was found.
 */

enum { LINKS_MAX = 40, PROC_ROOT_INODE = 1 };

/* What open(2) adds of itself where off_t has 64 bits, and openat2(2) does not; not in every header. */
#if defined(__aarch64__)
enum { LARGE_FILE = 0400000 };
#else
enum { LARGE_FILE = 0100000 };
#endif

struct walk {
	const struct file_caller *caller;
	struct file_place *place;
	unsigned how;
	int at_fd;                   /* owned: the directory so far */
	unsigned links;
	bool must_be_directory;
	char rest[2 * PATH_MAX];     /* what is still to be resolved */
};

void file_place_init(struct file_place *place)
{
	place->fd = place->dir_fd = FD_NONE;
	place->is_open = false;
	place->name[0] = place->path[0] = 0;
}

void file_place_done(struct file_place *place)
{
	close_fd(&place->fd);
	close_fd(&place->dir_fd);
}

const char *file_link(int fd, char out[FILE_LINK_SIZE])
{
	return str_format(out, FILE_LINK_SIZE, "/proc/self/fd/%d", fd) < 0 ? "" : out;
}

/* Its name in /proc/self/fd. From a directory that is open already it is found in half the time. */
static const char *number_of(int fd, char out[FILE_LINK_SIZE])
{
	struct buf text;

	buf_init_fixed(&text, out, FILE_LINK_SIZE);
	buf_put_u64_decimal(&text, (uint64_t)fd);
	return buf_text(&text);
}

int file_open_again(const struct file_view *view, int fd, int flags, mode_t mode)
{
	char number[FILE_LINK_SIZE];

	return fd_open_at(view->self_fd, number_of(fd, number), flags, mode);
}

/* The path that the kernel shows for fd; of a deleted file the one that it had. */
static int read_path(const struct file_caller *caller, int fd, char out[PATH_MAX])
{
	static const char deleted[] = " (deleted)";
	char number[FILE_LINK_SIZE];
	ssize_t length = readlinkat(caller->view->self_fd, number_of(fd, number), out, PATH_MAX - 1);
	struct stat status;

	if (length < 0)
		return -errno;
	out[length] = 0;
	if (out[0] != '/')
		out[0] = 0;
	if (str_has_suffix(out, deleted) && fstat(fd, &status) == 0 && status.st_nlink == 0)
		out[length - (ssize_t)strlen(deleted)] = 0;
	return 0;
}

static int set_name(struct file_place *place, const char *name, size_t length, bool has_slash)
{
	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(place->name, name, length);
	place->name[length] = has_slash ? '/' : 0;
	place->name[length + has_slash] = 0;
	return 0;
}

/* The real path of dir_fd and name. */
static int set_missing_path(const struct file_caller *caller, struct file_place *place)
{
	size_t length, name_length = strcspn(place->name, "/");
	int r = read_path(caller, place->dir_fd, place->path);

	if (r < 0)
		return r;
	length = strlen(place->path);
	if (length == 1)
		length = 0;
	if (length + 1 + name_length >= sizeof place->path)
		return -ENAMETOOLONG;
	place->path[length] = '/';
	memcpy(place->path + length + 1, place->name, name_length);
	place->path[length + 1 + name_length] = 0;
	return 0;
}

/* Of what the user of the sandbox may not trace, /proc shows everybody only this. */
static bool is_public_in_proc(const char *name)
{
	static const char *const names[] = {
		"stat", "status", "statm", "cmdline", "comm", "cgroup", "limits", "mounts", "mountinfo", "mountstats",
		"oom_score", "oom_score_adj", "oom_adj", "sched", "schedstat", "sessionid", "loginuid", "task", "net",
		"cpuset", "coredump_filter", "children", "autogroup", "timens_offsets",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_equal(names[i], name))
			return true;
	return false;
}

/* What /proc shows of the namespaces of whoever opens it, and that is us: the host's. */
static bool is_of_opener(const char *path)
{
	static const char *const places[] = {
		"/proc/sysvipc", "/proc/keys", "/proc/key-users", "/proc/sys/net", "/proc/sys/fs/mqueue",
		"/proc/sys/user",
	};
	static const char *const beginnings[] = {
		"/proc/sys/kernel/shm", "/proc/sys/kernel/msg", "/proc/sys/kernel/sem", "/proc/sys/kernel/auto_msgmni",
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (path_is_below(path, places[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++)
		if (str_has_prefix(path, beginnings[i]))
			return true;
	return false;
}

/*
 * /proc asks whether who opens may trace the process, and that is us: as the creator of the user namespace we may
 * look at every process inside, also at atoll-init. What is not the sandbox's own is therefore only what /proc shows
 * to everybody; the other files belong to root there.
 */
static bool may_see_in_proc(const struct file_caller *caller, const char *path, const struct stat *status)
{
	const char *name = strrchr(path, '/');
	size_t digits = strspn(path + strlen("/proc/"), "0123456789");

	if (!digits)
		return !is_of_opener(path);
	if (status->st_uid == caller->view->uid ||
	    (S_ISDIR(status->st_mode) && (status->st_mode & 0777) == 0555))
		return true;
	/* Of its network namespace anybody may read, natively. */
	if (str_has_prefix(path + strlen("/proc/") + digits, "/net/"))
		return true;
	return is_public_in_proc(name + 1);
}

/* known: the real path, where it need not be asked for; else NULL. */
static int finish_object(const struct file_caller *caller, const char *known, struct file_place *place)
{
	int r = !place->is_open && fstat(place->fd, &place->status) < 0 ? -errno : 0;

	if (r == 0)
		r = known ? str_copy(place->path, PATH_MAX, known) : read_path(caller, place->fd, place->path);
	if (r == 0 && strncmp(place->path, "/proc/", strlen("/proc/")) == 0 &&
	    !may_see_in_proc(caller, place->path, &place->status))
		r = -EACCES;
	return r;
}

/* ---- the slow way ---- */

static bool is_same_place(int a, int b)
{
	return fd_is_same_file(a, b);
}

static void go_to(struct walk *walk, int fd)
{
	close_fd(&walk->at_fd);
	walk->at_fd = fd;
}

static int go_to_root(struct walk *walk)
{
	int fd = fd_open_at(walk->caller->root_fd, ".", O_PATH | O_DIRECTORY, 0);

	if (fd < 0)
		return fd;
	go_to(walk, fd);
	return 0;
}

static int go_up(struct walk *walk)
{
	int fd;

	if (is_same_place(walk->at_fd, walk->caller->root_fd))
		return 0;
	fd = fd_open_at(walk->at_fd, "..", O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	go_to(walk, fd);
	return 0;
}

/* Puts text before what is left. */
static int expand(struct walk *walk, const char *text)
{
	size_t length = strlen(text), rest = strlen(walk->rest);

	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	if (!length)
		return -ENOENT;
	if (length + 1 + rest >= sizeof walk->rest)
		return -ENAMETOOLONG;
	memmove(walk->rest + length + 1, walk->rest, rest + 1);
	memcpy(walk->rest, text, length);
	walk->rest[length] = rest ? '/' : 0;
	return text[0] == '/' ? go_to_root(walk) : 0;
}

static bool is_proc(int fd)
{
	struct statfs kind;

	return fstatfs(fd, &kind) == 0 && kind.f_type == PROC_SUPER_MAGIC;
}

/* /proc/self and /proc/thread-self are whoever looks. */
static int expand_self(struct walk *walk, const char *name)
{
	const struct file_caller *caller = walk->caller;
	char text[64];

	if (!caller->process_inside)
		return -FILE_PATH_NEEDS_STATUS;
	if (str_equal(name, "self"))
		return str_format(text, sizeof text, "%d", caller->process_inside) < 0 ? -EIO : expand(walk, text);
	return str_format(text, sizeof text, "%d/task/%d", caller->process_inside, caller->thread_inside) < 0 ?
		       -EIO : expand(walk, text);
}

/* Leads where a process has a descriptor, its root, its program: *ret_fd is O_PATH of that. */
static int follow_magic(struct walk *walk, const char *name, const struct stat *link, int *ret_fd)
{
	const struct file_caller *caller = walk->caller;
	cleanup_fd int fd = FD_NONE;
	char path[PATH_MAX];
	int r;

	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	if (link->st_uid != caller->view->uid)
		return -EACCES;
	fd = fd_open_at(walk->at_fd, name, O_PATH, 0);
	if (fd < 0)
		return fd;
	r = read_path(caller, fd, path);
	/* What has no path has no place outside either; memory files have one that leads nowhere. */
	if (r == 0 && path[0] && !file_view_is_memory(caller->view, fd) &&
	    !file_view_has(caller->view, caller->pid, fd))
		r = -EACCES;
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

static bool is_magic(int dir_fd, const char *name)
{
	int fd = path_open2(dir_fd, name, O_PATH, 0, RESOLVE_NO_MAGICLINKS);

	if (fd >= 0)
		close(fd);
	return fd == -ELOOP;
}

/* A link that is to be followed; *ret_fd where it was a magic one, else what it says stands before the rest. */
static int follow_link(struct walk *walk, const char *name, int link_fd, const struct stat *status, int *ret_fd)
{
	char text[PATH_MAX];
	ssize_t length;

	if (is_proc(link_fd)) {
		struct stat directory;

		if (fstat(walk->at_fd, &directory) < 0)
			return -errno;
		if (directory.st_ino == PROC_ROOT_INODE && (str_equal(name, "self") || str_equal(name, "thread-self")))
			return expand_self(walk, name);
		if (is_magic(walk->at_fd, name))
			return follow_magic(walk, name, status, ret_fd);
	}
	length = readlinkat(link_fd, "", text, sizeof text - 1);
	if (length < 0)
		return -errno;
	text[length] = 0;
	return expand(walk, text);
}

/* Cuts the next component off; *ret_is_last: nothing but slashes is behind it. */
static int next_component(struct walk *walk, char name[NAME_MAX + 1], bool *ret_is_last)
{
	char *at = walk->rest + strspn(walk->rest, "/");
	size_t length = strcspn(at, "/"), slashes = strspn(at + length, "/");

	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, at, length);
	name[length] = 0;
	*ret_is_last = !at[length + slashes];
	if (*ret_is_last && slashes)
		walk->must_be_directory = true;
	memmove(walk->rest, at + length + slashes, strlen(at + length + slashes) + 1);
	return 0;
}

/* The end of the walk: the directory that it stands in is the object. */
static int end_here(struct walk *walk)
{
	walk->place->fd = take_fd(&walk->at_fd);
	return finish_object(walk->caller, NULL, walk->place);
}

static int end_missing(struct walk *walk, const char *name)
{
	struct file_place *place = walk->place;
	int r = set_name(place, name, strlen(name), walk->must_be_directory);

	place->dir_fd = take_fd(&walk->at_fd);
	if (r == 0)
		r = set_missing_path(walk->caller, place);
	return r < 0 ? r : -ENOENT;
}

static int end_at(struct walk *walk, int *fd, const struct stat *status)
{
	if ((walk->must_be_directory || walk->how & FILE_PATH_DIRECTORY) && !S_ISDIR(status->st_mode))
		return -ENOTDIR;
	walk->place->fd = take_fd(fd);
	return finish_object(walk->caller, NULL, walk->place);
}

static bool has_dots(const char *path)
{
	while (*path) {
		size_t length = strcspn(path, "/");

		if ((length == 1 && path[0] == '.') || (length == 2 && path[0] == '.' && path[1] == '.'))
			return true;
		path += length;
		path += strspn(path, "/");
	}
	return false;
}

/* For the record only: how the path goes on where a directory of it is missing, unless dots would bend it. */
static void note_missing(struct walk *walk, const char *name)
{
	char *path = walk->place->path;
	size_t length;

	if (has_dots(walk->rest) || strstr(walk->rest, "//") || read_path(walk->caller, walk->at_fd, path) < 0)
		return;
	length = strlen(path);
	if (str_format(path + length, PATH_MAX - length, "%s%s/%s", length > 1 ? "/" : "", name, walk->rest) < 0)
		path[0] = 0;
	length = strlen(path);
	if (length > 1 && path[length - 1] == '/')
		path[length - 1] = 0;
}

/* One component. 1: the walk is over. */
static int step(struct walk *walk)
{
	cleanup_fd int fd = FD_NONE;
	char name[NAME_MAX + 1];
	struct stat status;
	bool is_last, follows;
	int r = next_component(walk, name, &is_last), magic_fd = FD_NONE;

	if (r < 0)
		return r;
	if (!name[0] || str_equal(name, ".") || str_equal(name, "..")) {
		r = str_equal(name, "..") ? go_up(walk) : 0;
		return r < 0 || !is_last ? r : (r = end_here(walk)) < 0 ? r : 1;
	}
	fd = fd_open_at(walk->at_fd, name, O_PATH | O_NOFOLLOW, 0);
	if (fd == -ENOENT && is_last)
		return end_missing(walk, name);
	if (fd == -ENOENT)
		note_missing(walk, name);
	if (fd < 0 || fstat(fd, &status) < 0)
		return fd < 0 ? fd : -errno;
	follows = !is_last || !(walk->how & FILE_PATH_NOFOLLOW) || walk->must_be_directory;
	if (S_ISLNK(status.st_mode) && follows) {
		r = follow_link(walk, name, fd, &status, &magic_fd);
		if (r < 0 || magic_fd < 0)
			return r;
		close(fd);
		fd = magic_fd;
		if (fstat(fd, &status) < 0)
			return -errno;
	}
	if (is_last)
		return (r = end_at(walk, &fd, &status)) < 0 ? r : 1;
	if (!S_ISDIR(status.st_mode))
		return -ENOTDIR;
	go_to(walk, take_fd(&fd));
	return 0;
}

static int walk_path(const struct file_caller *caller, int base_fd, const char *text, unsigned how,
		     struct file_place *place)
{
	struct walk walk = { .caller = caller, .place = place, .how = how, .at_fd = FD_NONE };
	int r = str_copy(walk.rest, sizeof walk.rest, text);

	if (r == 0) {
		walk.at_fd = fd_open_at(text[0] == '/' ? caller->root_fd : base_fd, ".", O_PATH | O_DIRECTORY, 0);
		r = walk.at_fd < 0 ? walk.at_fd : 0;
	}
	while (r == 0)
		r = step(&walk);
	close_fd(&walk.at_fd);
	return r < 0 ? r : 0;
}

/* ---- the fast way ---- */

static int open_fast(const struct file_caller *caller, int base_fd, const char *text, unsigned how, uint64_t resolve)
{
	bool is_absolute = text[0] == '/';
	uint64_t flags = (how & FILE_PATH_READ ? LARGE_FILE | O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH) |
			 (how & FILE_PATH_NOFOLLOW ? O_NOFOLLOW : 0) | (how & FILE_PATH_DIRECTORY ? O_DIRECTORY : 0);

	return path_open2(is_absolute ? caller->root_fd : base_fd, text, flags, 0,
			  (is_absolute ? RESOLVE_IN_ROOT : RESOLVE_BENEATH) | resolve);
}

static bool needs_walk(int r)
{
	return r == -ENOENT || r == -EXDEV || r == -ELOOP || r == -EAGAIN;
}

/* Where the last component of text begins, and its length without slashes behind it. */
static size_t find_last(const char *text, size_t *ret_length)
{
	size_t end = strlen(text), start;

	while (end && text[end - 1] == '/')
		end--;
	for (start = end; start && text[start - 1] != '/';)
		start--;
	*ret_length = end - start;
	return start;
}

static int open_directory(const struct file_caller *caller, int base_fd, const char *text, size_t length)
{
	struct file_place place;
	char part[PATH_MAX];
	int r;

	if (!length)
		return fd_open_at(base_fd, ".", O_PATH | O_DIRECTORY, 0);
	memcpy(part, text, length);
	part[length] = 0;
	r = open_fast(caller, base_fd, part, FILE_PATH_DIRECTORY, RESOLVE_NO_MAGICLINKS);
	if (!needs_walk(r))
		return r;
	file_place_init(&place);
	r = walk_path(caller, base_fd, part, FILE_PATH_DIRECTORY, &place);
	if (r == 0)
		r = take_fd(&place.fd);
	file_place_done(&place);
	return r;
}

/*
 * text without slashes behind it, where it is the real path of what it names as long as there is no link on the way;
 * in a root of its own, what a path is called inside is not what the rules call it.
 */
static bool copy_plain(const struct file_caller *caller, const char *text, char plain[PATH_MAX])
{
	size_t length = strlen(text);

	while (length > 1 && text[length - 1] == '/')
		length--;
	memcpy(plain, text, length);
	plain[length] = 0;
	return path_is_normal(plain) && !(plain[0] == '/' && caller->view->has_own_roots);
}

/* The directory of the last component of plain, to which no link leads. 1: one does, or there is none. */
static int find_directory(const struct file_caller *caller, int base_fd, const char *plain, struct file_place *place)
{
	size_t length, start = find_last(plain, &length);
	char part[PATH_MAX];
	int r = set_name(place, plain + start, length, false);

	if (r < 0 || !length)
		return r < 0 ? r : 1;
	memcpy(part, plain, start);
	part[start] = 0;
	place->dir_fd = start ? open_fast(caller, base_fd, part, FILE_PATH_DIRECTORY, RESOLVE_NO_SYMLINKS) :
				fd_open_at(base_fd, ".", O_PATH | O_DIRECTORY, 0);
	if (place->dir_fd < 0)
		return 1;
	return plain[0] == '/' ? str_copy(place->path, PATH_MAX, plain) : set_missing_path(caller, place);
}

static int resolve_parent(const struct file_caller *caller, int base_fd, const char *text, struct file_place *place)
{
	size_t length, start = find_last(text, &length);
	bool has_slash = length && text[start + length];
	char plain[PATH_MAX];
	int r = copy_plain(caller, text, plain) ? find_directory(caller, base_fd, plain, place) : 1;

	if (r < 0 || (r == 0 && !has_slash))
		return r;
	/* The root has no name: what is done to "." in it is refused in the same way. */
	r = set_name(place, length ? text + start : ".", length ? length : 1, has_slash);
	if (r < 0 || place->dir_fd >= 0)
		return r;
	place->dir_fd = open_directory(caller, base_fd, text, start);
	return place->dir_fd < 0 ? place->dir_fd : set_missing_path(caller, place);
}

/* ENOENT of the kernel: is it the last component that is missing, and really so? A link may lead to /proc/self. */
static bool is_last_missing(const struct file_caller *caller, int base_fd, const char *text, struct file_place *place)
{
	struct stat status;

	if (resolve_parent(caller, base_fd, text, place) == 0 &&
	    fstatat(place->dir_fd, place->name, &status, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return true;
	close_fd(&place->dir_fd);
	return false;
}

/*
 * The directory of what is to be made, to which no link leads. Nobody looks whether the name is free: it is made
 * exclusively. -ENOENT; 1: that is not what is missing, or there is a link.
 */
static int find_free_place(const struct file_caller *caller, int base_fd, const char *plain, struct file_place *place)
{
	int r = find_directory(caller, base_fd, plain, place);

	return r == 0 ? -ENOENT : r;
}

/* The path of a directory and text below it. */
static int join_path(const struct file_caller *caller, int base_fd, const char *text, char out[PATH_MAX])
{
	size_t length;
	int r = read_path(caller, base_fd, out);

	if (r < 0 || !out[0])
		return r;
	length = strlen(out);
	length -= length == 1;
	return str_format(out + length, PATH_MAX - length, "/%s", text);
}

/*
 * With FILE_PATH_READ at once for reading, where nobody can notice that: a directory, or what is taken for a quiet file
 * and is one. What may not be read still has a path, by which that is written down, and so it is looked at as well.
 */
static int open_without_links(const struct file_caller *caller, int base_fd, const char *text, unsigned how,
			      struct file_place *place)
{
	bool is_directory = how & FILE_PATH_DIRECTORY;
	int fd = -EACCES;

	if (how & FILE_PATH_READ &&
	    (is_directory || (text[0] == '/' && file_view_has_quiet(caller->view, text))))
		fd = open_fast(caller, base_fd, text, how, RESOLVE_NO_SYMLINKS);
	place->is_open = fd >= 0 && fstat(fd, &place->status) == 0 && (is_directory || S_ISREG(place->status.st_mode));
	if (place->is_open || (fd < 0 && needs_walk(fd)))
		return fd;
	close_fd(&fd);
	return open_fast(caller, base_fd, text, how & ~(unsigned)FILE_PATH_READ, RESOLVE_NO_SYMLINKS);
}

/*
 * Where there is no link on the way, and that is most often so, the text is the real path, and nobody needs to be asked
 * for it. 1: there is one, or the text is bent.
 */
static int resolve_without_links(const struct file_caller *caller, int base_fd, const char *text, unsigned how,
				 struct file_place *place)
{
	bool is_absolute = text[0] == '/';
	char plain[PATH_MAX];
	int r;

	if (!copy_plain(caller, text, plain))
		return 1;
	if (how & FILE_PATH_NEW)
		return find_free_place(caller, base_fd, plain, place);
	r = open_without_links(caller, base_fd, text, how, place);
	if (r >= 0) {
		place->fd = r;
		return finish_object(caller, is_absolute ? plain : NULL, place);
	}
	if (r == -ENOENT && how & FILE_PATH_MAKES)
		return find_free_place(caller, base_fd, plain, place);
	if (r != -ENOENT)
		return needs_walk(r) ? 1 : r;
	r = is_absolute ? str_copy(place->path, PATH_MAX, plain) : join_path(caller, base_fd, plain, place->path);
	return r < 0 ? r : -ENOENT;
}

int file_path_resolve(const struct file_caller *caller, int base_fd, const char *text, unsigned how,
		      struct file_place *place)
{
	int r;

	if (!text[0])
		return -ENOENT;
	if (how & FILE_PATH_PARENT)
		return resolve_parent(caller, base_fd, text, place);
	r = resolve_without_links(caller, base_fd, text, how, place);
	if (r <= 0)
		return r;
	how &= ~(unsigned)FILE_PATH_READ;
	r = open_fast(caller, base_fd, text, how, RESOLVE_NO_MAGICLINKS);
	if (r >= 0) {
		place->fd = r;
		return finish_object(caller, NULL, place);
	}
	if (r == -ENOENT && is_last_missing(caller, base_fd, text, place))
		return -ENOENT;
	return needs_walk(r) ? walk_path(caller, base_fd, text, how, place) : r;
}

int file_path_of_fd(const struct file_caller *caller, int fd, struct file_place *place)
{
	char path[48];

	if (fd < 0 || str_format(path, sizeof path, "/proc/%d/fd/%d", caller->pid, fd) < 0)
		return -EBADF;
	place->fd = fd_open_at(AT_FDCWD, path, O_PATH, 0);
	if (place->fd < 0)
		return place->fd == -ENOENT ? -EBADF : -EACCES;
	return fstat(place->fd, &place->status) < 0 ? -errno : read_path(caller, place->fd, place->path);
}
