/* SPDX-License-Identifier: Apache-2.0 */
/*
 * X18: typing into the terminal that the sandbox was started from. The attempts run on a pty of their own, made
 * their controlling terminal, so that what they type reaches nobody; a filter that lets this through lets the
 * real thing through. The upper half of the command is cut off by the kernel, not by every filter.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/err.h"
#include "numbers.h"
#include "probe.h"

/* A slave that is the controlling terminal of this attempt's session, or -1. */
static int own_terminal(int *ret_master)
{
	char path[32];
	unsigned number;
	int unlock = 0, slave, master;

	master = raw_open("/dev/ptmx", O_RDWR, 0);
	if (master < 0)
		return -1;
	if (ioctl(master, TIOCSPTLCK, &unlock) < 0 || ioctl(master, TIOCGPTN, &number) < 0)
		return -1;
	snprintf(path, sizeof path, "/dev/pts/%u", number);
	slave = raw_open(path, O_RDWR, 0);
	if (slave >= 0)
		ioctl(slave, TIOCSCTTY, 0);
	*ret_master = master;
	return slave;
}

static enum outcome try_ioctl(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	int master = FD_NONE;
	int fd = own_terminal(&master);
	char bytes[64] = { (char)attempt->arguments[1] };

	if (fd < 0)
		return outcome(note, OUTCOME_NOT_APPLICABLE, "no pty: %s", err_errno_name(errno));
	return outcome_of_call(note, syscall(SYS_ioctl, fd, attempt->number | attempt->arguments[0] << 32, bytes),
		"accepted");
}

/* Commands for virtual consoles: a pty answers ENOTTY, which means that the command was let through. */
static enum outcome try_console(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	int master = FD_NONE;
	int fd = own_terminal(&master);
	char bytes[64] = { (char)attempt->arguments[1] };

	if (fd < 0)
		return outcome(note, OUTCOME_NOT_APPLICABLE, "no pty: %s", err_errno_name(errno));
	return outcome_of_reach(note, syscall(SYS_ioctl, fd, attempt->number | attempt->arguments[0] << 32, bytes));
}

/* The terminal that the caller has on 0, 1, 2 must be the sandbox's own pty: its number exists in our /dev/pts. */
static enum outcome try_foreign_terminal(const struct attempt *attempt, const struct targets *targets,
	struct note *note)
{
	char link[32], path[64] = "";

	for (int fd = 0; fd <= 2; fd++) {
		if (!isatty(fd))
			continue;
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		if (readlink(link, path, sizeof path - 1) < 0 || access(path, F_OK) < 0)
			return outcome(note, OUTCOME_BROKE, "fd %d is a terminal of another /dev/pts: %s", fd, path);
		return outcome(note, OUTCOME_HELD, "%s", path);
	}
	return outcome(note, OUTCOME_NOT_APPLICABLE, "no terminal on 0, 1, 2");
}

static enum outcome try_other_terminals(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	char path[32];

	for (unsigned i = 0; i < 64; i++) {
		int fd;

		snprintf(path, sizeof path, "/dev/pts/%u", i);
		fd = raw_open(path, O_RDWR | O_NONBLOCK, 0);
		if (fd < 0)
			continue;
		for (int standard = 0; standard <= 2; standard++) {
			if (isatty(standard))
				return outcome(note, OUTCOME_NOT_APPLICABLE, "%s may be the own terminal", path);
		}
		return outcome(note, OUTCOME_BROKE, "opened %s", path);
	}
	return outcome(note, OUTCOME_HELD, "none");
}

static const struct attempt attempts[] = {
	{ "tty.sti", "X18", "ioctl(TIOCSTI)", try_ioctl, TIOCSTI, { 0, 'x' }, NULL },
	{ "tty.sti-upper-1", "X18", "ioctl(TIOCSTI | 1<<32)", try_ioctl, TIOCSTI, { 1, 'x' }, NULL },
	{ "tty.sti-upper-all", "X18", "ioctl(TIOCSTI | 0x7fffffff<<32)", try_ioctl, TIOCSTI, { 0x7fffffff, 'x' },
		NULL },
	{ "tty.sti-upper-sign", "X18", "ioctl(TIOCSTI | 1<<63)", try_ioctl, TIOCSTI, { 0x80000000L, 'x' }, NULL },
	{ "tty.linux", "X18", "ioctl(TIOCLINUX)", try_console, TIOCLINUX, { 0, 3 }, NULL },
	{ "tty.linux-upper", "X18", "ioctl(TIOCLINUX | 1<<32)", try_console, TIOCLINUX, { 1, 3 }, NULL },
	{ "tty.cons", "X18", "ioctl(TIOCCONS): take the console's output", try_ioctl, TIOCCONS, { 0, 0 }, NULL },
	{ "tty.setd", "X18", "ioctl(TIOCSETD): another line discipline", try_ioctl, TIOCSETD, { 0, 0 }, NULL },
	{ "tty.foreign", "X18", "0, 1, 2 are a terminal of the sandbox itself", try_foreign_terminal, 0, { 0 }, NULL },
	{ "tty.others", "X18", "open somebody's terminal", try_other_terminals, 0, { 0 }, NULL },
};

const struct attempt_group probe_terminal = { attempts, ARRAY_SIZE(attempts) };
