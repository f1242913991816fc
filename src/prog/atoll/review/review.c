/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/review/review.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>

#include "base/str.h"
#include "client/control-client.h"
#include "client/dirs.h"
#include "client/staged.h"
#include "os/path.h"
#include "os/pty.h"
#include "session/directories.h"

enum { PAGER_WORDS_MAX = 16, PAGER_SIZE_MAX = 1024 };

void review_free(struct review *review)
{
	if (!review)
		return;
	for (size_t i = 0; i < review->count; i++)
		free(review->argv[i]);
	session_record_done(&review->session);
	free(review);
}

static int add_word(struct review *review, const char *word, struct err *err)
{
	if (review->count >= REVIEW_ARGS_MAX)
		return err_set(err, ERR_USAGE, E2BIG, "options", "more than %d words", REVIEW_ARGS_MAX);
	review->argv[review->count] = str_dup(word);
	if (!review->argv[review->count])
		return err_set(err, ERR_INTERNAL, ENOMEM, "options", "out of memory");
	review->count++;
	return 0;
}

int review_add(struct review *review, const char *option, const char *value, struct err *err)
{
	int r = add_word(review, option, err);

	return r == 0 && value ? add_word(review, value, err) : r;
}

/* Whether the word is exactly the id or the name of a session; a prefix of an id might as well be a file. */
static bool is_session(struct review *review, const char *word)
{
	struct err ignored;

	if (strchr(word, '/') || session_find(review->state, NULL, word, false, &review->session, &ignored) < 0)
		return false;
	if (str_equal(review->session.id, word) || (*review->session.name && str_equal(review->session.name, word)))
		return true;
	session_record_done(&review->session);
	review->session = (struct session_record){ 0 };
	return false;
}

static int find(struct review *review, char **words, int count, int *used, struct err *err)
{
	bool is_named = count > 0 && is_session(review, words[0]);
	int r = is_named ? 0 : staged_find_newest(review->state, &review->session, err);

	*used = is_named;
	if (r == 0)
		r = review_add(review, "--state", review->state, err);
	if (r == 0)
		r = review_add(review, "--session", review->session.id, err);
	return r == 0 ? review_add(review, "--base", review->session.project, err) : r;
}

struct review *review_new(const char *verb, char **words, int count, int *used, struct err *err)
{
	struct review *review = calloc(1, sizeof *review);

	if (review && review_add(review, "atoll-stage", verb, err) == 0 &&
	    session_state_dir(review->state, sizeof review->state, false, err) == 0 &&
	    find(review, words, count, used, err) == 0)
		return review;
	if (!review)
		err_set(err, ERR_INTERNAL, ENOMEM, verb, "out of memory");
	review_free(review);
	return NULL;
}

int review_add_flags(struct review *review, const struct review_flag *flags, size_t count, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++)
		if (flags[i].is_given)
			r = review_add(review, flags[i].option, NULL, err);
	return r;
}

int review_add_paths(struct review *review, char **words, int count, struct err *err)
{
	int r = 0;

	for (int i = 0; r == 0 && i < count; i++)
		r = review_add_path(review, words[i], err);
	return r;
}

/*
 * The last component stays as it is (it may be a link, which is then what was changed); those above are resolved as
 * far as the host has them, for the trees of a session are known by their real dirs.
 */
static int resolve(const char *path, char out[PATH_MAX])
{
	char above[PATH_MAX], real[PATH_MAX];
	char *slash;
	int r = path_normalise(above, sizeof above, path);

	if (r < 0 || str_equal(above, "/"))
		return r < 0 ? r : str_copy(out, PATH_MAX, above);
	path = above + strlen(above);
	for (slash = strrchr(above, '/'); slash > above; slash = strrchr(above, '/')) {
		*slash = 0;
		r = path_real(above, real, sizeof real);
		*slash = '/';
		if (r == 0)
			return str_format(out, PATH_MAX, "%s%s", str_equal(real, "/") ? "" : real, slash);
		break;
	}
	return str_copy(out, PATH_MAX, above);
}

int review_add_path(struct review *review, const char *word, struct err *err)
{
	char path[PATH_MAX], resolved[PATH_MAX], shown[ERR_QUOTE_SIZE];
	int r;

	/* Not the working directory: an unset variable of a script must not apply all of it. */
	if (!*word)
		return err_set(err, ERR_USAGE, EINVAL, "options", "an empty word is no path");
	r = dirs_absolute(word, "path", path, err);
	if (r < 0)
		return r;
	if (resolve(path, resolved) < 0)
		return err_set(err, ERR_USAGE, EINVAL, "options", "%s is no path", err_quote(shown, word));
	return add_word(review, resolved, err);
}

static int finish(struct review *review, char program[PATH_MAX], struct err *err)
{
	char programs[PATH_MAX];
	int r = dirs_programs(programs, err);

	if (r < 0)
		return r;
	if (path_join(program, PATH_MAX, programs, "atoll-stage") < 0)
		return err_set(err, ERR_STATE, ENAMETOOLONG, "stage", "the path of atoll's programs is too long");
	/* The words that are paths stand behind all options already; these two may stand anywhere. */
	if (isatty(STDOUT_FILENO))
		r = review_add(review, "--escape", NULL, err);
	if (r == 0 && pty_has_colour(STDOUT_FILENO))
		r = review_add(review, "--colour", NULL, err);
	review->argv[review->count] = NULL;
	return r;
}

static int fail_start(const char *program, int errnum, struct err *err)
{
	return err_not_started("stage", program, errnum, err);
}

int review_exec(struct review *review, struct err *err)
{
	char program[PATH_MAX];
	int r = finish(review, program, err);

	if (r < 0)
		return r;
	execve(program, review->argv, environ);
	return fail_start(program, errno, err);
}

/* The words of the user's pager, split at blanks: never a shell. Empty or "cat": none. */
static size_t pager_words(char text[PAGER_SIZE_MAX], char *words[PAGER_WORDS_MAX + 1])
{
	const char *given = getenv("ATOLL_PAGER");
	size_t count = 0;

	if (!given)
		given = getenv("PAGER");
	if (str_copy(text, PAGER_SIZE_MAX, given ? given : "less -R") < 0)
		return 0;
	for (char *at = text; *at && count < PAGER_WORDS_MAX;) {
		at += strspn(at, " \t");
		if (!*at)
			break;
		words[count++] = at;
		at += strcspn(at, " \t");
		if (*at)
			*at++ = 0;
	}
	words[count] = NULL;
	return count == 1 && str_equal(words[0], "cat") ? 0 : count;
}

static int spawn(const char *program, char **argv, int from, int to, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r == 0)
		r = posix_spawn_file_actions_adddup2(&actions, from, to);
	if (r == 0)
		r = posix_spawnp(ret_pid, program, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return 125;
	return WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) == SIGPIPE ? 0 : 128 + WTERMSIG(status);
}

/* What git tells less, for the same reasons: colours, no pager for what fits, and the text stays. */
static int set_pager_defaults(void)
{
	return setenv("LESS", "FRX", 0);
}

int review_exec_paged(struct review *review, struct err *err)
{
	char text[PAGER_SIZE_MAX], *words[PAGER_WORDS_MAX + 1], program[PATH_MAX];
	cleanup_fd int read_fd = FD_NONE, write_fd = FD_NONE;
	pid_t pager, stage;
	int ends[2], r;

	if (!isatty(STDOUT_FILENO) || !pty_is_able() || !pager_words(text, words))
		return review_exec(review, err);
	r = finish(review, program, err);
	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0 || set_pager_defaults() < 0)
		return err_set(err, ERR_INTERNAL, errno, "pager", "%s", strerror(errno));
	read_fd = ends[0];
	write_fd = ends[1];
	/* Without a pager all of it goes to the terminal, which --escape has made safe. */
	if (spawn(words[0], words, read_fd, STDIN_FILENO, &pager) < 0) {
		execve(program, review->argv, environ);
		return fail_start(program, errno, err);
	}
	/* The keyboard's signals are for the pager. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	r = spawn(program, review->argv, write_fd, STDOUT_FILENO, &stage);
	close_fd(&write_fd);
	close_fd(&read_fd);
	if (r < 0)
		fail_start(program, -r, err);
	else
		r = wait_for(stage);
	wait_for(pager);
	return r;
}
