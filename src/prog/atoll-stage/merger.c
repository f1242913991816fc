/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The repository's own configuration is read by git as well, and may be hostile by now: nothing in it makes these two
 * commands (cat-file, merge-file) run a program but a missing object of a partial clone, and that needs a protocol,
 * all of which are off. What is left is walled in: no file can be written, nothing beyond the trees and the system
 * read.
 */

#include "prog/atoll-stage/merger.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/str.h"
#include "confine/confine.h"
#include "os/fd.h"
#include "os/landlock.h"
#include "os/path.h"
#include "stage/record.h"

enum { FD_FIRST = 16, ARGS_MAX = 32 };

static const char program[] = "/usr/bin/git";

/* It may read the trees. */
static int confine_child(const int *tree_fds, size_t count)
{
	struct confine_place places[STAGE_TREES_MAX];

	if (count > ARRAY_SIZE(places))
		return -E2BIG;
	for (size_t i = 0; i < count; i++)
		places[i] = (struct confine_place){ tree_fds[i], LANDLOCK_READ_FILE | LANDLOCK_READ_DIR };
	return confine_self(CONFINE_STAGE_BASE, places, count, NULL);
}

/* git with these words; its output goes to out_fd. The exit status, or -1. */
static int run_git(const char *directory, const char *const *words, int out_fd)
{
	static const char *const env[] = {
		"LC_ALL=C", "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", NULL,
	};
	const char *argv[ARGS_MAX] = {
		"git", "-C", directory, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c",
		"protocol.allow=never", "-c", "safe.directory=*",
	};
	posix_spawn_file_actions_t actions;
	size_t used = 11;
	int status, r = posix_spawn_file_actions_init(&actions);
	pid_t pid;

	for (; *words && used < ARGS_MAX - 1; words++)
		argv[used++] = *words;
	argv[used] = NULL;
	if (r == 0)
		r = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
	if (r == 0)
		r = posix_spawn(&pid, program, &actions, NULL, (char *const *)argv, (char *const *)env);
	posix_spawn_file_actions_destroy(&actions);
	if (r != 0)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Whether the index is older than the run: else it may tell what came since, which is no base. */
static bool is_index_unchanged(const char *directory, uint64_t start_ns)
{
	static const char *const words[] = { "rev-parse", "--git-path", "index", NULL };
	cleanup_fd int out_fd = memfd_create("path", MFD_CLOEXEC), dir_fd = FD_NONE;
	char path[MERGER_PATH_MAX];
	struct stat st;
	ssize_t size;

	if (out_fd < 0 || run_git(directory, words, out_fd) != 0)
		return false;
	size = pread(out_fd, path, sizeof path - 1, 0);
	if (size <= 1 || path[size - 1] != '\n')
		return false;
	path[size - 1] = 0;
	dir_fd = path_open_anchor(directory);
	if (dir_fd < 0 || fstatat(dir_fd, path, &st, 0) < 0)
		return false;
	return (uint64_t)st.st_ctim.tv_sec * 1000000000ULL + (uint64_t)st.st_ctim.tv_nsec < start_ns;
}

/* What the index has for the path; an empty file where that is no base. The fd, or -errno. */
static int open_base(const char *directory, const char *name, uint64_t start_ns)
{
	char object[MERGER_PATH_MAX];
	const char *words[] = { "cat-file", "blob", object, NULL };
	cleanup_fd int fd = memfd_create("base", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (str_format(object, sizeof object, ":./%s", name) < 0)
		return -ENAMETOOLONG;
	if ((!is_index_unchanged(directory, start_ns) || run_git(directory, words, fd) != 0) && ftruncate(fd, 0) < 0)
		return -errno;
	return fd_move_above(take_fd(&fd), FD_FIRST);
}

/* git opens its files by name; memory files are not below any path, so Landlock lets them be opened so. */
static enum merger_answer merge(char *path, uint64_t start_ns, const int fds[MERGER_FDS])
{
	char names[MERGER_FDS][32], *slash = strrchr(path, '/');
	const char *words[] = { "merge-file", "-p", "-L", "host", "-L", "base", "-L", "sandbox", names[0], names[1],
				names[2], NULL };
	cleanup_fd int base_fd = FD_NONE;
	int given[MERGER_FDS], status;

	if (!slash || slash == path)
		return MERGER_NONE;
	*slash = 0;
	base_fd = open_base(path, slash + 1, start_ns);
	if (base_fd < 0)
		return MERGER_NONE;
	given[0] = fds[0];
	given[1] = base_fd;
	given[2] = fds[1];
	for (size_t i = 0; i < MERGER_FDS; i++)
		/* They must be open in git, which is what takes their names. */
		if (fd_set_cloexec(given[i], false) < 0 ||
		    str_format(names[i], sizeof names[i], "/proc/self/fd/%d", given[i]) < 0)
			return MERGER_NONE;
	status = run_git("/", words, fds[2]);
	return status == 0 ? MERGER_CLEAN : status > 0 && status < 128 ? MERGER_MARKED : MERGER_NONE;
}

static void serve(int socket_fd)
{
	char message[sizeof(struct merger_request) + MERGER_PATH_MAX];
	struct merger_request request;

	for (;;) {
		int fds[MERGER_FDS] = { FD_NONE, FD_NONE, FD_NONE };
		uint8_t answer = MERGER_NONE;
		size_t count = 0;
		ssize_t n = fd_receive_message(socket_fd, message, sizeof message, fds, MERGER_FDS, &count);
		bool whole = count == MERGER_FDS && n > (ssize_t)sizeof request && message[n - 1] == 0;

		if (n <= 0)
			return;
		memcpy(&request, message, sizeof request);
		for (size_t i = 0; i < count; i++) {
			fds[i] = fd_move_above(fds[i], FD_FIRST);
			whole &= fds[i] >= 0;
		}
		if (whole)
			answer = (uint8_t)merge(message + sizeof request, request.start_ns, fds);
		for (size_t i = 0; i < count; i++)
			close_fd(&fds[i]);
		if (fd_send_message(socket_fd, &answer, sizeof answer, NULL, 0) < 0)
			return;
	}
}

int merger_start(const int *tree_fds, size_t count, struct err *err)
{
	int ends[2];
	pid_t pid;

	if (access(program, X_OK) < 0) {
		err_set(err, ERR_NOT_FOUND, ENOENT, "apply", "--merge needs git, which is not installed");
		err_hint(err, "apt install git, or apply without --merge");
		return -ENOENT;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, ERR_INTERNAL, errno, "apply", "socketpair: %s", strerror(errno));
	pid = fork();
	if (pid == 0) {
		/* Dies with its parent even where that is killed. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && confine_child(tree_fds, count) == 0) {
			close(ends[0]);
			serve(ends[1]);
		}
		_exit(0);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return err_set(err, ERR_INTERNAL, errno, "apply", "fork: %s", strerror(errno));
	}
	return ends[0];
}
