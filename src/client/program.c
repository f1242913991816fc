/* SPDX-License-Identifier: Apache-2.0 */
#include "client/program.h"

#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "client/dirs.h"
#include "os/fd.h"

enum { FDS_ABOVE = 8 }; /* where no program is handed anything */

extern char **environ;

int program_path(const char *stage, const char *name, char out[PATH_MAX], struct err *err)
{
	char programs[PATH_MAX];
	int r = dirs_programs(programs, err);

	if (r == 0 && path_join(out, PATH_MAX, programs, name) < 0)
		r = err_set(err, ERR_STATE, ENAMETOOLONG, stage, "the path of atoll's programs is too long");
	return r;
}

int program_start(const struct program *program, pid_t *ret_pid, struct err *err)
{
	const char *stage = program->stage ? program->stage : "start";
	struct spawn spawn = { .argv = program->argv, .fd_count = program->fd_count };
	char path[PATH_MAX];
	int r = program_path(stage, program->name, path, err);

	if (r < 0)
		return r;
	spawn.program = path;
	memcpy(spawn.fds, program->fds, sizeof spawn.fds);
	r = spawn_start(&spawn, ret_pid);
	return r < 0 ? err_not_started(stage, program->stage ? path : program->name, -r, err) : 0;
}

int program_run(const struct program *program, struct err *err)
{
	const char *stage = program->stage ? program->stage : "start";
	int signal, r;
	pid_t pid;

	r = program_start(program, &pid, err);
	if (r < 0)
		return r;
	r = spawn_wait(pid, &signal);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, stage, "%s is lost: %s", program->name, strerror(-r));
	if (signal)
		return err_set(err, ERR_INTERNAL, EIO, stage, "%s was ended by signal %d", program->name,
			       signal);
	return r;
}

int program_look(const struct program_look *look, int *ret_text_fd, struct err *err)
{
	const char *stage = look->stage ? look->stage : "start";
	cleanup_fd int text_fd = fd_memfd_new("text"), numbers_fd = fd_memfd_new("numbers");
	struct program program = { .name = look->name, .stage = look->stage, .argv = look->argv, .fd_count = 2 };
	int r;

	text_fd = text_fd < 0 ? text_fd : fd_move_above(text_fd, FDS_ABOVE);
	numbers_fd = numbers_fd < 0 ? numbers_fd : fd_move_above(numbers_fd, FDS_ABOVE);
	r = text_fd < 0 ? text_fd : numbers_fd;
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, stage, "no memory for the output: %s", strerror(-r));
	program.fds[0] = (struct spawn_fd){ text_fd, STDOUT_FILENO };
	program.fds[1] = (struct spawn_fd){ numbers_fd, look->numbers_to };
	r = program_run(&program, err);
	if (r < 0)
		return r;
	if (r <= 1 && pread(numbers_fd, look->numbers, look->numbers_size, 0) != (ssize_t)look->numbers_size)
		return err_set(err, ERR_INTERNAL, EPROTO, stage, "%s: %s", look->name, strerror(EPROTO));
	*ret_text_fd = take_fd(&text_fd);
	return r;
}

int program_text(int fd, struct buf *out)
{
	uint8_t bytes[4096];
	ssize_t n;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	while ((n = read(fd, bytes, sizeof bytes)) > 0)
		buf_put(out, bytes, (size_t)n);
	return n < 0 ? -errno : buf_error(out);
}

int program_check_words(const struct words *words, struct err *err)
{
	int r = words_error(words);

	if (r == -E2BIG)
		return err_set(err, ERR_USAGE, E2BIG, "options", "more than %d words", WORDS_MAX);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "options", "out of memory") : 0;
}

int program_become(const char *stage, const struct words *words, struct err *err)
{
	char path[PATH_MAX];
	int r = program_check_words(words, err);

	if (r == 0)
		r = program_path(stage, words->list[0], path, err);
	if (r < 0)
		return r;
	execve(path, words->list, environ);
	return err_not_started(stage, path, errno, err);
}
