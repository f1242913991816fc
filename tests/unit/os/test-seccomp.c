/* SPDX-License-Identifier: Apache-2.0 */

/* Loading a filter with a listener, also on a kernel before 5.19, which does not know killable waits. */

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/seccomp.h"

enum { FLAG_WAIT_KILLABLE = 1 << 5, LOADED = 0, NOT_LOADED = 1, NOT_REFUSED = 2, NO_FILTER = 3 };

static const struct sock_filter allow_all[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };

/* From now on the kernel does not know these flags of seccomp(2). */
static int forget_flags(unsigned flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, flags, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0;
}

static int load_without(unsigned flags)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (forget_flags(flags))
			_exit(NO_FILTER);
		if (flags && (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL) == 0 || errno != EINVAL))
			_exit(NOT_REFUSED);
		_exit(seccomp_load_with_listener(allow_all, 1) < 0 ? NOT_LOADED : LOADED);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void the_listener_is_there_without_killable_waits(void **state)
{
	assert_int_equal(load_without(0), LOADED);
	assert_int_equal(load_without(FLAG_WAIT_KILLABLE), LOADED);
}

/* Linux 5.0: nothing stands in for it. */
static void without_listeners_nothing_is_loaded(void **state)
{
	assert_int_equal(load_without(SECCOMP_FILTER_FLAG_NEW_LISTENER), NOT_LOADED);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_listener_is_there_without_killable_waits),
		cmocka_unit_test(without_listeners_nothing_is_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
