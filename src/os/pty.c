/* SPDX-License-Identifier: Apache-2.0 */
#include "os/pty.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "os/fd.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41) /* Linux 4.13 */
#endif

int pty_open_slave(int master_fd, int *ret_slave)
{
	int unlocked = 0, slave;

	/* grantpt(3) has nothing to do on devpts: the mount options give owner and mode. */
	if (ioctl(master_fd, TIOCSPTLCK, &unlocked) < 0)
		return -errno;
	slave = ioctl(master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	*ret_slave = slave;
	return 0;
}

int pty_open(int *ret_master, int *ret_slave)
{
	cleanup_fd int master = fd_open_at(AT_FDCWD, "/dev/ptmx", O_RDWR, 0);
	int r = master < 0 ? master : pty_open_slave(master, ret_slave);

	if (r == 0)
		*ret_master = take_fd(&master);
	return r;
}

int pty_get_size(int fd, struct pty_size *ret_size)
{
	struct winsize window;

	if (ioctl(fd, TIOCGWINSZ, &window) < 0)
		return -errno;
	*ret_size = (struct pty_size){ .rows = window.ws_row, .columns = window.ws_col };
	return 0;
}

int pty_set_size(int fd, struct pty_size size)
{
	struct winsize window = { .ws_row = size.rows, .ws_col = size.columns };

	return ioctl(fd, TIOCSWINSZ, &window) < 0 ? -errno : 0;
}

int pty_take_control(int slave_fd)
{
	return ioctl(slave_fd, TIOCSCTTY, 0) < 0 ? -errno : 0;
}

int pty_make_raw(int fd, struct termios *ret_saved)
{
	struct termios saved, raw;

	if (tcgetattr(fd, &saved) < 0)
		return -errno;
	raw = saved;
	cfmakeraw(&raw);
	if (tcsetattr(fd, TCSADRAIN, &raw) < 0)
		return -errno;
	*ret_saved = saved;
	return 0;
}

int pty_restore(int fd, const struct termios *saved)
{
	return tcsetattr(fd, TCSADRAIN, saved) < 0 ? -errno : 0;
}

bool pty_is_able(const char *term)
{
	return term && *term && strcmp(term, "dumb") != 0;
}

bool pty_has_colour(int fd, const char *term, const char *no_colour)
{
	return !(no_colour && *no_colour) && pty_is_able(term) && isatty(fd);
}
