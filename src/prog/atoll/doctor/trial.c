/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: sysctls and version numbers say what should work; LSMs, container runtimes and seccomp
 * filters decide what does. So each thing is done for real in a child whose namespaces die with it,
 * and the child tells by a pipe how far it came.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "limit/limit.h"
#include "os/clock.h"
#include "os/fd.h"
#include "prog/atoll/doctor/doctor.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif
#define NOTIF_FD_SYNC_WAKE_UP 1UL

#define ALL_NAMESPACES                                                                                       \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |           \
	 CLONE_NEWCGROUP)

/* fork(2) into namespaces. The child has a copy of everything, as after fork. */
static pid_t fork_into(unsigned long flags)
{
	return (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
}

static int result_of(long result)
{
	return result < 0 ? errno : 0;
}

static int write_map(const char *path, unsigned id)
{
	char line[64];
	int r = str_format(line, sizeof line, "%u %u 1", id, id);

	return r < 0 ? -r : -fd_write_file_at(AT_FDCWD, path, line);
}

static int try_ids(uid_t uid, gid_t gid)
{
	int r = -fd_write_file_at(AT_FDCWD, "/proc/self/setgroups", "deny");

	if (r == 0)
		r = write_map("/proc/self/uid_map", uid);
	return r ? r : write_map("/proc/self/gid_map", gid);
}

static int try_tmpfs(void)
{
	static const char *const directories[] = {
		"/tmp/root", "/tmp/lower", "/tmp/upper", "/tmp/work", "/tmp/merged",
	};
	int r = result_of(mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=1m"));

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(directories); i++)
		r = result_of(mkdir(directories[i], 0700));
	if (r == 0)
		r = result_of(mount("/tmp/root", "/tmp/root", NULL, MS_BIND, NULL));
	if (r == 0)
		r = result_of(mkdir("/tmp/root/usr", 0700)) | result_of(mkdir("/tmp/root/proc", 0700)) |
		    result_of(mkdir("/tmp/root/old", 0700));
	return r;
}

static int try_read_only(void)
{
	struct mount_attr attributes = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
	};

	return result_of(syscall(SYS_mount_setattr, AT_FDCWD, "/tmp/root/usr", AT_RECURSIVE, &attributes,
				 sizeof attributes));
}

static int try_loopback(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ? errno : result_of(ioctl(fd, SIOCSIFFLAGS, &request));
}

static void trial_child(struct trial *trial, uid_t uid, gid_t gid)
{
	int *errnums = trial->errnums;

	errnums[TRIAL_IDS] = try_ids(uid, gid);
	errnums[TRIAL_PRIVATE] = result_of(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	if (errnums[TRIAL_PRIVATE])
		return;
	errnums[TRIAL_TMPFS] = try_tmpfs();
	if (errnums[TRIAL_TMPFS])
		return;
	errnums[TRIAL_BIND] = result_of(mount("/usr", "/tmp/root/usr", NULL, MS_BIND | MS_REC, NULL));
	errnums[TRIAL_READ_ONLY] = errnums[TRIAL_BIND] ? TRIAL_NOT_REACHED : try_read_only();
	errnums[TRIAL_PROC] =
		result_of(mount("proc", "/tmp/root/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL));
	errnums[TRIAL_LOOPBACK] = try_loopback();
	errnums[TRIAL_OVERLAY] =
		result_of(mount("overlay", "/tmp/merged", "overlay", 0,
				"lowerdir=/tmp/lower,upperdir=/tmp/upper,workdir=/tmp/work,userxattr"));
	errnums[TRIAL_PIVOT] = result_of(syscall(SYS_pivot_root, "/tmp/root", "/tmp/root/old"));
}

static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void trial_run(struct trial *ret_trial)
{
	uint64_t started_ns = clock_monotonic_ns();
	struct trial trial = { .ns = 0 };
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int ends[2];
	pid_t pid;

	for (size_t i = 0; i < TRIAL_COUNT; i++)
		trial.errnums[i] = TRIAL_NOT_REACHED;
	*ret_trial = trial;
	if (pipe2(ends, O_CLOEXEC) < 0) {
		ret_trial->errnums[TRIAL_CLONE] = errno;
		return;
	}
	pid = fork_into(ALL_NAMESPACES);
	if (pid == 0) {
		trial.errnums[TRIAL_CLONE] = 0;
		trial_child(&trial, uid, gid);
		_exit(fd_write_full(ends[1], &trial, sizeof trial) < 0);
	}
	if (pid < 0)
		ret_trial->errnums[TRIAL_CLONE] = errno;
	close(ends[1]);
	if (pid > 0) {
		if (fd_read_full(ends[0], &trial, sizeof trial) == 0)
			*ret_trial = trial;
		else
			ret_trial->errnums[TRIAL_CLONE] = EIO;
		reap(pid);
	}
	close(ends[0]);
	ret_trial->ns = clock_monotonic_ns() - started_ns;
}

int trial_namespaces(unsigned long flags)
{
	pid_t pid = fork_into(flags);

	if (pid == 0)
		_exit(0);
	if (pid < 0)
		return errno;
	reap(pid);
	return 0;
}

/* Exit statuses of the seccomp child: an errno, or these. */
enum { SECCOMP_SYNC = 200, SECCOMP_NO_SYNC = 201 };

static int seccomp_child(void)
{
	struct sock_filter allow = { .code = BPF_RET | BPF_K, .k = SECCOMP_RET_ALLOW };
	struct sock_fprog program = { .len = 1, .filter = &allow };
	long fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &program);
	if (fd < 0 && errno == EINVAL) /* before Linux 5.19 */
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			     &program);
	if (fd < 0)
		return errno;
	return ioctl((int)fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, NOTIF_FD_SYNC_WAKE_UP) < 0 ? SECCOMP_NO_SYNC
											: SECCOMP_SYNC;
}

int trial_seccomp(bool *ret_sync)
{
	pid_t pid = fork();
	int status;

	*ret_sync = false;
	if (pid == 0)
		_exit(seccomp_child());
	if (pid < 0)
		return errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	if (!WIFEXITED(status))
		return EPERM;
	*ret_sync = WEXITSTATUS(status) == SECCOMP_SYNC;
	return WEXITSTATUS(status) >= SECCOMP_SYNC ? 0 : WEXITSTATUS(status);
}

int trial_limits(struct limit_capability *ret_capability)
{
	struct limit_capability capability = { 0 };
	ssize_t n = -1;
	int ends[2], errnum = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return errno;
	pid = fork();
	if (pid == 0) {
		limit_probe(NULL, NULL, getenv("XDG_RUNTIME_DIR"), &capability);
		/* Less than PIPE_BUF: all of it or nothing. */
		_exit(write(ends[1], &capability, sizeof capability) != sizeof capability);
	}
	if (pid < 0)
		errnum = errno;
	close(ends[1]);
	while (pid > 0 && (n = read(ends[0], &capability, sizeof capability)) < 0 && errno == EINTR)
		;
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n != sizeof capability)
		return errnum ? errnum : EIO;
	*ret_capability = capability;
	return 0;
}

/* A user namespace whose root is somebody else's uid outside, kept alive by a stopped child. The child, or
 * -errno. */
static pid_t make_mapped_child(int *ret_userns_fd)
{
	pid_t pid = fork_into(CLONE_NEWUSER);
	char path[64];
	int r = 0;

	if (pid == 0) {
		pause();
		_exit(0);
	}
	if (pid < 0)
		return -errno;
	static const char *const files[] = { "uid_map", "gid_map" };
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++) {
		r = str_format(path, sizeof path, "/proc/%d/%s", (int)pid, files[i]);
		if (r == 0)
			r = fd_write_file_at(AT_FDCWD, path, "0 100000 1");
	}
	if (r == 0)
		r = str_format(path, sizeof path, "/proc/%d/ns/user", (int)pid);
	if (r == 0)
		r = *ret_userns_fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	if (r < 0) {
		kill(pid, SIGKILL);
		reap(pid);
		return r;
	}
	return pid;
}

int trial_idmap(const char *path)
{
	cleanup_fd int userns_fd = FD_NONE, tree_fd = FD_NONE;
	struct mount_attr attributes = { .attr_set = MOUNT_ATTR_IDMAP };
	pid_t pid = make_mapped_child(&userns_fd);
	int r;

	if (pid < 0)
		return -pid;
	attributes.userns_fd = (uint64_t)userns_fd;
	/* A detached copy: nothing is mounted anywhere. */
	tree_fd = (int)syscall(SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	r = result_of(tree_fd);
	if (r == 0)
		r = result_of(syscall(SYS_mount_setattr, tree_fd, "", AT_EMPTY_PATH, &attributes,
				      sizeof attributes));
	kill(pid, SIGKILL);
	reap(pid);
	return r;
}
