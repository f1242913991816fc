/* SPDX-License-Identifier: Apache-2.0 */
#include "client/program.h"

#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "client/dirs.h"

static int spawn(const struct program *program, const char *path, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	for (size_t i = 0; r == 0 && i < program->fd_count; i++)
		r = posix_spawn_file_actions_adddup2(&actions, program->fds[i].from, program->fds[i].to);
	if (r == 0)
		r = posix_spawn(ret_pid, path, &actions, NULL, (char **)program->argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int wait_for(const struct program *program, pid_t pid, struct err *err)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(err, ERR_INTERNAL, errno, "start", "%s is lost: %s", program->name,
				       strerror(errno));
	if (WIFSIGNALED(status))
		return err_set(err, ERR_INTERNAL, EIO, "start", "%s was ended by signal %d", program->name,
			       WTERMSIG(status));
	return WEXITSTATUS(status);
}

int program_run(const struct program *program, struct err *err)
{
	char programs[PATH_MAX], path[PATH_MAX];
	int r = dirs_programs(programs, err);
	pid_t pid;

	if (r < 0)
		return r;
	r = path_join(path, sizeof path, programs, program->name);
	if (r == 0)
		r = spawn(program, path, &pid);
	if (r == 0)
		return wait_for(program, pid, err);
	return err_not_started("start", program->name, -r, err);
}
