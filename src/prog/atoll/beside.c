/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/beside.h"

#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "prog/atoll/places.h"

static int spawn(const struct beside *beside, const char *program, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	for (size_t i = 0; r == 0 && i < beside->fd_count; i++)
		r = posix_spawn_file_actions_adddup2(&actions, beside->fds[i].from, beside->fds[i].to);
	if (r == 0)
		r = posix_spawn(ret_pid, program, &actions, NULL, (char **)beside->argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int wait_for(const struct beside *beside, pid_t pid, struct err *err)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(err, ERR_INTERNAL, errno, "start", "%s is lost: %s", beside->program,
				       strerror(errno));
	if (WIFSIGNALED(status))
		return err_set(err, ERR_INTERNAL, EIO, "start", "%s was ended by signal %d", beside->program,
			       WTERMSIG(status));
	return WEXITSTATUS(status);
}

int beside_run(const struct beside *beside, struct err *err)
{
	char programs[PATH_MAX], program[PATH_MAX];
	int r = places_programs(programs, err);
	pid_t pid;

	if (r < 0)
		return r;
	r = path_join(program, sizeof program, programs, beside->program);
	if (r == 0)
		r = spawn(beside, program, &pid);
	if (r == 0)
		return wait_for(beside, pid, err);
	return err_not_started("start", beside->program, -r, err);
}
