/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/review/review.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "client/dirs.h"
#include "client/program.h"
#include "client/staged.h"
#include "os/path.h"
#include "os/pty.h"
#include "session/directories.h"

enum { PAGER_WORDS_MAX = 16, PAGER_SIZE_MAX = 1024 };

void review_done(struct review *review)
{
	words_done(&review->words);
	session_record_done(&review->session);
}

/* Whether the word is exactly the id or the name of a session; a prefix of an id might as well be a file. */
static bool is_session(struct review *review, const char *word)
{
	struct err ignored;

	if (strchr(word, '/') || session_find(review->state, NULL, word, NULL, &review->session, &ignored) < 0)
		return false;
	if (str_equal(review->session.id, word) || (*review->session.name && str_equal(review->session.name, word)))
		return true;
	session_record_done(&review->session);
	review->session = (struct session_record){ 0 };
	return false;
}

int review_find(struct review *review, const char *verb, char **words, struct err *err)
{
	bool is_named = false;
	int r = session_state_dir(review->state, sizeof review->state, false, err);

	if (r == 0) {
		is_named = words[0] && is_session(review, words[0]);
		r = is_named ? 0 : staged_find_newest(review->state, &review->session, err);
	}
	if (r < 0)
		return r;
	review->paths = words + is_named;
	staged_words(&review->words, verb, review->state, review->session.id);
	words_add_option(&review->words, "--base", review->session.project);
	return 0;
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

int review_add_path(struct review *review, const char *option, const char *word, struct err *err)
{
	char path[PATH_MAX], resolved[PATH_MAX], shown[ERR_QUOTE_SIZE];
	int r;

	/* Not the working directory: an unset variable of a script must not apply all of it. */
	if (!*word)
		return err_set(err, ERR_USAGE, EINVAL, "options", "an empty argument is not a path");
	r = dirs_absolute(word, "path", path, err);
	if (r < 0)
		return r;
	if (resolve(path, resolved) < 0)
		return err_set(err, ERR_USAGE, EINVAL, "options", "%s is no path", err_quote(shown, word));
	words_add_flag(&review->words, option != NULL, option);
	words_add(&review->words, resolved);
	return 0;
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

static int wait_for(pid_t pid)
{
	int signal, r = spawn_wait(pid, &signal);

	return r < 0 ? 125 : signal == SIGPIPE ? 0 : r;
}

/* What git tells less, for the same reasons: colours, no pager for what fits, and the text stays. */
static int set_pager_defaults(void)
{
	return setenv("LESS", "FRX", 0);
}

static int become(struct review *review, struct err *err)
{
	return program_become("stage", &review->words, err);
}

/* pager: its words. */
static int run_paged(struct review *review, char **pager_argv, struct err *err)
{
	struct spawn pager = { .program = pager_argv[0], .argv = (const char *const *)pager_argv, .fd_count = 1,
			       .searches_path = true };
	struct program stage = { .name = review->words.list[0], .stage = "stage",
				 .argv = (const char *const *)review->words.list, .fd_count = 1 };
	cleanup_fd int read_fd = FD_NONE, write_fd = FD_NONE;
	pid_t pager_pid, pid;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0 || set_pager_defaults() < 0)
		return err_set(err, ERR_INTERNAL, errno, "pager", "%s", strerror(errno));
	read_fd = ends[0];
	write_fd = ends[1];
	pager.fds[0] = (struct spawn_fd){ read_fd, STDIN_FILENO };
	stage.fds[0] = (struct spawn_fd){ write_fd, STDOUT_FILENO };
	/* Without a pager all of it goes to the terminal, which --escape has made safe. */
	if (spawn_start(&pager, &pager_pid) < 0)
		return become(review, err);
	/* The keyboard's signals are for the pager. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	r = program_start(&stage, &pid, err);
	close_fd(&write_fd);
	close_fd(&read_fd);
	if (r == 0)
		r = wait_for(pid);
	wait_for(pager_pid);
	return r;
}

int review_exec(struct review *review, const struct cmd *cmd, const void *given, bool is_paged, struct err *err)
{
	char text[PAGER_SIZE_MAX], *pager[PAGER_WORDS_MAX + 1];
	bool is_terminal = isatty(STDOUT_FILENO);
	int r = 0;

	words_add_options(&review->words, cmd->options, cmd->option_count, given);
	for (char **path = review->paths; r == 0 && *path; path++)
		r = review_add_path(review, NULL, *path, err);
	words_add_flag(&review->words, is_terminal, "--escape");
	words_add_flag(&review->words, pty_has_colour(STDOUT_FILENO, getenv("TERM"), getenv("NO_COLOR")), "--colour");
	if (r == 0)
		r = program_check_words(&review->words, err);
	if (r < 0)
		return r;
	if (is_paged && is_terminal && pty_is_able(getenv("TERM")) && pager_words(text, pager))
		return run_paged(review, pager, err);
	return become(review, err);
}
