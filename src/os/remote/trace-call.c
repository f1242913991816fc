/* SPDX-License-Identifier: Apache-2.0 */
#include "os/remote/trace-call.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

/*
 * Theory of operation. The tracee stops in the kernel, on its way back to its program. Its registers are kept, the
 * program counter goes to a system call instruction of the vDSO, and PTRACE_SYSCALL runs that one call. All signals
 * are blocked meanwhile (PTRACE_SETSIGMASK), so that no other stop comes in between; SIGKILL ends it as ever.
 *
 * A call that the stop interrupted would be started again by the kernel on the way out of this stop. As it leaves by
 * another one, the registers that are put back are those by which the call is made again.
 */

#ifndef __WALL
#define __WALL 0x40000000
#endif

/* The kernel's own, which programs never see. */
enum { RESTART_SYS = 512, RESTART_NOINTR = 513, RESTART_NOHAND = 514, RESTART_BLOCK = 516 };

enum { MAPS_MAX = 16 << 20, CODE_MAX = 64 << 10, SIGNAL_SET_SIZE = 8, LOOK_US = 200, CALL_MS = 2000, STOPPED = 0x80 };

#if defined(__x86_64__)
typedef struct user_regs_struct registers;
static const uint8_t call_instruction[] = { 0x0f, 0x05 };
enum { INSTRUCTION_STEP = 1 };

static void prepare_call(registers *regs, uint64_t at, long number, const uint64_t a[TRACE_CALL_ARGUMENTS])
{
	regs->rip = at;
	regs->rax = (uint64_t)number;
	regs->orig_rax = UINT64_MAX; /* no call is to be started again */
	regs->rdi = a[0];
	regs->rsi = a[1];
	regs->rdx = a[2];
	regs->r10 = a[3];
	regs->r8 = a[4];
	regs->r9 = a[5];
}

static int64_t result_of(const registers *regs)
{
	return (int64_t)regs->rax;
}

static void make_again(registers *regs, long interrupted)
{
	int64_t result = (int64_t)regs->rax;

	if (interrupted < 0)
		return;
	if (result == -RESTART_SYS || result == -RESTART_NOINTR || result == -RESTART_NOHAND)
		regs->rax = (uint64_t)interrupted;
	else if (result == -RESTART_BLOCK)
		regs->rax = SYS_restart_syscall;
	else
		return;
	regs->rip -= sizeof call_instruction;
	regs->orig_rax = UINT64_MAX;
}

static long interrupted_call(const registers *regs)
{
	return (long)regs->orig_rax;
}
#elif defined(__aarch64__)
typedef struct user_regs_struct registers;
static const uint8_t call_instruction[] = { 0x01, 0x00, 0x00, 0xd4 };
enum { INSTRUCTION_STEP = 4 };

static void prepare_call(registers *regs, uint64_t at, long number, const uint64_t a[TRACE_CALL_ARGUMENTS])
{
	regs->pc = at;
	regs->regs[8] = (uint64_t)number;
	for (int i = 0; i < TRACE_CALL_ARGUMENTS; i++)
		regs->regs[i] = a[i];
}

static int64_t result_of(const registers *regs)
{
	return (int64_t)regs->regs[0];
}

/* The kernel has done it before the stop (do_signal() in arch/arm64). */
static void make_again(registers *regs, long interrupted)
{
	(void)regs;
	(void)interrupted;
}

static long interrupted_call(const registers *regs)
{
	return -1;
}
#endif

struct trace_caller {
	pid_t tid;
	registers before;
	uint64_t signals;            /* that it had blocked */
	uint64_t instruction;        /* address of one that makes a call */
	uint64_t page;               /* 0: none yet */
};

static long request(int what, pid_t tid, uintptr_t address, const void *data)
{
	return syscall(SYS_ptrace, what, tid, address, data) < 0 ? -errno : 0;
}

int trace_call_seize(pid_t tid)
{
	long r = request(PTRACE_SEIZE, tid, 0, NULL);

	if (r == 0)
		r = request(PTRACE_INTERRUPT, tid, 0, NULL);
	return (int)r;
}

/* The status of its next stop. */
static int wait_stop(pid_t tid, unsigned patience_ms, int *ret_status)
{
	for (unsigned waited_us = 0; waited_us < patience_ms * 1000; waited_us += LOOK_US) {
		pid_t pid = waitpid(tid, ret_status, __WALL | WNOHANG);

		if (pid < 0)
			return errno == EINTR ? 0 : -ESRCH;
		if (pid == tid)
			return WIFSTOPPED(*ret_status) ? 0 : -ESRCH;
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_US * 1000L }, NULL);
	}
	return -ETIMEDOUT;
}

int trace_call_wait(pid_t tid, unsigned patience_ms)
{
	/* Only now: who does not stop, since it waits for a child of vfork(2), does not die with us. */
	const uintptr_t options = PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD;
	int status, r = wait_stop(tid, patience_ms, &status);

	return r < 0 ? r : (int)request(PTRACE_SETOPTIONS, tid, 0, (const void *)options);
}

void trace_call_release(pid_t tid)
{
	(void)!request(PTRACE_DETACH, tid, 0, NULL);
}

static int get_registers(pid_t tid, registers *regs)
{
	struct iovec part = { regs, sizeof *regs };

	return (int)request(PTRACE_GETREGSET, tid, NT_PRSTATUS, &part);
}

static int set_registers(pid_t tid, const registers *regs)
{
	struct iovec part = { (void *)regs, sizeof *regs };

	return (int)request(PTRACE_SETREGSET, tid, NT_PRSTATUS, &part);
}

static int find_code(pid_t tid, uint64_t *ret_start, uint64_t *ret_size)
{
	cleanup_free char *text = NULL;
	char path[40];
	char *at, *line;
	size_t size;
	int r = str_format(path, sizeof path, "/proc/%d/maps", tid);

	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, path, MAPS_MAX, &text, &size);
	if (r < 0)
		return r;
	at = strstr(text, "[vdso]");
	if (!at)
		return -ENOSYS;
	for (line = at; line > text && line[-1] != '\n';)
		line--;
	*ret_start = strtoull(line, &at, 16);
	if (*at != '-')
		return -ENOSYS;
	*ret_size = strtoull(at + 1, NULL, 16) - *ret_start;
	return *ret_size <= CODE_MAX ? 0 : -ENOSYS;
}

static int find_instruction(pid_t tid, uint64_t *ret_address)
{
	cleanup_free uint8_t *code = NULL;
	uint64_t start, size;
	struct iovec here, there;
	int r = find_code(tid, &start, &size);

	if (r < 0)
		return r;
	code = malloc(size);
	if (!code)
		return -ENOMEM;
	here = (struct iovec){ code, size };
	there = (struct iovec){ (void *)(uintptr_t)start, size };
	if (syscall(SYS_process_vm_readv, tid, &here, 1, &there, 1, 0) != (long)size)
		return -ENOSYS;
	for (size_t i = 0; i + sizeof call_instruction <= size; i += INSTRUCTION_STEP)
		if (memcmp(code + i, call_instruction, sizeof call_instruction) == 0) {
			*ret_address = start + i;
			return 0;
		}
	return -ENOSYS;
}

int trace_call_begin(pid_t tid, struct trace_caller **ret_caller)
{
	const uint64_t all = UINT64_MAX;
	struct trace_caller *caller = calloc(1, sizeof *caller);
	int r = caller ? get_registers(tid, &caller->before) : -ENOMEM;

	if (r == 0)
		r = find_instruction(tid, &caller->instruction);
	if (r == 0)
		r = (int)request(PTRACE_GETSIGMASK, tid, SIGNAL_SET_SIZE, &caller->signals);
	if (r == 0)
		r = (int)request(PTRACE_SETSIGMASK, tid, SIGNAL_SET_SIZE, &all);
	if (r < 0) {
		free(caller);
		return r;
	}
	caller->tid = tid;
	make_again(&caller->before, interrupted_call(&caller->before));
	*ret_caller = caller;
	return 0;
}

/* To the next stop of a system call, over stops of other kinds. */
static int step(pid_t tid)
{
	int status = 0;
	long r;

	do {
		r = request(PTRACE_SYSCALL, tid, 0, NULL);
		if (r == 0)
			r = wait_stop(tid, CALL_MS, &status);
	} while (r == 0 && WSTOPSIG(status) != (SIGTRAP | STOPPED));
	return (int)r;
}

int64_t trace_call(struct trace_caller *caller, long number, const uint64_t arguments[TRACE_CALL_ARGUMENTS])
{
	registers regs = caller->before;
	int r;

	prepare_call(&regs, caller->instruction, number, arguments);
	r = set_registers(caller->tid, &regs);
	if (r == 0)
		r = step(caller->tid);
	if (r == 0)
		r = step(caller->tid);
	if (r == 0)
		r = get_registers(caller->tid, &regs);
	return r < 0 ? r : result_of(&regs);
}

int trace_call_put(struct trace_caller *caller, const char *text, uint64_t *ret_address)
{
	const uint64_t arguments[TRACE_CALL_ARGUMENTS] = {
		0, TRACE_CALL_TEXT_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0,
	};
	size_t size = strlen(text) + 1;
	struct iovec here = { (void *)text, size }, there;

	if (size > TRACE_CALL_TEXT_MAX)
		return -ENAMETOOLONG;
	if (!caller->page) {
		int64_t r = trace_call(caller, SYS_mmap, arguments);

		if (r < 0)
			return (int)r;
		caller->page = (uint64_t)r;
	}
	there = (struct iovec){ (void *)(uintptr_t)caller->page, size };
	if (syscall(SYS_process_vm_writev, caller->tid, &here, 1, &there, 1, 0) != (long)size)
		return -EFAULT;
	*ret_address = caller->page;
	return 0;
}

void trace_call_end(struct trace_caller *caller)
{
	const uint64_t arguments[TRACE_CALL_ARGUMENTS] = { caller->page, TRACE_CALL_TEXT_MAX };

	if (caller->page)
		(void)!trace_call(caller, SYS_munmap, arguments);
	/* What cannot be put back must not go on. */
	if (set_registers(caller->tid, &caller->before) < 0 ||
	    request(PTRACE_SETSIGMASK, caller->tid, SIGNAL_SET_SIZE, &caller->signals) < 0)
		(void)!syscall(SYS_tkill, caller->tid, SIGKILL);
	free(caller);
}
