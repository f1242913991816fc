/* SPDX-License-Identifier: Apache-2.0 */

/* File calls that the supervisor makes for a real caller: results, errors, and what cannot be fooled. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "guest.h"

static const int calls[] = {
	SYS_open, SYS_openat, SYS_creat, SYS_truncate, SYS_rename, SYS_renameat, SYS_renameat2, SYS_link, SYS_linkat,
	SYS_symlink, SYS_symlinkat, SYS_unlink, SYS_unlinkat, SYS_rmdir, SYS_mkdir, SYS_mkdirat, SYS_mknod, SYS_mknodat,
	SYS_chmod, SYS_fchmod, SYS_fchmodat, SYS_chown, SYS_fchownat, SYS_utimensat, SYS_setxattr, SYS_fsetxattr,
	SYS_removexattr,
};

enum { NOTES_MAX = 4096 };

static char directory[64];

/* What the handler saw, and the path that it refuses. */
static struct {
	unsigned count;
	char path[4096], target[4096];
	enum watch_file_access access;
	const char *forbidden;   /* refused by its real path; NULL: nothing is */
	unsigned forbidden_seen;
	unsigned released;       /* of the forbidden path, how many the supervisor opened all the same */
	unsigned directories;    /* how many were said to move a directory */
} notes;

static int judge(void *context, const struct watch_file *event)
{
	notes.count++;
	notes.access = event->access;
	notes.directories += event->is_directory;
	snprintf(notes.path, sizeof notes.path, "%s", event->path);
	snprintf(notes.target, sizeof notes.target, "%s", event->target ? event->target : "");
	if (notes.forbidden && (strcmp(event->path, notes.forbidden) == 0 ||
				(event->target && strcmp(event->target, notes.forbidden) == 0))) {
		notes.forbidden_seen++;
		return EACCES;
	}
	return 0;
}

static int record(void *context, const struct watch_file *event)
{
	notes.released += notes.forbidden && !event->errnum && strcmp(event->path, notes.forbidden) == 0;
	return 0;
}

static void gone(void *context, uint64_t id)
{
}

static int begin(void **state)
{
	memset(&notes, 0, sizeof notes);
	guest_options = (struct watch_options){
		.mediates_files = true, .init_pid = getpid(), .root_fd = fd_open_at(AT_FDCWD, "/", O_PATH, 0),
		.uid = geteuid(), .gid = getegid(),
		.uid_inside = geteuid(), .gid_inside = getegid(),
	};
	guest_on_file = judge;
	guest_on_file_done = record;
	guest_on_file_gone = gone;
	assert_int_equal(str_copy(directory, sizeof directory, "/tmp/atoll-unit-files-XXXXXX"), 0);
	return mkdtemp(directory) ? chdir(directory) : -1;
}

static int finish(void **state)
{
	char command[96];
	pid_t pid;

	close_fd(&guest_options.root_fd);
	assert_int_equal(chdir("/"), 0);
	snprintf(command, sizeof command, "%s", directory);
	pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-rf", command, NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	return 0;
}

static int run_guest(int (*run)(void *), void *argument)
{
	struct seen seen = { 0 };

	return guest_run(calls, ARRAY_SIZE(calls), run, argument, &seen);
}

/* ---- every call does what it does outside ---- */

#define EXPECT(condition)                        \
	do {                                     \
		if (!(condition))                \
			return __LINE__ & 0xff;  \
	} while (0)
#define FAILS(call, number) EXPECT((call) < 0 && errno == (number))

static bool has_mode(const char *path, mode_t mode)
{
	struct stat status;

	return lstat(path, &status) == 0 && (status.st_mode & 07777) == mode;
}

/* The same twice: here, which is the positive control, and mediated. */
static int use_everything(void *argument)
{
	struct timespec times[2] = { { 10, 20 }, { 30, 40 } };
	struct stat status;
	char text[16];
	int fd, other;

	umask(027);
	EXPECT((fd = open("a", O_CREAT | O_RDWR | O_CLOEXEC, 0666)) >= 0 && has_mode("a", 0640));
	EXPECT(fcntl(fd, F_GETFD) == FD_CLOEXEC && write(fd, "hello", 5) == 5);
	EXPECT((fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK | O_APPEND)) == O_RDWR);
	EXPECT(close(fd) == 0 && (fd = open("a", O_WRONLY | O_APPEND)) >= 0 && write(fd, "!", 1) == 1);
	EXPECT(fcntl(fd, F_GETFD) == 0 && fcntl(fd, F_GETFL) & O_APPEND && close(fd) == 0);
	EXPECT((fd = openat(AT_FDCWD, "./a", O_RDONLY)) >= 0 && read(fd, text, 16) == 6 && close(fd) == 0);
	FAILS(open("a", O_CREAT | O_EXCL | O_RDWR, 0600), EEXIST);
	FAILS(open("a", O_RDONLY | O_DIRECTORY), ENOTDIR);
	FAILS(open("a/", O_RDONLY), ENOTDIR);
	FAILS(open("missing", O_RDONLY), ENOENT);
	FAILS(open("missing/x", O_CREAT | O_RDWR, 0600), ENOENT);
	FAILS(open("", O_RDONLY), ENOENT);
	FAILS(open((void *)8, O_RDONLY), EFAULT);
	FAILS(openat(77, "a", O_RDONLY), EBADF);
	FAILS(open(".", O_WRONLY), EISDIR);
	FAILS(open("new/", O_CREAT | O_RDWR, 0600), EISDIR);
	EXPECT(mkdir("d", 0777) == 0 && has_mode("d", 0750) && mkdir("d/e", 0700) == 0);
	FAILS(mkdir("d", 0700), EEXIST);
	EXPECT((other = open("d", O_RDONLY | O_DIRECTORY)) >= 0 && mkdirat(other, "f/", 0700) == 0);
	EXPECT(symlink("../a", "d/link") == 0 && symlinkat("nowhere", other, "dangling") == 0);
	FAILS(openat(other, "link", O_RDONLY | O_NOFOLLOW), ELOOP);
	EXPECT((fd = openat(other, "link", O_RDONLY)) >= 0 && read(fd, text, 16) == 6 && close(fd) == 0);
	EXPECT((fd = openat(other, "dangling", O_CREAT | O_WRONLY, 0600)) >= 0 && close(fd) == 0);
	EXPECT(has_mode("d/nowhere", 0600) && symlink("loop", "loop") == 0);
	FAILS(open("loop", O_RDONLY), ELOOP);
	EXPECT(link("a", "b") == 0 && linkat(other, "link", AT_FDCWD, "c", AT_SYMLINK_FOLLOW) == 0);
	EXPECT(stat("c", &status) == 0 && status.st_nlink == 3 && link("d/link", "l") == 0 && lstat("l", &status) == 0);
	EXPECT(S_ISLNK(status.st_mode) && rename("b", "d/b") == 0 && unlink("c") == 0 && unlink("l") == 0);
	FAILS(rename("missing", "x"), ENOENT);
	FAILS((int)syscall(SYS_renameat2, AT_FDCWD, "a", other, "b", RENAME_NOREPLACE), EEXIST);
	EXPECT(syscall(SYS_renameat2, AT_FDCWD, "a", AT_FDCWD, "d/e", RENAME_EXCHANGE) == 0);
	EXPECT(syscall(SYS_renameat2, AT_FDCWD, "a", AT_FDCWD, "d/e", RENAME_EXCHANGE) == 0);
	FAILS(unlink("d"), EISDIR);
	FAILS(rmdir("d"), ENOTEMPTY);
	FAILS(rmdir("."), EINVAL);
	EXPECT(rmdir("d/e") == 0 && unlinkat(other, "f", AT_REMOVEDIR) == 0);
	EXPECT(chmod("a", 0604) == 0 && has_mode("a", 0604) && truncate("a", 3) == 0 && stat("a", &status) == 0);
	EXPECT(status.st_size == 3);
	FAILS(truncate("d", 3), EISDIR);
	FAILS(truncate("a", -1), EINVAL);
	EXPECT((fd = open("a", O_RDONLY)) >= 0 && fchmod(fd, 0600) == 0 && has_mode("a", 0600));
	EXPECT(futimens(fd, times) == 0 && fstat(fd, &status) == 0 && status.st_mtim.tv_sec == 30);
	EXPECT(utimensat(AT_FDCWD, "a", NULL, 0) == 0 && fstat(fd, &status) == 0 && status.st_mtim.tv_sec > 30);
	EXPECT(utimensat(other, "link", times, AT_SYMLINK_NOFOLLOW) == 0 && lstat("d/link", &status) == 0);
	EXPECT(status.st_mtim.tv_sec == 30 && chown("a", (uid_t)-1, getegid()) == 0 && close(fd) == 0);
	EXPECT(mkfifo("fifo", 0666) == 0 && has_mode("fifo", 0640) && (fd = open("fifo", O_RDWR)) >= 0);
	EXPECT(write(fd, "x", 1) == 1 && read(fd, text, 1) == 1 && close(fd) == 0);
	FAILS(open("fifo", O_WRONLY | O_NONBLOCK), ENXIO);
	EXPECT((fd = open(".", O_TMPFILE | O_RDWR, 0600)) >= 0 || errno == EOPNOTSUPP);
	EXPECT(fd < 0 || (fchmod(fd, 0400) == 0 && close(fd) == 0));
	EXPECT((fd = open("/proc/self/status", O_RDONLY)) >= 0 && close(fd) == 0);
	EXPECT((fd = open("/dev/null", O_RDWR)) >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0 && close(other) == 0);
	return 0;
}

static void test_every_call_does_what_it_does_unmediated(void **state)
{
	int status;
	pid_t pid = fork();

	/* The positive control. */
	if (pid == 0)
		_exit(mkdir("control", 0700) || chdir("control") ? 1 : use_everything(NULL));
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(run_guest(use_everything, NULL), 0);
	assert_true(notes.count > 45);
}

/* ---- paths ---- */

static int use_long_paths(void *argument)
{
	static char path[4200];
	int fd;

	memset(path, '/', sizeof path);
	memcpy(path + 4094, "a", 2);
	memcpy(path, directory, strlen(directory));
	EXPECT((fd = open(path, O_CREAT | O_RDWR, 0600)) >= 0 && close(fd) == 0);
	memset(path + strlen(directory), '/', sizeof path - strlen(directory));
	memcpy(path + 4095, "a", 2);
	FAILS(open(path, O_RDONLY), ENAMETOOLONG);
	memset(path, 'x', 256);
	path[256] = 0;
	FAILS(open(path, O_CREAT | O_RDWR, 0600), ENAMETOOLONG);
	FAILS(mkdir(path, 0700), ENAMETOOLONG);
	/* Its directory is gone: nothing is found or made there, and ".." still leads up. */
	EXPECT(mkdir("gone", 0700) == 0 && chdir("gone") == 0 && rmdir("../gone") == 0);
	FAILS(open("x", O_CREAT | O_RDWR, 0600), ENOENT);
	FAILS(open("x", O_RDONLY), ENOENT);
	EXPECT((fd = open("../a", O_RDONLY)) >= 0);
	return 0;
}

static void test_paths_have_the_limits_of_the_kernel(void **state)
{
	assert_int_equal(run_guest(use_long_paths, NULL), 0);
}

static const char *const aliases[] = {
	"secret", "./secret", "d/../secret", "link", "d/up/secret", "/proc/self/cwd/secret",
	"/proc/thread-self/cwd/secret",
	"/proc/self/root%s/secret", "%s//secret", "d/./../secret", "/proc/self/fd/%d", "/dev/fd/%d",
};

static int open_aliases(void *argument)
{
	char path[256];
	int held = *(int *)argument;

	for (size_t i = 0; i < ARRAY_SIZE(aliases); i++) {
		if (strstr(aliases[i], "%d"))
			snprintf(path, sizeof path, aliases[i], held);
		else
			snprintf(path, sizeof path, aliases[i], directory);
		if (open(path, O_RDONLY) >= 0 || errno != EACCES)
			return (int)i + 1;
	}
	EXPECT(truncate("link", 0) < 0 && rename("secret", "x") < 0 && rename("d", "secret") < 0);
	EXPECT(link("secret", "y") < 0 && unlink("secret") < 0 && chmod("secret", 0) < 0);
	return creat("link", 0600) < 0 ? 0 : 99;
}

static void test_an_object_is_judged_by_its_real_path_whatever_it_is_called(void **state)
{
	char secret[96];
	int fd = creat("secret", 0600), held = open("secret", O_RDONLY);

	assert_true(fd >= 0 && held >= 0);
	close(fd);
	assert_int_equal(mkdir("d", 0700) + symlink("secret", "link") + symlink("..", "d/up"), 0);
	snprintf(secret, sizeof secret, "%s/secret", directory);
	notes.forbidden = secret;
	assert_int_equal(run_guest(open_aliases, &held), 0);
	assert_true(notes.forbidden_seen >= ARRAY_SIZE(aliases));
	assert_int_equal(notes.released, 0);
	close(held);
}

/* All of them are one name in one directory. */
static int make_aliases(void *argument)
{
	static const char *const names[] = {
		"new", "new/", "./new", "d/../new", "d/up/new", "d/up/new//", "%s/new", "%s/new/", "%s//new",
		"%s/d/../new", "%s/d/up/new", "/proc/self/cwd/new", "%s/d/same/new",
	};
	const bool *is_forbidden = argument;
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof path, names[i], directory);
		if (*is_forbidden && (mkdir(path, 0700) == 0 || errno != EACCES))
			return (int)i + 1;
		if (*is_forbidden && (unlink(path) == 0 || errno != EACCES))
			return (int)i + 101;
		if (!*is_forbidden && (mkdir(path, 0700) < 0 || rmdir(path) < 0))
			return (int)i + 201;
	}
	FAILS(mkdir("missing/new", 0700), ENOENT);
	FAILS(mkdir("link/new", 0700), ENOTDIR);
	FAILS(unlink("d/loop/new"), ELOOP);
	return rmdir("/") < 0 ? 0 : 99;
}

static void test_a_name_is_judged_by_the_real_path_of_its_directory(void **state)
{
	bool is_forbidden = false;
	char absolute[96];

	close(creat("plain", 0600));
	assert_int_equal(mkdir("d", 0700) + symlink("plain", "link") + symlink("..", "d/up"), 0);
	assert_int_equal(symlink("loop", "d/loop") + symlink(directory, "d/same"), 0);
	assert_int_equal(run_guest(make_aliases, &is_forbidden), 0);
	assert_int_equal(notes.forbidden_seen, 0);
	is_forbidden = true;
	snprintf(absolute, sizeof absolute, "%s/new", directory);
	notes.forbidden = absolute;
	assert_int_equal(run_guest(make_aliases, &is_forbidden), 0);
	assert_int_equal(notes.forbidden_seen, 2 * 13);
}

static int rename_things(void *argument)
{
	EXPECT(rename("plain", "other") == 0 && rename("d", "e") == 0);
	EXPECT(syscall(SYS_renameat2, AT_FDCWD, "other", AT_FDCWD, "e", RENAME_EXCHANGE) == 0);
	FAILS(rename("e", "other"), EISDIR);
	return 0;
}

static void test_a_directory_that_is_moved_is_told_as_one(void **state)
{
	close(creat("plain", 0600));
	assert_int_equal(mkdir("d", 0700), 0);
	assert_int_equal(run_guest(rename_things, NULL), 0);
	assert_int_equal(notes.count, 4);
	assert_int_equal(notes.directories, 2);
}

/* ---- memory and names that change ---- */

enum { FLIPS = 1500, FLIPS_UNMEDIATED = 5000000 };

struct flip {
	char *shared;            /* two words that a thread writes by turns */
	volatile bool is_over;
};

static void *flip_memory(void *argument)
{
	struct flip *flip = argument;

	while (!flip->is_over) {
		memcpy(flip->shared, "public", 6);
		memcpy(flip->shared, "secret", 6);
	}
	return NULL;
}

static int open_flipping(void *argument)
{
	char memory[16] = "public";
	struct flip flip = { memory, false };
	int flips = *(int *)argument;
	unsigned opened = 0, refused = 0;
	pthread_t thread;
	char byte;

	if (pthread_create(&thread, NULL, flip_memory, &flip))
		return 90;
	/* On a busy machine the thread comes late, or stays away with the secret written. */
	for (int i = 0; i < flips || ((refused == 0 || opened == 0) && i < FLIPS_UNMEDIATED); i++) {
		int fd = open(memory, O_RDONLY);

		refused += fd < 0 && errno == EACCES; /* ENOENT: a name that is half one, half the other */
		if (fd < 0)
			continue;
		opened++;
		/* What was opened is what was judged: never the secret. */
		if (read(fd, &byte, 1) == 1 && byte == 's')
			return 91;
		close(fd);
	}
	flip.is_over = true;
	pthread_join(thread, NULL);
	return opened ? 0 : 92;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);

	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void test_a_path_that_changes_in_memory_opens_what_was_judged(void **state)
{
	int few = FLIPS, many = FLIPS_UNMEDIATED, status;
	char secret[96];
	pid_t pid;

	write_file("public", "p");
	write_file("secret", "s");
	/* The positive control: unmediated the thread gets through. */
	pid = fork();
	if (pid == 0)
		_exit(open_flipping(&many) == 91 ? 0 : 1);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	snprintf(secret, sizeof secret, "%s/secret", directory);
	notes.forbidden = secret;
	assert_int_equal(run_guest(open_flipping, &few), 0);
	assert_true(notes.forbidden_seen > 0);
}

/* From outside, so that no call of it is mediated: a link that leads to one file and then to the other. */
static pid_t flip_link(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;) {
			(void)!symlink("public", "t1");
			(void)!rename("t1", "way");
			(void)!symlink("secret", "t2");
			(void)!rename("t2", "way");
		}
	return pid;
}

static int open_way(void *argument)
{
	unsigned opened = 0, refused = 0;
	char byte;

	for (int i = 0; i < FLIPS || ((refused == 0 || opened == 0) && i < FLIPS_UNMEDIATED); i++) {
		int fd = open("way", O_RDONLY);

		refused += fd < 0 && errno == EACCES;
		if (fd < 0)
			continue;
		opened++;
		if (read(fd, &byte, 1) == 1 && byte == 's')
			return 91;
		close(fd);
	}
	return opened ? 0 : 92;
}

static void test_a_link_that_changes_opens_what_was_judged(void **state)
{
	char secret[96];
	pid_t flipper;
	int result;

	write_file("public", "p");
	write_file("secret", "s");
	assert_int_equal(symlink("public", "way"), 0);
	flipper = flip_link();
	snprintf(secret, sizeof secret, "%s/secret", directory);
	notes.forbidden = secret;
	result = run_guest(open_way, NULL);
	kill(flipper, SIGKILL);
	waitpid(flipper, NULL, 0);
	assert_int_equal(result, 0);
	assert_true(notes.forbidden_seen > 0);
	assert_int_equal(notes.released, 0);
}

/* ---- what would block ---- */

static int use_fifo(void *argument)
{
	char byte = 0;
	pid_t pid = fork();
	int fd;

	if (pid == 0) {
		fd = open("fifo", O_WRONLY);
		_exit(fd >= 0 && write(fd, "x", 1) == 1 ? 0 : 1);
	}
	/* Meanwhile others are served. */
	EXPECT((fd = open("other", O_CREAT | O_RDWR, 0600)) >= 0 && close(fd) == 0);
	EXPECT((fd = open("fifo", O_RDONLY)) >= 0 && read(fd, &byte, 1) == 1 && byte == 'x');
	EXPECT(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
	EXPECT(waitpid(pid, &(int){ 0 }, 0) == pid);
	return 0;
}

static void test_a_fifo_waits_for_its_other_end_and_nobody_else_does(void **state)
{
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(run_guest(use_fifo, NULL), 0);
}

static void on_alarm(int number)
{
	(void)number;
}

static int be_interrupted(void *argument)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval soon = { .it_value.tv_usec = 30000 };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	FAILS(open("fifo", O_RDONLY), EINTR);
	return 0;
}

static void test_who_waits_can_be_interrupted(void **state)
{
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(run_guest(be_interrupted, NULL), 0);
}

static int die_waiting(void *argument)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(open("fifo", O_RDONLY) < 0);
	usleep(30000);
	kill(pid, SIGKILL);
	return waitpid(pid, &(int){ 0 }, 0) == pid ? 0 : 1;
}

static void test_who_dies_waiting_leaves_nothing(void **state)
{
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(run_guest(die_waiting, NULL), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static int hold_lease(void *argument)
{
	int fd = open("leased", O_RDONLY), other;
	pid_t pid;
	int status;

	signal(SIGIO, SIG_IGN);
	EXPECT(fd >= 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == 0);
	pid = fork();
	if (pid == 0)
		_exit(open("leased", O_WRONLY) < 0);
	EXPECT((other = open("free", O_CREAT | O_RDWR, 0600)) >= 0);
	EXPECT(fcntl(fd, F_SETLEASE, F_UNLCK) == 0);
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	return 0;
}

static void test_a_lease_holds_up_nobody_else(void **state)
{
	write_file("leased", "x");
	assert_int_equal(run_guest(hold_lease, NULL), 0);
}

/* ---- limits and what is refused ---- */

static int use_limits(void *argument)
{
	struct rlimit files = { 3, 3 }, size = { 100, 100 };
	int fd = open("a", O_CREAT | O_RDWR, 0600);

	signal(SIGXFSZ, SIG_IGN);
	EXPECT(fd >= 0 && setrlimit(RLIMIT_FSIZE, &size) == 0);
	FAILS(truncate("a", 101), EFBIG);
	EXPECT(truncate("a", 100) == 0 && setrlimit(RLIMIT_NOFILE, &files) == 0);
	FAILS(open("a", O_RDONLY), EMFILE);
	return 0;
}

static void test_the_callers_own_limits_count(void **state)
{
	assert_int_equal(run_guest(use_limits, NULL), 0);
}

static int make_traps(void *argument)
{
	struct stat status;

	FAILS(chmod("a", 04755), EPERM);
	/* A directory has no program that they could give anybody something by. */
	EXPECT(mkdir("d", 0755) == 0 && chmod("d", 02755) == 0 && stat("d", &status) == 0);
	EXPECT((status.st_mode & 07777) == 02755);
	FAILS(open("b", O_CREAT | O_RDWR, 02755), EPERM);
	FAILS(creat("b", 04755), EPERM);
	FAILS(mknod("b", S_IFCHR | 0600, 0x103), EPERM);
	FAILS(mknod("b", S_IFREG | 04755, 0), EPERM);
	FAILS(setxattr("a", "security.capability", "x", 1, 0), EPERM);
	FAILS(setxattr("a", "trusted.x", "x", 1, 0), EPERM);
	return 0;
}

static void test_what_every_sandbox_is_refused_stays_refused(void **state)
{
	struct seen seen = { 0 };

	write_file("a", "x");
	assert_int_equal(guest_run(calls, ARRAY_SIZE(calls), make_traps, NULL, &seen), 0);
	assert_int_equal(seen.refusals, 5);
}

/* A descriptor of something outside gives no way to more of it, nor to more than it can. */
static int use_outside(void *argument)
{
	int *fds = argument;
	char path[64];

	FAILS(openat(fds[0], "secret", O_RDONLY), EACCES);
	FAILS(unlinkat(fds[0], "secret", 0), EACCES);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fds[1]);
	FAILS(open(path, O_RDWR), EACCES);
	snprintf(path, sizeof path, "/proc/self/fd/%d/secret", fds[0]);
	FAILS(open(path, O_RDONLY), EACCES);
	EXPECT(fchdir(fds[0]) == 0);
	FAILS(open("secret", O_RDONLY), EACCES);
	return 0;
}

static void test_a_descriptor_from_outside_leads_nowhere(void **state)
{
	int fds[2], ready[2], release[2], status;
	char root[32];
	pid_t init;
	char byte;

	if (geteuid() != 0)
		skip();
	/* An init with mounts of its own, in which the directory is another one. */
	assert_int_equal(pipe(ready) + pipe(release), 0);
	write_file("secret", "s");
	fds[0] = open(".", O_RDONLY | O_DIRECTORY);
	fds[1] = open("secret", O_RDONLY);
	init = fork();
	if (init == 0) {
		if (syscall(SYS_unshare, 0x00020000 /* CLONE_NEWNS */) < 0)
			_exit(1);
		(void)!write(ready[1], "x", 1);
		close(release[1]);
		(void)!read(release[0], &byte, 1);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	guest_options.init_pid = init;
	snprintf(root, sizeof root, "/proc/%d/root", init);
	close_fd(&guest_options.root_fd);
	guest_options.root_fd = open(root, O_PATH | O_DIRECTORY);
	assert_int_equal(run_guest(use_outside, fds), 0);
	close(release[1]);
	waitpid(init, &status, 0);
	assert_int_equal(status, 0);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, finish)
	const struct CMUnitTest tests[] = {
		TEST(test_every_call_does_what_it_does_unmediated),
		TEST(test_paths_have_the_limits_of_the_kernel),
		TEST(test_an_object_is_judged_by_its_real_path_whatever_it_is_called),
		TEST(test_a_name_is_judged_by_the_real_path_of_its_directory),
		TEST(test_a_directory_that_is_moved_is_told_as_one),
		TEST(test_a_path_that_changes_in_memory_opens_what_was_judged),
		TEST(test_a_link_that_changes_opens_what_was_judged),
		TEST(test_a_fifo_waits_for_its_other_end_and_nobody_else_does),
		TEST(test_who_waits_can_be_interrupted),
		TEST(test_who_dies_waiting_leaves_nothing),
		TEST(test_a_lease_holds_up_nobody_else),
		TEST(test_the_callers_own_limits_count),
		TEST(test_what_every_sandbox_is_refused_stays_refused),
		TEST(test_a_descriptor_from_outside_leads_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
