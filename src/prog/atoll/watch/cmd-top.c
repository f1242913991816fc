/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/num.h"
#include "base/str.h"
#include "client/dirs.h"
#include "os/fd.h"
#include "os/pty.h"
#include "os/spawn.h"
#include "prog/atoll/verb/cmd.h"
#include "prog/atoll/watch/top-feed.h"
#include "session/directories.h"
#include "session/record.h"
#include "wire/top-options.h"
#include "wire/top.h"

/*
 * `atoll top`: starts atoll-top, which draws and can do nothing else, and feeds it. What is hostile in names, commands
 * and logs is read there; what can reach boxes is here, and looks into none of it.
 */

enum { PACE_MS = 1000, ONCE_PACE_MS = 300, ARGS_MAX = 16 };

struct top_options {
	bool once, json, reverse;
	const char *delay, *sort, *filter;
};

#define AT(member) offsetof(struct top_options, member)
static const struct option options[] = {
	TOP_OPTIONS(AT),
};

extern char **environ;

/* The terminal as it was, should atoll-top die without a word. */
struct screen {
	pid_t pid;
	bool is_drawing;
	struct termios saved;
};

static int parse_delay(const char *text, uint64_t *ret_ms, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	if (num_parse_duration(text, ret_ms) == 0 && *ret_ms >= TOP_PACE_MIN_MS && *ret_ms <= TOP_PACE_MAX_MS)
		return 0;
	err_set(err, ERR_USAGE, EINVAL, "top", "--delay needs a duration from 100ms to 1h, not %s",
		err_quote(shown, text));
	err_hint(err, "write it like 500ms, 2s or 1m");
	return -EINVAL;
}

static size_t make_words(const struct top_options *given, bool is_drawing, const char *words[ARGS_MAX])
{
	size_t count = 0;

	words[count++] = "atoll-top";
	if (!is_drawing)
		words[count++] = given->json ? "--json" : "--once";
	if (given->reverse)
		words[count++] = "--reverse";
	if (given->sort) {
		words[count++] = "--sort";
		words[count++] = given->sort;
	}
	if (given->filter) {
		words[count++] = "--filter";
		words[count++] = given->filter;
	}
	if (given->delay) {
		words[count++] = "--delay";
		words[count++] = given->delay;
	}
	words[count] = NULL;
	return count;
}

/* What we ignore while it draws, the keys of the terminal, it hears. */
static int start_screen(const char *program, const char *const *words, int far_fd, pid_t *ret_pid)
{
	const struct spawn spawn = {
		.program = program, .argv = words, .fds = { { far_fd, TOP_FD } }, .fd_count = 1,
		.default_signals = UINT64_C(1) << SIGINT | UINT64_C(1) << SIGQUIT | UINT64_C(1) << SIGPIPE,
	};

	return spawn_start(&spawn, ret_pid);
}

static int start(const struct top_options *given, const char *programs, struct screen *screen, int far_fd,
		 struct err *err)
{
	const char *words[ARGS_MAX];
	char program[PATH_MAX];
	int r = path_join(program, sizeof program, programs, "atoll-top");

	if (r < 0)
		return err_set(err, ERR_STATE, -r, "top", "the path of atoll's programs is too long");
	make_words(given, screen->is_drawing, words);
	r = start_screen(program, words, far_fd, &screen->pid);
	return r < 0 ? err_not_started("top", program, -r, err) : 0;
}

/* What it ended with; where it was killed, its terminal is put right. */
static int wait_for(const struct screen *screen)
{
	static const char normal[] = "\033[?1049l\033[?25h\033[0m";
	int status;

	while (waitpid(screen->pid, &status, 0) < 0)
		if (errno != EINTR)
			return 125;
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	if (screen->is_drawing && (fd_write_full(STDOUT_FILENO, normal, sizeof normal - 1) < 0 ||
				   pty_restore(STDIN_FILENO, &screen->saved) < 0))
		return 125;
	return 128 + WTERMSIG(status);
}

static int watch(const struct top_options *given, struct top_feed_options *feed, struct err *err)
{
	struct screen screen = {
		.is_drawing = !given->once && !given->json && pty_is_able(getenv("TERM")) && isatty(STDIN_FILENO) &&
			      isatty(STDOUT_FILENO) && tcgetattr(STDIN_FILENO, &screen.saved) == 0,
	};
	int ends[2], r, status;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, ERR_INTERNAL, errno, "top", "no socket: %s", strerror(errno));
	/* Out of the way of the descriptor that atoll-top gets. */
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		ends[i] = fd_move_above(ends[i], TOP_FD + 1);
	feed->screen_fd = ends[0];
	if (!screen.is_drawing)
		feed->pace_ms = ONCE_PACE_MS;
	/* These keys end atoll-top, which puts the terminal right; we end when it does. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	r = start(given, feed->programs, &screen, ends[1], err);
	close(ends[1]);
	if (r == 0)
		r = top_feed(feed, err);
	close(ends[0]);
	status = screen.pid ? wait_for(&screen) : 0;
	return r < 0 ? r : status;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	struct top_options given = { 0 };
	char state[PATH_MAX], programs[PATH_MAX];
	struct top_feed_options feed = { .state = state, .programs = programs };
	uint64_t pace_ms = PACE_MS;
	int rest, r = cmd_parse(&cmd_top, &given, argc, argv, &rest, err);

	if (r == 0 && rest < argc)
		r = err_set(err, ERR_USAGE, EINVAL, "top", "it takes no names; --filter TEXT chooses");
	if (r == 0 && given.delay)
		r = parse_delay(given.delay, &pace_ms, err);
	if (r == 0)
		r = session_state_dir(state, sizeof state, false, err);
	if (r == 0)
		r = dirs_programs(programs, err);
	if (r < 0)
		return r;
	feed.pace_ms = (unsigned)pace_ms;
	return watch(&given, &feed, err);
}

const struct cmd cmd_top = {
	"top", "[-d TIME] [-s COLUMN] [-f TEXT] [--once | --json]",
	"watch sandboxes: what they use, change and are denied",
	CMD_OPTIONS(options), .run = run_verb,
};
