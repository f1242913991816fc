/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/git/git-maker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "confine/confine.h"
#include "os/landlock.h"
#include "prog/atoll-stage/git/git-settings.h"
#include "text/git.h"
#include "text/index-copy.h"

enum { HEAD_MAX = 512 };

struct message {
	uint32_t step, mode, has_stat;
	struct stat st;
	char text[PATH_MAX];
};

/* What the child was given before it confined itself. */
struct child {
	int socket_fd;
	const struct git_work *work;
	char head[HEAD_MAX], parent[COMMIT_HEX_SIZE];
	struct git_settings settings;
	struct commit_maker *maker;
	struct index_copy *index;    /* of --commit */
};

/* The child. */

static int begin(struct child *child, struct git_answer *answer)
{
	const struct git_work *work = child->work;
	int r = !work->branch || commit_branch_is_valid(work->branch) ? 0 : -EINVAL;

	if (r == 0)
		r = commit_resolve_head(child->head, child->parent);
	if (r < 0)
		return r;
	if (!work->branch)
		commit_head_ref(child->head, answer->text, sizeof answer->text);
	r = commit_maker_new(r ? child->parent : NULL, &child->maker);
	if (r == 0 && !work->branch)
		r = index_copy_open("index", work->index_path, &child->index);
	memcpy(answer->hex, child->parent, sizeof answer->hex);
	if (r == 0)
		r = git_settings_parse(&child->settings, !work->branch, answer->text, sizeof answer->text);
	answer->settings = (child->settings.converts_line_ends ? GIT_CONVERTS_LINE_ENDS : 0) |
			   (child->settings.ignores_modes ? GIT_IGNORES_MODES : 0);
	return r == 0 && !*child->settings.name ? -ENOKEY : r;
}

/* Right before something is written, under git's own locks. */
static int reload(struct child *child)
{
	cleanup_free char *head = NULL;
	char hex[COMMIT_HEX_SIZE];
	size_t size;
	int r = fd_read_regular_at(AT_FDCWD, "HEAD", HEAD_MAX - 1, &head, &size);

	if (r == 0 && !str_equal(head, child->head))
		return -ESTALE;
	if (r == 0)
		r = commit_resolve_head(head, hex);
	if (r >= 0 && !str_equal(hex, child->parent))
		return -ESTALE;
	if (r < 0)
		return r;
	index_copy_free(child->index);
	child->index = NULL;
	return index_copy_open("index", child->work->index_path, &child->index);
}

static bool is_same_file(const struct commit_file *a, const struct commit_file *b, bool ignores_modes)
{
	if (a->mode != b->mode && !(ignores_modes && (a->mode & S_IFMT) == (b->mode & S_IFMT)))
		return false;
	return !a->mode || memcmp(a->id, b->id, sizeof a->id) == 0;
}

static int check(struct child *child, const struct message *message, int fd)
{
	struct commit_file head = { 0 }, staged = { 0 }, now = { .mode = message->mode };
	int r;

	commit_maker_find(child->maker, message->text, &head);
	index_copy_find(child->index, message->text, &staged);
	if (!is_same_file(&head, &staged, false))
		return GIT_FILE_STAGED;
	r = fd >= 0 ? commit_hash(fd, now.id) : 0;
	if (r < 0)
		return r;
	return is_same_file(&head, &now, child->settings.ignores_modes) ? GIT_FILE_COMMITTED : GIT_FILE_CHANGED;
}

static int put(struct child *child, const struct message *message, int fd)
{
	struct commit_file file = { 0 };
	mode_t mode = message->mode;
	int r;

	if (fd < 0)
		return -EINVAL;
	/* The mode of the file system means nothing then. */
	if (child->settings.ignores_modes && S_ISREG(mode)) {
		commit_maker_find(child->maker, message->text, &file);
		mode = S_ISREG(file.mode) ? file.mode : 0100644;
	}
	r = commit_maker_put(child->maker, message->text, mode, fd);
	if (r < 0 || !child->index)
		return r;
	if (!message->has_stat)
		return -EINVAL;
	commit_maker_find(child->maker, message->text, &file);
	return index_copy_put(child->index, message->text, &file, &message->st);
}

static int take_away(struct child *child, const struct message *message)
{
	int r = commit_maker_remove(child->maker, message->text);

	return r < 0 || !child->index ? r : index_copy_remove(child->index, message->text);
}

static int commit(struct child *child, const char *text, struct git_answer *answer)
{
	struct commit_by who = { child->settings.name, child->settings.email, answer->text, sizeof answer->text };
	size_t length = strlen(text);
	char line[PATH_MAX + 2];
	int r = str_format(line, sizeof line, "%s%s", text, length && text[length - 1] == '\n' ? "" : "\n");

	if (r == 0)
		r = commit_maker_write(child->maker, line, &who, answer->hex);
	return r == 0 && child->work->branch ? commit_make_branch(child->work->branch, answer->hex) : r;
}

static int do_step(struct child *child, const struct message *message, int fd, struct git_answer *answer)
{
	if (message->step != GIT_BEGIN && !child->maker)
		return -EINVAL;
	switch (message->step) {
	case GIT_BEGIN:
		return begin(child, answer);
	case GIT_HAS:
		return commit_maker_find(child->maker, message->text, &(struct commit_file){ 0 });
	case GIT_CHECK:
		return child->index ? check(child, message, fd) : -EINVAL;
	case GIT_RELOAD:
		return reload(child);
	case GIT_PUT:
		return put(child, message, fd);
	case GIT_REMOVE:
		return take_away(child, message);
	case GIT_COMMIT:
		return commit(child, message->text, answer);
	case GIT_STORE_INDEX:
		return child->index ? index_copy_store(child->index) : -EINVAL;
	default:
		return -EINVAL;
	}
}

static void serve(struct child *child)
{
	static struct message message;

	for (;;) {
		struct git_answer answer = { 0 };
		int fd = FD_NONE;
		size_t count = 0;
		ssize_t n = fd_receive_message(child->socket_fd, &message, sizeof message, &fd, 1, &count);

		if (n != (ssize_t)sizeof message)
			return;
		message.text[sizeof message.text - 1] = 0;
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
	const struct confine_place places[] = {
		{ git_fd, READ }, { objects_fd, WRITE },
		{ child->work->branch ? refs_fd : child->work->index_fd, WRITE },
	};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || objects_fd < 0 || refs_fd < 0 || fchdir(git_fd) < 0 ||
	    text_begin() < 0)
		return 1;
	tzset();
	if (confine_self(CONFINE_STAGE_COMMIT, places, ARRAY_SIZE(places), NULL) < 0)
		return 1;
	serve(child);
	return 0;
}

/* Its parent. */

int git_maker_ask(const struct git_maker *maker, const struct git_question *question, struct git_answer *ret_answer)
{
	static struct message message;
	size_t count;

	message.step = question->step;
	message.mode = question->mode;
	message.has_stat = question->st != NULL;
	if (question->st)
		message.st = *question->st;
	if (str_copy(message.text, sizeof message.text, question->text ? question->text : "") < 0)
		return -ENAMETOOLONG;
	if (fd_send_message(maker->socket_fd, &message, sizeof message, &question->fd, question->fd >= 0) < 0 ||
	    fd_receive_message(maker->socket_fd, ret_answer, sizeof *ret_answer, NULL, 0, &count) !=
		    (ssize_t)sizeof *ret_answer)
		return -EPIPE;
	ret_answer->hex[COMMIT_HEX_SIZE - 1] = ret_answer->text[sizeof ret_answer->text - 1] = 0;
	return ret_answer->result;
}

static int fork_child(struct git_maker *maker, struct child *child, int git_fd)
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
	maker->socket_fd = ends[0];
	return pid < 0 ? -errno : 0;
}

int git_maker_start(struct git_maker *ret_maker, const struct git_repository *repository, const struct git_work *work,
		    struct git_answer *ret_answer, struct err *err)
{
	static struct child child;
	cleanup_free char *head = NULL;
	size_t size;
	int r = fd_read_regular_at(repository->own_fd, "HEAD", HEAD_MAX - 1, &head, &size);

	child.work = work;
	r = r < 0 ? -ENOTSUP : str_copy(child.head, sizeof child.head, head);
	if (r == 0) {
		git_settings_load(repository->common_fd, &child.settings);
		r = fork_child(ret_maker, &child, repository->common_fd);
		git_settings_done(&child.settings);
	}
	if (r == 0)
		r = git_maker_ask(ret_maker, &(struct git_question){ .step = GIT_BEGIN, .fd = FD_NONE }, ret_answer);
	return r < 0 && !(r == -EOPNOTSUPP && !work->branch) ? git_fail(err, r) : r;
}

void git_maker_done(struct git_maker *maker)
{
	close_fd(&maker->socket_fd);
}
