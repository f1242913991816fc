/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/own-mounts.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/proc.h"

/*
 * Theory of operation. The type of a new mount lies behind a pointer, and the kernel would read it again after a look.
 * So nobody's own call goes on: type, target and options are copied once, checked against a table, and a child of ours
 * makes the mount from text of our own. The child joins the caller's user namespace, which takes all its rights outside
 * of that away, then the caller's mount namespace, root and working directory. So the kernel judges the target as it
 * would for the caller, and whether a mount may be made there at all.
 *
 * A /proc shows the PID namespace of who mounts it, so for that a second child is born into the caller's. There a
 * process inside can see it and stop it. It cannot look into it: it is not dumpable, and its memory belongs to the user
 * namespace of the host. Whoever holds it up gets no further mounts.
 *
 * What is mounted has a source that nobody else can give, the kernel inherits it to every bind, and so a unix
 * socket on such a tmpfs can only be the sandbox's own.
 */

enum { OPTIONS_MAX = 256, LINE_MAX_SIZE = 16 << 10, CHILD_MAX_MS = 500, MOUNTS_MAX = 64 };
enum { MGC_MASK = 0xffff0000, MGC_VALUE = 0xc0ed0000 };
enum { NOT_NEW = MS_REMOUNT | MS_BIND | MS_MOVE | MS_SHARED | MS_PRIVATE | MS_SLAVE | MS_UNBINDABLE };
enum { KEPT_FLAGS = MS_RDONLY | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME | MS_RELATIME | MS_STRICTATIME | MS_SILENT };

struct wanted {
	const struct watch_options *options;
	const struct kind *kind;
	unsigned long flags;
	char target[PATH_MAX];
	char given[OPTIONS_MAX], data[OPTIONS_MAX];
	uid_t uid;                   /* the sandbox's, as the caller's user namespace has it */
	gid_t gid;
	int user_fd, mount_fd, other_fd, root_fd, cwd_fd; /* owned */
};

struct kind {
	const char *name;
	unsigned long flags;         /* that it always has */
	const char *namespace;       /* in /proc/PID/ns: what it shows is of that; NULL: of none */
	int flag;                    /* CLONE_NEW* of that */
	/* Writes wanted->data by wanted->given. 0 or an errno. */
	int (*read_options)(struct wanted *wanted);
};

/* ---- options ---- */

/* The value of the next of "a=1,b", cut off from *rest; *ret_name: what stands before it. NULL: no more. */
static const char *next_option(char **rest, const char **ret_name)
{
	char *at = strsep(rest, ","), *value = at ? strchr(at, '=') : NULL;

	if (value)
		*value++ = 0;
	*ret_name = at;
	return value ? value : "";
}

static int read_tmpfs_options(struct wanted *wanted)
{
	uint64_t size = wanted->options->own_mount_bytes, asked;
	unsigned long mode = 01777;
	char *rest = wanted->given, *end;
	const char *name, *value;

	for (value = next_option(&rest, &name); name; value = next_option(&rest, &name)) {
		if (str_equal(name, "mode")) {
			mode = strtoul(value, &end, 8);
			if (*end || end == value || mode > 01777)
				return EINVAL;
		} else if (str_equal(name, "size")) {
			asked = strtoull(value, &end, 10);
			if (end == value || *end || !asked)
				return EINVAL;
			size = asked < size ? asked : size;
		} else if (*name) {
			return EINVAL;
		}
	}
	return str_format(wanted->data, sizeof wanted->data, "mode=%lo,size=%llu,nr_inodes=%llu", mode,
			  (unsigned long long)size, (unsigned long long)wanted->options->own_mount_inodes) < 0 ?
		       EINVAL : 0;
}

/* What else there is would name a group that nobody has here. */
static int read_devpts_options(struct wanted *wanted)
{
	static const char *const known[] = { "newinstance", "ptmxmode", "mode", "" };
	char *rest = wanted->given;
	const char *name;

	for (next_option(&rest, &name); name; next_option(&rest, &name)) {
		bool is_known = false;

		for (size_t i = 0; i < ARRAY_SIZE(known); i++)
			is_known |= str_equal(known[i], name);
		if (!is_known)
			return EINVAL;
	}
	return str_copy(wanted->data, sizeof wanted->data, "newinstance,ptmxmode=0666,mode=0620") < 0 ? EINVAL : 0;
}

static int read_proc_options(struct wanted *wanted)
{
	static const char *const known[] = { "", "hidepid=2", "hidepid=invisible", "subset=pid" };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (str_equal(known[i], wanted->given))
			return str_copy(wanted->data, sizeof wanted->data, known[i]) < 0 ? EINVAL : 0;
	return EINVAL;
}

static int read_no_options(struct wanted *wanted)
{
	return wanted->given[0] ? EINVAL : 0;
}

/* Others the kernel would mount as well: overlay, cgroup2, sysfs, ramfs, fuse, bpf, binfmt_misc … */
static const struct kind kinds[] = {
	{ "tmpfs", MS_NOSUID | MS_NODEV, NULL, 0, read_tmpfs_options },
	{ "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "ns/pid", CLONE_NEWPID, read_proc_options },
	{ "devpts", MS_NOSUID | MS_NOEXEC, NULL, 0, read_devpts_options },
	{ "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, "ns/ipc", CLONE_NEWIPC, read_no_options },
};

/* ---- what there is ---- */

/* Calls each for every line of the thread's mountinfo until one returns true: 1. 0: none did; -EIO: it is unknown. */
static int find_line(pid_t pid, bool (*each)(void *context, char *line), void *context)
{
	char path[48], text[LINE_MAX_SIZE];
	cleanup_fd int fd = FD_NONE;
	size_t size = 0;
	ssize_t n = -1;

	if (proc_path(pid, "mountinfo", path, sizeof path) == 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	while (fd >= 0 && (n = read(fd, text + size, sizeof text - 1 - size)) > 0) {
		char *line = text, *end;

		size += (size_t)n;
		text[size] = 0;
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = 0;
			if (each(context, line))
				return 1;
		}
		size -= (size_t)(line - text);
		/* A program inside can make paths of any length, and so hide the lines behind this one. */
		if (size == sizeof text - 1)
			return -EIO;
		memmove(text, line, size);
	}
	return n == 0 ? 0 : -EIO;
}

struct look {
	const char *source;
	uint64_t id;
	unsigned count;
};

/* The type of a mount that was made here, at its place in the line; NULL: another one. */
static const char *type_of_own(const struct look *look, const char *line)
{
	/* Blanks within its fields are escaped. */
	const char *type = strstr(line, " - "), *source;
	size_t length = strlen(look->source);

	type = type ? type + strlen(" - ") : NULL;
	source = type ? strchr(type, ' ') : NULL;
	return source && strncmp(source + 1, look->source, length) == 0 && source[1 + length] == ' ' ? type : NULL;
}

static bool count_own(void *context, char *line)
{
	struct look *look = context;

	look->count += type_of_own(look, line) != NULL;
	return look->count >= MOUNTS_MAX;
}

static bool is_own_tmpfs(void *context, char *line)
{
	const struct look *look = context;
	const char *type = strtoull(line, NULL, 10) == look->id ? type_of_own(look, line) : NULL;

	return type && str_has_prefix(type, "tmpfs ");
}

bool own_mounts_has(const struct watch_options *options, pid_t pid, int fd)
{
	struct look look = { .source = options->own_mount_source };

	return options->own_mount_source[0] && mount_id(fd, &look.id) == 0 &&
	       find_line(pid, is_own_tmpfs, &look) == 1;
}

void own_mounts_init(struct own_mounts *own, const struct watch_options *options)
{
	*own = (struct own_mounts){ .options = options };
}

static bool look_at_namespace(pid_t pid, struct stat *status)
{
	char path[48];

	return proc_path(pid, "ns/mnt", path, sizeof path) == 0 && stat(path, status) == 0;
}

bool own_mounts_is_elsewhere(struct own_mounts *own, pid_t pid)
{
	struct stat status;

	if (!own->inode && look_at_namespace(own->options->init_pid, &status)) {
		own->device = status.st_dev;
		own->inode = status.st_ino;
	}
	return !own->inode || !look_at_namespace(pid, &status) || status.st_dev != own->device ||
	       status.st_ino != own->inode;
}

/* ---- in the child ---- */

/* Raw calls, as in watch/connect.c. */
static int enter(const struct wanted *wanted)
{
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
	    (geteuid() == 0 && syscall(SYS_setgroups, 0, NULL) < 0) || setns(wanted->user_fd, CLONE_NEWUSER) < 0 ||
	    setns(wanted->mount_fd, CLONE_NEWNS) < 0 ||
	    (wanted->kind->flag && setns(wanted->other_fd, wanted->kind->flag) < 0) || fchdir(wanted->root_fd) < 0 ||
	    chroot(".") < 0 || fchdir(wanted->cwd_fd) < 0 ||
	    syscall(SYS_setresgid, wanted->gid, wanted->gid, wanted->gid) < 0 ||
	    syscall(SYS_setresuid, wanted->uid, wanted->uid, wanted->uid) < 0 ||
	    syscall(SYS_close_range, 3, ~0U, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return errno;
	return 0;
}

static int mount_it(const struct wanted *wanted)
{
	return mount(wanted->options->own_mount_source, wanted->target, wanted->kind->name, wanted->flags,
		     wanted->data) < 0 ? errno : 0;
}

/* Only who is born after setns(2) is in that PID namespace. */
static int mount_in_child(const struct wanted *wanted)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(mount_it(wanted));
	}
	if (pid < 0)
		return errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

static int perform(const struct wanted *wanted)
{
	int errnum = enter(wanted);

	if (errnum)
		return errnum;
	return wanted->kind->flag == CLONE_NEWPID ? mount_in_child(wanted) : mount_it(wanted);
}

/* ---- in the box ---- */

/* The child's errno; -ETIMEDOUT: somebody held it up. */
static int run_child(const struct wanted *wanted)
{
	pid_t pid = fork();
	cleanup_fd int pidfd = FD_NONE;
	struct pollfd polled = { .events = POLLIN };
	bool is_over;
	int status;

	if (pid == 0)
		_exit(perform(wanted));
	if (pid < 0)
		return errno;
	pidfd = polled.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	is_over = pidfd >= 0 && poll(&polled, 1, CHILD_MAX_MS) > 0;
	if (!is_over)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return errno;
	return !is_over ? -ETIMEDOUT : WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

/* What an id of ours is called in the user namespace whose map this is: lines of "there here count". */
static int find_id(pid_t pid, const char *map, uint32_t id, uint32_t *ret_id)
{
	char path[48], text[4096], *at;
	cleanup_fd int fd = FD_NONE;
	ssize_t n = -1;

	if (proc_path(pid, map, path, sizeof path) == 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	if (fd >= 0)
		n = read(fd, text, sizeof text - 1);
	if (n < 0)
		return EPERM;
	text[n] = 0;
	for (at = text; *at; at += strspn(at, " \n")) {
		uint64_t there = strtoull(at, &at, 10), here = strtoull(at, &at, 10), count = strtoull(at, &at, 10);

		if (id >= here && id - here < count) {
			*ret_id = (uint32_t)(there + id - here);
			return 0;
		}
	}
	return EPERM;
}

static bool may_mount(pid_t pid)
{
	char path[48], text[4096], *at;
	cleanup_fd int fd = FD_NONE;
	ssize_t n = -1;

	if (proc_path(pid, "status", path, sizeof path) == 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	if (fd >= 0)
		n = read(fd, text, sizeof text - 1);
	if (n < 0)
		return false;
	text[n] = 0;
	at = strstr(text, "\nCapEff:");
	return at && strtoull(at + strlen("\nCapEff:"), NULL, 16) >> CAP_SYS_ADMIN & 1;
}

static int open_of(pid_t pid, const char *what, int flags, int *ret_fd)
{
	char path[48];
	int fd = proc_path(pid, what, path, sizeof path);

	if (fd == 0)
		fd = fd_open_at(AT_FDCWD, path, flags, 0);
	if (fd < 0)
		return EPERM;
	*ret_fd = fd;
	return 0;
}

/* Everything that the caller's pid names. 0 or an errno. */
static int take_from_caller(struct wanted *wanted, pid_t pid)
{
	struct look look = { .source = wanted->options->own_mount_source };
	int errnum = may_mount(pid) ? 0 : EPERM;

	if (!errnum && find_line(pid, count_own, &look) != 0)
		errnum = ENOSPC;
	if (!errnum)
		errnum = find_id(pid, "uid_map", wanted->options->uid, &wanted->uid);
	if (!errnum)
		errnum = find_id(pid, "gid_map", wanted->options->gid, &wanted->gid);
	if (!errnum)
		errnum = open_of(pid, "ns/user", O_RDONLY, &wanted->user_fd);
	if (!errnum)
		errnum = open_of(pid, "ns/mnt", O_RDONLY, &wanted->mount_fd);
	if (!errnum && wanted->kind->namespace)
		errnum = open_of(pid, wanted->kind->namespace, O_RDONLY, &wanted->other_fd);
	if (!errnum)
		errnum = open_of(pid, "root", O_PATH | O_DIRECTORY, &wanted->root_fd);
	return errnum ? errnum : open_of(pid, "cwd", O_PATH | O_DIRECTORY, &wanted->cwd_fd);
}

static int read_text(struct remote *remote, uint64_t address, char *out, size_t size)
{
	ssize_t n = remote_read_string(remote, address, out, size);

	return n < 0 ? EFAULT : (size_t)n == size - 1 ? ENAMETOOLONG : 0;
}

/* Copies the arguments. 0, an errno, or -EPERM: nobody mounts that here. */
static int read_arguments(struct wanted *wanted, struct remote *remote, const struct seccomp_data *data)
{
	uint32_t flags = (uint32_t)data->args[3];
	char type[32];
	int errnum;

	if ((flags & (uint32_t)MGC_MASK) == (uint32_t)MGC_VALUE)
		flags &= ~(uint32_t)MGC_MASK;
	if (flags & NOT_NEW)
		return -EPERM;
	errnum = read_text(remote, data->args[2], type, sizeof type);
	for (size_t i = 0; !errnum && i < ARRAY_SIZE(kinds); i++)
		if (str_equal(kinds[i].name, type))
			wanted->kind = &kinds[i];
	if (!wanted->kind)
		return -EPERM;
	wanted->flags = (flags & KEPT_FLAGS) | wanted->kind->flags;
	errnum = read_text(remote, data->args[1], wanted->target, sizeof wanted->target);
	if (!errnum && data->args[4])
		errnum = read_text(remote, data->args[4], wanted->given, sizeof wanted->given);
	return errnum ? errnum : wanted->kind->read_options(wanted);
}

static void close_all(struct wanted *wanted)
{
	close_fd(&wanted->user_fd);
	close_fd(&wanted->mount_fd);
	close_fd(&wanted->other_fd);
	close_fd(&wanted->root_fd);
	close_fd(&wanted->cwd_fd);
}

int own_mounts_serve(struct own_mounts *own, const struct reply *reply, struct remote *remote,
		     const struct seccomp_notif *request)
{
	struct wanted wanted = {
		.options = own->options,
		.user_fd = FD_NONE, .mount_fd = FD_NONE, .other_fd = FD_NONE, .root_fd = FD_NONE, .cwd_fd = FD_NONE,
	};
	pid_t pid = (pid_t)request->pid;
	int errnum;

	if (own->is_ended || !own->options->own_mount_source[0])
		return 1;
	remote_begin(remote, pid);
	errnum = read_arguments(&wanted, remote, &request->data);
	remote_end(remote);
	if (!errnum)
		errnum = take_from_caller(&wanted, pid);
	/* Until here the pid has meant the caller. */
	if (!errnum && reply_is_awaited(reply, request->id) <= 0)
		errnum = EPERM;
	if (!errnum)
		errnum = run_child(&wanted);
	close_all(&wanted);
	own->is_ended = errnum == -ETIMEDOUT;
	if (errnum == -EPERM)
		return 1;
	return errnum ? reply_error(reply, request->id, errnum < 0 ? -errnum : errnum) :
			reply_value(reply, request->id, 0);
}
