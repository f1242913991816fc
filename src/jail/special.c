/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include "jail/filter.h"
#include "jail/root.h"
#include "os/fd.h"
#include "os/mount.h"
#include "os/path.h"

/* ---- /proc ---- */

/*
 * What stands in /proc besides the processes belongs to the host's root, whom no sandbox has mapped, and asks for
 * capabilities that no sandbox has: irq, bus, timer_list, kallsyms' addresses and their like are closed by their
 * modes. Mounts, at 12 µs each, are the second wall where most is at stake, and the only one for keys, which
 * shows the user's own. The rest of /proc stays writable for /proc/self (oom_score_adj, comm, mem for debuggers and
 * JITs): no Landlock rule can name the directories of processes that do not exist yet.
 */
static const char *const proc_read_only[] = { "sys", "sysrq-trigger" };
static const char *const proc_masked[] = { "kcore", "keys" };

/* User and mount namespaces of programs' own, where these may hold mounts. */
#define OWN_NAMESPACES_MAX "256"

static int proc_restrict(struct root *root, int proc)
{
	for (size_t i = 0; i < ARRAY_SIZE(proc_read_only); i++) {
		cleanup_fd int tree = mount_clone(proc, proc_read_only[i], false);
		int r = tree;

		if (tree == -ENOENT)
			continue;
		if (r >= 0)
			r = mount_seal(tree, false,
				       MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
				       FD_NONE);
		if (r >= 0)
			r = mount_attach_at(tree, proc, proc_read_only[i]);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < ARRAY_SIZE(proc_masked); i++) {
		cleanup_fd int target = path_open2(proc, proc_masked[i], O_PATH, 0, ROOT_INSIDE);
		int r = target == -ENOENT ? 0 : target < 0 ? target : root_cover(root, target);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Half of what the host gives a user. */
static int halve_setting(int proc, const char *host, const char *own)
{
	cleanup_fd int fd = fd_open_at(proc, host, O_RDONLY, 0);
	char text[24];
	ssize_t size = fd < 0 ? fd : read(fd, text, sizeof text - 1);
	uint64_t value = 0;

	if (size < 0)
		return fd < 0 ? fd : -errno;
	for (ssize_t i = 0; i < size && text[i] >= '0' && text[i] <= '9'; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	size = root_format_number(text, sizeof text, value / 2);
	return size < 0 ? (int)size : fd_write_file_at(proc, own, text);
}

/* A sandbox could use up all the watches of its user, whose editors and servers outside would then fail. */
static int limit_watches(const struct root *root, int proc)
{
	int r;

	/* Root's sandbox is a user of its own. */
	if (root->job->spec->run_as_root)
		return 0;
	r = halve_setting(proc, "sys/fs/inotify/max_user_instances", "sys/user/max_inotify_instances");
	if (r == 0)
		r = halve_setting(proc, "sys/fs/inotify/max_user_watches", "sys/user/max_inotify_watches");
	return r == -ENOENT ? 0 : r; /* a kernel without inotify */
}

/*
 * A program with mounts of its own wants a /proc of its own PID namespace, and the kernel gives it one only where a
 * whole one is mounted already (mount_too_revealing()). So one is, in a directory that the masked one then covers: no
 * path leads to it, and in another user namespace nobody can take away what covers it.
 */
static int hide_whole_proc(struct root *root)
{
	cleanup_fd int whole = FD_NONE, target = FD_NONE;

	if ((mkdirat(root->fd, "proc", 0755) < 0 && errno != EEXIST) || mkdirat(root->fd, "proc/whole", 0755) < 0)
		return -errno;
	whole = mount_new("proc", NULL, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	target = path_open2(root->fd, "proc/whole", O_PATH | O_DIRECTORY, 0, ROOT_INSIDE);
	return whole < 0 ? whole : target < 0 ? target : mount_attach(whole, target);
}

/*
 * Who has capabilities in a user namespace of its own may lower these limits of it, as bwrap --disable-userns does.
 * Here they are bounds: of all namespaces below this one together.
 */
static int prepare_own_mounts(struct root *root, int proc)
{
	static const char *const bounded[] = { "sys/user/max_user_namespaces", "sys/user/max_mnt_namespaces" };
	int r = hide_whole_proc(root);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(bounded); i++)
		r = fd_write_file_at(proc, bounded[i], OWN_NAMESPACES_MAX);
	return r;
}

/* Over the read-only rest of /proc/sys: of these settings each user namespace has its own. */
static int open_user_settings(int proc)
{
	cleanup_fd int tree = mount_clone(proc, "sys/user", false);
	int r = tree < 0 ? tree : mount_allow_writes(tree);

	return r < 0 ? r : mount_attach_at(tree, proc, "sys/user");
}

int root_mount_proc(struct root *root, const struct jail_mount *mount)
{
	cleanup_fd int proc = mount_new("proc", NULL, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	int r;

	if (proc < 0) {
		r = root_fail(root, mount, proc, "cannot mount");
		/* The kernel wants to see an unmasked /proc before it gives out another one (mount_too_revealing()). */
		if (proc == -EPERM)
			err_hint(root->err,
				 "in a container whose /proc is masked, start the container with an unmasked one "
					    "(podman: --security-opt unmask=ALL, docker: systempaths=unconfined)");
		return r;
	}
	/* No user namespaces below this one, whatever gets past seccomp: only a capability could raise it again. */
	if (!jail_seccomp_is_nested(root->job->spec->seccomp)) {
		r = fd_write_file_at(proc, "sys/user/max_user_namespaces", "0");
		if (r < 0)
			return root_fail(root, mount, r, "cannot forbid user namespaces through");
	}
	if (jail_seccomp_has_mounts(root->job->spec->seccomp)) {
		r = prepare_own_mounts(root, proc);
		if (r < 0)
			return root_fail(root, mount, r, "cannot prepare for others");
	}
	r = limit_watches(root, proc);
	if (r < 0)
		return root_fail(root, mount, r, "cannot limit inotify through");
	r = root_attach(root, mount, proc, ROOT_READ | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE);
	if (r < 0)
		return r;
	r = proc_restrict(root, proc);
	if (r == 0 && jail_seccomp_has_mounts(root->job->spec->seccomp))
		r = open_user_settings(proc);
	return r < 0 ? root_fail(root, mount, r, "cannot restrict") : 0;
}

/* ---- /dev ---- */

static int dev_nodes(struct root *root, int dev)
{
	/* random gives what urandom gives since Linux 5.6: a link spares a mount. */
	static const char *const nodes[] = { "null", "zero", "full", "urandom", "tty" };
	cleanup_fd int host = fd_open_at(AT_FDCWD, "/dev", O_PATH | O_DIRECTORY, 0);

	if (host < 0)
		return host;
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		cleanup_fd int tree = mount_clone(host, nodes[i], false);
		struct stat st;
		int r;

		if (tree < 0)
			return tree;
		if (fstat(tree, &st) < 0 || !S_ISCHR(st.st_mode))
			return -ENODEV;
		if (mknodat(dev, nodes[i], S_IFREG | 0444, 0) < 0)
			return -errno;
		r = mount_attach_at(tree, dev, nodes[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int dev_links(int dev)
{
	static const char *const links[][2] = {
		{ "random", "urandom" }, { "ptmx", "pts/ptmx" }, { "fd", "/proc/self/fd" }, { "stdin",
											     "/proc/self/fd/0" },
		{ "stdout", "/proc/self/fd/1" }, { "stderr", "/proc/self/fd/2" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		if (symlinkat(links[i][1], dev, links[i][0]) < 0)
			return -errno;
	return 0;
}

static int attach_new(int dev, const char *name, int tree)
{
	if (tree < 0)
		return tree;
	return mkdirat(dev, name, 0755) < 0 ? -errno : mount_attach_at(tree, dev, name);
}

/*
 * The queues of the own IPC namespace. mq_open(3) needs no mount, but Landlock a rule for the file system. 0 also where
 * the kernel has none, or there is no such namespace: those of the host are not shown.
 */
static int dev_queues(struct root *root, int dev)
{
	cleanup_fd int queues = FD_NONE;
	int r;

	if (!(root->job->report->namespaces & CLONE_NEWIPC))
		return 0;
	queues = mount_new("mqueue", NULL, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (queues == -ENODEV)
		return 0;
	r = attach_new(dev, "mqueue", queues);
	return r < 0 ? r : root_allow(root, queues, true, ROOT_READ | LANDLOCK_WRITE_FILE | LANDLOCK_REMOVE_FILE |
							  LANDLOCK_MAKE_REG);
}

static int dev_file_systems(struct root *root, const struct jail_mount *mount, int dev)
{
	static const struct mount_option options[] = { { "newinstance", NULL }, { "ptmxmode", "0666" }, { "mode",
													 "0620" } };
	cleanup_fd int pts = FD_NONE, shm = FD_NONE;
	int r;

	pts = mount_new("devpts", options, ARRAY_SIZE(options), MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	r = attach_new(dev, "pts", pts);
	if (r < 0)
		return r;
	/*
	 * Programs that make code in shared memory map it by fd; nothing is executed from here by name. Where new
	 * programs are forbidden that goes too: the dynamic loader could map one that was put here.
	 */
	shm = root_new_tmpfs(mount->size_bytes, mount->inodes, "1777",
			     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
			     (mount->flags & JAIL_NOEXEC ? MOUNT_ATTR_NOEXEC : 0));
	r = attach_new(dev, "shm", shm);
	if (r == 0)
		r = root_add_private(root, shm);
	return r < 0 ? r : root_allow(root, shm, true, ROOT_READ | ROOT_WRITE);
}

/* No mount of its own: the root is read-only in the end, and so is /dev then. */
int root_mount_dev(struct root *root, const struct jail_mount *mount)
{
	cleanup_fd int dev = root_open_target(root, mount->target, true);
	int r = dev;

	if (r >= 0)
		r = dev_nodes(root, dev);
	if (r == 0)
		r = dev_links(dev);
	if (r == 0)
		r = dev_file_systems(root, mount, dev);
	if (r == 0)
		r = dev_queues(root, dev);
	if (r == 0)
		r = root_allow(root, dev, true,
			       ROOT_READ | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_IOCTL_DEV);
	return r < 0 ? root_fail(root, mount, r, "cannot build") : 0;
}
