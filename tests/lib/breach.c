/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Assume breach: an attacker's code inside our own programs, once they have confined themselves. A library that is
 * preloaded into the very programs that are shipped, so that there is no hook in these: it takes the place of the first
 * and the last library call of confine_self(), prctl(2) for no_new_privs and seccomp_release(3). When a program begins
 * to confine itself, one child for each attempt is made; each of them goes on confining itself with all that the
 * program had open, makes its attempt where the program would return to reading hostile bytes, and ends. The program
 * itself goes on as if nothing had been. Lines "PROGRAM ATTEMPT done|refused|killed" go to the file BREACH_OUT. Built
 * and used by tests/escape/test_breach.py.
 */

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FDS_MAX = 200, OUT_FD = 250, NOTHING = -1 };

/* What was looked up before anything was given up. */
static const char *file, *vault, *log_file, *session, *control_socket, *made, *out, *address_text;
static int port, chosen = NOTHING;
static pid_t victim;
static bool is_directory[FDS_MAX], is_log[FDS_MAX], is_control;
static pid_t started, begun;
static int depth;
static char name[64];

static int failed(long r)
{
	return r < 0;
}

static int open_with(const char *path, int flags)
{
	int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0600) : -1;

	return failed(fd);
}

static int read_with(const char *path)
{
	int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC) : -1;
	char byte;

	return fd < 0 || read(fd, &byte, 1) != 1;
}

static int read_file(void)
{
	return read_with(file);
}

static int write_file(void)
{
	return open_with(file, O_WRONLY);
}

static int make_file(void)
{
	return open_with(made, O_WRONLY | O_CREAT);
}

static int remove_file(void)
{
	return failed(syscall(SYS_unlinkat, AT_FDCWD, made, 0));
}

static int change_mode(void)
{
	return failed(syscall(SYS_fchmodat, AT_FDCWD, file, 0644));
}

static int read_vault(void)
{
	return read_with(vault);
}

static int write_vault(void)
{
	return open_with(vault, O_WRONLY);
}

static int write_log(void)
{
	return open_with(log_file, O_WRONLY | O_APPEND);
}

static int write_inherited_log(void)
{
	for (int fd = 3; fd < FDS_MAX; fd++)
		if (is_log[fd] && write(fd, "", 0) == 0)
			return 0;
	return 1;
}

static int read_session(void)
{
	return read_with(session);
}

/* Out of each directory that the program has open, up to the root and down again. */
static int climb_out(void)
{
	char path[512];

	snprintf(path, sizeof path, "../../../../../../../../../../../../..%s", file ? file : "");
	for (int fd = 3; fd < FDS_MAX; fd++)
		if (is_directory[fd] && syscall(SYS_openat, fd, path, O_RDONLY | O_CLOEXEC) >= 0)
			return 0;
	return 1;
}

static int connect_to(int family, const void *address, socklen_t size)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 || connect(fd, address, size) < 0;
}

static int connect_session(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, control_socket, strlen(control_socket) + 1);
	return fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0;
}

static int connect_internet(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
	return connect_to(AF_INET, &address, sizeof address);
}

static int connect_abstract(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "atolltest-breach-%d", victim);

	return connect_to(AF_UNIX, &address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length));
}

static int listen_for_others(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 1) < 0;
}

static int execute(void)
{
	static char *const argv[] = { (char *)"true", NULL }, *const env[] = { NULL };

	execve("/usr/bin/true", argv, env);
	return 1;
}

static int start_process(void)
{
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		syscall(SYS_exit_group, 0);
	return failed(pid);
}

static int signal_other(void)
{
	return failed(syscall(SYS_kill, victim, 0));
}

static int signal_parent(void)
{
	return failed(syscall(SYS_kill, syscall(SYS_getppid), 0));
}

static int trace_other(void)
{
	return failed(ptrace(PTRACE_SEIZE, victim, 0, 0));
}

static int read_memory(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/mem", victim);
	return open_with(path, O_RDONLY);
}

static int read_memory_by_call(void)
{
	char byte;
	struct iovec mine = { &byte, 1 }, other = { (void *)(uintptr_t)strtoull(address_text, NULL, 0), 1 };

	return process_vm_readv(victim, &mine, 1, &other, 1, 0) != 1;
}

static int take_descriptor(void)
{
	int fd = (int)syscall(SYS_pidfd_open, victim, 0);

	return fd < 0 || syscall(SYS_pidfd_getfd, fd, 0, 0) < 0;
}

static int look_into_parent(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%ld/mem", syscall(SYS_getppid));
	return open_with(path, O_RDONLY);
}

static int make_namespace(void)
{
	return failed(syscall(SYS_unshare, CLONE_NEWUSER));
}

static int map_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static int use_ring(void)
{
	char room[256] = { 0 };

	return failed(syscall(SYS_io_uring_setup, 1, room));
}

static int use_keys(void)
{
	return failed(syscall(SYS_add_key, "user", "atolltest", "x", 1, -3));
}

static const struct attempt {
	const char *name;
	int (*run)(void);       /* 0: it was done */
} attempts[] = {
	{ "read-file", read_file }, { "write-file", write_file }, { "make-file", make_file },
	{ "remove-file", remove_file }, { "change-mode", change_mode }, { "read-vault", read_vault },
	{ "write-vault", write_vault }, { "write-log", write_log }, { "write-inherited-log", write_inherited_log },
	{ "read-session", read_session }, { "climb-out", climb_out }, { "connect-session", connect_session },
	{ "connect-internet", connect_internet }, { "connect-abstract", connect_abstract },
	{ "listen", listen_for_others }, { "execute", execute }, { "start-process", start_process },
	{ "signal-other", signal_other }, { "signal-parent", signal_parent }, { "trace-other", trace_other },
	{ "read-memory", read_memory }, { "read-memory-by-call", read_memory_by_call },
	{ "take-descriptor", take_descriptor }, { "look-into-parent", look_into_parent },
	{ "make-namespace", make_namespace }, { "map-code", map_code }, { "use-ring", use_ring },
	{ "use-keys", use_keys },
};

enum { ATTEMPTS = sizeof attempts / sizeof *attempts };

static void attack(void)
{
	if (chosen != NOTHING)
		syscall(SYS_exit_group, attempts[chosen].run() ? 1 : 0);
}

static void report_attempt(int attempt, int status)
{
	char line[256];
	/* Some programs make a process of their own for a part of their work, before they confine themselves. */
	const char *part = begun == started ? "" : depth == 1 ? "-part" : "-part-of-part";
	int length = snprintf(line, sizeof line, "%s%s %s %s\n", name, part, attempts[attempt].name,
			      WIFSIGNALED(status) ? "killed" : WEXITSTATUS(status) ? "refused" : "done");

	if (write(OUT_FD, line, (size_t)length) != length)
		abort();
}

static void look_at_descriptors(void)
{
	struct stat log, st;
	bool has_log = log_file && stat(log_file, &log) == 0;

	for (int fd = 3; fd < FDS_MAX; fd++) {
		char path[64], target[512];
		ssize_t length;

		if (fstat(fd, &st) < 0)
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		length = readlink(path, target, sizeof target - 1);
		target[length > 0 ? length : 0] = 0;
		is_directory[fd] = S_ISDIR(st.st_mode);
		is_log[fd] = S_ISREG(st.st_mode) && (strstr(target, "audit.jsonl") ||
						     (has_log && st.st_ino == log.st_ino));
	}
}

/* A part of the program that comes from one which is confined already has it all from before. */
static void prepare_attempts(void)
{
	int fd = open(out, O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0 || dup3(fd, OUT_FD, O_CLOEXEC) < 0)
		abort();
	close(fd);
	look_at_descriptors();
}

/* In the program. Returns in each child with its attempt chosen, and in the program when all of them have ended. */
static void begin(void)
{
	if (!begun)
		prepare_attempts();
	begun = getpid();
	depth++;
	for (int i = 0; i < ATTEMPTS; i++) {
		int status = 0;
		pid_t pid = fork();

		if (pid < 0)
			abort();
		if (pid == 0) {
			chosen = i;
			return;
		}
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			continue;
		report_attempt(i, status);
	}
}

int prctl(int option, ...)
{
	unsigned long words[4];
	va_list list;

	va_start(list, option);
	for (int i = 0; i < 4; i++)
		words[i] = va_arg(list, unsigned long);
	va_end(list);
	if (option == PR_SET_NO_NEW_PRIVS && out && chosen == NOTHING && begun != getpid() && !is_control)
		begin();
	return (int)syscall(SYS_prctl, option, words[0], words[1], words[2], words[3]);
}

/* The last call of those that confine a program. */
void seccomp_release(void *filter)
{
	void (*release)(void *) = (void (*)(void *))dlsym(RTLD_NEXT, "seccomp_release");

	attack();
	release(filter);
}

__attribute__((constructor)) static void prepare(void)
{
	const char *text;

	out = getenv("BREACH_OUT");
	file = getenv("BREACH_FILE");
	vault = getenv("BREACH_VAULT");
	log_file = getenv("BREACH_LOG");
	session = getenv("BREACH_SESSION");
	control_socket = getenv("BREACH_SOCKET");
	made = getenv("BREACH_MADE");
	text = getenv("BREACH_PORT");
	port = text ? (int)strtol(text, NULL, 10) : 0;
	text = getenv("BREACH_PID");
	victim = text ? (pid_t)strtol(text, NULL, 10) : 0;
	started = getpid();
	address_text = getenv("BREACH_ADDRESS");
	text = getenv("BREACH_NAME");
	snprintf(name, sizeof name, "%s", text ? text : "?");
	is_control = getenv("BREACH_CONTROL");
	if (out && is_control) {
		begin();
		attack();
	}
}
