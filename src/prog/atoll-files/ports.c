/* SPDX-License-Identifier: Apache-2.0 */
#include "ports.h"

#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/fd.h"

/* Connections to servers on the sandbox's own loopback. What such a server does is its own business: a second. */

enum { CONNECT_MS = 1000 };

static int await(int fd)
{
	struct pollfd waited = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int errnum = 0;

	if (poll(&waited, 1, CONNECT_MS) != 1)
		return ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &size) < 0 ? errno : errnum;
}

/* A positive errno, or 0 with *ret_fd. */
static int connect_to(uint32_t family, uint16_t port, int *ret_fd)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port),
				   .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const struct sockaddr *address = family == 4 ? (const struct sockaddr *)(const void *)&v4
						      : (const struct sockaddr *)(const void *)&v6;
	socklen_t size = family == 4 ? sizeof v4 : sizeof v6;
	int fd = socket(family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (fd < 0)
		return errno;
	r = connect(fd, address, size) == 0 ? 0 : errno == EINPROGRESS ? await(fd) : errno;
	/* Whoever gets it expects a socket as they come. */
	if (r == 0 && fd_set_nonblocking(fd, false) < 0)
		r = EIO;
	if (r == 0)
		*ret_fd = fd;
	else
		close(fd);
	return r;
}

int ports_connect(struct inside *inside, const char *path, const char *to)
{
	uint16_t port = (uint16_t)inside->request.port;
	uint32_t family = (uint32_t)inside->request.family;
	int r;

	/* Else it would be a port of the host. */
	if (!inside->net)
		return EOPNOTSUPP;
	r = connect_to(family == 6 ? 6 : 4, port, &inside->result_fd);
	if (r && family == 0 && connect_to(6, port, &inside->result_fd) == 0)
		return 0;
	return r;
}
