/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The child stands in the git directory and is handed one file after the other: a message with a path, and the bytes as
 * a descriptor. It answers with a number.
 */

#include "prog/atoll-stage/apply/git-branch.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "confine/confine.h"
#include "os/fd.h"
#include "os/landlock.h"
#include "os/path.h"
#include "prog/atoll-stage/apply/git-identity.h"
#include "prog/atoll-stage/apply/git-ignored.h"
#include "prog/atoll-stage/review/text.h"
#include "text/commit.h"

enum { HEAD_MAX = 512, TEXT_MAX = 8 << 10 };

enum step { STEP_BEGIN, STEP_HAS, STEP_PUT, STEP_REMOVE, STEP_COMMIT };

struct message {
	uint32_t step, mode;
	char path[PATH_MAX];         /* STEP_COMMIT: the message */
};

struct answer {
	int32_t result;
	char hex[COMMIT_HEX_SIZE];
};

/* What the child was given before it confined itself. */
struct child {
	int socket_fd;
	const char *name;            /* of the branch */
	char head[HEAD_MAX];
	struct git_identity who;
	struct commit_maker *maker;
};

/* The child. */

static int begin(struct child *child)
{
	char hex[COMMIT_HEX_SIZE];
	int r = commit_branch_is_valid(child->name) ? commit_resolve_head(child->head, hex) : -EINVAL;

	if (r < 0)
		return r;
	r = commit_maker_new(r ? hex : NULL, &child->maker);
	git_identity_parse(&child->who);
	return r == 0 && !*child->who.name ? -ENOKEY : r;
}

static int commit(struct child *child, const char *text, struct answer *answer)
{
	int r = commit_maker_write(child->maker, text, child->who.name, child->who.email, answer->hex);

	return r == 0 ? commit_make_branch(child->name, answer->hex) : r;
}

static int do_step(struct child *child, const struct message *message, int fd, struct answer *answer)
{
	if (message->step != STEP_BEGIN && !child->maker)
		return -EINVAL;
	switch (message->step) {
	case STEP_BEGIN:
		return begin(child);
	case STEP_HAS:
		return commit_maker_has(child->maker, message->path);
	case STEP_PUT:
		return fd < 0 ? -EINVAL : commit_maker_put(child->maker, message->path, message->mode, fd);
	case STEP_REMOVE:
		return commit_maker_remove(child->maker, message->path);
	default:
		return commit(child, message->path, answer);
	}
}

static void serve(struct child *child)
{
	static struct message message;

	for (;;) {
		struct answer answer = { 0 };
		int fd = FD_NONE;
		size_t count = 0;
		ssize_t n = fd_receive_message(child->socket_fd, &message, sizeof message, &fd, 1, &count);

		if (n != (ssize_t)sizeof message)
			return;
		answer.result = do_step(child, &message, count ? fd : FD_NONE, &answer);
		if (count)
			close(fd);
		if (fd_send_message(child->socket_fd, &answer, sizeof answer, NULL, 0) < 0)
			return;
	}
}

enum {
	READ = LANDLOCK_READ_FILE | LANDLOCK_READ_DIR,
	WRITE = READ | LANDLOCK_WRITE_FILE | LANDLOCK_TRUNCATE | LANDLOCK_REMOVE_FILE | LANDLOCK_MAKE_DIR |
		LANDLOCK_MAKE_REG | LANDLOCK_REFER,
};

static int be_child(struct child *child, int git_fd)
{
	cleanup_fd int objects_fd = fd_open_at(git_fd, "objects", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	cleanup_fd int refs_fd = fd_open_at(git_fd, "refs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	const struct confine_place places[] = { { git_fd, READ }, { objects_fd, WRITE }, { refs_fd, WRITE } };

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || objects_fd < 0 || refs_fd < 0 || fchdir(git_fd) < 0 ||
	    text_begin() < 0)
		return 1;
	tzset();
	if (confine_self(CONFINE_STAGE_COMMIT, places, ARRAY_SIZE(places), NULL) < 0)
		return 1;
	serve(child);
	return 0;
}

/* The repository. */

static int fail(struct err *err, int r, const char *what, const char *hint)
{
	err_set(err, ERR_STATE, -r, "apply", "%s", what);
	err_hint(err, "%s", hint);
	return r;
}

static const char patch_hint[] = "atoll apply --patch FILE writes a patch that `git apply` takes";

/* A linked work tree names its git directory in a file, and that one names it: only where both do it is one. */
static int open_linked(const char *root, int root_fd, int *ret_own_fd)
{
	static const char begin[] = "gitdir: ";
	cleanup_free char *text = NULL, *back = NULL;
	char path[PATH_MAX], link[PATH_MAX];
	struct stat mine, named;
	size_t size;
	int r = fd_read_file_at(root_fd, ".git", PATH_MAX, &text, &size);

	if (r < 0 || !str_has_prefix(text, begin))
		return -ENOTSUP;
	text[strcspn(text, "\n")] = 0;
	r = path_join(path, sizeof path, root, text + sizeof begin - 1);
	if (r == 0)
		r = *ret_own_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0)
		r = fd_read_file_at(*ret_own_fd, "gitdir", PATH_MAX, &back, &size);
	if (r < 0)
		return -ENOTSUP;
	back[strcspn(back, "\n")] = 0;
	r = path_join(link, sizeof link, path, back);
	if (r < 0 || stat(link, &named) < 0 || fstatat(root_fd, ".git", &mine, 0) < 0 || named.st_ino != mine.st_ino ||
	    named.st_dev != mine.st_dev)
		return -ENOTSUP;
	return 0;
}

/* Where objects and refs are: the same directory, or what `commondir` in it names. */
static int open_common(int own_fd)
{
	cleanup_free char *text = NULL;
	size_t size;
	int r = fd_read_file_at(own_fd, "commondir", PATH_MAX, &text, &size);

	if (r == -ENOENT)
		return fd_duplicate(own_fd);
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = 0;
	return fd_open_at(own_fd, text, O_RDONLY | O_DIRECTORY, 0);
}

struct repository {
	char root[PATH_MAX];
	int own_fd, common_fd;       /* owned */
};

static int find_repository(const char *base, struct repository *repository, struct err *err)
{
	int r = str_copy(repository->root, sizeof repository->root, base ? base : "/");
	bool is_found = false;
	struct stat common;

	while (r == 0 && !is_found) {
		cleanup_fd int root_fd = fd_open_at(AT_FDCWD, repository->root, O_RDONLY | O_DIRECTORY, 0);
		char *slash = strrchr(repository->root, '/');
		struct stat st;

		if (root_fd >= 0 && fstatat(root_fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0) {
			is_found = true;
			if (S_ISDIR(st.st_mode))
				r = repository->own_fd = fd_open_at(root_fd, ".git",
								    O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
			else
				r = S_ISREG(st.st_mode) ? open_linked(repository->root, root_fd, &repository->own_fd) :
							  -ENOTSUP;
		} else if (!slash || !repository->root[1]) {
			return fail(err, -ENOENT, "the project lies in no git repository", patch_hint);
		} else {
			slash[slash == repository->root] = 0;
		}
	}
	if (r >= 0)
		r = repository->common_fd = open_common(repository->own_fd);
	/* git says no to these as well. What root wrote there its owner could not go on with. */
	if (r >= 0 && !(fstat(r, &common) == 0 && common.st_uid == geteuid()))
		return fail(err, -EPERM, "the project's git repository belongs to another user", patch_hint);
	return r < 0 ? fail(err, -ENOTSUP, "the project's git repository is of a kind that --branch does not know "
			    "(a submodule, or one that lies elsewhere)", patch_hint) : 0;
}

static const struct {
	int errnum;
	const char *what, *hint;
} faults[] = {
	{ EINVAL, "git takes no branch of this name", "choose another name" },
	{ EEXIST, "there is such a branch already", "choose another name, or remove it with git branch -D" },
	{ ENOTDIR, "another branch's name stands in the way of this one", "choose another name" },
	{ ENOTSUP, "the repository keeps its objects or refs in a form that --branch does not know", patch_hint },
	{ ENOENT, "the commit that HEAD names cannot be read (a partial clone, or objects that lie elsewhere)",
	  patch_hint },
	{ ENOKEY, "git does not know who you are",
	  "say it with: git config --global user.name NAME, and user.email (files that these include are not read)" },
};

static int fail_git(struct err *err, int r)
{
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		if (r == -faults[i].errnum)
			return fail(err, r, faults[i].what, faults[i].hint);
	return err_set(err, ERR_STATE, r < 0 ? -r : EIO, "apply", "the commit could not be made: %s",
		       strerror(r < 0 ? -r : EIO));
}

/* The answer's result, or negative where the child is gone. */
static int ask(const struct git_branch *branch, enum step step, mode_t mode, const char *text, int fd,
	       struct answer *ret_answer)
{
	static struct message message;
	size_t count;

	message.step = step;
	message.mode = mode;
	if (str_copy(message.path, sizeof message.path, text) < 0)
		return -ENAMETOOLONG;
	if (fd_send_message(branch->socket_fd, &message, sizeof message, &fd, fd >= 0) < 0 ||
	    fd_receive_message(branch->socket_fd, ret_answer, sizeof *ret_answer, NULL, 0, &count) !=
		    (ssize_t)sizeof *ret_answer)
		return -EPIPE;
	return ret_answer->result;
}

static int fork_child(struct git_branch *branch, struct child *child, int git_fd)
{
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		child->socket_fd = ends[1];
		_exit(be_child(child, git_fd));
	}
	close(ends[1]);
	branch->socket_fd = ends[0];
	return pid < 0 ? -errno : 0;
}

int git_branch_start(struct git_branch *ret_branch, const struct opened *opened, const char *name, struct err *err)
{
	struct repository repository = { .own_fd = FD_NONE, .common_fd = FD_NONE };
	static struct child child;
	cleanup_free char *head = NULL;
	struct answer answer;
	size_t size;
	int r = find_repository(opened->session->base, &repository, err);

	child.name = name;
	if (r == 0) {
		r = fd_read_file_at(repository.own_fd, "HEAD", HEAD_MAX - 1, &head, &size);
		r = r < 0 ? fail_git(err, -ENOTSUP) : str_copy(child.head, sizeof child.head, head);
	}
	if (r == 0) {
		git_identity_load(repository.common_fd, &child.who);
		r = fork_child(ret_branch, &child, repository.common_fd);
		r = r < 0 ? r : ask(ret_branch, STEP_BEGIN, 0, "", FD_NONE, &answer);
		r = r < 0 ? fail_git(err, r) : 0;
	}
	if (r == 0 && !(ret_branch->root = str_dup(repository.root)))
		r = err_set(err, ERR_INTERNAL, ENOMEM, "apply", "out of memory");
	git_identity_done(&child.who);
	close_fd(&repository.own_fd);
	close_fd(&repository.common_fd);
	return r;
}

void git_branch_done(struct git_branch *branch)
{
	close_fd(&branch->socket_fd);
	free(branch->root);
	*branch = GIT_BRANCH_NONE;
}

/* The changes. */

struct job {
	struct git_branch *branch;
	const struct opened *opened;
	const struct apply *apply;
	struct git_branch_result *result;
	struct git_ignored *ignored;
};

/* The path in the work tree; NULL: it lies outside, or in what is git's own. */
static const char *path_in(const struct job *job, const struct stage_change *change, char full[PATH_MAX])
{
	const char *tree = job->opened->record.trees[change->tree].path, *root = job->branch->root, *inner;
	size_t length = str_equal(root, "/") ? 0 : strlen(root);

	if (!*change->path || str_format(full, PATH_MAX, "%s/%s", str_equal(tree, "/") ? "" : tree, change->path) < 0 ||
	    strncmp(full, root, length) != 0 || full[length] != '/')
		return NULL;
	inner = full + length + 1;
	return git_ignored_is_own(job->ignored, inner) ? NULL : inner;
}

static int open_content(const struct job *job, const struct apply_item *item)
{
	const struct stage_change *change = item->change;
	const struct stage_stack *stack = &job->opened->stacks[change->tree];
	struct text target = { 0 };
	int fd, r;

	if (item->merged)
		return fd_open_at(job->apply->merged_fd, item->merged, O_RDONLY | O_NOFOLLOW, 0);
	if (!S_ISLNK(change->staged.st_mode))
		return stage_change_open(stack, change);
	r = text_load(job->opened, change, SIDE_STAGED, PATH_MAX, &target);
	fd = r < 0 ? r : target.kind == TEXT_LINES || target.kind == TEXT_BINARY ? fd_memfd_new("link") : -ESTALE;
	if (fd >= 0 && (fd_write_full(fd, target.bytes, target.size) < 0 || lseek(fd, 0, SEEK_SET) < 0))
		close_fd(&fd);
	text_done(&target);
	return fd;
}

/* Whether what was read is what was judged: a session that runs may write on. */
static bool is_still(const struct apply_item *item, int fd)
{
	const struct stat *judged = &item->change->staged;
	struct stat now;

	return item->merged || S_ISLNK(judged->st_mode) ||
	       (fstat(fd, &now) == 0 && now.st_size == judged->st_size &&
		memcmp(&now.st_mtim, &judged->st_mtim, sizeof now.st_mtim) == 0 &&
		memcmp(&now.st_ctim, &judged->st_ctim, sizeof now.st_ctim) == 0);
}

static int put(const struct job *job, const struct apply_item *item, const char *path)
{
	const struct stage_change *change = item->change;
	mode_t mode = S_ISLNK(change->staged.st_mode) ? 0120000 : change->staged.st_mode & 0100 ? 0100755 : 0100644;
	cleanup_fd int fd = open_content(job, item);
	struct answer answer;
	int r = fd < 0 ? -ESTALE : ask(job->branch, STEP_PUT, mode, path, fd, &answer);

	return r == 0 && !is_still(item, fd) ? -ESTALE : r;
}

static bool is_file(bool exists, const struct stat *st)
{
	return exists && (S_ISREG(st->st_mode) || S_ISLNK(st->st_mode));
}

static int commit_item(const struct job *job, const struct apply_item *item)
{
	const struct stage_change *change = item->change;
	struct answer answer;
	char full[PATH_MAX];
	const char *path;
	int r;

	/* git keeps files alone. */
	if (!is_file(change->staged_exists, &change->staged) && !is_file(change->host_exists, &change->host))
		return 0;
	path = path_in(job, change, full);
	if (!path) {
		job->result->outside++;
		return 0;
	}
	r = ask(job->branch, STEP_HAS, 0, path, FD_NONE, &answer);
	if (r == 0 && git_ignored_has(job->ignored, path)) {
		job->result->ignored++;
		return 0;
	}
	if (r >= 0)
		r = is_file(change->staged_exists, &change->staged) ?
			    put(job, item, path) : ask(job->branch, STEP_REMOVE, 0, path, FD_NONE, &answer);
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
	struct job job = { .branch = branch, .opened = opened, .apply = apply, .result = ret_result };
	char text[TEXT_MAX];
	struct answer answer;
	int r = message ? str_copy(text, PATH_MAX, message)
			: str_format(text, PATH_MAX, "Changes of atoll session %s\n", opened->record.session);

	*ret_result = (struct git_branch_result){ 0 };
	if (r < 0)
		return err_set(err, ERR_USAGE, E2BIG, "apply", "the message is too long");
	r = git_ignored_new(opened, apply, branch->root, &job.ignored);
	for (size_t i = 0; r == 0 && i < apply->count; i++)
		if (apply->items[i].verdict == APPLY_TAKEN)
			r = commit_item(&job, &apply->items[i]);
	git_ignored_free(job.ignored);
	if (r == -ESTALE)
		return fail(err, r, "the session changed a file while it was read", "stop the session, or try again");
	if (r == 0)
		r = ask(branch, STEP_COMMIT, 0, text, FD_NONE, &answer);
	if (r < 0)
		return fail_git(err, r);
	return r ? 0 : str_format(ret_result->commit, sizeof ret_result->commit, "%.40s", answer.hex);
}
