/* SPDX-License-Identifier: Apache-2.0 */

/* What a jail looks like from inside, and what it leaves outside. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "policy/policy.h"

static void test_looks_right_from_inside(void **state)
{
	struct cell *cell = *state;
	const char *status;

	cell_start(cell);
	status = cell_ask(cell, "read /proc/self/status");
	assert_non_null(strstr(status, "\nNoNewPrivs:\t1\n"));
	assert_non_null(strstr(status,
			       "\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n"));
	assert_non_null(strstr(status, "\nCapAmb:\t0000000000000000\n"));
	assert_non_null(strstr(status, "\nPid:\t1\n"));
	cell_expect_ok(cell, "read /proc/sys/kernel/hostname", "cell");
	cell_expect_ok(cell, "list /", " dev");
	assert_null(strstr(cell->answer, "usr"));
	assert_null(strstr(cell->answer, "mask"));
	cell_expect_ok(cell, "deathsig", "ok 9 sid 1");
	assert_true(cell->enforcement.user && cell->enforcement.mount && cell->enforcement.pid &&
		    cell->enforcement.net);
	assert_true(cell->enforcement.ipc && cell->enforcement.uts && cell->enforcement.cgroup);
}

static void test_namespaces_are_new(void **state)
{
	static const char *const names[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup" };
	struct cell *cell = *state;

	cell_start(cell);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		char path[64], request[80], ours[64] = "";

		snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
		assert_true(readlink(path, ours, sizeof ours - 1) > 0);
		snprintf(request, sizeof request, "readlink %s", path);
		assert_null(strstr(cell_ask(cell, request), ours));
	}
	/* Only the loopback interface, and it is up. */
	cell_expect_ok(cell, "read /proc/net/dev", "lo:");
	assert_null(strstr(cell->answer, "eth"));
}

static void test_root_cannot_be_written(void **state)
{
	struct cell *cell = *state;

	cell_start(cell);
	assert_string_not_equal(cell_ask(cell, "create /x"), "ok");
	assert_string_not_equal(cell_ask(cell, "mkdir /dev/x"), "ok");
	assert_string_not_equal(cell_ask(cell, "chmod / 777"), "ok");
	cell_expect_ok(cell, "create /dev/shm/x", NULL);
	cell_expect_ok(cell, "write /dev/null x", NULL);
	cell_expect_ok(cell, "tty", NULL);
	assert_string_not_equal(cell_ask(cell, "write /proc/sys/kernel/hostname x"), "ok");
	assert_string_not_equal(cell_ask(cell, "write /proc/sysrq-trigger h"), "ok");
	assert_string_not_equal(cell_ask(cell, "read /proc/kcore"), "ok");
	cell_expect_errno(cell, "read /proc/keys", EACCES);
	cell_expect_ok(cell, "write /proc/self/oom_score_adj 1000", NULL);
}

static void test_no_descriptor_leaks(void **state)
{
	struct cell *cell = *state;
	/* One without close-on-exec, as a careless parent may have it. */
	int leaked = open("/", O_RDONLY), high = fcntl(leaked, F_DUPFD, 200), rules;
	char path[64], more;

	cell_start(cell);
	close(leaked);
	close(high);
	/* 4 is the directory being listed, and the one behind it the rules of Landlock, which init hands to the box. */
	cell_expect_ok(cell, "list /proc/self/fd", NULL);
	assert_int_equal(strncmp(cell->answer, "ok 0 1 2 3 4 ", 13), 0);
	assert_true(sscanf(cell->answer + 13, "%d%c", &rules, &more) == 1);
	snprintf(path, sizeof path, "readlink /proc/self/fd/%d", rules);
	cell_expect_ok(cell, path, "landlock-ruleset");
	cell_expect_ok(cell, "readlink /proc/self/fd/0", "/dev/null");
	cell_expect_ok(cell, "read /proc/self/environ", NULL);
	assert_string_equal(cell->answer, "ok ");
}

static void test_binds(void **state)
{
	struct cell *cell = *state;
	char request[256];

	cell_host_make(cell, "ro", NULL);
	cell_host_make(cell, "ro/file", "readable");
	cell_host_make(cell, "rw", NULL);
	cell_host_make(cell, "rw/file", "writable");
	cell_mount(cell, JAIL_BIND, "/deep/down/ro", cell_host_path(cell, "ro"), JAIL_RDONLY);
	cell_mount(cell, JAIL_BIND, "/rw", cell_host_path(cell, "rw"), JAIL_OWNED);
	cell_mount(cell, JAIL_BIND, "/single", cell_host_path(cell, "ro/file"), JAIL_RDONLY | JAIL_NOEXEC);
	cell_mount(cell, JAIL_BIND, "/absent", cell_host_path(cell, "absent"), JAIL_RDONLY | JAIL_OPTIONAL);
	cell_start(cell);
	cell_expect_ok(cell, "read /deep/down/ro/file", "readable");
	cell_expect_ok(cell, "read /single", "readable");
	assert_string_not_equal(cell_ask(cell, "write /deep/down/ro/file x"), "ok");
	assert_string_not_equal(cell_ask(cell, "create /deep/down/ro/new"), "ok");
	cell_expect_ok(cell, "write /rw/file changed!", NULL);
	cell_expect_ok(cell, "create /rw/new", NULL);
	cell_expect_errno(cell, "stat /absent", ENOENT);
	cell_expect_ok(cell, "read /proc/self/mountinfo", "/rw rw,nosuid,nodev");
	assert_non_null(strstr(cell->answer, "/deep/down/ro ro,nosuid,nodev"));
	assert_non_null(strstr(cell->answer, "/single ro,nosuid,nodev,noexec"));
	/* The host is nowhere to be seen. */
	snprintf(request, sizeof request, "stat %s", cell->host);
	cell_expect_errno(cell, request, ENOENT);
}

static void test_what_is_written_belongs_to_the_owner_of_the_tree(void **state)
{
	struct cell *cell = *state;
	struct stat st;
	char needle[64];

	cell_host_make(cell, "tree", NULL);
	cell_host_make(cell, "tree/own", "x");
	if (geteuid() == 0) {
		cell_host_make(cell, "secret", "for root only");
		assert_int_equal(chmod(cell_host_path(cell, "secret"), 0600), 0);
		cell_mount(cell, JAIL_BIND, "/secret", cell_host_path(cell, "secret"), JAIL_RDONLY);
		assert_int_equal(chown(cell_host_path(cell, "tree"), 4321, 4322), 0);
		assert_int_equal(chown(cell_host_path(cell, "tree/own"), 4321, 4322), 0);
	}
	cell_mount(cell, JAIL_BIND, "/tree", cell_host_path(cell, "tree"), JAIL_OWNED);
	cell_start(cell);
	snprintf(needle, sizeof needle, " %u %u", cell->spec.uid, cell->spec.gid);
	cell_expect_ok(cell, "stat /tree/own", needle);
	cell_expect_ok(cell, "create /tree/new", NULL);
	cell_expect_ok(cell, "stat /tree/new", needle);
	assert_int_equal(lstat(cell_host_path(cell, "tree/new"), &st), 0);
	assert_int_equal(st.st_uid, geteuid() ? geteuid() : 4321);
	if (geteuid() == 0) {
		assert_int_equal(st.st_gid, 4322);
		cell_expect_errno(cell, "read /secret", EACCES);
	}
}

static void test_masks(void **state)
{
	struct cell *cell = *state;

	cell_host_make(cell, "tree", NULL);
	cell_host_make(cell, "tree/.env", "SECRET");
	cell_host_make(cell, "tree/.ssh", NULL);
	cell_host_make(cell, "tree/.ssh/id", "SECRET");
	cell_host_make(cell, "tree/real", "SECRET");
	assert_int_equal(symlink("real", cell_host_path(cell, "tree/link")), 0);
	cell_mount(cell, JAIL_BIND, "/tree", cell_host_path(cell, "tree"), JAIL_OWNED);
	cell_mount(cell, JAIL_MASK, "/tree/.env", NULL, 0);
	cell_mount(cell, JAIL_MASK, "/tree/.ssh", NULL, 0);
	cell_mount(cell, JAIL_MASK, "/tree/.ssh/id", NULL, 0);
	cell_mount(cell, JAIL_MASK, "/tree/link", NULL, 0);
	cell_mount(cell, JAIL_MASK, "/tree/absent", NULL, 0);
	cell_start(cell);
	cell_expect_errno(cell, "read /tree/.env", EACCES);
	assert_string_not_equal(cell_ask(cell, "write /tree/.env x"), "ok");
	cell_expect_ok(cell, "list /tree/.ssh", NULL);
	assert_null(strstr(cell->answer, "id"));
	cell_expect_errno(cell, "read /tree/.ssh/id", ENOENT);
	assert_string_not_equal(cell_ask(cell, "create /tree/.ssh/new"), "ok");
	cell_expect_errno(cell, "rename /tree/.env /tree/env", EBUSY);
	assert_string_not_equal(cell_ask(cell, "chmod /tree/.env 644"), "ok");
	cell_expect_errno(cell, "read /tree/link", EACCES);
	cell_expect_errno(cell, "read /tree/real", EACCES);
	cell_expect_errno(cell, "stat /tree/absent", ENOENT);
	/* The host's tree is as it was. */
	assert_int_equal(access(cell_host_path(cell, "tree/absent"), F_OK), -1);
	assert_int_equal(access(cell_host_path(cell, "tree/.ssh/new"), F_OK), -1);
}

/* In a read-only tree a layer takes the names out, and puts files in. */
static void test_names_in_a_layer(void **state)
{
	static const char *const ours[] = { "/tree/file", "/tree/new" };
	static const char text[] = "ours\n";
	struct cell *cell = *state;

	cell_host_make(cell, "tree", NULL);
	cell_host_make(cell, "tree/file", "the host's");
	cell_host_make(cell, "tree/.env", "SECRET");
	cell_host_make(cell, "tree/deep", NULL);
	cell_host_make(cell, "tree/deep/keys", NULL);
	cell_host_make(cell, "tree/deep/keys/id", "SECRET");
	cell_host_make(cell, "tree/deep/beside", "seen");
	cell_host_make(cell, "tree/real", "SECRET");
	assert_int_equal(chmod(cell_host_path(cell, "tree/deep"), 0711), 0);
	assert_int_equal(symlink("real", cell_host_path(cell, "tree/link")), 0);
	cell_mount(cell, JAIL_BIND, "/tree", cell_host_path(cell, "tree"), JAIL_RDONLY | JAIL_LAYERED);
	cell_mount(cell, JAIL_MASK, "/tree/.env", NULL, 0);
	cell_mount(cell, JAIL_MASK, "/tree/deep/keys", NULL, 0);
	cell_mount(cell, JAIL_MASK, "/tree/later", NULL, 0);
	cell_mount(cell, JAIL_MASK, "/tree/link", NULL, 0);
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		struct jail_mount *mount = cell_mount(cell, JAIL_FILE, ours[i], NULL, 0);

		mount->content = text;
		mount->content_size = sizeof text - 1;
	}
	cell_start(cell);
	cell_expect_errno(cell, "stat /tree/.env", ENOENT);
	cell_expect_errno(cell, "stat /tree/deep/keys", ENOENT);
	cell_expect_errno(cell, "read /tree/deep/keys/id", ENOENT);
	cell_expect_ok(cell, "read /tree/deep/beside", "seen");
	cell_expect_ok(cell, "stat /tree/deep", "711");
	cell_expect_ok(cell, "read /tree/file", "ours");
	cell_expect_ok(cell, "read /tree/new", "ours");
	cell_expect_errno(cell, "create /tree/x", EROFS);
	/* What a masked link leads to is covered by a mount. */
	cell_expect_errno(cell, "read /tree/real", EACCES);
	/* What the host makes afterwards stays unseen; the host's tree is as it was. */
	cell_host_make(cell, "tree/later", "SECRET");
	cell_expect_errno(cell, "stat /tree/later", ENOENT);
	assert_int_equal(access(cell_host_path(cell, "tree/new"), F_OK), -1);
}

/* `mv .git x` would take the mount along and make room for hooks that the host runs. */
static void test_parents_of_mounts_cannot_be_renamed(void **state)
{
	struct cell *cell = *state;

	cell_host_make(cell, "tree", NULL);
	cell_host_make(cell, "tree/.git", NULL);
	cell_host_make(cell, "tree/.git/hooks", NULL);
	cell_host_make(cell, "tree/.git/index", "x");
	cell_host_make(cell, "tree/a", NULL);
	cell_host_make(cell, "tree/a/b", NULL);
	cell_host_make(cell, "tree/a/b/secret", "SECRET");
	assert_int_equal(symlink("a/b/secret", cell_host_path(cell, "tree/link")), 0);
	cell_mount(cell, JAIL_BIND, "/tree", cell_host_path(cell, "tree"), JAIL_OWNED);
	cell_mount(cell, JAIL_BIND, "/tree/.git/hooks", cell_host_path(cell, "tree/.git/hooks"), JAIL_RDONLY);
	cell_mount(cell, JAIL_MASK, "/tree/link", NULL, 0);
	cell_start(cell);
	cell_expect_errno(cell, "rename /tree/.git /tree/x", EBUSY);
	cell_expect_errno(cell, "rename /tree/.git/hooks /tree/.git/x", EBUSY);
	cell_expect_errno(cell, "create /tree/.git/hooks/pre-commit", EROFS);
	cell_expect_errno(cell, "rename /tree/a /tree/x", EBUSY);
	cell_expect_errno(cell, "rename /tree/a/b /tree/a/x", EBUSY);
	cell_expect_errno(cell, "read /tree/a/b/secret", EACCES);
	/* Everything else goes on as before, with the same owner. */
	cell_expect_ok(cell, "create /tree/.git/HEAD.lock", NULL);
	cell_expect_ok(cell, "rename /tree/.git/HEAD.lock /tree/.git/HEAD", NULL);
	cell_expect_ok(cell, "write /tree/.git/index y", NULL);
	cell_expect_ok(cell, "mkdir /tree/a/b/c", NULL);
	assert_int_equal(access(cell_host_path(cell, "tree/.git/HEAD"), F_OK), 0);
	assert_int_equal(access(cell_host_path(cell, "tree/x"), F_OK), -1);
}

static void test_a_link_does_not_redirect_a_mount(void **state)
{
	struct cell *cell = *state;

	cell_host_make(cell, "tree", NULL);
	cell_host_make(cell, "tree/other", NULL);
	cell_host_make(cell, "source", NULL);
	assert_int_equal(symlink("other", cell_host_path(cell, "tree/place")), 0);
	cell_mount(cell, JAIL_BIND, "/tree", cell_host_path(cell, "tree"), JAIL_OWNED);
	cell_mount(cell, JAIL_BIND, "/tree/place", cell_host_path(cell, "source"), JAIL_RDONLY);
	cell_refused(cell, "mounts");
	assert_non_null(strstr(cell->err.hint, "symbolic link"));
	cell->mounts[cell->spec.mount_count - 1].target = "/tree/place/below";
	cell_refused(cell, "mounts");
}

static void test_nothing_is_made_on_the_host(void **state)
{
	struct cell *cell = *state;

	cell_host_make(cell, "tree", NULL);
	cell_host_make(cell, "source", NULL);
	cell_mount(cell, JAIL_BIND, "/tree", cell_host_path(cell, "tree"), JAIL_OWNED);
	cell_mount(cell, JAIL_BIND, "/tree/place", cell_host_path(cell, "source"), JAIL_RDONLY);
	cell_refused(cell, "mounts");
	cell->mounts[cell->spec.mount_count - 1].flags |= JAIL_OPTIONAL;
	cell_start(cell);
	cell_expect_errno(cell, "stat /tree/place", ENOENT);
	assert_int_equal(rmdir(cell_host_path(cell, "tree/place")), -1);
}

static void test_files_links_and_directories(void **state)
{
	struct cell *cell = *state;
	struct jail_mount *mount;

	cell_host_make(cell, "etc", NULL);
	cell_host_make(cell, "etc/passwd", "host");
	cell_mount(cell, JAIL_BIND, "/etc", cell_host_path(cell, "etc"), JAIL_OWNED);
	mount = cell_mount(cell, JAIL_FILE, "/etc/passwd", NULL, 0);
	mount->content = "agent";
	mount->content_size = 5;
	mount = cell_mount(cell, JAIL_FILE, "/run/atoll/limits.md", NULL, 0);
	mount->content = "words";
	mount->content_size = 5;
	mount = cell_mount(cell, JAIL_SYMLINK, "/bin", NULL, 0);
	mount->content = "usr/bin";
	mount->content_size = 7;
	cell_mount(cell, JAIL_DIRECTORY, "/empty", NULL, 0);
	mount = cell_mount(cell, JAIL_TMPFS, "/tmp", NULL, 0);
	mount->size_bytes = 1 << 20;
	cell_mount(cell, JAIL_TMPFS, "/home/me", NULL, JAIL_NOEXEC)->inodes = 8;
	cell_start(cell);
	cell_expect_ok(cell, "read /etc/passwd", "ok agent");
	assert_string_not_equal(cell_ask(cell, "write /etc/passwd x"), "ok");
	cell_expect_ok(cell, "read /run/atoll/limits.md", "ok words");
	assert_string_not_equal(cell_ask(cell, "write /run/atoll/limits.md x"), "ok");
	cell_expect_ok(cell, "readlink /bin", "ok usr/bin");
	assert_string_not_equal(cell_ask(cell, "create /empty/x"), "ok");
	cell_expect_ok(cell, "stat /tmp", "ok 41777");
	cell_expect_ok(cell, "stat /home/me", "ok 40700");
	cell_expect_ok(cell, "create /home/me/1", NULL);
	for (int i = 0; i < 8; i++)
		cell_ask(cell, i % 2 ? "mkdir /home/me/2" : "mkdir /home/me/3");
	cell_expect_ok(cell, "read /proc/self/mountinfo", "/tmp rw,nosuid,nodev");
	assert_non_null(strstr(cell->answer, "size=1024k"));
	assert_non_null(strstr(cell->answer, "nr_inodes=8"));
	assert_int_equal(access(cell_host_path(cell, "etc/.content"), F_OK), -1);
}

/* Landlock by itself: nothing else keeps a process of the host's network from an abstract socket of the host. */
static void test_landlock_confines_abstract_sockets(void **state)
{
	struct cell *cell = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char request[64];

	snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "atoll-test-%d", (int)getpid());
	assert_int_equal(bind(fd, (void *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address.sun_path + 1))),
				      0);
	assert_int_equal(listen(fd, 1), 0);
	cell->spec.share_network = true;
	snprintf(request, sizeof request, "abstract %s", address.sun_path + 1);
	cell_start(cell);
	assert_false(cell->enforcement.net);
	if (cell->enforcement.landlock_abi < 6) {
		close(fd);
		skip();
	}
	cell_expect_errno(cell, request, EPERM);
	close(fd);
}

/* The same without Landlock, which the spec allows to be missing: the wall above was Landlock's. */
static void test_abstract_socket_without_landlock(void **state)
{
	struct cell *cell = *state;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char request[64];

	snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "atoll-test-%d", (int)getpid());
	assert_int_equal(bind(fd, (void *)&address,
			      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address.sun_path + 1))),
				      0);
	assert_int_equal(listen(fd, 1), 0);
	cell->spec.share_network = true;
	cell->spec.broken_wall = "landlock";
	cell->spec.degrade = 1u << WALL_LANDLOCK;
	snprintf(request, sizeof request, "abstract %s", address.sun_path + 1);
	cell_start(cell);
	assert_int_equal(cell->enforcement.landlock_abi, 0);
	assert_int_equal(cell->enforcement.missing & 1u << WALL_LANDLOCK, 1u << WALL_LANDLOCK);
	cell_expect_ok(cell, request, NULL);
	close(fd);
}

/* Landlock by itself: the mount that /dev/shm is allows execution, the ruleset does not. */
static void test_landlock_denies_what_mounts_permit(void **state)
{
	struct cell *cell = *state;

	cell->mounts[1].size_bytes = 16 << 20;
	cell_mount(cell, JAIL_BIND, "/inmate", getenv("ATOLL_INMATE"), JAIL_RDONLY);
	cell_start(cell);
	cell_expect_ok(cell, "exec /inmate", NULL);
	cell_expect_ok(cell, "copy /inmate /dev/shm/inmate", NULL);
	cell_expect_errno(cell, "exec /dev/shm/inmate", EACCES);
}

static void test_mounts_permit_what_landlock_denies(void **state)
{
	struct cell *cell = *state;

	cell->mounts[1].size_bytes = 16 << 20;
	cell->spec.broken_wall = "landlock";
	cell->spec.degrade = 1u << WALL_LANDLOCK;
	cell_mount(cell, JAIL_BIND, "/inmate", getenv("ATOLL_INMATE"), JAIL_RDONLY);
	cell_start(cell);
	cell_expect_ok(cell, "copy /inmate /dev/shm/inmate", NULL);
	cell_expect_ok(cell, "exec /dev/shm/inmate", NULL);
}

static void test_noexec(void **state)
{
	struct cell *cell = *state;

	cell_mount(cell, JAIL_BIND, "/inmate", getenv("ATOLL_INMATE"), JAIL_RDONLY | JAIL_NOEXEC);
	cell_start(cell);
	cell_expect_errno(cell, "exec /inmate", EACCES);
}

static void test_no_user_namespaces_within(void **state)
{
	struct cell *cell = *state;

	/* The inmate has no seccomp filter: this is the second wall alone. */
	cell_start(cell);
	cell_expect_errno(cell, "unshare 0x10000000", ENOSPC);
	cell_expect_errno(cell, "unshare 0x00020000", EPERM);
}

static void test_nested_profile_allows_user_namespaces(void **state)
{
	struct cell *cell = *state;

	cell->spec.seccomp = JAIL_SECCOMP_NESTED;
	cell_start(cell);
	cell_expect_ok(cell, "unshare 0x10000000", NULL);
	assert_string_equal(cell->enforcement.seccomp, "nested");
}

static void test_dies_with_its_parent(void **state)
{
	struct cell *cell = *state;
	int pipe_fds[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		struct pidref init;

		if (cell_build(cell, &init, NULL) < 0)
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	close_fd(&cell->wire_child);
	close(pipe_fds[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* The wire ends only when the inmate, its last holder, has died. */
	assert_int_equal(recv(cell->wire, &byte, 1, 0), 0);
	close(pipe_fds[0]);
}

static void test_rlimits(void **state)
{
	struct cell *cell = *state;
	struct jail_rlimit limits[] = {
		{ RLIMIT_NOFILE, { 16, 16 } }, { RLIMIT_CORE, { 0, 0 } }, { RLIMIT_FSIZE, { 4096, RLIM_INFINITY } },
	};

	cell->spec.rlimits = limits;
	cell->spec.rlimit_count = ARRAY_SIZE(limits);
	cell_start(cell);
	cell_expect_ok(cell, "read /proc/self/limits", "Max open files            16                   16");
	assert_non_null(strstr(cell->answer, "Max core file size        0                    0"));
	assert_non_null(strstr(cell->answer, "Max file size             4096"));
}

static int refuse_meanwhile(void *context, struct err *err)
{
	++*(int *)context;
	return err_set(err, ERR_STATE, EROFS, "cgroup", "refused by the test");
}

static void test_failed_meanwhile_leaves_nothing(void **state)
{
	struct cell *cell = *state;
	int called = 0;

	cell->spec.calls.meanwhile = refuse_meanwhile;
	cell->spec.calls.context = &called;
	cell_refused(cell, "cgroup");
	assert_int_equal(called, 1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* A path of nearly PATH_MAX bytes and 2,000 directories. */
static void test_deep_target(void **state)
{
	struct cell *cell = *state;
	static char target[PATH_MAX], request[PATH_MAX + 16];

	cell_host_make(cell, "source", "deep");
	for (size_t i = 0; i + 2 < sizeof target - 64; i += 2)
		memcpy(target + i, "/d", 3);
	cell_mount(cell, JAIL_BIND, target, cell_host_path(cell, "source"), JAIL_RDONLY);
	cell_start(cell);
	snprintf(request, sizeof request, "read %s", target);
	cell_expect_ok(cell, request, "ok deep");
}

static int be_slow_meanwhile(void *context, struct err *err)
{
	usleep(50000);
	return 0;
}

/* The child has failed and gone, with a message unread, long before the parent listens. */
static void test_error_arrives_late(void **state)
{
	struct cell *cell = *state;

	cell->spec.calls.meanwhile = be_slow_meanwhile;
	cell_mount(cell, JAIL_BIND, "/x", "/does/not/exist", JAIL_RDONLY);
	cell_refused(cell, "mounts");
	assert_non_null(strstr(cell->err.message, "/does/not/exist"));
}

static unsigned count_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void test_every_broken_wall_is_refused(void **state)
{
	static const enum wall walls[] = {
		WALL_USERNS, WALL_MOUNTS, WALL_PIDNS, WALL_NETNS, WALL_IPC, WALL_UTS, WALL_CGROUPNS, WALL_LANDLOCK,
		WALL_LANDLOCK_SCOPE, WALL_SECCOMP, WALL_SPECULATION, WALL_CORE_SCHED,
	};
	struct cell *cell = *state;
	unsigned before = count_descriptors();
	char mounts_before[65536], mounts_after[65536];
	ssize_t size;
	int fd;

	/* Other tests mount meanwhile. */
	if (geteuid() == 0) {
		assert_return_code(unshare(CLONE_NEWNS), errno);
		assert_return_code(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), errno);
	}
	fd = open("/proc/self/mountinfo", O_RDONLY);
	size = read(fd, mounts_before, sizeof mounts_before);
	close(fd);
	cell_start(cell); /* skips where nothing works anyway */
	for (size_t i = 0; i < ARRAY_SIZE(walls); i++) {
		struct pidref init = PIDREF_NONE;
		int r;

		cell->spec.broken_wall = wall_names[walls[i]];
		r = cell_build(cell, &init, &cell->err);
		if (r >= 0)
			fail_msg("%s was not missed", wall_names[walls[i]]);
		assert_string_equal(cell->err.stage, wall_names[walls[i]]);
		assert_int_equal(cell->err.code, ERR_WALL);
		assert_true(cell->err.hint[0] || walls[i] == WALL_MOUNTS);
	}
	/* One more than before: the pidfd of the jail that was started. */
	assert_int_equal(count_descriptors(), before + 1);
	fd = open("/proc/self/mountinfo", O_RDONLY);
	assert_int_equal(read(fd, mounts_after, sizeof mounts_after), size);
	assert_memory_equal(mounts_before, mounts_after, (size_t)size);
	close(fd);
}

static void test_degraded_walls_are_named(void **state)
{
	static const enum wall walls[] = { WALL_IPC, WALL_UTS, WALL_CGROUPNS, WALL_LANDLOCK, WALL_SPECULATION,
					  WALL_CORE_SCHED };
	struct cell *cell = *state;
	siginfo_t info;

	for (size_t i = 0; i < ARRAY_SIZE(walls); i++) {
		cell->spec.broken_wall = wall_names[walls[i]];
		cell->spec.degrade = 1u << walls[i];
		cell_start(cell);
		assert_true(cell->enforcement.missing & 1u << walls[i]);
		assert_int_equal(pidref_signal(&cell->init, SIGKILL), 0);
		assert_int_equal(pidref_wait(&cell->init, WEXITED, &info, NULL), 1);
		pidref_done(&cell->init);
		cell->init = PIDREF_NONE;
	}
	/* Namespaces that carry the jail cannot be waived. */
	cell->spec.degrade = ~0u;
	cell->spec.broken_wall = "userns";
	cell_refused(cell, "userns");
}

static void test_missing_source_is_named(void **state)
{
	struct cell *cell = *state;

	cell_mount(cell, JAIL_BIND, "/x", "/does/not/exist", JAIL_RDONLY);
	cell_refused(cell, "mounts");
	assert_non_null(strstr(cell->err.message, "/does/not/exist"));
	assert_non_null(strstr(cell->err.message, "ENOENT"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, cell_setup, cell_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_looks_right_from_inside),
		CASE(test_namespaces_are_new),
		CASE(test_root_cannot_be_written),
		CASE(test_no_descriptor_leaks),
		CASE(test_binds),
		CASE(test_what_is_written_belongs_to_the_owner_of_the_tree),
		CASE(test_masks),
		CASE(test_names_in_a_layer),
		CASE(test_parents_of_mounts_cannot_be_renamed),
		CASE(test_a_link_does_not_redirect_a_mount),
		CASE(test_nothing_is_made_on_the_host),
		CASE(test_files_links_and_directories),
		CASE(test_landlock_confines_abstract_sockets),
		CASE(test_abstract_socket_without_landlock),
		CASE(test_landlock_denies_what_mounts_permit),
		CASE(test_mounts_permit_what_landlock_denies),
		CASE(test_noexec),
		CASE(test_no_user_namespaces_within),
		CASE(test_nested_profile_allows_user_namespaces),
		CASE(test_dies_with_its_parent),
		CASE(test_rlimits),
		CASE(test_deep_target),
		CASE(test_error_arrives_late),
		CASE(test_failed_meanwhile_leaves_nothing),
		CASE(test_every_broken_wall_is_refused),
		CASE(test_degraded_walls_are_named),
		CASE(test_missing_source_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
