/* SPDX-License-Identifier: Apache-2.0 */
#include "build/enter-namespaces.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/str.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/path.h"
#include "supervise/run.h"
#include "watch/watch.h"

/*
 * Theory of operation. The mounts of a sandbox belong to its user namespace, which the box has made, so a child of the
 * box may join both (setns(2) with init's pidfd). A user who wants to bring something along has to go in two steps: a
 * mount of the host can be copied by whoever has the rights in a mount namespace that holds it, so the child joins the
 * user namespace first and takes a copy of all the host's mounts that belongs to it (unshare(2)), makes its tree there,
 * detached, and then goes inside with the tree as a descriptor. Root's rights are enough for the first step already.
 *
 * Memory of its own (fork, not vfork): entering a user namespace changes credentials and with them whether others may
 * read the memory. The child lives in the PID namespace of the host, where nobody inside can name it.
 */

enum {
	ONE_STEP = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
};

/* ---- in the child ---- */

static int own_mounts(const struct run *run)
{
	if ((getuid() && setns(run->init.fd, CLONE_NEWUSER) < 0) || syscall(SYS_unshare, CLONE_NEWNS) < 0)
		return -errno;
	return mount_make_private();
}

/* Raw calls, as in watch/connect.c. */
static int become_inmate(const struct run *run)
{
	uid_t uid = run->identity->uid_inside;
	gid_t gid = run->identity->gid_inside;

	if (prctl(PR_SET_KEEPCAPS, 1) < 0 || syscall(SYS_setresgid, gid, gid, gid) < 0 ||
	    syscall(SYS_setresuid, uid, uid, uid) < 0)
		return -errno;
	return 0;
}

static int enter(const struct run *run, bool has_user_namespace)
{
	bool is_root = getuid() == 0;

	/* Root's own groups must not come along. */
	if (is_root && syscall(SYS_setgroups, 0, NULL) < 0)
		return -errno;
	if (setns(run->init.fd, CLONE_NEWNS | (has_user_namespace ? 0 : CLONE_NEWUSER)) < 0)
		return -errno;
	umask(022);
	return is_root ? become_inmate(run) : 0;
}

int namespaces_take_rights(const struct run *run)
{
	bool is_root = getuid() == 0;

	if ((is_root && syscall(SYS_setgroups, 0, NULL) < 0) || setns(run->init.fd, CLONE_NEWUSER) < 0)
		return -errno;
	return is_root ? become_inmate(run) : 0;
}

static int perform(const struct run *run, const struct namespaces_task *task, int *ret_fd)
{
	cleanup_fd int root_fd = FD_NONE;
	bool is_root = getuid() == 0;
	int r = task->outside ? own_mounts(run) : 0;

	if (r == 0 && task->outside)
		r = task->outside(task->context);
	if (r == 0)
		r = enter(run, task->outside && !is_root);
	if (r < 0)
		return r;
	root_fd = fd_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	return root_fd < 0 ? root_fd : task->inside(task->context, root_fd, ret_fd);
}

int namespaces_writable_root(int root_fd)
{
	/* A mount of its own, which nobody else has: read-only is the sandbox's, not the file system. */
	cleanup_fd int writable = mount_clone(root_fd, "", false);
	int r = writable < 0 ? writable : mount_allow_writes(writable);

	return r < 0 ? r : take_fd(&writable);
}

/* What a directory of the sandbox's own is; on an overlay a name would be a change of what is staged. */
static bool is_scratch(const struct run *run, int fd)
{
	const struct watch_options *options = run->identity;
	struct statfs fs;
	struct stat st;

	if (fstatfs(fd, &fs) < 0 || (unsigned long)fs.f_type != TMPFS_MAGIC || fstat(fd, &st) < 0)
		return false;
	for (size_t i = 0; i < options->private_device_count; i++)
		if (options->private_devices[i] == st.st_dev)
			return true;
	return false;
}

static int make_name(int dir_fd, const char *name, bool is_directory)
{
	int r = is_directory ? mkdirat(dir_fd, name, 0755) : mknodat(dir_fd, name, S_IFREG | 0444, 0);

	return r < 0 && errno != EEXIST ? -errno : 0;
}

struct making {
	const struct run *run;
	int root_fd;
	const char *path;    /* absolute */
};

/* The name path[at…length) in dir_fd, which is path[0…at). */
static int make_missing(const struct making *making, int dir_fd, size_t at, const char *name, bool is_directory)
{
	cleanup_fd int writable = FD_NONE, parent = FD_NONE;
	struct stat root, st;
	char above[PATH_MAX];
	int r;

	if (!is_scratch(making->run, dir_fd))
		return -EROFS;
	if (fstat(making->root_fd, &root) < 0 || fstat(dir_fd, &st) < 0)
		return -errno;
	if (st.st_dev != root.st_dev)
		return make_name(dir_fd, name, is_directory);
	r = str_format(above, sizeof above, ".%.*s", (int)at, making->path);
	if (r == 0)
		r = writable = namespaces_writable_root(making->root_fd);
	if (r >= 0)
		r = parent = path_open2(writable, above, O_PATH | O_DIRECTORY, 0, ONE_STEP);
	return r < 0 ? r : make_name(parent, name, is_directory);
}

static int open_or_make(const struct making *making, int dir_fd, size_t at, const char *name, bool is_directory)
{
	int fd = path_open2(dir_fd, name, O_PATH, 0, ONE_STEP);
	struct stat st;

	if (fd == -ENOENT) {
		int r = make_missing(making, dir_fd, at, name, is_directory);

		fd = r < 0 ? r : path_open2(dir_fd, name, O_PATH, 0, ONE_STEP);
	}
	if (fd >= 0 && (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode) != is_directory)) {
		close(fd);
		fd = -EEXIST;
	}
	return fd == -ELOOP ? -EEXIST : fd;
}

int namespaces_make_path(const struct run *run, int root_fd, const char *path, bool is_directory)
{
	struct making making = { run, root_fd, path };
	size_t at = 0;
	int fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return -errno;
	while (fd >= 0 && path[at]) {
		cleanup_fd int parent = fd;
		size_t length = strcspn(path + at + 1, "/");
		char name[NAME_MAX + 1];

		if (str_format(name, sizeof name, "%.*s", (int)length, path + at + 1) < 0)
			return -ENAMETOOLONG;
		fd = open_or_make(&making, parent, at, name, path[at + 1 + length] || is_directory);
		at += 1 + length;
	}
	return fd;
}

void namespaces_remove_path(const struct run *run, int root_fd, const char *path)
{
	cleanup_fd int at_fd = FD_NONE, parent = FD_NONE;
	const char *name = strrchr(path, '/') + 1;
	char above[PATH_MAX];
	struct stat root, st;

	if (str_format(above, sizeof above, ".%.*s", (int)(name - path), path) < 0 || fstat(root_fd, &root) < 0)
		return;
	parent = path_open2(root_fd, above, O_PATH | O_DIRECTORY, 0, ONE_STEP);
	if (parent < 0 || !is_scratch(run, parent) || fstat(parent, &st) < 0)
		return;
	if (st.st_dev == root.st_dev) {
		close_fd(&parent);
		at_fd = namespaces_writable_root(root_fd);
		if (at_fd >= 0)
			parent = path_open2(at_fd, above, O_PATH | O_DIRECTORY, 0, ONE_STEP);
	}
	if (parent < 0 || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (S_ISDIR(st.st_mode))
		(void)!unlinkat(parent, name, AT_REMOVEDIR);
	else if (S_ISREG(st.st_mode) && !st.st_size)
		(void)!unlinkat(parent, name, 0);
}

/* ---- in the box ---- */

/* fork(2): 0 in the child with the end of a channel in *ret_fd, the pid in the box with the other one. */
static pid_t start_child(int *ret_fd)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	*ret_fd = pid == 0 ? ends[1] : ends[0];
	close(pid == 0 ? ends[0] : ends[1]);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		clone_bound_life(NAMESPACES_MAX_MS);
	}
	if (pid < 0) {
		pid = -errno;
		close_fd(ret_fd);
	}
	return pid;
}

static void tell_box(int to_fd, int result, int fd)
{
	if (fd_send_message(to_fd, &result, sizeof result, &fd, fd >= 0) < 0)
		return; /* the other end hears that nothing came */
}

/* What the child told; takes from_fd. */
static int hear_child(pid_t pid, int from_fd, int *ret_fd)
{
	int fd = FD_NONE, result = -ETIMEDOUT;
	size_t fd_count = 0;
	ssize_t n = fd_receive_message(from_fd, &result, sizeof result, &fd, 1, &fd_count);

	close(from_fd);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n < 0)
		return (int)n;
	if (n != (ssize_t)sizeof result)
		result = -ETIMEDOUT;
	if (result < 0)
		close_fd(&fd);
	*ret_fd = fd;
	return result;
}

int namespaces_run(const struct run *run, const struct namespaces_task *task, int *ret_fd)
{
	int end = FD_NONE, fd = FD_NONE, r;
	pid_t pid;

	if (run->init.fd < 0 || run->is_dead)
		return -ESRCH;
	pid = start_child(&end);
	if (pid == 0) {
		r = perform(run, task, &fd);
		tell_box(end, r, fd);
		_exit(0);
	}
	return pid < 0 ? pid : hear_child(pid, end, ret_fd);
}

int namespaces_open_outside(const char *path, int *ret_fd)
{
	int end = FD_NONE;
	pid_t pid = start_child(&end);

	if (pid == 0) {
		int fd = path_open_anchor(path);

		tell_box(end, fd < 0 ? fd : 0, fd);
		_exit(0);
	}
	return pid < 0 ? pid : hear_child(pid, end, ret_fd);
}
