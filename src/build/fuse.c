/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. The server reads names and bytes that the sandbox chose, with the rights of the user (root: with
 * those that owners of files need, and no other). So it gets as little else as can be: namespaces without network and
 * IPC, Landlock with the host's tree and the mask to read and the live layer to write, its own program and libraries, a
 * ceiling of memory, no descriptor but the device and those of its directories. Paths reach it as descriptors, so that
 * no ':' or ',' in one means anything. It runs as long as the mount does: the kernel closes the device when the last
 * mount namespace with it is gone, and a death signal ties it to us as well.
 */
#include "build/fuse.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "os/caps.h"
#include "os/fd.h"
#include "os/landlock.h"
#include "os/path.h"
#include "policy/policy.h"

enum {
	FD_DEVICE = 3, FD_UPPER, FD_WORK, FD_HOST, FD_MASK, FD_COUNT,
	LINGER_MS = 10000,
	OPTIONS_SIZE = 512,
	MEMORY_MAX = 2 << 20, /* KiB of address space: half of it would be some millions of names */
};

/* Never from PATH: a helper that somebody planted there would see the user's files. */
static const char *const programs[] = { "/usr/bin/fuse-overlayfs", "/usr/local/bin/fuse-overlayfs" };

static const char *const readable[] = {
	"/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.preload", "/proc",
};

bool fuse_is_installed(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		if (access(programs[i], X_OK) == 0)
			return true;
	return false;
}

static int open_program(struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		cleanup_fd int fd = fd_open_at(AT_FDCWD, programs[i], O_PATH, 0);
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == 0 && !(st.st_mode & 022))
			return fd_move_above(fd < 0 ? fd : take_fd(&fd), FD_COUNT);
	}
	err_set(err, ERR_WALL, ENOENT, wall_names[WALL_MOUNTS],
		"there is no %s that belongs to root, and `stage.backend` needs it", programs[0]);
	err_hint(err, "install the package fuse-overlayfs, or take `stage: {backend: overlay}` with XDG_STATE_HOME on "
		      "ext4, xfs, btrfs or tmpfs");
	return -ENOENT;
}

/* ---- in the child ---- */

static int allow(int ruleset, int abi, int fd, uint64_t rights)
{
	return fd < 0 ? 0 : landlock_allow(ruleset, abi, fd, true, rights);
}

/* What it may touch; everything else of the machine is out of its reach. */
static int confine_files(const int fds[FD_COUNT])
{
	const uint64_t read = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR;
	const uint64_t no_layer_has = LANDLOCK_EXECUTE | LANDLOCK_MAKE_BLOCK;
	int abi = landlock_abi(), r = abi < 1 ? -EOPNOTSUPP : 0;
	cleanup_fd int ruleset = r < 0 ? FD_NONE : landlock_ruleset_new(abi, abi >= LANDLOCK_ABI_SCOPES);

	if (r == 0 && ruleset < 0)
		r = ruleset;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(readable); i++) {
		cleanup_fd int fd = fd_open_at(AT_FDCWD, readable[i], O_PATH, 0);
		struct stat st;

		if (fd >= 0 && fstat(fd, &st) == 0)
			r = landlock_allow(ruleset, abi, fd, S_ISDIR(st.st_mode), read | LANDLOCK_EXECUTE);
	}
	if (r == 0)
		r = allow(ruleset, abi, fds[FD_HOST], read);
	if (r == 0)
		r = allow(ruleset, abi, fds[FD_MASK], read);
	for (int i = FD_UPPER; r == 0 && i <= FD_WORK; i++)
		r = allow(ruleset, abi, fds[i], landlock_rights(abi) & ~no_layer_has);
	if (r == 0)
		r = caps_no_new_privs();
	return r < 0 ? r : landlock_restrict(ruleset);
}

static int map_own(const char *file, unsigned id)
{
	char text[40];
	int r = str_format(text, sizeof text, "%u %u 1", id, id);

	return r < 0 ? r : fd_write_file_at(AT_FDCWD, file, text);
}

/* No network, no IPC; a user gets that in a user namespace, in which it stays who it is. */
static int leave_namespaces(void)
{
	const int flags = CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
	uid_t uid = getuid();
	gid_t gid = getgid();
	int r;

	if (unshare(uid ? flags | CLONE_NEWUSER : flags) < 0)
		return -errno;
	if (!uid)
		return caps_bound(CAPS_BIT(CAP_CHOWN) | CAPS_BIT(CAP_DAC_OVERRIDE) | CAPS_BIT(CAP_FOWNER));
	r = fd_write_file_at(AT_FDCWD, "/proc/self/setgroups", "deny");
	if (r == 0)
		r = map_own("/proc/self/gid_map", gid);
	return r < 0 ? r : map_own("/proc/self/uid_map", uid);
}

static int limit_self(void)
{
	const struct rlimit memory = { (rlim_t)MEMORY_MAX << 10, (rlim_t)MEMORY_MAX << 10 }, none = { 0, 0 };

	return setrlimit(RLIMIT_AS, &memory) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 ? -errno : 0;
}

/* Each where the options name it, everything else gone at exec. */
static int arrange(const int fds[FD_COUNT])
{
	int null = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);

	if (null < 0)
		return null;
	for (int fd = 0; fd < FD_DEVICE; fd++)
		if (dup2(null, fd) < 0)
			return -errno;
	for (int fd = FD_DEVICE; fd < FD_COUNT; fd++)
		if (fds[fd] >= 0 && dup2(fds[fd], fd) < 0)
			return -errno;
	return syscall(SYS_close_range, FD_COUNT, ~0U, 1U << 2 /* CLOEXEC */) < 0 ? -errno : 0;
}

struct launch {
	int program_fd;
	int fds[FD_COUNT]; /* above FD_COUNT; FD_NONE: no mask */
	char options[OPTIONS_SIZE];
};

static void become_server(const struct launch *launch)
{
	char *argv[] = { (char *)"fuse-overlayfs", (char *)"-f", (char *)"-o", (char *)launch->options,
			 (char *)"/dev/fd/3", NULL };
	char *environment[] = { NULL };
	sigset_t none;

	sigemptyset(&none);
	syscall(SYS_setsid);
	if (chdir("/") < 0 || leave_namespaces() < 0 || arrange(launch->fds) < 0 || limit_self() < 0 ||
	    confine_files(launch->fds) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
	    sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return;
	syscall(SYS_execveat, launch->program_fd, "", argv, environment, AT_EMPTY_PATH);
}

/* ---- in the box ---- */

/* The staged tree. Its path was real when it was planned; a link in it now is of somebody who can write there. */
static int open_host(const char *path)
{
	int fd = path_open2(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	return fd < 0 ? fd : fd_move_above(fd, FD_COUNT);
}

static int open_part(const char *directory, const char *name)
{
	char path[PATH_MAX];
	int r = str_format(path, sizeof path, "%s%s", directory, name);

	if (r == 0)
		r = fd_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	return r < 0 ? r : fd_move_above(r, FD_COUNT);
}

/*
 * As root the sandbox's uid stands for the owner of the tree, and every other owner for nobody. As a user the server
 * can do what the user can, and no more: so all files look as if they were the user's own. Any other id is one that the
 * sandbox does not have, and to such files the kernel lets nobody write (EOVERFLOW).
 */
static int format_options(const struct fuse_tree *tree, struct launch *launch)
{
	const char *mask = launch->fds[FD_MASK] >= 0 ? "/proc/self/fd/7:" : "";
	char ids[128] = "";
	struct stat st;
	int r = 0;

	_Static_assert(FD_UPPER == 4 && FD_WORK == 5 && FD_HOST == 6 && FD_MASK == 7, "as the options name them");
	if (tree->is_mapped && fstat(launch->fds[FD_HOST], &st) < 0)
		return -errno;
	if (tree->is_mapped)
		r = str_format(ids, sizeof ids, ",uidmapping=%u:%u:1,gidmapping=%u:%u:1", (unsigned)st.st_uid,
			       (unsigned)tree->uid, (unsigned)st.st_gid, (unsigned)tree->gid);
	else
		r = str_format(ids, sizeof ids, ",squash_to_uid=%u,squash_to_gid=%u", (unsigned)tree->uid,
			       (unsigned)tree->gid);
	/* What a power cut may take of a live run is the same as with the kernel's overlay, `volatile`. */
	return r < 0 ? r : str_format(launch->options, sizeof launch->options,
				      "lowerdir=%s/proc/self/fd/6,upperdir=/proc/self/fd/4,workdir=/proc/self/fd/5,"
				      "volatile%s", mask, ids);
}

static void launch_done(struct launch *launch)
{
	close_fd(&launch->program_fd);
	for (size_t i = 0; i < ARRAY_SIZE(launch->fds); i++)
		close_fd(&launch->fds[i]);
}

static int launch_open(const struct fuse_tree *tree, struct launch *launch, struct err *err)
{
	const struct jail_layers *layers = tree->mount->layers;
	int r = launch->program_fd = open_program(err);

	if (r < 0)
		return r;
	launch->fds[FD_DEVICE] = r = fd_duplicate(tree->device_fd);
	if (r >= 0)
		launch->fds[FD_DEVICE] = r = fd_move_above(r, FD_COUNT);
	if (r >= 0)
		launch->fds[FD_UPPER] = r = open_part(layers->live, "/upper");
	if (r >= 0)
		launch->fds[FD_WORK] = r = open_part(layers->live, "/work");
	if (r >= 0)
		launch->fds[FD_HOST] = r = open_host(tree->mount->source);
	if (r >= 0 && layers->count)
		launch->fds[FD_MASK] = r = open_part(layers->between[0], "");
	if (r >= 0)
		r = format_options(tree, launch);
	return r < 0 ? err_set(err, ERR_STATE, -r, "stage", "%s cannot be passed to fuse-overlayfs: %s",
			       tree->mount->source, err_errno_name(-r)) : 0;
}

int fuse_serve(struct fuse_servers *servers, const struct fuse_tree *tree, struct err *err)
{
	struct launch launch = { .program_fd = FD_NONE,
				 .fds = { FD_NONE, FD_NONE, FD_NONE, FD_NONE, FD_NONE, FD_NONE, FD_NONE, FD_NONE } };
	int r = launch_open(tree, &launch, err);
	pid_t pid = -1;

	if (r == 0) {
		pid = fork();
		if (pid == 0) {
			become_server(&launch);
			_exit(127);
		}
		r = pid < 0 ? -errno : pidref_open(&servers->processes[servers->count], pid);
		if (r < 0)
			err_set(err, ERR_INTERNAL, -r, "stage", "cannot start fuse-overlayfs: %s", err_errno_name(-r));
	}
	servers->count += r == 0;
	launch_done(&launch);
	return r;
}

/* 0 where it went as it should. */
static int finish_one(struct pidref *process, struct err *err)
{
	struct pollfd ended = { .fd = process->fd, .events = POLLIN };
	siginfo_t info = { 0 };

	if (poll(&ended, 1, LINGER_MS) <= 0 && pidref_signal(process, SIGKILL) < 0)
		return 0; /* reaped by nobody else: it cannot be */
	if (pidref_wait(process, WEXITED, &info, NULL) <= 0)
		return 0;
	pidref_done(process);
	if (info.si_code == CLD_EXITED && info.si_status == 0)
		return 0;
	return err_set(err, ERR_STATE, EIO, "stage",
		       "fuse-overlayfs, which serves a staged tree, ended with %s %d; the staged changes may be "
		       "incomplete",
		       info.si_code == CLD_EXITED ? "status" : "signal", info.si_status);
}

int fuse_finish(struct fuse_servers *servers, struct err *err)
{
	int r = 0;

	while (servers->count) {
		struct err told;
		int one = finish_one(&servers->processes[--servers->count], &told);

		if (one < 0 && r == 0) {
			*err = told;
			r = one;
		}
	}
	return r;
}
