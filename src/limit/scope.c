/* SPDX-License-Identifier: Apache-2.0 */
#include "limit/group.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/pidref.h"
#include "os/spawn.h"

/*
 * Who logs in over ssh or on a console stands in session-N.scope, which is root's: nothing there is delegated,
 * and the delegated user@UID.service has no common ancestor that the user may write. Only the user's service
 * manager can move a process between the two. It is asked over D-Bus (org.freedesktop.systemd1.Manager,
 * StartTransientUnit: a scope with Delegate=, holding this process and its companion) by busctl(1), of systemd: a bus
 * client would be the only text protocol spoken by atoll-box. It is run from two fixed directories with an
 * environment of its own, since PATH and the rest belong to whoever started us.
 *
 * The scope ends with us: the manager removes it, and all below, when its last process is gone.
 */

enum { BUSCTL_TIMEOUT_MS = 5000, MOVE_TIMEOUT_MS = 2000 };

static int runtime_dir(const struct limit_request *request, char out[PATH_MAX])
{
	const char *dir = request->runtime_dir;
	struct stat st;
	int r = dir ? path_normalise(out, PATH_MAX, dir) :
		      str_format(out, PATH_MAX, "/run/user/%u", (unsigned)geteuid());

	if (r < 0)
		return r;
	/* A directory of someone else could have someone else's bus in it. */
	if (lstat(out, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

static int bus_socket(const struct limit_request *request, char out[PATH_MAX])
{
	char dir[PATH_MAX];
	struct stat st;
	int r = runtime_dir(request, dir);

	if (r == 0)
		r = str_format(out, PATH_MAX, "%s/bus", dir);
	if (r < 0)
		return r;
	if (stat(out, &st) < 0)
		return -errno;
	return S_ISSOCK(st.st_mode) ? 0 : -ENOTSOCK;
}

bool scope_is_possible(const struct limit_group *group)
{
	char path[PATH_MAX];

	return geteuid() != 0 && bus_socket(&group->request, path) == 0;
}

static const char *find_busctl(void)
{
	static const char *const places[] = { "/usr/bin/busctl", "/bin/busctl" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

static int spawn_quiet(const char *program, char *const argv[], char *const envp[], pid_t *ret_pid)
{
	const struct spawn spawn = {
		.program = program, .argv = (const char *const *)argv, .env = (const char *const *)envp, .fd_count = 3,
		.fds = { { SPAWN_NULL, 0 }, { SPAWN_NULL, 1 }, { SPAWN_NULL, 2 } }, .unblocks_signals = true,
	};

	return spawn_start(&spawn, ret_pid);
}

/* The exit status of our child, which is killed when it takes too long. */
static int wait_child(pid_t pid, int timeout_ms)
{
	cleanup_pidref struct pidref child = PIDREF_NONE;
	struct pollfd end = { .events = POLLIN };
	struct rusage usage;
	siginfo_t info;
	int r = pidref_open(&child, pid);

	if (r < 0)
		return r;
	end.fd = child.fd;
	do
		r = poll(&end, 1, timeout_ms);
	while (r < 0 && errno == EINTR);
	if (r <= 0) {
		r = pidref_signal(&child, SIGKILL);
		r = pidref_wait(&child, WEXITED, &info, &usage);
		return r < 0 ? r : -ETIMEDOUT;
	}
	r = pidref_wait(&child, WEXITED, &info, &usage);
	if (r < 0)
		return r;
	return info.si_code == CLD_EXITED ? info.si_status : -EIO;
}

static int ask_manager(const struct limit_request *request, const char *program, const char *unit)
{
	char bus[PATH_MAX], address[PATH_MAX], dir[PATH_MAX], runtime[PATH_MAX], own[16], other[16];
	char *const envp[] = { runtime, address, (char *)"LC_ALL=C", NULL };
	const char *const argv[] = {
		program, "--user", "--quiet", "--timeout=4", "call",
		"org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
		"StartTransientUnit", "ssa(sv)a(sa(sv))", unit, "fail",
		"4", "Description", "s", "atoll sandbox", "Delegate", "b", "true",
		"CollectMode", "s", "inactive-or-failed", "PIDs", "au", request->companion ? "2" : "1", own,
		request->companion ? other : "0", request->companion ? "0" : NULL, NULL,
	};
	pid_t pid;
	int r = bus_socket(request, bus);

	if (r == 0)
		r = runtime_dir(request, dir);
	if (r == 0)
		r = str_format(runtime, sizeof runtime, "XDG_RUNTIME_DIR=%s", dir);
	if (r == 0)
		r = str_format(address, sizeof address, "DBUS_SESSION_BUS_ADDRESS=unix:path=%s", bus);
	if (r == 0)
		r = str_format(own, sizeof own, "%d", (int)getpid());
	if (r == 0)
		r = str_format(other, sizeof other, "%d", (int)request->companion);
	if (r == 0)
		r = spawn_quiet(program, (char *const *)argv, envp, &pid);
	return r < 0 ? r : wait_child(pid, BUSCTL_TIMEOUT_MS);
}

/* The call returns when the job is queued; we have arrived when our own group is the scope. */
static int wait_moved(const struct limit_group *group, const char *unit, char out[PATH_MAX])
{
	uint64_t deadline_ns = clock_monotonic_ns() + (uint64_t)MOVE_TIMEOUT_MS * 1000000;

	for (;;) {
		cleanup_cgroup_layout struct cgroup_layout layout = { 0 };
		size_t top;
		int r = cgroup_layout_load(&layout, group->request.cgroup_root);

		if (r == 0)
			r = cgroup_layout_own(&layout, CGROUP_V2, out, &top);
		if (r < 0)
			return r;
		if (str_equal(path_basename(out), unit))
			return 0;
		if (clock_monotonic_ns() >= deadline_ns)
			return -ETIMEDOUT;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

/* It may arrive a moment after us: until then it is not ours to move. */
static int move_companion(int group_fd, pid_t companion)
{
	char text[16];
	int r = str_format(text, sizeof text, "%d", (int)companion);

	for (int waited_ms = 0; r == 0 && waited_ms < MOVE_TIMEOUT_MS; waited_ms++) {
		r = fd_write_file_at(group_fd, "cgroup.procs", text);
		if (r != -EACCES)
			return r;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		r = 0;
	}
	return r < 0 ? r : -ETIMEDOUT;
}

/* A group with processes hands no controllers down, so we go one level deeper and leave the scope itself empty. */
static int step_aside(const char *scope, pid_t companion)
{
	char path[PATH_MAX];
	cleanup_fd int fd = FD_NONE;
	int r = str_format(path, sizeof path, "%s/box", scope);

	if (r < 0)
		return r;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -errno;
	fd = fd_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	r = fd_write_file_at(fd, "cgroup.procs", "0");
	return r < 0 || !companion ? r : move_companion(fd, companion);
}

int scope_enter(struct limit_group *group)
{
	const char *program = group->request.scope_program ? group->request.scope_program : find_busctl();
	char unit[GROUP_NAME_SIZE + 8], scope[PATH_MAX];
	int r;

	group->detail[0] = 0;
	if (!program) {
		group_note(group, "no busctl program to ask systemd for a scope");
		return 1;
	}
	r = str_format(unit, sizeof unit, "%s.scope", group->name);
	if (r < 0)
		return r;
	r = ask_manager(&group->request, program, unit);
	if (r == 0)
		r = wait_moved(group, unit, scope);
	if (r == 0)
		r = step_aside(scope, group->request.companion);
	if (r == 0)
		return 0;
	group_note(group, "systemd's user manager gave no scope (%s)", r < 0 ? err_errno_name(-r) : "refused");
	return 1;
}
