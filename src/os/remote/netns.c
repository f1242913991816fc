/* SPDX-License-Identifier: Apache-2.0 */
#include "os/remote/netns.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include "os/fd.h"
#include "os/remote/made-fds.h"

static int enter(const struct pidref *process)
{
	return setns(process->fd, CLONE_NEWUSER | CLONE_NEWNET) < 0 ? errno : 0;
}

/* ---- sockets to connect with ---- */

struct plain {
	const struct pidref *process;
	int family;
	size_t count;
};

static int make_plain(const void *context, int *fds, size_t *ret_count)
{
	const struct plain *plain = context;
	int errnum = enter(plain->process);

	for (*ret_count = 0; !errnum && *ret_count < plain->count; ++*ret_count) {
		int fd = socket(plain->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		/* What comes in small pieces is handed on in small pieces. */
		if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)) < 0)
			return errno;
		fds[*ret_count] = fd;
	}
	return errnum;
}

int netns_sockets(const struct pidref *process, int family, int *fds, size_t count)
{
	struct plain plain = { process, family, count };
	int made[FD_PASS_MAX], r;

	if (!count || count > FD_PASS_MAX)
		return -EINVAL;
	r = made_fds(make_plain, &plain, made);
	for (int i = 0; i < r; i++) {
		if (r == (int)count)
			fds[i] = made[i];
		else
			close_fd(&made[i]);
	}
	return r < 0 ? r : r == (int)count ? 0 : -EPROTO;
}

/* ---- sockets that hold ports ---- */

struct held {
	const struct pidref *process;
	const uint16_t *ports;
	size_t count;
};

/* 0 and *ret_fd, FD_NONE where the kernel runs without the family; or an errno. */
static int hold(int family, uint16_t port, int *ret_fd)
{
	struct sockaddr_in6 inet6 = { .sin6_family = AF_INET6, .sin6_port = htons(port),
				      .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in inet = { .sin_family = AF_INET, .sin_port = htons(port),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	bool is_inet6 = family == AF_INET6;
	cleanup_fd int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret_fd = FD_NONE;
	if (fd < 0)
		return is_inet6 && errno == EAFNOSUPPORT ? 0 : errno;
	if (bind(fd, is_inet6 ? (void *)&inet6 : (void *)&inet, is_inet6 ? sizeof inet6 : sizeof inet) < 0)
		return is_inet6 && errno == EADDRNOTAVAIL ? 0 : errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int make_held(const void *context, int *fds, size_t *ret_count)
{
	static const int families[] = { AF_INET, AF_INET6 };
	const struct held *held = context;
	int errnum = enter(held->process);
	size_t count = 0;

	for (size_t i = 0; !errnum && i < held->count; i++)
		for (size_t f = 0; !errnum && f < ARRAY_SIZE(families); f++) {
			errnum = hold(families[f], held->ports[i], &fds[count]);
			count += !errnum && fds[count] >= 0;
		}
	*ret_count = count;
	return errnum;
}

int netns_hold_ports(const struct pidref *process, const uint16_t *ports, size_t count, int fds[FD_PASS_MAX])
{
	struct held held = { process, ports, count };

	return !count || 2 * count > FD_PASS_MAX ? -EINVAL : made_fds(make_held, &held, fds);
}
