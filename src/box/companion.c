/* SPDX-License-Identifier: Apache-2.0 */
#include "box/companion.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/str.h"
#include "box/state.h"
#include "os/clock.h"
#include "os/fd.h"

enum { LINK_FD = 3, ABOVE_STANDARD = LINK_FD + 1, RANGE_FIRST = 0x70000000, RANGE_SIZE = 0x0f000000 };

int companion_open(const char *init_path, const char *name, int above)
{
	char path[PATH_MAX];
	int fd, r = str_format(path, sizeof path, "%.*s%s", (int)(path_basename(init_path) - init_path), init_path,
			       name);

	if (r < 0)
		return r;
	fd = fd_open_at(AT_FDCWD, path, O_PATH, 0);
	return fd < 0 ? fd : fd_move_above(fd, above);
}

/* In the child made by vfork(): raw calls only, as for the network gate. */
static void become(const struct companion_spec *spec, int program_fd, int link_fd)
{
	char *argv[] = { (char *)(spec->name ? spec->name : spec->program), NULL }, *none_set[] = { NULL };
	uid_t uid = spec->uid;
	int null_fd = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	sigset_t none;

	sigemptyset(&none);
	syscall(SYS_setsid);
	if (null_fd < 0 || dup2(link_fd, LINK_FD) < 0)
		return;
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null_fd, fd) < 0)
			return;
	if (uid && (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, uid, uid, uid) < 0 ||
		    syscall(SYS_setresuid, uid, uid, uid) < 0))
		return;
	/* After the change of ids, which clears it. */
	if ((!spec->outlives && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return;
	syscall(SYS_execveat, program_fd, "", argv, spec->environment ? spec->environment : none_set,
		AT_EMPTY_PATH);
}

uid_t companion_uid(const struct box *box, unsigned which)
{
	return getuid() == 0 ? box->watch_options.uid ^ which : 0;
}

int companion_uid_choose(uid_t *ret_uid)
{
	uint32_t random;
	int r = random_bytes(&random, sizeof random);

	*ret_uid = RANGE_FIRST + random % RANGE_SIZE;
	return r;
}

static int spawn(const struct companion_spec *spec, int program_fd, int link_fd, struct pidref *ret_process)
{
	volatile int failed = 0;
	pid_t pid = vfork();
	int r;

	if (pid == 0) {
		become(spec, program_fd, link_fd);
		failed = errno;
		_exit(125);
	}
	if (pid < 0)
		return -errno;
	r = pidref_open(ret_process, pid);
	return r == 0 && failed ? -failed : r;
}

int companion_start(struct box *box, const char *name, uid_t uid, int *ret_fd, struct pidref *ret_process)
{
	const struct companion_spec spec = { .program = name, .uid = uid };

	return companion_start_as(box->request->init_path, &spec, ret_fd, ret_process);
}

int companion_start_as(const char *init_path, const struct companion_spec *spec, int *ret_fd,
		       struct pidref *ret_process)
{
	cleanup_fd int program_fd = companion_open(init_path, spec->program, ABOVE_STANDARD);
	cleanup_fd int near_fd = FD_NONE, far_fd = FD_NONE;
	int ends[2], r;

	*ret_process = PIDREF_NONE;
	if (program_fd < 0)
		return program_fd;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	near_fd = ends[0];
	r = far_fd = fd_move_above(ends[1], ABOVE_STANDARD);
	if (r >= 0)
		r = fd_set_nonblocking(near_fd, true);
	if (r >= 0)
		r = spawn(spec, program_fd, far_fd, ret_process);
	if (r < 0) {
		companion_end(ret_process);
		return r;
	}
	*ret_fd = take_fd(&near_fd);
	return 0;
}

void companion_end(struct pidref *process)
{
	siginfo_t info;

	if (process->fd < 0)
		return;
	(void)!pidref_signal(process, SIGKILL);
	(void)!pidref_wait(process, WEXITED, &info, NULL);
	pidref_done(process);
	*process = PIDREF_NONE;
}
