/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-secret/prompt.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <termios.h>

#include "os/fd.h"

static const int caught[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP };
static volatile sig_atomic_t last_signal;

static void note_signal(int number)
{
	last_signal = number;
}

int prompt_open(void)
{
	int fd = fd_open_at(AT_FDCWD, "/dev/tty", O_RDWR, 0);

	return fd < 0 ? -ENXIO : fd;
}

static int fail(struct err *err, int errnum, const char *message, const char *hint)
{
	err_set(err, ERR_USAGE, errnum, "secret", "%s", message);
	err_hint(err, "%s", hint);
	return -errnum;
}

static int say(int tty_fd, const char *text)
{
	return fd_write_full(tty_fd, text, strlen(text));
}

/* One line with echo off; -EINTR when a signal came. The size includes the newline. */
static ssize_t read_silently(int tty_fd, const char *text, char *out)
{
	struct termios old, quiet;
	ssize_t size;

	if (tcgetattr(tty_fd, &old) < 0)
		return -errno;
	quiet = old;
	quiet.c_lflag = (quiet.c_lflag & ~(tcflag_t)(ECHO | ECHOE | ECHOK)) | ICANON | ISIG | ECHONL;
	/* Flush: what was typed before the prompt was seen, and shown on the screen, is not the secret. */
	if (tcsetattr(tty_fd, TCSAFLUSH, &quiet) < 0)
		return -errno;
	if (say(tty_fd, text) < 0 || say(tty_fd, ": ") < 0)
		size = -EIO;
	else
		size = last_signal ? -EINTR : read(tty_fd, out, PROMPT_LINE_MAX + 2);
	if (size == -1)
		size = -errno;
	if (tcsetattr(tty_fd, TCSAFLUSH, &old) < 0 && size >= 0)
		size = -errno;
	return size;
}

/* As if the signal had come now: by default it ends or stops this process. */
static void raise_again(int number, const struct sigaction *old)
{
	sigset_t set;

	sigaction(number, old, NULL);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	kill(getpid(), number);
}

static ssize_t read_with_signals(int tty_fd, const char *text, char *out)
{
	struct sigaction old[ARRAY_SIZE(caught)], action = { .sa_handler = note_signal };
	ssize_t size;

	last_signal = 0;
	for (size_t i = 0; i < ARRAY_SIZE(caught); i++) {
		sigaction(caught[i], NULL, &old[i]);
		/* nohup means it. */
		if (old[i].sa_handler != SIG_IGN)
			sigaction(caught[i], &action, NULL);
	}
	size = read_silently(tty_fd, text, out);
	for (size_t i = 0; i < ARRAY_SIZE(caught); i++)
		sigaction(caught[i], &old[i], NULL);
	for (size_t i = 0; i < ARRAY_SIZE(caught); i++)
		if (last_signal == caught[i])
			raise_again(caught[i], &old[i]);
	return size;
}

ssize_t prompt_line(int tty_fd, const char *text, char *out, struct err *err)
{
	ssize_t size;

	if (tty_fd < 0)
		return fail(err, ENXIO, "there is no terminal to ask on",
			    "`atoll secret unlock` on a terminal first, or give the value on standard input");
	/* Stopped by ^Z and continued: asked anew. */
	do
		size = read_with_signals(tty_fd, text, out);
	while (size == -EINTR);
	if (size < 0)
		return err_set(err, ERR_INTERNAL, (int)-size, "secret", "the terminal: %s", strerror((int)-size));
	if (size == 0 || out[size - 1] != '\n')
		return size > PROMPT_LINE_MAX ? fail(err, EMSGSIZE, "this is longer than a terminal's line",
						     "give it on standard input: atoll secret set NAME <FILE")
					      : fail(err, ECANCELED, "nothing was given", "end the line with Enter");
	if (size - 1 > PROMPT_LINE_MAX)
		return fail(err, EMSGSIZE, "this is longer than a terminal's line",
			    "give it on standard input: atoll secret set NAME <FILE");
	return size - 1;
}
