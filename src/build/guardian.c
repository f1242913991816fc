/* SPDX-License-Identifier: Apache-2.0 */
#include "build/guardian.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>

#include "base/str.h"
#include "limit/limit.h"
#include "os/fd.h"
#include "session/record.h"
#include "stage/layer/remove.h"

const char guardian_name[] = "atoll-guardian";

enum { ARG_NAME, ARG_SESSION, ARG_GROUP, ARG_STATE, ARG_RUNTIME, ARG_WHY, ARG_COUNT };

static const char WHY_KILLED[] = "killed", WHY_ORPHANS[] = "orphans";

/* What the guardian needs while it sleeps in the box's memory. */
struct sleeper {
	int pipe_fd;
	char *argv[ARG_COUNT + 1];
	const char *trash; /* what it removes when the box has exited; NULL: nothing */
};

static struct sleeper the_sleeper;

enum { TIDY_TRIES = 250, TIDY_QUIET = 25, TIDY_PAUSE_MS = 20, STILLBORN_S = 2 };

static bool is_other_session(const char *session, const void *context)
{
	return !str_equal(session, context);
}

/*
 * The sandbox needs a moment to die before its groups can be removed, and there may be one in each hierarchy:
 * done when for a while nothing more was found to remove.
 */
static void remove_cgroups(const char *session)
{
	struct timespec pause = { .tv_nsec = TIDY_PAUSE_MS * 1000000L };
	int quiet = 0;

	for (int i = 0; i < TIDY_TRIES && quiet < TIDY_QUIET; i++) {
		quiet = limit_sweep(NULL, is_other_session, session) == 0 ? quiet + 1 : 0;
		nanosleep(&pause, NULL);
	}
	/* The box may have stood elsewhere than we do: in a scope of its own. */
	(void)limit_sweep_everywhere(NULL, is_other_session, session);
}

/* Says once, to the next run and to whoever lists sessions, that this one was cut off. False when it lives.
 */
static bool record_loss(const struct guardian_task *task, const char *session)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_fd int dir_fd = FD_NONE, notice_fd = FD_NONE;
	char path[PATH_MAX], line[96];

	if (session_path(task->state_dir, session, "", path, sizeof path) == 0)
		dir_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir_fd < 0 || session_load(dir_fd, &record) < 0)
		return false;
	/* Our own box is dead whatever its lock says: the kernel may let go of a dying process's files in any order. */
	if (record.is_live && !str_equal(session, task->session))
		return false;
	/* It had told its end; only the tidying was cut off. */
	if (record.ended_ns)
		return true;
	free(record.ended);
	record.ended = str_dup("lost");
	record.ended_ns = clock_realtime_ns();
	if (!record.ended || session_store(dir_fd, &record) < 0)
		return true;
	if (str_format(path, sizeof path, "%s/notice", task->state_dir) == 0)
		notice_fd = fd_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
	if (notice_fd >= 0 && str_format(line, sizeof line, "%s\n", session) == 0 &&
	    fd_write_full(notice_fd, line, strlen(line)) < 0)
		return true; /* the record says it too */
	return true;
}

static void remove_socket(const struct guardian_task *task, const char *session)
{
	char path[PATH_MAX];

	if (str_format(path, sizeof path, "%s/%s.sock", task->runtime_dir, session) == 0)
		unlink(path);
}

/* An empty file, or half of one, is none: its box was killed while it wrote that. */
static bool has_record(const struct guardian_task *task, const char *session)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_fd int dir_fd = FD_NONE;
	char path[PATH_MAX];

	if (session_path(task->state_dir, session, "", path, sizeof path) < 0)
		return true;
	dir_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	return dir_fd >= 0 && session_load(dir_fd, &record) == 0;
}

/* The directory of a box that was killed before anything was anybody's: there is no record, so nobody lists it. */
static void remove_unborn(const struct guardian_task *task, const char *session)
{
	char path[PATH_MAX];

	if (!has_record(task, session) &&
	    str_format(path, sizeof path, "%s/sessions/%s", task->state_dir, session) == 0)
		(void)!stage_remove_tree(AT_FDCWD, path, NULL); /* gc takes what is left */
}

/*
 * A box that was killed before it had a record left its socket and perhaps a cgroup. One that is just coming to life
 * has no record either, but listens a moment after its socket is there.
 */
static bool is_stillborn(const struct guardian_task *task, int runtime_fd, const char *session)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat st;
	int r;

	if (has_record(task, session))
		return false;
	r = str_format(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s.sock", runtime_fd, session);
	if (r < 0 || fd < 0 || stat(address.sun_path, &st) < 0 || time(NULL) - st.st_ctim.tv_sec < STILLBORN_S)
		return false;
	return connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 && errno == ECONNREFUSED;
}

/* Those of a session, whatever they are named. */
static bool sweep_groups(const struct guardian_task *task, const char *session)
{
	cleanup_session_record struct session_record record = { 0 };
	bool has_own = session_load_id(task->state_dir, session, &record) == 0 && *record.cgroups;

	return limit_sweep_everywhere(NULL, is_other_session, has_own ? record.cgroups : session) >= 0;
}

/* A session that lost its box and its guardian left a socket that nobody listens on. */
static void layer_gc_orphans(const struct guardian_task *task)
{
	DIR *dir = opendir(task->runtime_dir);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char session[SESSION_ID_SIZE];

		if (!session_of_socket(entry->d_name, session))
			continue;
		if (!record_loss(task, session) && !is_stillborn(task, dirfd(dir), session))
			continue;
		/* Dead for a while, so one look is enough; and it may have been started from anywhere. */
		if (sweep_groups(task, session))
			remove_socket(task, session);
	}
	if (dir)
		closedir(dir);
}

int guardian_work(int argc, char **argv)
{
	struct guardian_task task;

	if (argc != ARG_COUNT)
		return 125;
	task = (struct guardian_task){
		.session = argv[ARG_SESSION], .group = argv[ARG_GROUP], .state_dir = argv[ARG_STATE],
		.runtime_dir = argv[ARG_RUNTIME],
	};
	/* The name of this process, for those who look for it in vain among the sandboxes. */
	prctl(PR_SET_NAME, guardian_name);
	if (str_equal(argv[ARG_WHY], WHY_KILLED)) {
		(void)record_loss(&task, task.session);
		remove_cgroups(task.group);
		remove_unborn(&task, task.session);
		remove_socket(&task, task.session);
	}
	/* It may have been killed while it changed from the one to the other. */
	if (str_equal(argv[ARG_WHY], WHY_KILLED) && !str_equal(task.group, task.session)) {
		remove_unborn(&task, task.group);
		remove_socket(&task, task.group);
	}
	layer_gc_orphans(&task);
	return 0;
}

/* ---- asleep, in the box's memory: system calls and a stack of its own, nothing of libc that has a state ---- */

/*
 * Whether nobody holds the log of a session, as its box does from before it has a record until its socket is gone. One
 * in the making has no log yet; what has none for a while is worth the closer look. Each start would otherwise look
 * through all that run beside it.
 */
static bool may_be_lost(int state_fd, int runtime_fd, const char *session, const char *socket_name)
{
	char path[64];
	struct stat st;
	bool is_held = false;
	int fd = str_format(path, sizeof path, "sessions/%s/audit.jsonl", session);

	if (fd == 0)
		fd = fd_open_at(state_fd, path, O_RDONLY | O_NOFOLLOW, 0);
	if (fd >= 0) {
		is_held = flock(fd, LOCK_SH | LOCK_NB) < 0;
		close(fd);
	}
	if (is_held || fstatat(runtime_fd, socket_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return fd >= 0 || time(NULL) - st.st_ctim.tv_sec >= STILLBORN_S;
}

/* Whether a socket lies in the runtime directory whose box may be dead. */
static bool has_orphans(const char *state_dir, const char *runtime_dir, const char *own_session)
{
	char entries[2048] __attribute__((aligned(8))), session[SESSION_ID_SIZE];
	bool found = false;
	int fd = fd_open_at(AT_FDCWD, runtime_dir, O_RDONLY | O_DIRECTORY, 0), state_fd = FD_NONE;
	long n;

	while (fd >= 0 && !found && (n = syscall(SYS_getdents64, fd, entries, sizeof entries)) > 0)
		for (long at = 0; at < n && !found;) {
			const struct dirent *entry = (const struct dirent *)(entries + at);

			at += entry->d_reclen;
			if (!session_of_socket(entry->d_name, session) || str_equal(session, own_session))
				continue;
			if (state_fd < 0)
				state_fd = fd_open_at(AT_FDCWD, state_dir, O_PATH | O_DIRECTORY, 0);
			found = may_be_lost(state_fd, fd, session, entry->d_name);
		}
	return found;
}

/* Up to a word of the box, or the end of it: 1 or 0. */
static ssize_t hear(int pipe_fd)
{
	char word;
	ssize_t n;

	do
		n = read(pipe_fd, &word, 1);
	while (n < 0 && errno == EINTR);
	return n;
}

/* However deep and wide what was made inside may be. The memory is ours when the box has exited. */
static void empty_trash(const struct sleeper *sleeper)
{
	if (hear(sleeper->pipe_fd) > 0 || chdir("/") < 0 || stage_remove_rest(AT_FDCWD, sleeper->trash, NULL) < 0)
		return; /* gc takes what is left with the session */
}

static int guard(void *argument)
{
	struct sleeper *sleeper = argument;
	char *const environment[] = { NULL };
	ssize_t n;

	setsid(); /* a Ctrl-C is for the foreground group, not for us */
	prctl(PR_SET_NAME, guardian_name);
	/* Everything but the pipe goes: a held stdout would keep the user's `| cat` waiting, a held lock the
	 * session alive. */
	if (sleeper->pipe_fd > 0)
		syscall(SYS_close_range, 0, sleeper->pipe_fd - 1, 0);
	syscall(SYS_close_range, sleeper->pipe_fd + 1, ~0U, 0);
	n = hear(sleeper->pipe_fd);
	if (n > 0 && sleeper->trash)
		empty_trash(sleeper);
	if (n > 0 && !has_orphans(sleeper->argv[ARG_STATE], sleeper->argv[ARG_RUNTIME], sleeper->argv[ARG_SESSION]))
		_exit(0);
	sleeper->argv[ARG_WHY] = (char *)(n > 0 ? WHY_ORPHANS : WHY_KILLED);
	execve("/proc/self/exe", sleeper->argv, environment);
	_exit(125);
}

/* Every signal that can be is blocked in the guardian from its first moment, and stays so through its exec. */
static pid_t start_asleep(struct sleeper *sleeper)
{
	static char stack[32 << 10] __attribute__((aligned(16)));
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	pid = clone(guard, stack + sizeof stack, CLONE_VM | SIGCHLD, sleeper);
	if (pid < 0)
		pid = -errno;
	sigprocmask(SIG_SETMASK, &old, NULL);
	return pid;
}

/* Copies that stay: it reads them when the box has gone, whose frames and memory it may have given back by then. */
static int name_task(struct sleeper *sleeper, const struct guardian_task *task)
{
	const char *const names[] = { guardian_name, task->session, task->group, task->state_dir, task->runtime_dir };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		sleeper->argv[i] = str_dup(names[i]);
		if (!sleeper->argv[i])
			return -ENOMEM;
	}
	return 0;
}

int guardian_start(struct guardian *ret_guardian, const struct guardian_task *task, struct err *err)
{
	struct sleeper *sleeper = &the_sleeper;
	int ends[2];
	pid_t pid;

	if (name_task(sleeper, task) < 0)
		return err_set(err, ERR_INTERNAL, ENOMEM, "guardian", "no memory");
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, ERR_INTERNAL, errno, "guardian", "pipe: %s", err_errno_name(errno));
	sleeper->pipe_fd = ends[0];
	pid = start_asleep(sleeper);
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		err_set(err, ERR_INTERNAL, -pid, "guardian", "no process can be started: %s", err_errno_name(-pid));
		if (pid == -EAGAIN)
			err_hint(err, "you may not have more of them here (`ulimit -u`): end some, or allow more");
		return pid;
	}
	*ret_guardian = (struct guardian){ .pipe_fd = ends[1], .pid = pid };
	return 0;
}

/* It reads this when the box is dead, or has said its last word. */
int guardian_follow(const char *session)
{
	char *name = str_dup(session);

	if (!name)
		return -ENOMEM;
	free(the_sleeper.argv[ARG_SESSION]);
	the_sleeper.argv[ARG_SESSION] = name;
	return 0;
}

void guardian_dismiss(struct guardian *guardian, const char *trash)
{
	the_sleeper.trash = trash;
	if (guardian->pipe_fd >= 0 && write(guardian->pipe_fd, "q", 1) < 0)
		return; /* it was killed: nothing to dismiss */
	/* With something to remove it waits for the exit, which closes the pipe. */
	if (!trash)
		close_fd(&guardian->pipe_fd);
}

void guardian_leave_to(struct guardian *guardian)
{
	close_fd(&guardian->pipe_fd);
}
