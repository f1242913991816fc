/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/listen.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "os/fd.h"

enum { BACKLOG = 1024 };

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t fill(const struct settings *settings, union address *address)
{
	*address = (union address){ 0 };
	if (inet_pton(AF_INET, settings->address, &address->v4.sin_addr) == 1) {
		address->v4.sin_family = AF_INET;
		address->v4.sin_port = htons(settings->port);
		return sizeof address->v4;
	}
	if (inet_pton(AF_INET6, settings->address, &address->v6.sin6_addr) != 1)
		return 0;
	address->v6.sin6_family = AF_INET6;
	address->v6.sin6_port = htons(settings->port);
	return sizeof address->v6;
}

static int fail(const struct settings *settings, int errnum, struct err *err)
{
	err_set(err, ERR_STATE, errnum, "serve", "cannot listen at %s port %u: %s", settings->address,
		(unsigned)settings->port, err_errno_name(errnum));
	if (errnum == EADDRINUSE)
		err_hint(err, "another service runs there; take another port with --listen %s:PORT (0: any)",
			 settings->address);
	return -errnum;
}

int listen_open(const struct settings *settings, uint16_t *ret_port, struct err *err)
{
	cleanup_fd int fd = FD_NONE;
	union address address;
	socklen_t size = fill(settings, &address);
	int on = 1;

	fd = size ? socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
	if (fd < 0)
		return fail(settings, size ? errno : EAFNOSUPPORT, err);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (address.any.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
	if (bind(fd, &address.any, size) < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, &address.any, &size) < 0)
		return fail(settings, errno, err);
	*ret_port = ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
	return take_fd(&fd);
}

/* ---- those that are there ---- */

enum { FIRST_INHERITED = 3 };

/* 0: none are for us. */
static uint64_t count_inherited(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	uint64_t number = 0, count = 0;

	if (!pid || !fds || num_parse_u64(pid, &number) < 0 || number != (uint64_t)getpid() ||
	    num_parse_u64(fds, &count) < 0)
		count = 0;
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return count;
}

static int get_option(int fd, int option)
{
	int value = -1;
	socklen_t size = sizeof value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0 ? -1 : value;
}

/* Whether it is one that clients can come in by, and where. */
static int read_inherited(int fd, struct settings *settings, struct err *err)
{
	union address address = { 0 };
	socklen_t size = sizeof address;
	bool is_v6;

	if (getsockname(fd, &address.any, &size) < 0 || get_option(fd, SO_TYPE) != SOCK_STREAM ||
	    get_option(fd, SO_ACCEPTCONN) != 1 ||
	    (address.any.sa_family != AF_INET && address.any.sa_family != AF_INET6)) {
		err_set(err, ERR_USAGE, ENOTSOCK, "serve",
			"descriptor %d of the service manager is no TCP socket that listens", fd);
		err_hint(err, "name one or two addresses in ListenStream= of the unit");
		return -ENOTSOCK;
	}
	is_v6 = address.any.sa_family == AF_INET6;
	if (!inet_ntop(address.any.sa_family,
		       is_v6 ? (const void *)&address.v6.sin6_addr : (const void *)&address.v4.sin_addr,
		       settings->address, sizeof settings->address))
		return err_set(err, ERR_INTERNAL, errno, "serve", "an address cannot be read");
	settings->port = ntohs(is_v6 ? address.v6.sin6_port : address.v4.sin_port);
	return settings_check(settings, err);
}

/* The first one last: its address is the one that clients are told. */
int listen_inherit(struct settings *settings, int ret_fds[LISTEN_MAX], struct err *err)
{
	uint64_t count = count_inherited();
	int r = 0;

	for (size_t i = 0; i < LISTEN_MAX; i++)
		ret_fds[i] = FD_NONE;
	if (count > LISTEN_MAX)
		return err_set(err, ERR_USAGE, E2BIG, "serve",
			       "the service manager opened more sockets than the %d that are served", LISTEN_MAX);
	for (int i = (int)count - 1; r >= 0 && i >= 0; i--) {
		r = read_inherited(FIRST_INHERITED + i, settings, err);
		if (r == 0)
			r = fd_set_cloexec(FIRST_INHERITED + i, true);
		if (r == 0)
			r = fd_set_nonblocking(FIRST_INHERITED + i, true);
		ret_fds[i] = FIRST_INHERITED + i;
	}
	return r < 0 ? r : (int)count;
}

enum { HTTPS_PORT = 443 };

static void by_domain(const struct settings *settings, uint16_t port, const char *name, char out[LISTEN_URL_SIZE])
{
	int r = str_format(out, LISTEN_URL_SIZE, "https://%s.%s", name, settings->domain);

	/* A domain may name the port itself: that of a proxy, as a rule. */
	if (r == 0 && port != HTTPS_PORT && !strchr(settings->domain, ':'))
		(void)!str_format(out, LISTEN_URL_SIZE, "https://%s.%s:%u", name, settings->domain, (unsigned)port);
}

void listen_get_urls(const struct settings *settings, uint16_t port, struct listen_urls *ret_urls)
{
	char *const both[] = { ret_urls->api, ret_urls->sandbox };

	if (settings->tls_cert[0] && settings->domain[0]) {
		by_domain(settings, port, "api", ret_urls->api);
		by_domain(settings, port, "sandbox", ret_urls->sandbox);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(both); i++)
		(void)!str_format(both[i], LISTEN_URL_SIZE, "%s://%s%s%s:%u", settings->tls_cert[0] ? "https" : "http",
				  str_host_open(settings->address), settings->address,
				  str_host_close(settings->address), (unsigned)port);
}
