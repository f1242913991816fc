/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/str.h"
#include "client/compiled.h"
#include "client/dirs.h"
#include "os/fd.h"
#include "policy/snapshot/snapshot.h"
#include "prog/atoll/run/started.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/verb/say.h"
#include "wire/link.h"

extern char **environ;

/* What is to be done: a verb with its words, or with none the compilation of a policy. */
struct job {
	char **argv, **places;
	const char *level, *policy, *project;
};

static const struct start_field fields[] = {
	{ "argv", FIELD_STRINGS, offsetof(struct job, argv) },
	{ "places", FIELD_STRINGS, offsetof(struct job, places) },
	{ "level", FIELD_STRING, offsetof(struct job, level) },
	{ "policy", FIELD_STRING, offsetof(struct job, policy) },
	{ "project", FIELD_STRING, offsetof(struct job, project) },
};

/* What a verb says goes into two memory files. */
struct results {
	int out_fd, explained_fd;
};

static int run_verb(char **argv, struct err *err)
{
	const struct cmd *cmd = cmd_find(argv[0]);

	return cmd ? cmd->run((int)strv_count((const char *const *)argv), argv, err)
		   : err_set(err, ERR_USAGE, EINVAL, "job", "there is no such verb");
}

static int compile(const struct job *job, struct err *err)
{
	cleanup_compiled struct compiled compiled = { 0 };
	static struct dirs dirs;
	struct compiled_request request = {
		.level = job->level, .policy = job->policy, .project = dirs.project, .home = dirs.home,
		.config_home = dirs.config_home, .programs_dir = dirs.programs, .state_dir = dirs.state,
		.runtime_dir = dirs.runtime,
	};
	int r = dirs_find(&dirs, job->project, NULL, err);

	if (r == 0)
		r = compiled_get(&request, &compiled, err);
	if (r == 0)
		r = fd_write_full(STDOUT_FILENO, compiled.bytes, compiled.size);
	return r;
}

static int work(const struct job *job, struct err *err)
{
	int r = job->argv ? run_verb(job->argv, err) : compile(job, err);

	if (r >= 0)
		return r;
	say_error(err);
	return err_exit_status(err);
}

/* Its exit status, 128 + N for signal N. */
static int run_child(const struct job *job, const struct results *results)
{
	pid_t pid = fork();
	struct err err = { 0 };
	int status;

	if (pid == 0) {
		if (dup2(results->out_fd, STDOUT_FILENO) < 0 || dup2(results->explained_fd, STDERR_FILENO) < 0)
			_exit(125);
		_exit(work(job, &err));
	}
	if (pid < 0)
		return 125;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Why a policy is none, as data: the place of each problem. */
static void list_problems(const struct job *job, const struct results *results)
{
	char *argv[12] = { (char *)"policy", (char *)"check", (char *)"--json" };
	const struct job check = { .argv = argv, .places = job->places };
	size_t count = 3;
	const char *const pairs[][2] = {
		{ "-t", job->level }, { "-p", job->policy }, { "--project", job->project },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		if (!pairs[i][1])
			continue;
		argv[count++] = (char *)pairs[i][0];
		argv[count++] = (char *)pairs[i][1];
	}
	argv[count] = NULL;
	if (ftruncate(results->out_fd, 0) == 0 && lseek(results->out_fd, 0, SEEK_SET) == 0)
		(void)run_child(&check, results);
}

/* What session.start will say of a policy. */
static void put_hash(struct buf *out, int snapshot_fd)
{
	cleanup_compiled struct compiled compiled = { 0 };
	char path[32];
	struct hash hash;
	struct err err;

	if (str_format(path, sizeof path, "/proc/self/fd/%d", snapshot_fd) < 0 ||
	    compiled_load(path, &compiled, &err) < 0)
		return;
	snapshot_hash(compiled.snapshot, &hash);
	field_put_bytes(out, "hash", hash.bytes, sizeof hash.bytes);
}

static int reply(int status, bool has_policy, const struct results *results)
{
	const int fds[] = { results->out_fd, results->explained_fd };
	cleanup_buf struct buf out;

	buf_init(&out, 4096);
	frame_begin(&out, LINK_REPLY);
	frame_put_u64(&out, 0);
	frame_put_u32(&out, ERR_NONE);
	field_put_u64(&out, "status", (uint64_t)status);
	if (has_policy)
		put_hash(&out, results->out_fd);
	return frame_end(&out) < 0 ? 125 : frame_send(LINK_SOCKET_FD, &out, fds, ARRAY_SIZE(fds)) < 0;
}

int started_job_main(void)
{
	static char *none[] = { NULL };
	struct start_request request = { 0 };
	struct results results = { FD_NONE, FD_NONE };
	struct job job = { 0 };
	struct err err = { 0 };
	int status, r = start_request_read(&request, &err);

	if (r == 0)
		r = start_request_get(&request, fields, ARRAY_SIZE(fields), &job, &err);
	results.out_fd = fd_memfd_new("result");
	results.explained_fd = fd_memfd_new("explained");
	if (r < 0 || results.out_fd < 0 || results.explained_fd < 0) {
		link_send_failure(LINK_SOCKET_FD, &err);
		return 125;
	}
	umask(022);
	environ = job.places ? job.places : none;
	status = run_child(&job, &results);
	if (!job.argv && status == 1)
		list_problems(&job, &results);
	return reply(status, !job.argv && status == 0, &results);
}
