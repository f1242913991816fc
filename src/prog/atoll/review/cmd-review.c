/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "client/program.h"
#include "client/staged.h"
#include "os/fd.h"
#include "os/spawn.h"
#include "prog/atoll/verb/cmd.h"
#include "session/record.h"

/*
 * `atoll review`: asks on the terminal what becomes of the changes of a session, and has the other verbs do it. A run
 * on a terminal ends with this. What the agent wrote may have made the terminal answer something, so what was typed
 * before the question is dropped, and an answer is a whole line.
 */

enum { LINE_SIZE = 64, QUIET_US = 50000 };

struct review_options {
	const char *status;
};

static const struct option options[] = {
	{ 0, "then-exit", "STATUS", "end with this status where nothing that was chosen fails", OPTION_TEXT,
	  offsetof(struct review_options, status) },
};

/* One verb in a process of its own: its exit status, or negative with *err. */
static int run_verb_of(const char *verb, const char *option, const char *session, struct err *err)
{
	const char *argv[] = { "atoll", verb, session, option, NULL };
	struct program program = { .name = "atoll", .stage = "review", .argv = argv };
	pid_t pid;
	int r;

	/* Ctrl-C is for what runs. */
	signal(SIGINT, SIG_IGN);
	r = program_start(&program, &pid, err);
	r = r < 0 ? r : spawn_wait(pid, NULL);
	signal(SIGINT, SIG_DFL);
	return r;
}

/* A line without its newline and the blanks around; false: there is no more. */
static bool read_line(char out[LINE_SIZE])
{
	size_t size = 0;
	char c = 0;
	ssize_t n;

	while (c != '\n') {
		n = read(STDIN_FILENO, &c, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		if (!isspace((unsigned char)c) && size < LINE_SIZE - 1)
			out[size++] = c;
	}
	out[size] = 0;
	return true;
}

static int put(const char *text, struct err *err)
{
	int r = fd_write_full(STDERR_FILENO, text, strlen(text));

	return r < 0 ? err_set(err, ERR_STATE, -r, "review", "the terminal cannot be written: %s", strerror(-r)) : 0;
}

/* What each answer does. */
static const struct choice {
	const char *letter, *word, *verb, *option;
	bool is_last, is_checked;
} choices[] = {
	{ "r", "review", "diff", "--patch", false, false },
	{ "i", "interactive", "apply", "--interactive", true, false },
	{ "a", "apply", "apply", NULL, true, false },
	{ "k", "keep", NULL, NULL, true, false },
	{ "d", "drop", "discard", NULL, true, true },
};

static const char question[] = "atoll: [r]eview the changes, apply them hunk by hunk [i], [a]pply all, "
			       "[k]eep them for later (Enter), [d]rop them? ";

static const struct choice *find_choice(const char *line)
{
	if (!*line)
		line = "k";
	for (size_t i = 0; i < ARRAY_SIZE(choices); i++)
		if (str_equal(line, choices[i].letter) || str_equal(line, choices[i].word))
			return &choices[i];
	return NULL;
}

/* NULL: the terminal has ended, which keeps them. */
static const struct choice *ask(struct err *err)
{
	static const struct choice keep = { .is_last = true };
	const struct choice *choice = NULL;
	char line[LINE_SIZE];

	while (!choice) {
		usleep(QUIET_US);
		tcflush(STDIN_FILENO, TCIFLUSH);
		if (put(question, err) < 0)
			return NULL;
		if (!read_line(line))
			return &keep;
		choice = find_choice(line);
		if (choice && choice->is_checked) {
			if (put("atoll: what is dropped cannot be had back; drop all of it? [y/N] ", err) < 0)
				return NULL;
			if (!read_line(line))
				return &keep;
			choice = str_equal(line, "y") || str_equal(line, "yes") ? choice : NULL;
		}
	}
	return choice;
}

static int review(const char *session, int status, struct err *err)
{
	const struct choice *choice;
	int r;

	do {
		choice = ask(err);
		if (!choice)
			return -EIO;
		r = choice->verb ? run_verb_of(choice->verb, choice->option, session, err) : status;
	} while (r >= 0 && !choice->is_last);
	return r == 0 ? status : r;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	struct review_options given = { 0 };
	char state[PATH_MAX];
	uint64_t status = 0;
	int rest, r = cmd_parse(&cmd_review, &given, argc, argv, &rest, err);

	if (r < 0)
		return r;
	if (argc - rest > 1)
		return err_set(err, ERR_USAGE, EINVAL, "review", "one session at a time");
	if (given.status && (num_parse_u64(given.status, &status) < 0 || status > 255))
		return err_set(err, ERR_USAGE, EINVAL, "review", "--then-exit is a number up to 255");
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
		err_set(err, ERR_USAGE, ENOTTY, "review", "there is no terminal to ask on");
		err_hint(err, "in scripts use atoll diff, apply and discard");
		return -ENOTTY;
	}
	r = staged_find(rest < argc ? argv[rest] : NULL, state, &record, err);
	return r < 0 ? r : review(record.id, (int)status, err);
}

const struct cmd cmd_review = {
	"review", "[ID]", "ask what becomes of a session's changes",
	CMD_OPTIONS(options), .run = run_verb,
};
