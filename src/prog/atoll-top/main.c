/* SPDX-License-Identifier: Apache-2.0 */

/*
 * atoll-top: what `atoll top` starts to draw with. Takes the terminal, gives up everything else, and only then reads
 * what is told of sandboxes: it opens no file, knows no socket but the one to `atoll`, and starts nothing. Exit
 * status: 0; 128+N when signal N ended it; 125 when it could not do its work.
 */

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/num.h"
#include "base/options.h"
#include "base/program.h"
#include "base/str.h"
#include "confine/confine.h"
#include "os/fd.h"
#include "prog/atoll-top/plain.h"
#include "prog/atoll-top/terminal.h"
#include "prog/atoll-top/view.h"
#include "wire/top-options.h"

enum { PACE_MS = 1000, DRAW_MS = 50, NS_PER_MS = 1000000, ROUNDS_FOR_RATES = 2 };

struct top_options {
	bool once, json, reverse;
	const char *delay, *sort, *filter;
};

#define AT(member) offsetof(struct top_options, member)
static const struct option options[] = {
	TOP_OPTIONS(AT),
};

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
	caught = number;
}

/* Instead of the handlers of curses: the terminal is put right where we end. */
static int catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (sigaction(numbers[i], &action, NULL) < 0)
			return -errno;
		sigaddset(&blocked, numbers[i]);
	}
	/* They come while we wait, and at no other time. */
	return sigprocmask(SIG_BLOCK, &blocked, NULL) < 0 ? -errno : 0;
}

static int parse_order(const struct top_options *given, struct columns_order *ret_order, struct err *err)
{
	int column = given->sort ? columns_find(given->sort) : COLUMN_CPU;
	const char *names[COLUMN_COUNT], *nearest;

	*ret_order = (struct columns_order){ (enum column)column, given->reverse, given->filter ? given->filter : "" };
	if (column >= 0)
		return 0;
	for (int i = 0; i < COLUMN_COUNT; i++)
		names[i] = columns[i].name;
	nearest = names_nearest(names, COLUMN_COUNT, given->sort);
	err_set(err, ERR_USAGE, EINVAL, "top", "there is no column named %s", given->sort);
	if (nearest)
		err_hint(err, "did you mean %s?", nearest);
	else
		err_hint(err, "id, name, project, age, cpu, memory, processes, in, out, changes, denied, asked or "
			      "command");
	return -EINVAL;
}

static int fail_feed(struct err *err, int r)
{
	return err_set(err, ERR_INTERNAL, r < 0 ? -r : EPIPE, "top", r < 0 ? "the answer of `atoll` cannot be "
									     "understood"
									   : "`atoll` has ended");
}

/* Two looks, for what is per second; one where there is nothing to look at. */
static int run_plain(const struct top_options *given, const struct columns_order *order, struct err *err)
{
	struct pollfd poll_fd = { .fd = TOP_FD, .events = POLLIN };
	struct inbox inbox;
	int r = confine_self(CONFINE_TOP, NULL, 0, err);

	if (r < 0)
		return r;
	r = inbox_init(&inbox) < 0 ? -EBADF : 1;
	while (r > 0 && inbox.rounds < ROUNDS_FOR_RATES && !(inbox.rounds && !inbox.rows.count))
		r = poll(&poll_fd, 1, -1) < 0 && errno != EINTR ? -errno : inbox_read(&inbox);
	r = r > 0 ? plain_show(&inbox.rows, order, given->json, err) : fail_feed(err, r);
	inbox_done(&inbox);
	return r;
}

/* What woke us up is read; draw when it was something. 0: `atoll` has gone. */
static int hear(struct view *view, const struct pollfd polls[3], bool *ret_is_changed)
{
	int key, r = 1;

	if (polls[1].revents)
		r = inbox_read(view->inbox);
	if (r <= 0)
		return r;
	if (polls[1].revents) {
		view_update(view);
		*ret_is_changed = true;
	}
	if (polls[2].revents) {
		/* The end of a log is no end of what is seen of it. */
		if (events_read(&view->events, view->inbox->events_fd) == 0)
			close_fd(&view->inbox->events_fd);
		*ret_is_changed = true;
	}
	/* Also where nothing was typed: a change of size comes as a key. */
	while (!view->is_done && (key = terminal_key()) != KEY_OF_NOTHING) {
		view_press(view, key);
		*ret_is_changed = true;
	}
	/* The terminal is gone. */
	if (polls[0].revents & (POLLHUP | POLLERR))
		view->is_done = true;
	return 1;
}

static int wait_ms(int ms, int draw_in_ms)
{
	return draw_in_ms >= 0 && (ms < 0 || draw_in_ms < ms) ? draw_in_ms : ms;
}

static int run_loop(struct view *view)
{
	uint64_t drawn_ns = 0;
	bool is_changed = true;
	sigset_t none;

	sigemptyset(&none);
	while (!view->is_done && !caught) {
		uint64_t now_ns = clock_monotonic_ns(), next_ns = drawn_ns + DRAW_MS * (uint64_t)NS_PER_MS;
		struct pollfd polls[] = {
			{ .fd = STDIN_FILENO, .events = POLLIN },
			{ .fd = TOP_FD, .events = POLLIN },
			{ .fd = view->inbox->events_fd, .events = POLLIN },
		};
		int ms = view_look(view, now_ns), r;
		struct timespec timeout;

		/* A flood of events is drawn as often as anybody can look. */
		if (is_changed && now_ns >= next_ns) {
			draw(view);
			drawn_ns = now_ns;
			is_changed = false;
		}
		ms = wait_ms(ms, is_changed ? (int)((next_ns - now_ns) / NS_PER_MS) + 1 : -1);
		timeout = (struct timespec){ ms / 1000, ms % 1000 * 1000000L };
		if (ppoll(polls, ARRAY_SIZE(polls), ms < 0 ? NULL : &timeout, &none) < 0) {
			if (errno != EINTR)
				return -errno;
			for (size_t i = 0; i < ARRAY_SIZE(polls); i++)
				polls[i].revents = 0;
		}
		r = hear(view, polls, &is_changed);
		if (r <= 0)
			return r == 0 ? -EPIPE : r;
	}
	return 0;
}

static int run_screen(const struct top_options *given, const struct columns_order *order, struct err *err)
{
	static struct view view;
	static struct inbox inbox;
	uint64_t pace_ms = PACE_MS;
	int r;

	if (given->delay && num_parse_duration(given->delay, &pace_ms) < 0)
		return err_set(err, ERR_USAGE, EINVAL, "top", "--delay needs a duration, not %s", given->delay);
	r = terminal_open(err);
	if (r < 0)
		return r;
	r = catch_signals();
	if (r < 0)
		err_set(err, ERR_INTERNAL, -r, "top", "signals cannot be caught: %s", strerror(-r));
	else
		r = confine_self(CONFINE_TOP, NULL, 0, err);
	if (r == 0) {
		r = inbox_init(&inbox);
		view_init(&view, &inbox, order, (uint32_t)pace_ms);
		if (r == 0)
			r = run_loop(&view);
		if (r < 0)
			fail_feed(err, r == -EPIPE ? 0 : r);
		inbox_done(&inbox);
	}
	terminal_close();
	return r < 0 ? r : caught ? 128 + caught : 0;
}

/* Without a terminal the table goes as UTF-8, as that of every verb does. */
static void set_locale(bool has_screen)
{
	setlocale(LC_CTYPE, "");
	if (!has_screen && !str_equal(nl_langinfo(CODESET), "UTF-8"))
		setlocale(LC_CTYPE, "C.UTF-8");
	text_init();
}

static int run(int argc, char **argv, struct err *err)
{
	struct top_options given = { 0 };
	struct columns_order order;
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r < 0)
		return r;
	if (r == 1)
		return options_help("atoll-top [OPTIONS]: draws what `atoll top` feeds it.\n\n",
				    options, ARRAY_SIZE(options));
	if (rest < argc)
		return err_set(err, ERR_USAGE, EINVAL, "top", "atoll-top takes no words; `atoll top` starts it");
	r = parse_order(&given, &order, err);
	if (r < 0)
		return r;
	set_locale(!given.once && !given.json);
	return given.once || given.json ? run_plain(&given, &order, err) : run_screen(&given, &order, err);
}

int main(int argc, char **argv)
{
	return program_main(argc, argv, fd_secure_standard, run);
}
