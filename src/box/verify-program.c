/* SPDX-License-Identifier: Apache-2.0 */
#include "box/verify-program.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/str.h"
#include "box/companion.h"
#include "box/state.h"
#include "os/fd.h"
#include "wire/verify.h"

enum { ABOVE_STANDARD = VERIFY_FD + 1, UID_BITS = 3 };

/* In the child made by vfork(): raw calls only, as for the desk. */
static void become_verify(int program_fd, int link_fd, uid_t uid)
{
	char *argv[] = { (char *)"atoll-verify", (char *)"--served", NULL }, *environment[] = { NULL };
	int null_fd = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
	sigset_t none;

	sigemptyset(&none);
	syscall(SYS_setsid);
	if (null_fd < 0 || dup2(link_fd, VERIFY_FD) < 0)
		return;
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null_fd, fd) < 0)
			return;
	if (uid && (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, uid, uid, uid) < 0 ||
		    syscall(SYS_setresuid, uid, uid, uid) < 0))
		return;
	/* After the change of ids, which clears it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		return;
	syscall(SYS_execveat, program_fd, "", argv, environment, AT_EMPTY_PATH);
}

static int spawn(const struct box *box, int link_fd, struct pidref *process)
{
	cleanup_fd int program_fd = companion_open(box->request->init_path, "atoll-verify", ABOVE_STANDARD);
	/* As root a uid in the range of the sandbox's that nobody else has: not the gate's, and not the desk's. */
	uid_t uid = companion_uid(box, UID_BITS);
	volatile int failed = 0;
	pid_t pid;
	int r;

	if (program_fd < 0)
		return program_fd;
	pid = vfork();
	if (pid == 0) {
		become_verify(program_fd, link_fd, uid);
		failed = errno;
		_exit(125);
	}
	if (pid < 0)
		return -errno;
	r = pidref_open(process, pid);
	return r == 0 && failed ? -failed : r;
}

int verify_program_start(const struct box *box, struct pidref *process, int *ret_fd)
{
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	r = ends[1] = fd_move_above(ends[1], ABOVE_STANDARD);
	if (r >= 0)
		r = spawn(box, ends[1], process);
	close_fd(&ends[1]);
	if (r < 0) {
		close(ends[0]);
		return r;
	}
	*ret_fd = ends[0];
	return 0;
}
