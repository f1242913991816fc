/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/git/git-commit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "prog/atoll-stage/git/git-write.h"

#define COPY_DIRECTORY "git-index"
#define COPY_NAME "index"
#define NOTE "commit"

static const char other_ways[] = "atoll apply --branch NAME makes a new branch instead; "
				 "or run atoll apply, then git commit";

/* ---- repositories that it does not know ---- */

/* What stands in the git directory and changes what a commit is. */
static const struct {
	const char *path, *what, *hint;
} oddities[] = {
	{ "commondir", "it is a linked work tree", other_ways },
	{ "objects/info/alternates", "it borrows objects of another repository (objects/info/alternates)", other_ways },
	{ "MERGE_HEAD", "a merge is not finished", "finish it: git commit, or git merge --abort" },
	{ "CHERRY_PICK_HEAD", "a cherry-pick is not finished",
	  "finish it: git cherry-pick --continue, or --abort" },
	{ "REVERT_HEAD", "a revert is not finished", "finish it: git revert --continue, or --abort" },
	{ "rebase-merge", "a rebase is not finished", "finish it: git rebase --continue, or --abort" },
	{ "rebase-apply", "a rebase or git am is not finished", "finish it: git rebase --continue, or --abort" },
	{ "index.lock", "another git command is at work (index.lock)",
	  "wait for it; after a crash of git remove .git/index.lock" },
};

static const char *const hooks[] = { "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit",
				     "reference-transaction", "post-index-change" };

static int refuse(struct err *err, const char *what, const char *hint)
{
	err_set(err, ERR_STATE, EOPNOTSUPP, "apply", "--commit cannot use this git repository: %s", what);
	err_hint(err, "%s", hint);
	return -EOPNOTSUPP;
}

static int check_directory(const struct git_repository *repository, struct err *err)
{
	char text[128];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(oddities); i++)
		if (fstatat(repository->own_fd, oddities[i].path, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return refuse(err, oddities[i].what, oddities[i].hint);
	for (size_t i = 0; i < ARRAY_SIZE(hooks); i++) {
		if (str_format(text, sizeof text, "hooks/%s", hooks[i]) < 0 ||
		    fstatat(repository->own_fd, text, &st, 0) < 0 || !(st.st_mode & 0111))
			continue;
		if (str_format(text, sizeof text, "it has the hook %s, and atoll runs no hook", hooks[i]) < 0)
			return -EINVAL;
		return refuse(err, text, other_ways);
	}
	return 0;
}

/* What the child said of it. */
static int explain_start(int r, const struct git_answer *answer, struct err *err)
{
	char text[sizeof answer->text + 128];

	if (r == -EOPNOTSUPP && str_has_prefix(answer->text, "user."))
		return refuse(err, "its configuration names another author than yours, and is not used",
			      "say who you are by GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL");
	if (r == -EOPNOTSUPP)
		return str_format(text, sizeof text, "its configuration, or yours, sets %s; atoll does not follow that",
				  answer->text) < 0 ? -EINVAL : refuse(err, text, other_ways);
	if (r == -ERANGE)
		return refuse(err, "its index is split or sparse, or cannot be read",
			      "git update-index --no-split-index, or git sparse-checkout disable");
	if (r == -EUCLEAN)
		return refuse(err, "a merge left conflicts in its index", "resolve them, and git add the files");
	return r;
}

static bool is_staged_tree(const struct opened *opened, const char *root)
{
	for (size_t i = 0; i < opened->record.tree_count; i++) {
		const char *tree = opened->record.trees[i].path;
		size_t length = str_equal(tree, "/") ? 0 : strlen(tree);

		if (strncmp(root, tree, length) == 0 && (!root[length] || root[length] == '/'))
			return true;
	}
	return false;
}

/* A directory of the session's for the copy of the index. */
static int open_copy(struct git_commit *commit, const struct opened *opened)
{
	const struct verb_session *session = opened->session;

	if (mkdirat(opened->stage_fd, COPY_DIRECTORY, 0700) < 0 && errno != EEXIST)
		return -errno;
	commit->stage_fd = opened->stage_fd;
	commit->copy_fd = fd_open_at(opened->stage_fd, COPY_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (commit->copy_fd < 0)
		return commit->copy_fd;
	return str_format(commit->copy_path, sizeof commit->copy_path, "%s/sessions/%s/" STAGE_DIRECTORY "/"
			  COPY_DIRECTORY "/" COPY_NAME, session->state, session->id);
}

int git_commit_start(struct git_commit *ret_commit, const struct opened *opened, struct err *err)
{
	struct git_commit *commit = ret_commit;
	static struct git_work work;
	int r = git_repository_find(opened->session->base, &commit->repository, err);

	if (r == 0)
		r = check_directory(&commit->repository, err);
	if (r == 0 && !is_staged_tree(opened, commit->repository.root))
		r = refuse(err, "it lies outside of what this session staged", other_ways);
	if (r < 0)
		return r;
	r = open_copy(commit, opened);
	if (r == 0)
		r = git_attributes_new(commit->repository.common_fd, &commit->attributes);
	if (r == 0)
		r = commit->tree_fd = fd_open_at(AT_FDCWD, commit->repository.root, O_RDONLY | O_DIRECTORY, 0);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "apply", "the commit cannot be prepared: %s", strerror(-r));
	work = (struct git_work){ .index_path = commit->copy_path, .index_fd = commit->copy_fd };
	r = git_maker_start(&commit->maker, &commit->repository, &work, &commit->head, err);
	return r < 0 ? explain_start(r, &commit->head, err) : 0;
}

void git_commit_done(struct git_commit *commit)
{
	git_maker_done(&commit->maker);
	git_repository_done(&commit->repository);
	git_attributes_free(commit->attributes);
	if (commit->copy_fd >= 0) {
		unlinkat(commit->copy_fd, COPY_NAME, 0);
		unlinkat(commit->copy_fd, COPY_NAME ".lock", 0);
		unlinkat(commit->stage_fd, COPY_DIRECTORY, AT_REMOVEDIR);
	}
	close_fd(&commit->copy_fd);
	close_fd(&commit->tree_fd);
	commit->attributes = NULL;
}

/* ---- what is committed ---- */

struct job {
	const struct git_commit *commit;
	struct git_change_context context;
	struct git_ignored *ignored;       /* owned */
	struct git_commit_result *result;  /* NULL while it is only checked */
	struct err *err;
};

static int job_init(struct job *job, const struct git_commit *commit, const struct opened *opened,
		    const struct apply *apply, struct err *err)
{
	int r;

	*job = (struct job){ .commit = commit, .err = err,
			     .context = { .opened = opened, .apply = apply, .root = commit->repository.root } };
	r = git_ignored_new(opened, apply, commit->repository.root, &job->ignored);
	job->context.ignored = job->ignored;
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "apply", "out of memory") : 0;
}

size_t git_commit_leave_own(const struct git_commit *commit, const struct opened *opened, struct apply *apply)
{
	size_t left = 0, length = strlen(commit->repository.root);
	char full[PATH_MAX];

	for (size_t i = 0; i < apply->count; i++) {
		struct apply_item *item = &apply->items[i];
		const char *tree = opened->record.trees[item->change->tree].path;

		if (item->verdict == APPLY_UNWANTED || item->verdict == APPLY_REFUSED ||
		    str_format(full, sizeof full, "%s/%s", str_equal(tree, "/") ? "" : tree, item->change->path) < 0 ||
		    strncmp(full, commit->repository.root, length) != 0 || !str_has_prefix(full + length, "/.git") ||
		    (full[length + 5] && full[length + 5] != '/'))
			continue;
		item->verdict = APPLY_UNWANTED;
		left++;
	}
	return left;
}

static int ask(const struct job *job, enum git_step step, const char *text)
{
	const struct git_question question = { .step = step, .text = text, .fd = FD_NONE };
	struct git_answer answer;

	return git_maker_ask(&job->commit->maker, &question, &answer);
}

/* The file in the project, or a memfd with a link's target; *ret_st as lstat(2). -ENOENT: there is none. */
static int open_project(const struct git_commit *commit, const char *path, struct stat *ret_st)
{
	const char *name;
	cleanup_fd int parent = stage_open_parent(commit->tree_fd, path, &name);
	char target[PATH_MAX];
	ssize_t size;
	int fd;

	if (parent < 0)
		return parent == -ENOTDIR || parent == -ELOOP ? -ENOENT : parent;
	if (fstatat(parent, name, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISREG(ret_st->st_mode)) {
		fd = fd_open_at(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
		return fd >= 0 && fstat(fd, ret_st) < 0 ? -errno : fd;
	}
	if (!S_ISLNK(ret_st->st_mode))
		return -ENOENT;
	size = readlinkat(parent, name, target, sizeof target);
	fd = size < 0 ? -errno : fd_memfd_new("link");
	if (fd >= 0 && (fd_write_full(fd, target, (size_t)size) < 0 || lseek(fd, 0, SEEK_SET) < 0))
		close_fd(&fd);
	return fd;
}

/* Calls each for every path that belongs into the commit. */
static int each_path(struct job *job, int (*each)(struct job *job, const struct apply_item *item, const char *path))
{
	const struct apply *apply = job->context.apply;
	int r = 0;

	for (size_t i = 0; r == 0 && i < apply->count; i++) {
		const struct apply_item *item = &apply->items[i];
		const struct stage_change *change = item->change;
		char full[PATH_MAX];
		const char *path;
		int has;

		if (item->verdict != APPLY_TAKEN || (!git_change_is_file(change->staged_exists, &change->staged) &&
						     !git_change_is_file(change->host_exists, &change->host)))
			continue;
		path = git_change_path(&job->context, change, full);
		if (!path) {
			if (job->result)
				job->result->outside++;
			continue;
		}
		has = ask(job, GIT_HAS, path);
		if (has == 0 && git_ignored_has(job->ignored, path)) {
			if (job->result)
				job->result->ignored++;
			continue;
		}
		r = has < 0 ? has : each(job, item, path);
	}
	return r;
}

/* ---- the check ---- */

static int refuse_path(struct job *job, const char *path, const char *what, const char *hint)
{
	char shown[ERR_QUOTE_SIZE];

	err_set(job->err, ERR_STATE, EEXIST, "apply", "%s %s, so --commit does nothing", err_quote(shown, path), what);
	err_hint(job->err, "%s", hint);
	return -EEXIST;
}

static int check_conversion(struct job *job, const struct apply_item *item, const char *path)
{
	const struct stage_change *change = item->change;
	cleanup_fd int fd = FD_NONE;
	char what[128], text[192];
	int r;

	if (!change->staged_exists || !S_ISREG(change->staged.st_mode))
		return 0;
	fd = git_change_open(&job->context, item);
	r = fd < 0 ? -ESTALE : git_attributes_judge(job->commit->attributes, &job->context, path, fd,
						    job->commit->head.settings & GIT_CONVERTS_LINE_ENDS, what);
	if (r < 0 || !*what)
		return r;
	r = str_format(text, sizeof text, "would be stored by git with %s, which atoll does not run", what);
	return r < 0 ? r : refuse_path(job, path, text, "leave it out with -x, or run atoll apply, then git commit");
}

static int check_one(struct job *job, const struct apply_item *item, const char *path)
{
	struct stat st;
	cleanup_fd int fd = open_project(job->commit, path, &st);
	const struct git_question question = {
		.step = GIT_CHECK, .text = path, .fd = fd < 0 ? FD_NONE : fd,
		.mode = fd >= 0 ? git_change_mode(&st) : 0,
	};
	struct git_answer answer;
	int r = fd < 0 && fd != -ENOENT ? fd : git_maker_ask(&job->commit->maker, &question, &answer);

	if (r == GIT_FILE_STAGED)
		return refuse_path(job, path, "has changes that you staged with git add",
				   "commit them first, or leave the file out with -x");
	if (r == GIT_FILE_CHANGED)
		return refuse_path(job, path, "has changes of your own that are not committed",
				   "commit them first, or leave the file out with -x");
	return r < 0 ? r : check_conversion(job, item, path);
}

static const char *ref_of(const struct git_commit *commit)
{
	return *commit->head.text ? commit->head.text : "HEAD";
}

/* Whether the locks can be had. They are not kept: an apply may take long, and may be killed. */
static int try_locks(const struct git_commit *commit, struct err *err)
{
	struct git_write write;
	int r = git_write_lock(&write, commit->repository.own_fd, ref_of(commit));

	git_write_done(&write);
	if (r == -EEXIST)
		return refuse(err, "another git command is at work",
			      "wait for it; after a crash of git remove its .lock files");
	if (r == -EINVAL)
		return refuse(err, "HEAD names no branch", other_ways);
	return r < 0 ? refuse(err, "its git directory cannot be written", other_ways) : 0;
}

int git_commit_check(const struct git_commit *commit, const struct opened *opened, const struct apply *apply,
		     struct err *err)
{
	struct job job;
	int r = try_locks(commit, err);

	if (r == 0)
		r = job_init(&job, commit, opened, apply, err);
	if (r < 0)
		return r;
	r = each_path(&job, check_one);
	git_ignored_free(job.ignored);
	if (r == -ESTALE)
		return git_fail_with(err, r, "the session changed a file while it was read",
				     "stop the session, or try again");
	return r < 0 && err->code == ERR_NONE ? git_fail(err, r) : r;
}

/* ---- the commit ---- */

static int put_one(struct job *job, const struct apply_item *item, const char *path)
{
	struct stat st, now;
	cleanup_fd int fd = open_project(job->commit, path, &st);
	const struct git_question question = { .step = GIT_PUT, .text = path, .fd = fd, .st = &st,
					       .mode = fd >= 0 ? git_change_mode(&st) : 0 };
	struct git_answer answer;
	int r;

	(void)item;
	if (fd < 0 && fd != -ENOENT)
		return fd;
	r = fd < 0 ? ask(job, GIT_REMOVE, path) : git_maker_ask(&job->commit->maker, &question, &answer);
	/* An editor that saves it meanwhile: the index must not take the old bytes for the new ones. */
	if (r == 0 && fd >= 0 && S_ISREG(st.st_mode) &&
	    (fstat(fd, &now) < 0 || now.st_size != st.st_size ||
	     memcmp(&now.st_mtim, &st.st_mtim, sizeof st.st_mtim) != 0))
		r = -ESTALE;
	if (r == -EXDEV || r == -EINVAL) {
		job->result->outside++;
		return 0;
	}
	job->result->files += r == 0;
	return r;
}

/* Under the locks: objects, the index, then the branch. */
static int commit_locked(struct job *job, struct git_write *write, const char *message)
{
	const struct git_question question = { .step = GIT_COMMIT, .text = message, .fd = FD_NONE };
	cleanup_fd int index_fd = FD_NONE;
	struct git_answer answer;
	int r = ask(job, GIT_RELOAD, "");

	if (r == 0)
		r = each_path(job, put_one);
	if (r == 0)
		r = git_maker_ask(&job->commit->maker, &question, &answer);
	/* Nothing differs: the index stays as it is, too. */
	if (r != 0)
		return r < 0 ? r : 0;
	r = ask(job, GIT_STORE_INDEX, "");
	if (r == 0)
		r = index_fd = fd_open_at(job->commit->copy_fd, COPY_NAME, O_RDONLY | O_NOFOLLOW, 0);
	if (r >= 0)
		r = git_write_index(write, index_fd);
	if (r == 0)
		r = git_write_publish(write, &(struct git_reflog){ .old = job->commit->head.hex, .new = answer.hex,
								   .who = answer.text, .message = message });
	return r < 0 ? r : str_copy(job->result->commit, sizeof job->result->commit, answer.hex);
}

static int commit_all(struct job *job, const char *message)
{
	const char *ref = ref_of(job->commit);
	struct git_write write;
	int r = git_write_lock(&write, job->commit->repository.own_fd, ref);

	if (str_has_prefix(ref, "refs/heads/") && r == 0)
		r = str_copy(job->result->branch, sizeof job->result->branch, ref + strlen("refs/heads/"));
	if (r == 0)
		r = commit_locked(job, &write, message);
	git_write_done(&write);
	return r;
}

static int open_apply(int stage_fd, uint32_t number)
{
	char path[64];
	int r = str_format(path, sizeof path, STAGE_DIRECTORY_APPLIES "/%u", number);

	return r < 0 ? r : fd_open_at(stage_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

static void note(const struct job *job)
{
	cleanup_fd int fd = open_apply(job->context.opened->stage_fd, job->context.apply->number);
	char text[sizeof job->result->branch + COMMIT_HEX_SIZE + 2];

	/* For a sentence of `atoll undo` alone. */
	if (fd >= 0 && str_format(text, sizeof text, "%s %s", job->result->commit, job->result->branch) == 0)
		(void)!fd_replace_file_at(fd, NOTE, text, strlen(text), 0600);
}

bool git_commit_of_apply(int stage_fd, uint32_t number, char *out, size_t size)
{
	cleanup_fd int fd = open_apply(stage_fd, number);
	cleanup_free char *text = NULL;
	size_t length;

	return fd >= 0 && fd_read_file_at(fd, NOTE, size - 1, &text, &length) == 0 && str_copy(out, size, text) == 0 &&
	       length > COMMIT_HEX_SIZE - 1;
}

static const struct {
	int errnum;
	const char *what;
} faults[] = {
	{ EEXIST, "another git command is at work" },
	{ ESTALE, "HEAD, the index or a file changed meanwhile" },
	{ EACCES, "the git directory cannot be written" },
	{ ERANGE, "the index is split or sparse" },
	{ EUCLEAN, "the index has conflicts" },
};

static int fail(int r, struct err *err)
{
	const char *what = strerror(-r);

	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		if (faults[i].errnum == -r)
			what = faults[i].what;
	err_set(err, ERR_STATE, -r, "apply", "the changes are applied, but not committed: %s", what);
	err_hint(err, "look with git status, then git add and git commit; or take them back with atoll undo");
	return r;
}

int git_commit_run(const struct git_commit *commit, const struct opened *opened, const struct apply *apply,
		   const char *message, struct git_commit_result *ret_result, struct err *err)
{
	char text[PATH_MAX];
	struct job job;
	int r = message ? str_copy(text, sizeof text, message)
			: str_format(text, sizeof text, "Changes of atoll session %s\n", opened->record.session);

	*ret_result = (struct git_commit_result){ 0 };
	if (r < 0)
		return err_set(err, ERR_USAGE, E2BIG, "apply", "the message is too long");
	r = job_init(&job, commit, opened, apply, err);
	if (r < 0)
		return r;
	job.result = ret_result;
	r = commit_all(&job, text);
	if (r == 0 && *ret_result->commit)
		note(&job);
	git_ignored_free(job.ignored);
	return r < 0 ? fail(r, err) : 0;
}
