/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation. A fork copies page tables, and afterwards every page that one of the two writes: 0.15 ms for a
 * process of 100 pages in a virtual machine, beside 0.02 for one that shares its maker's memory (CLONE_VM). What must
 * not be shared is the stack and errno. In the static musl of the run path errno is what the function below says,
 * which the linker takes instead of the C library's own: one for each of our stacks. Where errno is the C library's,
 * the process is a fork.
 */
#include "os/vmfork.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/clone.h"

#if !defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))

const bool vmfork_shares_memory = true;

/* Reserved, not used: what runs here takes some ten pages (paths), calls nothing that recurses, and has no VLAs. */
enum { STACK_SIZE = 256 << 10, ALIGNMENT = 16, PAGE = 4096 };

static struct stack {
	char memory[STACK_SIZE - ALIGNMENT] __attribute__((aligned(ALIGNMENT)));
	int error;
} stacks[VMFORK_COUNT] __attribute__((aligned(PAGE)));

static int own_error;

int *__errno_location(void)
{
	uintptr_t offset = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)stacks;

	return offset < sizeof stacks ? &stacks[offset / sizeof *stacks].error : &own_error;
}

/* The name that the C library itself uses. */
int *___errno_location(void) __attribute__((const, alias("__errno_location")));

/* The child has an empty stack: it must not return into a frame that it does not have. */
static long clone_onto(const struct clone_args *args, int (*run)(void *), void *argument)
{
#if defined(__x86_64__)
	long result = SYS_clone3;

	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "mov %%rdx, %%rdi\n\t"
			 "call *%%rbx\n\t"
			 "mov %%eax, %%edi\n\t"
			 "mov %[exit], %%eax\n\t"
			 "syscall\n\t"
			 "1:"
			 : "+a"(result)
			 : "D"(args), "S"(sizeof *args), "b"(run), "d"(argument), [exit] "i"(SYS_exit_group)
			 : "rcx", "r11", "memory");
	return result;
#else
	register long x0 __asm__("x0") = (long)args;
	register long x1 __asm__("x1") = sizeof *args;
	register long x8 __asm__("x8") = SYS_clone3;
	register long x9 __asm__("x9") = (long)run;
	register long x10 __asm__("x10") = (long)argument;

	__asm__ volatile("svc 0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x0, x10\n\t"
			 "blr x9\n\t"
			 "mov x8, %[exit]\n\t"
			 "svc 0\n\t"
			 "1:"
			 : "+r"(x0)
			 : "r"(x1), "r"(x8), "r"(x9), "r"(x10), [exit] "i"(SYS_exit_group)
			 : "memory", "cc");
	return x0;
#endif
}

pid_t vmfork_start(enum vmfork_stack place, uint64_t flags, int cgroup_fd, const struct vmfork_work *work,
		   int *ret_pidfd)
{
	int pidfd = FD_NONE;
	struct clone_args args = {
		.flags = flags | CLONE_VM | CLONE_PIDFD | (cgroup_fd >= 0 ? CLONE_INTO_CGROUP : 0),
		.pidfd = (uintptr_t)&pidfd,
		.exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD, /* the maker's own, clone(2) */
		.stack = (uintptr_t)stacks[place].memory,
		.stack_size = sizeof stacks[place].memory,
		.cgroup = cgroup_fd >= 0 ? (uint64_t)cgroup_fd : 0,
	};
	long pid = clone_onto(&args, work->run, work->argument);

	if (pid < 0)
		return (pid_t)pid;
	*ret_pidfd = pidfd;
	return (pid_t)pid;
}

void vmfork_rest(void)
{
	(void)!madvise(stacks, sizeof stacks, MADV_DONTNEED);
}

#else

const bool vmfork_shares_memory = false;

pid_t vmfork_start(enum vmfork_stack place, uint64_t flags, int cgroup_fd, const struct vmfork_work *work,
		   int *ret_pidfd)
{
	pid_t pid = clone_process(flags, cgroup_fd, ret_pidfd);

	if (pid == 0)
		_exit(work->run(work->argument));
	return pid;
}

void vmfork_rest(void)
{
}

#endif
