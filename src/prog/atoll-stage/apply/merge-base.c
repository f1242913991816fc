/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The repository's own configuration is read by git as well, and may be hostile by now: nothing in it makes these two
 * commands (rev-parse, cat-file) run a program but a missing object of a partial clone, and that needs a protocol, all
 * of which are off. What is left is walled in: no file can be written, nothing beyond the trees and the system read.
 */

#include "prog/atoll-stage/apply/merge-base.h"

#include <fcntl.h>
#include <signal.h>
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
#include "os/spawn.h"
#include "stage/record/record.h"

enum { FD_FIRST = 16, ARGS_MAX = 32, BASE_PATH_MAX = 4096 };

enum answer { ANSWER_FOUND, ANSWER_NONE };

/* Followed in the message by the absolute path of the file, with its NUL. The fd beside it is written to. */
struct request {
	uint64_t start_ns; /* of the run: an index that was changed since is no base */
};

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
	const struct spawn spawn = { .program = program, .argv = argv, .env = env, .fd_count = 3,
				     .fds = { { SPAWN_NULL, 0 }, { out_fd, 1 }, { 0, 2 } } };
	size_t used = 11;
	int signal, status;
	pid_t pid;

	for (; *words && used < ARGS_MAX - 1; words++)
		argv[used++] = *words;
	argv[used] = NULL;
	if (spawn_start(&spawn, &pid) < 0)
		return -1;
	status = spawn_wait(pid, &signal);
	return status < 0 || signal ? -1 : status;
}

/* Whether the index is older than the run: else it may tell what came since, which is no base. */
static bool is_index_unchanged(const char *directory, uint64_t start_ns)
{
	static const char *const words[] = { "rev-parse", "--git-path", "index", NULL };
	cleanup_fd int out_fd = memfd_create("path", MFD_CLOEXEC), dir_fd = FD_NONE;
	char path[BASE_PATH_MAX];
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

/* What the index has for the path, into out_fd. */
static enum answer find(char *path, uint64_t start_ns, int out_fd)
{
	char object[BASE_PATH_MAX], *slash = strrchr(path, '/');
	const char *words[] = { "cat-file", "blob", object, NULL };

	if (!slash || slash == path || str_format(object, sizeof object, ":./%s", slash + 1) < 0)
		return ANSWER_NONE;
	*slash = 0;
	return is_index_unchanged(path, start_ns) && run_git(path, words, out_fd) == 0 ? ANSWER_FOUND : ANSWER_NONE;
}

static void serve(int socket_fd)
{
	char message[sizeof(struct request) + BASE_PATH_MAX];
	struct request request;

	for (;;) {
		uint8_t answer = ANSWER_NONE;
		int out_fd = FD_NONE;
		size_t count = 0;
		ssize_t n = fd_receive_message(socket_fd, message, sizeof message, &out_fd, 1, &count);

		if (n <= 0)
			return;
		memcpy(&request, message, sizeof request);
		out_fd = count ? fd_move_above(out_fd, FD_FIRST) : FD_NONE;
		if (out_fd >= 0 && n > (ssize_t)sizeof request && message[n - 1] == 0)
			answer = (uint8_t)find(message + sizeof request, request.start_ns, out_fd);
		close_fd(&out_fd);
		if (fd_send_message(socket_fd, &answer, sizeof answer, NULL, 0) < 0)
			return;
	}
}

int base_start(const int *tree_fds, size_t count, struct base *ret_base, struct err *err)
{
	int ends[2];
	pid_t pid;

	*ret_base = BASE_NONE;
	if (access(program, X_OK) < 0) {
		ret_base->is_without_git = true;
		return 0;
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
	ret_base->socket_fd = ends[0];
	return 0;
}

void base_stop(struct base *base)
{
	close_fd(&base->socket_fd);
}

static int read_whole(int fd, size_t max, char **ret_bytes, size_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	return fd_read_sized(fd, st.st_size, max, ret_bytes, ret_size);
}

int base_load(struct base *base, const char *path, uint64_t start_ns, size_t max, char **ret_bytes, size_t *ret_size)
{
	char message[sizeof(struct request) + BASE_PATH_MAX];
	struct request request = { .start_ns = start_ns };
	cleanup_fd int out_fd = FD_NONE;
	uint8_t answer;
	size_t count;

	/* A path that git could not be told has no base either. */
	if (base->socket_fd < 0 || str_copy(message + sizeof request, BASE_PATH_MAX, path) < 0)
		return -ENOENT;
	out_fd = memfd_create("base", MFD_CLOEXEC);
	if (out_fd < 0)
		return -errno;
	memcpy(message, &request, sizeof request);
	if (fd_send_message(base->socket_fd, message, sizeof request + strlen(path) + 1, &out_fd, 1) < 0 ||
	    fd_receive_message(base->socket_fd, &answer, sizeof answer, NULL, 0, &count) != 1)
		return -EPIPE;
	return answer == ANSWER_FOUND ? read_whole(out_fd, max, ret_bytes, ret_size) : -ENOENT;
}
