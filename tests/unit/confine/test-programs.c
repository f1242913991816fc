/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What each of our programs can still do once it has confined itself, and what it cannot: each attempt succeeds without
 * that first. And where a wall cannot be put up, confining fails.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "confine/confine.h"
#include "os/landlock.h"

enum { DONE = 0, REFUSED = 1, ENDED_BY_FILTER = 2, NOT_CONFINED = 3 };

static char directory[] = "/tmp/atolltest-confine-XXXXXX";
static int place_fd, outside_fd;
static pid_t parent;

/* The place is directory/in, which a program may be given; directory/out is nobody's. */
static int in_place(const char *name, int flags)
{
	return (int)syscall(SYS_openat, place_fd, name, flags | O_CLOEXEC, 0600);
}

static int read_place(void)
{
	return in_place("file", O_RDONLY) < 0;
}

static int write_place(void)
{
	return in_place("file", O_WRONLY) < 0;
}

static int make_in_place(void)
{
	return in_place("new", O_WRONLY | O_CREAT) < 0;
}

static int remove_in_place(void)
{
	return unlinkat(place_fd, "other", 0) < 0;
}

static int read_elsewhere(void)
{
	return (int)syscall(SYS_openat, outside_fd, "file", O_RDONLY) < 0;
}

static int write_elsewhere(void)
{
	return (int)syscall(SYS_openat, outside_fd, "file", O_WRONLY) < 0;
}

static int make_elsewhere(void)
{
	return (int)syscall(SYS_openat, outside_fd, "new", O_WRONLY | O_CREAT, 0600) < 0;
}

static int execute(void)
{
	static char *const argv[] = { (char *)"true", NULL }, *const env[] = { NULL };

	execve("/usr/bin/true", argv, env);
	return 1;
}

static int start_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return pid < 0 || waitpid(pid, NULL, 0) != pid;
}

static int open_unix_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0) < 0;
}

static int open_inet_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) < 0;
}

static int listen_for_others(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 1) < 0;
}

static int signal_parent(void)
{
	return kill(parent, 0) < 0;
}

static int be_traced(void)
{
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0;
}

static int map_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static int turn_data_into_code(void)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED || mprotect(memory, 4096, PROT_READ | PROT_EXEC) < 0;
}

static int make_namespace(void)
{
	return unshare(CLONE_NEWUSER) < 0;
}

static int change_limits(void)
{
	return syscall(SYS_prlimit64, 0, 7, &(uint64_t[2]){ 16, 16 }, NULL) < 0;
}

/* Stands for all of ioctl(2) that nobody needs; TIOCSTI, which types into a shell, is one of them. */
static int control_a_file(void)
{
	return ioctl(place_fd, FIOCLEX) < 0;
}

/* One bit for each program that may. Files are Landlock's to refuse, the rest is the filter's. */
#define MAY(program) (1u << CONFINE_##program)
#define STARTERS (MAY(STAGE_BASE) | MAY(JUDGE_COMMAND))

static const struct attempt {
	const char *name;
	int (*run)(void);
	unsigned may;
	bool is_file;
} attempts[] = {
	{ "read a file of the place", read_place,
	  MAY(POLICY) | MAY(SECRET) | MAY(TEMPLATE) | MAY(TOKEN) | MAY(STAGE_READING) |
	  MAY(STAGE_WRITING) | MAY(FILES) |
		  MAY(STAGE_BASE) | MAY(JUDGE_COMMAND), true },
	{ "write to a file of the place", write_place,
	  MAY(SECRET) | MAY(TEMPLATE) | MAY(TOKEN) | MAY(STAGE_WRITING) | MAY(FILES), true },
	{ "make a file in the place", make_in_place,
	  MAY(SECRET) | MAY(TEMPLATE) | MAY(TOKEN) | MAY(STAGE_WRITING) | MAY(FILES), true },
	{ "remove a file of the place", remove_in_place,
	  MAY(SECRET) | MAY(TEMPLATE) | MAY(TOKEN) | MAY(STAGE_WRITING) | MAY(FILES), true },
	{ "read a file elsewhere", read_elsewhere, MAY(POLICY) | MAY(JUDGE_COMMAND), true },
	{ "write to a file elsewhere", write_elsewhere, 0, true },
	{ "make a file elsewhere", make_elsewhere, 0, true },
	{ "execute", execute, STARTERS, false },
	{ "start a process", start_process, STARTERS | MAY(STAGE_KEEPER), false },
	{ "open a unix socket", open_unix_socket, STARTERS, false },
	{ "open an internet socket", open_inet_socket,
	  STARTERS | MAY(FILES) | MAY(EGRESS) | MAY(NOTIFY_WEBHOOK) | MAY(JUDGE_MODEL), false },
	{ "listen for others", listen_for_others, STARTERS, false },
	{ "signal a process outside", signal_parent, 0, false },
	{ "be traced", be_traced, 0, false },
	{ "map code", map_code, STARTERS, false },
	{ "turn data into code", turn_data_into_code, STARTERS, false },
	{ "control a file", control_a_file, STARTERS, false },
	{ "make a namespace", make_namespace, 0, false },
	{ "change limits", change_limits, STARTERS | MAY(STAGE_KEEPER), false },
};

/* As the callers of each program have it. */
static int confine(enum confine_program program, struct err *err)
{
	enum {
		READ = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR,
		WRITE = READ | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_MAKE_REG | LANDLOCK_REMOVE_FILE,
	};
	static const uint64_t rights[CONFINE_PROGRAM_COUNT] = {
		[CONFINE_SECRET] = WRITE, [CONFINE_TOKEN] = WRITE, [CONFINE_STAGE_READING] = READ,
		[CONFINE_TEMPLATE] = WRITE,
		[CONFINE_STAGE_WRITING] = WRITE, [CONFINE_FILES] = WRITE,
		[CONFINE_STAGE_BASE] = READ,
	};
	struct confine_place place = { place_fd, rights[program] };

	return confine_self(program, &place, rights[program] ? 1 : 0, err);
}

static int ended_how(pid_t pid)
{
	int status = 0;

	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		return ENDED_BY_FILTER;
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void make_file(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
}

/* In a process of its own; CONFINE_PROGRAM_COUNT: as it is. */
static int try(enum confine_program program, const struct attempt *attempt)
{
	pid_t pid;

	make_file(place_fd, "file");
	make_file(place_fd, "other");
	make_file(outside_fd, "file");
	unlinkat(place_fd, "new", 0);
	unlinkat(outside_fd, "new", 0);
	pid = fork();
	if (pid == 0)
		_exit(program != CONFINE_PROGRAM_COUNT && confine(program, NULL) < 0 ? NOT_CONFINED : attempt->run());
	return ended_how(pid);
}

static void everything_can_be_done_before(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(attempts); i++)
		if (try(CONFINE_PROGRAM_COUNT, &attempts[i]) != DONE)
			fail_msg("%s: not even without confinement", attempts[i].name);
}

/* Whether this attempt means something here: some are stopped by walls that this kernel or this build has not. */
static bool is_walled(enum confine_program program, const struct attempt *attempt)
{
	bool has_filter = confine_has_filter();

	if (attempt->run == signal_parent)
		return (has_filter && !(STARTERS & 1u << program)) || landlock_abi() >= LANDLOCK_ABI_SCOPES;
	return attempt->is_file ? landlock_abi() > 0 || has_filter : has_filter || attempt->may & 1u << program;
}

static void only_what_a_program_needs_can_be_done_after(void **state)
{
	for (unsigned program = 0; program < CONFINE_PROGRAM_COUNT; program++)
		for (size_t i = 0; i < ARRAY_SIZE(attempts); i++) {
			bool may = attempts[i].may & 1u << program;
			int got;

			if (!is_walled(program, &attempts[i]))
				continue;
			got = try(program, &attempts[i]);
			if (got == NOT_CONFINED || (got == DONE) != may)
				fail_msg("program %u: %s: ended with %d", program, attempts[i].name, got);
		}
}

struct broken {
	const char *what;
	int number;
	int first_argument;      /* -1: any */
};

/* From now on the call fails with EIO for this process. */
static int break_call(const struct broken *broken)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)broken->number, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)broken->first_argument, 0,
			 broken->first_argument < 0 ? 0 : 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? -errno : 0;
}

static int confine_without(enum confine_program program, const struct broken *broken, size_t count)
{
	pid_t pid = fork();

	if (pid == 0) {
		struct err err = { 0 };
		int r = 0;

		/* The last one that is loaded cannot be the one that forbids loading. */
		for (size_t i = count; r == 0 && i-- > 0;)
			r = break_call(&broken[i]);
		if (r < 0)
			_exit(ENDED_BY_FILTER);
		r = confine(program, &err);
		_exit(r == 0 ? DONE : err.code == ERR_WALL && err.errnum && *err.hint ? NOT_CONFINED : REFUSED);
	}
	return ended_how(pid);
}

static void a_wall_that_cannot_be_put_up_is_an_error(void **state)
{
	static const struct broken privileges = { "no_new_privs", SYS_prctl, PR_SET_NO_NEW_PRIVS };
	static const struct broken limits = { "rlimits", SYS_prlimit64, -1 };
	static const struct broken files = { "landlock", SYS_landlock_restrict_self, -1 };
	/* libseccomp tries the older call when the newer one fails. */
	static const struct broken filters[] = {
		{ "seccomp", SYS_seccomp, -1 }, { "seccomp", SYS_prctl, PR_SET_SECCOMP },
	};
	static const struct broken nothing = { "nothing", SYS_acct, -1 };

	for (unsigned program = 0; program < CONFINE_PROGRAM_COUNT; program++) {
		assert_int_equal(confine_without(program, &nothing, 1), DONE);
		assert_int_equal(confine_without(program, &privileges, 1), NOT_CONFINED);
		assert_int_equal(confine_without(program, &limits, 1), NOT_CONFINED);
		if (landlock_abi() > 0)
			assert_int_equal(confine_without(program, &files, 1), NOT_CONFINED);
		if (confine_has_filter())
			assert_int_equal(confine_without(program, filters, ARRAY_SIZE(filters)), NOT_CONFINED);
	}
}

static void it_hides_what_is_secret(void **state)
{
	static const bool is_hidden[CONFINE_PROGRAM_COUNT] = {
		[CONFINE_SECRET] = true, [CONFINE_TOKEN] = true, [CONFINE_EGRESS] = true,
		[CONFINE_DESK] = true, [CONFINE_FILES] = true,
		[CONFINE_NOTIFY_DESKTOP] = true, [CONFINE_NOTIFY_WEBHOOK] = true,
		[CONFINE_JUDGE_MODEL] = true,
	};

	for (unsigned program = 0; program < CONFINE_PROGRAM_COUNT; program++) {
		int ready[2], hold[2];
		char path[64], byte;
		pid_t pid;

		assert_true(pipe(ready) == 0 && pipe(hold) == 0);
		pid = fork();
		if (pid == 0) {
			close(hold[1]);
			(void)!write(ready[1], confine(program, NULL) == 0 ? "y" : "n", 1);
			(void)!read(hold[0], &byte, 1);
			_exit(0);
		}
		close(hold[0]);
		assert_true(read(ready[0], &byte, 1) == 1 && byte == 'y');
		snprintf(path, sizeof path, "/proc/%d", (int)pid);
		/* What is not dumpable belongs to root in /proc. */
		if (geteuid() != 0) {
			struct stat st;

			assert_int_equal(stat(path, &st), 0);
			assert_int_equal(st.st_uid == 0, is_hidden[program]);
		}
		close(hold[1]);
		assert_int_equal(ended_how(pid), DONE);
		close(ready[0]);
		close(ready[1]);
	}
}

static int setup(void **state)
{
	int root_fd;

	parent = getpid();
	if (!mkdtemp(directory))
		return -1;
	root_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mkdirat(root_fd, "in", 0700) < 0 || mkdirat(root_fd, "out", 0700) < 0)
		return -1;
	place_fd = openat(root_fd, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	outside_fd = openat(root_fd, "out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(root_fd);
	return place_fd < 0 || outside_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "file", "other", "new" };
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		unlinkat(place_fd, names[i], 0);
		unlinkat(outside_fd, names[i], 0);
	}
	snprintf(path, sizeof path, "%s/in", directory);
	rmdir(path);
	snprintf(path, sizeof path, "%s/out", directory);
	rmdir(path);
	return rmdir(directory);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_can_be_done_before),
		cmocka_unit_test(only_what_a_program_needs_can_be_done_after),
		cmocka_unit_test(a_wall_that_cannot_be_put_up_is_an_error),
		cmocka_unit_test(it_hides_what_is_secret),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
