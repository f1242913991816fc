/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The floor of the section `gate`: the least that anything can do that stands between a client and a server that both
 * speak TLS. No HTTP, no policy, no log, no boundary; one connection at a time, one loop, and as few calls as there can
 * be: a read and a write for what comes, and a wait.
 *
 *   tls-relay CHAIN KEY PORT        prints a port; what is said there is said to PORT of this machine; ends with its
 *                                   input
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { INSIDE, OUTSIDE, SIDES, BLOCK = 16 << 10 };

static SSL_CTX *contexts[SIDES];
static int loop_fd;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static SSL_CTX *make_context(const SSL_METHOD *method)
{
	SSL_CTX *context = SSL_CTX_new(method);

	/* The head of a record and the rest of it in one call. */
	SSL_CTX_set_read_ahead(context, 1);
	return context;
}

static void watch(int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(loop_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		die("epoll");
}

static int listen_here(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(fd, (void *)&address, sizeof address) < 0 || listen(fd, 16) < 0 ||
	    getsockname(fd, (void *)&address, &size) < 0)
		die("bind");
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

static int dial(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (void *)&address, sizeof address) < 0)
		die("connect");
	return fd;
}

static SSL *begin(int side, int fd)
{
	SSL *tls = SSL_new(contexts[side]);

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	SSL_set_fd(tls, fd);
	if ((side == INSIDE ? SSL_accept(tls) : SSL_connect(tls)) != 1)
		die("TLS");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	watch(fd);
	return tls;
}

/* What there is of one side; false at its end. */
static bool pass_on(SSL *from, SSL *to)
{
	static uint8_t block[BLOCK];

	do {
		int n = SSL_read(from, block, BLOCK);

		/* Tickets for a later session are no bytes of anybody. */
		if (n <= 0)
			return SSL_get_error(from, n) == SSL_ERROR_WANT_READ;
		if (SSL_write(to, block, n) != n)
			return false;
	} while (SSL_has_pending(from));
	return true;
}

/* Until one of the two ends. The first request may have come with the end of the handshake. */
static void relay(SSL *sides[SIDES])
{
	bool goes_on = pass_on(sides[INSIDE], sides[OUTSIDE]);
	struct epoll_event event;

	while (goes_on && epoll_wait(loop_fd, &event, 1, -1) == 1 && event.data.fd != STDIN_FILENO) {
		int from = event.data.fd == SSL_get_fd(sides[INSIDE]) ? INSIDE : OUTSIDE;

		goes_on = pass_on(sides[from], sides[1 - from]);
	}
}

static void serve(int fd, uint16_t port)
{
	SSL *sides[SIDES] = { begin(INSIDE, fd), begin(OUTSIDE, dial(port)) };

	relay(sides);
	for (int i = 0; i < SIDES; i++) {
		close(SSL_get_fd(sides[i]));
		SSL_free(sides[i]);
	}
}

int main(int argc, char **argv)
{
	struct epoll_event event;
	int listener;

	if (argc != 4) {
		fprintf(stderr, "tls-relay CHAIN KEY PORT\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	contexts[INSIDE] = make_context(TLS_server_method());
	contexts[OUTSIDE] = make_context(TLS_client_method());
	if (SSL_CTX_use_certificate_chain_file(contexts[INSIDE], argv[1]) != 1 ||
	    SSL_CTX_use_PrivateKey_file(contexts[INSIDE], argv[2], SSL_FILETYPE_PEM) != 1)
		die(argv[1]);
	loop_fd = epoll_create1(0);
	listener = listen_here();
	watch(listener);
	watch(STDIN_FILENO);
	while (epoll_wait(loop_fd, &event, 1, -1) == 1 && event.data.fd == listener) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			die("accept");
		serve(fd, (uint16_t)strtoul(argv[3], NULL, 10));
	}
	return 0;
}
