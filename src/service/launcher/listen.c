/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/listen.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

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
