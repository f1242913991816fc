/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/git/git-branch.h"

#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "prog/atoll-stage/git/git-change.h"

int git_branch_start(struct git_branch *ret_branch, const struct opened *opened, const char *name, struct err *err)
{
	static struct git_work work;
	struct git_answer answer;
	int r = git_repository_find(opened->session->base, &ret_branch->repository, err);

	work = (struct git_work){ .branch = name, .index_fd = FD_NONE };
	return r < 0 ? r : git_maker_start(&ret_branch->maker, &ret_branch->repository, &work, &answer, err);
}

void git_branch_done(struct git_branch *branch)
{
	git_maker_done(&branch->maker);
	git_repository_done(&branch->repository);
}

struct job {
	struct git_branch *branch;
	struct git_change_context context;
	struct git_branch_result *result;
	struct git_ignored *ignored;
};

static int ask(const struct job *job, enum git_step step, const char *path)
{
	const struct git_question question = { .step = step, .text = path, .fd = FD_NONE };
	struct git_answer answer;

	return git_maker_ask(&job->branch->maker, &question, &answer);
}

static int put(const struct job *job, const struct apply_item *item, const char *path)
{
	const struct stage_change *change = item->change;
	cleanup_fd int fd = git_change_open(&job->context, item);
	const struct git_question question = {
		.step = GIT_PUT, .mode = git_change_mode(&change->staged), .text = path, .fd = fd
	};
	struct git_answer answer;
	int r = fd < 0 ? -ESTALE : git_maker_ask(&job->branch->maker, &question, &answer);

	return r == 0 && !git_change_is_still(item, fd) ? -ESTALE : r;
}

static int commit_item(const struct job *job, const struct apply_item *item)
{
	const struct stage_change *change = item->change;
	char full[PATH_MAX];
	const char *path;
	int r;

	/* git keeps files alone. */
	if (!git_change_is_file(change->staged_exists, &change->staged) &&
	    !git_change_is_file(change->host_exists, &change->host))
		return 0;
	path = git_change_path(&job->context, change, full);
	if (!path) {
		job->result->outside++;
		return 0;
	}
	r = ask(job, GIT_HAS, path);
	if (r == 0 && git_ignored_has(job->ignored, path)) {
		job->result->ignored++;
		return 0;
	}
	if (r >= 0)
		r = git_change_is_file(change->staged_exists, &change->staged) ?
			    put(job, item, path) : ask(job, GIT_REMOVE, path);
	if (r == -EXDEV || r == -EINVAL) {
		job->result->outside++;
		return 0;
	}
	job->result->files += r == 0;
	return r;
}

int git_branch_run(struct git_branch *branch, const struct opened *opened, const struct apply *apply,
		   const char *message, struct git_branch_result *ret_result, struct err *err)
{
	struct job job = {
		.branch = branch, .result = ret_result,
		.context = { .opened = opened, .apply = apply, .root = branch->repository.root },
	};
	struct git_question question = { .step = GIT_COMMIT, .fd = FD_NONE };
	struct git_answer answer;
	char text[PATH_MAX];
	int r = message ? str_copy(text, PATH_MAX, message)
			: str_format(text, PATH_MAX, "Changes of atoll session %s\n", opened->record.session);

	*ret_result = (struct git_branch_result){ 0 };
	if (r < 0)
		return err_set(err, ERR_USAGE, E2BIG, "apply", "the message is too long");
	r = git_ignored_new(opened, apply, branch->repository.root, &job.ignored);
	job.context.ignored = job.ignored;
	question.text = text;
	for (size_t i = 0; r == 0 && i < apply->count; i++)
		if (apply->items[i].verdict == APPLY_TAKEN)
			r = commit_item(&job, &apply->items[i]);
	git_ignored_free(job.ignored);
	if (r == -ESTALE)
		return git_fail_with(err, r, "the session changed a file while it was read",
				     "stop the session, or try again");
	if (r == 0)
		r = git_maker_ask(&branch->maker, &question, &answer);
	if (r < 0)
		return git_fail(err, r);
	return r ? 0 : str_format(ret_result->commit, sizeof ret_result->commit, "%.40s", answer.hex);
}
