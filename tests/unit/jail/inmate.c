/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stands in for atoll-init in the tests of jail/: PID 1 of a jail that does on its wire what it is told, one
 * request ("verb path rest") and one answer ("ok …" or the errno's number) at a time. Static, because most
 * test jails hold no libraries.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIRE = 3 };

static char answer[32768];

static void say_errno(void)
{
	snprintf(answer, sizeof answer, "%d", errno);
}

static void say_result(int r)
{
	if (r < 0)
		say_errno();
	else
		snprintf(answer, sizeof answer, "ok");
}

static void do_read(const char *path, const char *rest)
{
	int fd = open(path, O_RDONLY);
	size_t used = 3;
	ssize_t size = 0;

	if (fd < 0) {
		say_errno();
		return;
	}
	memcpy(answer, "ok ", 4);
	while (used + 1 < sizeof answer && (size = read(fd, answer + used, sizeof answer - used - 1)) > 0)
		used += (size_t)size;
	answer[used] = 0;
	if (size < 0)
		say_errno();
	close(fd);
}

static void do_write(const char *path, const char *rest)
{
	int fd = open(path, O_WRONLY);

	say_result(fd < 0 ? -1 : (int)write(fd, rest, strlen(rest)));
	if (fd >= 0)
		close(fd);
}

static void do_create(const char *path, const char *rest)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, *rest ? (mode_t)strtoul(rest, NULL, 8) : 0644);

	say_result(fd);
	if (fd >= 0)
		close(fd);
}

static void do_mkdir(const char *path, const char *rest)
{
	say_result(mkdir(path, 0755));
}

static void do_chmod(const char *path, const char *rest)
{
	say_result(chmod(path, (mode_t)strtoul(rest, NULL, 8)));
}

static void do_rename(const char *path, const char *rest)
{
	say_result(rename(path, rest));
}

static void do_list(const char *path, const char *rest)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	size_t used = 2;

	if (!dir) {
		say_errno();
		return;
	}
	memcpy(answer, "ok", 3);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2)
			used += (size_t)snprintf(answer + used, sizeof answer - used, " %s", entry->d_name);
	closedir(dir);
}

static void do_stat(const char *path, const char *rest)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		say_errno();
	else
		snprintf(answer, sizeof answer, "ok %o %u %u", st.st_mode, st.st_uid, st.st_gid);
}

static void do_exec(const char *path, const char *rest)
{
	char *argv[] = { (char *)path, NULL }, *env[] = { NULL };
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execve(path, argv, env);
		_exit(errno);
	}
	waitpid(pid, &status, 0);
	snprintf(answer, sizeof answer, WEXITSTATUS(status) ? "%d" : "ok", WEXITSTATUS(status));
}

static void do_abstract(const char *path, const char *rest)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(address.sun_path + 1, path, length);
	say_result(connect(fd, (void *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)));
	close(fd);
}

static void do_kill(const char *path, const char *rest)
{
	say_result(kill((pid_t)strtol(path, NULL, 10), 0));
}

static void do_unshare(const char *path, const char *rest)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(unshare((int)strtol(path, NULL, 0)) < 0 ? errno : 0);
	waitpid(pid, &status, 0);
	snprintf(answer, sizeof answer, WEXITSTATUS(status) ? "%d" : "ok", WEXITSTATUS(status));
}

static void do_readlink(const char *path, const char *rest)
{
	ssize_t size = readlink(path, answer + 3, sizeof answer - 4);

	if (size < 0) {
		say_errno();
		return;
	}
	memcpy(answer, "ok ", 3);
	answer[3 + size] = 0;
}

static void do_deathsig(const char *path, const char *rest)
{
	int number = 0;

	prctl(PR_GET_PDEATHSIG, &number, 0, 0, 0);
	snprintf(answer, sizeof answer, "ok %d sid %d", number, (int)getsid(0));
}

static void do_tty(const char *path, const char *rest)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY);

	say_result(fd < 0 || grantpt(fd) < 0 || unlockpt(fd) < 0 || open(ptsname(fd), O_RDWR | O_NOCTTY) < 0 ? -1 : 0);
}

static void do_copy(const char *path, const char *rest)
{
	int from = open(path, O_RDONLY), to = open(rest, O_WRONLY | O_CREAT | O_EXCL, 0755);
	char bytes[8192];
	ssize_t size = -1;

	while (from >= 0 && to >= 0 && (size = read(from, bytes, sizeof bytes)) > 0)
		if (write(to, bytes, (size_t)size) != size) {
			size = -1;
			break;
		}
	say_result((int)size);
	close(from);
	close(to);
}

static const struct {
	const char *verb;
	void (*handler)(const char *path, const char *rest);
} verbs[] = {
	{ "read", do_read },     { "write", do_write },       { "create", do_create }, { "mkdir", do_mkdir },
	{ "list", do_list },     { "stat", do_stat },         { "exec", do_exec },     { "abstract", do_abstract },
	{ "kill", do_kill },     { "unshare", do_unshare },   { "chmod", do_chmod },   { "rename", do_rename },
	{ "readlink", do_readlink }, { "deathsig", do_deathsig }, { "tty", do_tty },
	{ "copy", do_copy },
};

int main(int argc, char **argv)
{
	char request[4096];
	ssize_t size;

	/* Executed by a test as an ordinary program: running at all is the answer. */
	if (argc < 2)
		return 0;
	/* As atoll-init: the jail's second process must have let go of the old root. */
	while (waitpid(-1, NULL, 0) < 0 && errno == EINTR)
		;
	while ((size = recv(WIRE, request, sizeof request - 1, 0)) > 0) {
		char *verb = request, *path, *rest;

		request[size] = 0;
		path = verb + strcspn(verb, " ");
		path += *path ? (*path = 0, 1) : 0;
		rest = path + strcspn(path, " ");
		rest += *rest ? (*rest = 0, 1) : 0;
		snprintf(answer, sizeof answer, "unknown");
		for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
			if (!strcmp(verbs[i].verb, verb))
				verbs[i].handler(path, rest);
		if (send(WIRE, answer, strlen(answer) + 1, MSG_NOSIGNAL) < 0)
			return 1;
	}
	return 0;
}
