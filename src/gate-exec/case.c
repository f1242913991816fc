/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-exec/case.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "watch/watch.h"

struct exec_case *exec_case_new(struct exec_cases *cases, const struct watch_exec *exec, enum exec_stage stage)
{
	struct exec_case *exec_case = calloc(1, sizeof *exec_case);

	if (!exec_case)
		return NULL;
	exec_case->exe = str_dup(exec->exe);
	if (!exec_case->exe) {
		free(exec_case);
		return NULL;
	}
	exec_case->token = ++cases->last_token;
	exec_case->id = exec->id;
	exec_case->pid = exec->pid;
	exec_case->stage = stage;
	exec_case->outcome.verdict = QUEUE_ALLOWED;
	exec_case->next = cases->first;
	cases->first = exec_case;
	return exec_case;
}

struct exec_case *exec_case_find(const struct exec_cases *cases, uint64_t token)
{
	struct exec_case *at = cases->first;

	while (at && at->token != token)
		at = at->next;
	return at;
}

void exec_case_free(struct exec_cases *cases, struct exec_case *exec_case)
{
	struct exec_case **at = &cases->first;

	while (*at != exec_case)
		at = &(*at)->next;
	*at = exec_case->next;
	for (size_t i = 0; i < exec_case->want_count; i++) {
		free(exec_case->wants[i].path);
		strv_free(exec_case->wants[i].argv);
	}
	if (exec_case->verified)
		strv_free(exec_case->verified->argv);
	free(exec_case->verified);
	free(exec_case->exe);
	free(exec_case->review.path);
	strv_free(exec_case->review.argv);
	free(exec_case->script.path);
	free(exec_case->script.called);
	free(exec_case->cwd);
	free(exec_case);
}

int exec_case_keep(struct exec_case *exec_case, const struct watch_exec *exec)
{
	struct exec_verified *kept = exec_case->verified = calloc(1, sizeof *kept);

	if (!kept)
		return -ENOMEM;
	kept->dir_fd = exec->dir_fd;
	kept->is_open_file = exec->is_open_file;
	kept->argv_left_out = exec->argv_left_out;
	kept->environment = exec->environment;
	kept->argv = strv_copy(exec->argv);
	return kept->argv ? 0 : -ENOMEM;
}

struct watch_exec exec_case_kept(const struct exec_case *exec_case)
{
	const struct exec_verified *kept = exec_case->verified;

	return (struct watch_exec){
		.id = exec_case->id, .pid = exec_case->pid, .dir_fd = kept->dir_fd, .is_open_file = kept->is_open_file,
		.exe = exec_case->exe, .argv = (const char *const *)kept->argv, .argv_left_out = kept->argv_left_out,
		.environment = kept->environment,
	};
}

int exec_case_set(struct exec_case *exec_case, const char *path, const char *const *argv)
{
	exec_case->review.path = str_dup(path);
	exec_case->review.argv = strv_copy(argv);
	return exec_case->review.path && exec_case->review.argv ? 0 : -ENOMEM;
}

int exec_case_want(struct exec_case *exec_case, const char *path, const char *const *argv,
		   const struct decision *decision)
{
	struct exec_want *want = &exec_case->wants[exec_case->want_count];

	*want = (struct exec_want){ str_dup(path), strv_copy(argv), *decision };
	exec_case->want_count++;
	return want->path && want->argv ? 0 : -ENOMEM;
}

void exec_hash_argv(const char *const *argv, struct hash *ret_hash)
{
	struct hash_stream stream;

	hash_stream_begin(&stream);
	for (; *argv; argv++)
		hash_stream_add(&stream, *argv, strlen(*argv) + 1);
	hash_stream_end(&stream, ret_hash);
}

bool exec_case_is_expected(const struct exec_case *exec_case, const struct stat *st)
{
	const struct stat *as = &exec_case->st;

	return exec_case->is_known && as->st_dev == st->st_dev && as->st_ino == st->st_ino &&
	       as->st_size == st->st_size && as->st_mtim.tv_sec == st->st_mtim.tv_sec &&
	       as->st_mtim.tv_nsec == st->st_mtim.tv_nsec && as->st_ctim.tv_sec == st->st_ctim.tv_sec &&
	       as->st_ctim.tv_nsec == st->st_ctim.tv_nsec;
}
