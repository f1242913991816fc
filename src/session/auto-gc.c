/* SPDX-License-Identifier: Apache-2.0 */
#include "session/auto-gc.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/spawn.h"

/* STATE/gc: its time is that of the last start, its text what that one removed. */
enum { DAY_S = 24 * 3600, CPU_MAX_S = 600, TEXT_MAX = 1024 };

static int file_path(const struct run_request *request, char out[PATH_MAX])
{
	return str_format(out, PATH_MAX, "%s/gc", request->state_dir);
}

/* NULL: the default age. *ret_is_off also for what is no age: better too much is kept than too little. */
static const char *wanted_age(bool *ret_is_off)
{
	const char *text = getenv("ATOLL_GC");
	uint64_t age_ms;

	*ret_is_off = text && *text && num_parse_duration(text, &age_ms) < 0;
	return text && *text ? text : NULL;
}

/* 1: a day has passed, and it counts from now again; 0: it has not; the first time, too. */
static int begin_day(const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st) == 0) {
		if (time(NULL) - st.st_mtim.tv_sec < DAY_S && st.st_mtim.tv_sec <= time(NULL))
			return 0;
		return utimensat(AT_FDCWD, path, NULL, 0) == 0;
	}
	fd = fd_open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	close_fd(&fd);
	return 0;
}

void auto_gc(const struct run_request *request)
{
	char path[PATH_MAX], program[PATH_MAX];
	bool is_off;
	const char *age = wanted_age(&is_off);
	const char *argv[] = { "atoll-stage", "gc", "--state", request->state_dir, "--terse",
			       age ? "--older-than" : NULL, age, NULL };
	struct spawn gc = { .program = program, .argv = argv, .fd_count = 1,
			    .env = (const char *const *)request->command.env };
	cleanup_fd int out_fd = FD_NONE;

	if (is_off || file_path(request, path) < 0 || begin_day(path) != 1 ||
	    path_beside(program, sizeof program, request->init_path, "atoll-stage") < 0)
		return;
	out_fd = fd_open_at(AT_FDCWD, path, O_WRONLY | O_APPEND | O_NOFOLLOW, 0);
	gc.fds[0] = (struct spawn_fd){ out_fd, STDOUT_FILENO };
	if (out_fd < 0 || spawn_background(&gc, CPU_MAX_S) < 0)
		return;
}

void daily_say(const struct run_request *request)
{
	char path[PATH_MAX], memory[2 * TEXT_MAX];
	cleanup_free char *text = NULL;
	struct timespec times[2];
	struct stat st;
	struct buf out;
	size_t size;

	if (file_path(request, path) < 0 || stat(path, &st) < 0 || !st.st_size ||
	    fd_read_file_at(AT_FDCWD, path, TEXT_MAX, &text, &size) < 0 || truncate(path, 0) < 0)
		return;
	/* Having been read is no start. */
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	utimensat(AT_FDCWD, path, times, 0);
	buf_init_fixed(&out, memory, sizeof memory);
	buf_put_text(&out, "atoll: ");
	buf_put(&out, text, size);
	run_request_tell(request, &out);
}
