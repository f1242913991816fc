/* SPDX-License-Identifier: Apache-2.0 */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "os/clock.h"

enum { MIB = 1 << 20 };

struct guest_board *board;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(99);
}

void board_reset(void)
{
	if (!board)
		board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(board != MAP_FAILED, "mmap");
	memset((void *)board, 0, sizeof *board);
}

static void pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 }, NULL);
}

bool board_wait(const volatile uint64_t *value, uint64_t wanted)
{
	for (int i = 0; i < 1000 && *value < wanted; i++)
		pause_ms(10);
	return *value >= wanted;
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), path);
	close(fd);
}

static void enter_namespaces(enum guest_namespaces namespaces, uid_t uid, gid_t gid)
{
	char map[64];

	if (namespaces == GUEST_NO_NAMESPACES)
		return;
	snprintf(map, sizeof map, "%u %u 1", (unsigned)uid, (unsigned)uid);
	write_text("/proc/self/uid_map", map);
	snprintf(map, sizeof map, "%u %u 1", (unsigned)gid, (unsigned)gid);
	write_text("/proc/self/setgroups", "deny");
	write_text("/proc/self/gid_map", map);
	if (namespaces != GUEST_USER_PID_PROC)
		return;
	must(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "mount private");
	must(mount("proc", "/proc", "proc", MS_NOSUID, NULL) == 0, "mount proc");
	must(mount("tmpfs", "/mnt", "tmpfs", 0, "size=512m,mode=1777") == 0, "mount tmpfs");
}

pid_t guest_start(struct limit_group *group, enum guest_namespaces namespaces, void (*act)(size_t), size_t argument)
{
	int clone_fd = limit_group_clone_fd(group), go[2];
	struct clone_args args = { .exit_signal = SIGCHLD };
	struct err err = { 0 };
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char byte = 0;
	pid_t pid;

	must(limit_group_prepare(group, &err) == 0, "limit_group_prepare");
	must(pipe2(go, O_CLOEXEC) == 0, "pipe2");
	if (clone_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)clone_fd;
	}
	if (namespaces != GUEST_NO_NAMESPACES)
		args.flags |= CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	must(pid >= 0, "clone3");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		must(read(go[0], &byte, 1) == 1, "go");
		enter_namespaces(namespaces, uid, gid);
		must(limit_group_enter(group) == 0, "limit_group_enter");
		act(argument);
		_exit(0);
	}
	close(go[0]);
	must(write(go[1], &byte, 1) == 1, "go");
	close(go[1]);
	return pid;
}

int guest_wait(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

void guest_end(pid_t pid)
{
	kill(pid, SIGKILL);
	guest_wait(pid);
}

static void stay(void)
{
	board->ready = 1;
	for (;;)
		pause();
}

static void touch(char *bytes, size_t size, size_t step)
{
	for (size_t i = 0; i < size; i += step) {
		bytes[i] = 1;
		board->counter = i / MIB;
	}
}

void act_anonymous(size_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(memory != MAP_FAILED, "mmap");
	touch(memory, bytes, 4096);
	stay();
}

void act_shared(size_t bytes)
{
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must(memory != MAP_FAILED, "mmap");
	touch(memory, bytes, 4096);
	stay();
}

static void fill(int fd, size_t bytes)
{
	static char block[MIB];

	memset(block, 1, sizeof block);
	for (size_t i = 0; i < bytes; i += sizeof block) {
		must(write(fd, block, sizeof block) == (ssize_t)sizeof block, "write");
		board->counter = i / MIB;
	}
}

void act_memfd(size_t bytes)
{
	int fd = memfd_create("hog", MFD_CLOEXEC);

	must(fd >= 0, "memfd_create");
	fill(fd, bytes);
	stay();
}

void act_tmpfs(size_t bytes)
{
	int fd = open("/mnt/hog", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	must(fd >= 0, "/mnt/hog");
	fill(fd, bytes);
	close(fd);
	stay();
}

/* A read of untouched private memory maps the zero page: it costs nothing but its page table. */
void act_page_tables(size_t bytes)
{
	size_t size = bytes / 4096 * (2 * MIB);
	char *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	must(memory != MAP_FAILED, "mmap");
	madvise(memory, size, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < size; i += 2 * MIB)
		board->counter += (uint64_t)memory[i];
	stay();
}

void act_fork(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0)
			for (;;)
				pause();
		if (pid > 0)
			board->started++;
		else if (errno == EAGAIN)
			board->refused++;
	}
	stay();
}

void act_fork_bomb(size_t seconds)
{
	uint64_t end_ns = clock_monotonic_ns() + seconds * 1000000000U;

	while (clock_monotonic_ns() < end_ns) {
		pid_t pid = fork();

		if (pid == 0)
			setsid();
		else if (pid > 0)
			__atomic_add_fetch(&board->started, 1, __ATOMIC_RELAXED);
		else
			__atomic_add_fetch(&board->refused, 1, __ATOMIC_RELAXED);
	}
	stay();
}

static uint64_t own_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void burn(size_t milliseconds)
{
	while (own_cpu_ns() < milliseconds * 1000000U)
		board->counter++;
}

/* Burns a tenth each in ten daemons, one after the other, which are stopped and continued meanwhile. */
void act_burn(size_t milliseconds)
{
	for (int i = 0; i < 10; i++) {
		int ends[2];
		char byte;
		pid_t pid;

		must(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
		pid = fork();
		if (pid == 0) {
			setsid();
			pid = fork();
			if (pid == 0) {
				burn(milliseconds / 10);
				_exit(0);
			}
			pause_ms(5);
			kill(pid, SIGSTOP);
			pause_ms(5);
			kill(pid, SIGCONT);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		close(ends[1]);
		while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
			;
		close(ends[0]);
	}
	board->ready = 1;
}

/* The kernel reaps these itself and adds their time to nobody's. */
void act_burn_ignored(size_t milliseconds)
{
	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 10; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			burn(milliseconds / 10);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	board->ready = 1;
}

void act_spin(size_t milliseconds)
{
	uint64_t end_ns = clock_monotonic_ns() + milliseconds * 1000000U;

	while (clock_monotonic_ns() < end_ns)
		board->counter++;
}

void act_count(size_t unused)
{
	(void)unused;
	for (;;) {
		board->counter++;
		pause_ms(1);
	}
}

void act_daemons(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			setsid();
			if (fork() == 0) {
				signal(SIGTERM, SIG_IGN);
				__atomic_add_fetch(&board->started, 1, __ATOMIC_RELAXED);
				for (;;)
					pause();
			}
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}
