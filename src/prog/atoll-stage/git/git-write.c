/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/git/git-write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll-stage/review/git-index.h"
#include "stage/layer/layer.h"

/*
 * In git's order: both locks, the reflog, the ref, the index. What a crash leaves in between is a commit that is made
 * while the index shows the state before it, as a killed git leaves it too.
 */

#define INDEX "index"
#define LOCK ".lock"
#define BRANCHES "refs/heads/"

enum { REF_MAX = 512, LINE_MAX_SIZE = 2048, HEX = 40 };

static bool is_hex(const char *text)
{
	return strlen(text) == HEX && strspn(text, "0123456789abcdef") == HEX;
}

/* "refs/heads/" and names that no file system reads otherwise; libgit2 has looked at it, too. */
static bool is_ref(const char *ref)
{
	if (str_equal(ref, "HEAD"))
		return true;
	if (!str_has_prefix(ref, BRANCHES) || strlen(ref) >= REF_MAX)
		return false;
	for (const char *at = ref; *at;) {
		size_t length = strcspn(at, "/");

		if (!length || *at == '.' || (length > 5 && strncmp(at + length - 5, LOCK, 5) == 0))
			return false;
		at += length;
		if (*at == '/' && !*++at)
			return false;
	}
	return strpbrk(ref, "\n\\:?*[~^ \177") == NULL;
}

/* Makes the directories of a path that are not there. */
static int make_above(int git_fd, const char *path)
{
	char above[REF_MAX + 16];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		cleanup_fd int fd = FD_NONE;
		const char *name;
		int r = str_format(above, sizeof above, "%.*s", (int)(slash - path), path);

		if (r == 0)
			r = fd = stage_open_parent(git_fd, above, &name);
		if (r < 0)
			return r;
		if (mkdirat(fd, name, 0777) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int take_lock(int git_fd, const char *path)
{
	char lock[REF_MAX + 16];
	cleanup_fd int fd = FD_NONE;
	int r = str_format(lock, sizeof lock, "%s" LOCK, path);

	if (r == 0)
		r = make_above(git_fd, lock);
	if (r == 0)
		r = fd = stage_open_beneath(git_fd, lock, O_WRONLY | O_CREAT | O_EXCL, 0666);
	return r < 0 ? r : 0;
}

int git_write_lock(struct git_write *ret_write, int git_fd, const char *ref)
{
	int r = is_ref(ref) ? 0 : -EINVAL;

	*ret_write = (struct git_write){ .git_fd = git_fd, .ref = ref };
	if (r == 0)
		r = take_lock(git_fd, INDEX);
	ret_write->has_index_lock = r == 0;
	if (r == 0) {
		r = take_lock(git_fd, ref);
		ret_write->has_ref_lock = r == 0;
	}
	return r;
}

static int copy(int from, int to)
{
	static char bytes[64 << 10];
	off_t at = 0;

	for (;;) {
		ssize_t n = pread(from, bytes, sizeof bytes, at);
		int r = n < 0 ? -errno : n ? fd_write_full(to, bytes, (size_t)n) : 0;

		if (n <= 0 || r < 0)
			return r;
		at += n;
	}
}

int git_write_index(struct git_write *write, int index_fd)
{
	cleanup_fd int fd = FD_NONE;
	struct stat st;
	int r = git_index_is_ordinary(index_fd, false) ? 0 : -EBADMSG;

	if (r == 0)
		r = fd = stage_open_beneath(write->git_fd, INDEX LOCK, O_WRONLY | O_TRUNC, 0);
	if (r >= 0)
		r = copy(index_fd, fd);
	/* The mode is a decision of whoever shares the repository. */
	if (r == 0 && fstatat(write->git_fd, INDEX, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	    fchmod(fd, st.st_mode & 0777) < 0)
		r = -errno;
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

static int write_ref(const struct git_write *write, const char *hex)
{
	char lock[REF_MAX + 16], line[HEX + 2];
	cleanup_fd int fd = FD_NONE;
	int r = is_hex(hex) ? str_format(line, sizeof line, "%s\n", hex) : -EINVAL;

	if (r == 0)
		r = str_format(lock, sizeof lock, "%s" LOCK, write->ref);
	if (r == 0)
		r = fd = stage_open_beneath(write->git_fd, lock, O_WRONLY | O_TRUNC, 0);
	if (r >= 0)
		r = fd_write_full(fd, line, strlen(line));
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

/* Where there is none, the person does not want any, unless it is the first commit. */
static int append_reflog(const struct git_write *write, const char *ref, const char *line, bool is_first)
{
	char path[REF_MAX + 16];
	cleanup_fd int fd = FD_NONE;
	struct stat st;
	int r = str_format(path, sizeof path, "logs/%s", ref);
	bool has_logs = fstatat(write->git_fd, "logs/HEAD", &st, AT_SYMLINK_NOFOLLOW) == 0 || is_first;

	if (r == 0 && has_logs)
		r = make_above(write->git_fd, path);
	if (r == 0)
		r = fd = stage_open_beneath(write->git_fd, path,
					    O_WRONLY | O_APPEND | O_NONBLOCK | (has_logs ? O_CREAT : 0),
					    has_logs ? 0666 : 0);
	if (r == -ENOENT && !has_logs)
		return 0;
	return r < 0 ? r : fd_write_full(fd, line, strlen(line));
}

static bool is_line(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ')
			return false;
	return true;
}

static int write_reflogs(const struct git_write *write, const struct git_reflog *reflog)
{
	static const char none[] = "0000000000000000000000000000000000000000";
	size_t subject = strcspn(reflog->message, "\r\n");
	char line[LINE_MAX_SIZE];
	bool is_first = !*reflog->old;
	int r = is_line(reflog->who) && is_hex(reflog->new) && (is_first || is_hex(reflog->old)) ? 0 : -EBADMSG;

	if (r == 0)
		r = str_format(line, sizeof line, "%s %s %s\tcommit%s: %.*s\n", is_first ? none : reflog->old,
			       reflog->new, reflog->who, is_first ? " (initial)" : "",
			       subject < 500 ? (int)subject : 500, reflog->message);
	if (r == 0)
		r = append_reflog(write, "HEAD", line, is_first);
	if (r == 0 && !str_equal(write->ref, "HEAD"))
		r = append_reflog(write, write->ref, line, is_first);
	return r;
}

/* The lock takes the place of what it locks. */
static int move_lock(int git_fd, const char *path)
{
	char lock[NAME_MAX + 16];
	const char *name;
	cleanup_fd int fd = stage_open_parent(git_fd, path, &name);
	int r = fd < 0 ? fd : str_format(lock, sizeof lock, "%s" LOCK, name);

	if (r == 0 && renameat(fd, lock, fd, name) < 0)
		r = -errno;
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

int git_write_publish(struct git_write *write, const struct git_reflog *reflog)
{
	int r = write_ref(write, reflog->new);

	if (r == 0)
		r = write_reflogs(write, reflog);
	if (r == 0)
		r = move_lock(write->git_fd, write->ref);
	write->has_ref_lock &= r < 0;
	if (r == 0)
		r = move_lock(write->git_fd, INDEX);
	write->has_index_lock &= r < 0;
	return r;
}

static void drop_lock(int git_fd, const char *path)
{
	char lock[NAME_MAX + 16];
	const char *name;
	cleanup_fd int fd = stage_open_parent(git_fd, path, &name);

	if (fd >= 0 && str_format(lock, sizeof lock, "%s" LOCK, name) == 0)
		unlinkat(fd, lock, 0);
}

void git_write_done(struct git_write *write)
{
	if (write->has_ref_lock)
		drop_lock(write->git_fd, write->ref);
	if (write->has_index_lock)
		drop_lock(write->git_fd, INDEX);
	write->has_ref_lock = write->has_index_lock = false;
}
