/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The two ends of the section `gate` of the benchmark, the same for every contender:
 *
 *   traffic serve CHAIN KEY [PORT]   prints its port, serves until its input ends
 *   traffic client HOST PORT         one command a line from its input, one line of figures for each:
 *       [tls-]down|up MS             bytes a second
 *       [tls-]trips|connections|requests MS   median nanoseconds, and how many a second
 *       look MS                      the same for DNS answers
 *       hold N                       N connections that stay, each after a round trip
 *
 * A connection is served as its first byte says: d(own), u(p), p(ing), G(ET). Whether it is TLS, its first byte tells
 * as well. One loop serves all: what is measured is one connection at a time, beside others that rest.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 256 << 10, SAMPLES_MAX = 1 << 20, CONNECTIONS_MAX = 20000 };

struct end {
	int fd;
	SSL *tls;
	char mode;
	bool is_known; /* whether it speaks TLS */
	size_t head;   /* bytes of "\r\n\r\n" seen */
};

static uint8_t block[BLOCK];
static uint32_t samples[SAMPLES_MAX];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static ssize_t receive_some(struct end *end, void *bytes, size_t size)
{
	return end->tls ? SSL_read(end->tls, bytes, (int)size) : recv(end->fd, bytes, size, 0);
}

static ssize_t send_some(struct end *end, const void *bytes, size_t size)
{
	return end->tls ? SSL_write(end->tls, bytes, (int)size) : send(end->fd, bytes, size, MSG_NOSIGNAL);
}

static void close_end(struct end *end)
{
	SSL_free(end->tls);
	close(end->fd);
	*end = (struct end){ .fd = -1 };
}

static void raise_files(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- the server ---- */

static struct end ends[CONNECTIONS_MAX];
static int loop_fd;

static void watch(struct end *end, uint32_t events, int operation)
{
	struct epoll_event event = { .events = events, .data.ptr = end };

	epoll_ctl(loop_fd, operation, end->fd, &event);
}

static void accept_one(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0 || fd >= CONNECTIONS_MAX)
		die("accept");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	ends[fd] = (struct end){ .fd = fd };
	watch(&ends[fd], EPOLLIN, EPOLL_CTL_ADD);
}

static bool greet(struct end *end, SSL_CTX *context)
{
	uint8_t first;

	if (recv(end->fd, &first, 1, MSG_PEEK) != 1)
		return false;
	end->is_known = true;
	if (first != 0x16)
		return true;
	end->tls = SSL_new(context);
	SSL_set_fd(end->tls, end->fd);
	return SSL_accept(end->tls) == 1;
}

static bool answer_requests(struct end *end, const uint8_t *bytes, size_t size)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\nhello\n";

	for (size_t i = 0; i < size; i++) {
		end->head = bytes[i] == "\r\n\r\n"[end->head] ? end->head + 1 : bytes[i] == '\r';
		if (end->head < 4)
			continue;
		end->head = 0;
		if (send_some(end, answer, sizeof answer - 1) <= 0)
			return false;
	}
	return true;
}

static bool serve_end(struct end *end, SSL_CTX *context)
{
	ssize_t n;

	if (!end->is_known)
		return greet(end, context);
	if (end->mode == 'd')
		return send_some(end, block, BLOCK) > 0;
	do {
		n = receive_some(end, block, BLOCK);
		if (n <= 0)
			return false;
		if (!end->mode)
			end->mode = (char)block[0];
		if (end->mode == 'p' && send_some(end, block, (size_t)n) <= 0)
			return false;
		if (end->mode == 'G' && !answer_requests(end, block, (size_t)n))
			return false;
	} while (end->tls && SSL_pending(end->tls));
	if (end->mode == 'd')
		watch(end, EPOLLOUT, EPOLL_CTL_MOD);
	return true;
}

static int bind_both(int *udp, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(port) };
	socklen_t size = sizeof address;
	int tcp = socket(AF_INET, SOCK_STREAM, 0);

	*udp = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(tcp, (void *)&address, sizeof address) < 0 || listen(tcp, 4096) < 0 ||
	    getsockname(tcp, (void *)&address, &size) < 0 || bind(*udp, (void *)&address, sizeof address) < 0)
		die("bind");
	printf("%d\n", ntohs(address.sin_port));
	fflush(stdout);
	return tcp;
}

static void answer_datagram(int fd)
{
	struct sockaddr_in from;
	socklen_t size = sizeof from;
	ssize_t n = recvfrom(fd, block, BLOCK, 0, (void *)&from, &size);

	if (n > 2)
		sendto(fd, block, (size_t)n, 0, (void *)&from, size);
}

static int serve(const char *chain, const char *key, uint16_t port)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	struct epoll_event events[64];
	int udp, tcp = bind_both(&udp, port);

	if (SSL_CTX_use_certificate_chain_file(context, chain) != 1 ||
	    SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
		die(chain);
	loop_fd = epoll_create1(0);
	ends[0].fd = 0;
	ends[tcp].fd = tcp;
	ends[udp].fd = udp;
	watch(&ends[0], EPOLLIN, EPOLL_CTL_ADD);
	watch(&ends[tcp], EPOLLIN, EPOLL_CTL_ADD);
	watch(&ends[udp], EPOLLIN, EPOLL_CTL_ADD);
	for (;;) {
		int count = epoll_wait(loop_fd, events, 64, -1);

		for (int i = 0; i < count; i++) {
			struct end *end = events[i].data.ptr;

			if (end->fd == 0)
				return 0;
			if (end->fd == tcp)
				accept_one(tcp);
			else if (end->fd == udp)
				answer_datagram(udp);
			else if (!serve_end(end, context))
				close_end(end);
		}
	}
}

/* ---- the client ---- */

struct client {
	const char *host, *port;
	struct addrinfo *target;
	SSL_CTX *context;
	bool is_tls;
	struct end end;
};

static void begin(struct client *client, char mode)
{
	struct end *end = &client->end;

	*end = (struct end){ .fd = socket(client->target->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), .mode = mode };
	if (end->fd < 0 || connect(end->fd, client->target->ai_addr, client->target->ai_addrlen) < 0)
		die("connect");
	setsockopt(end->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (client->is_tls) {
		end->tls = SSL_new(client->context);
		SSL_set_fd(end->tls, end->fd);
		SSL_set_tlsext_host_name(end->tls, client->host);
		if (SSL_connect(end->tls) != 1)
			die("TLS");
	}
	if (mode && send_some(end, &mode, 1) != 1)
		die("send");
}

static void trip(struct client *client)
{
	char byte = 'p';

	if (send_some(&client->end, &byte, 1) != 1 || receive_some(&client->end, &byte, 1) != 1)
		die("round trip");
}

static void connection(struct client *client)
{
	char byte;

	begin(client, 'p');
	if (receive_some(&client->end, &byte, 1) != 1)
		die("first byte");
	close_end(&client->end);
}

static void request(struct client *client)
{
	char text[512];
	ssize_t n, size = 0;
	int length = snprintf(text, sizeof text, "GET /small HTTP/1.1\r\nHost: %s:%s\r\n\r\n", client->host,
			      client->port);

	if (send_some(&client->end, text, (size_t)length) != length)
		die("request");
	do {
		n = receive_some(&client->end, text + size, sizeof text - 1 - (size_t)size);
		if (n <= 0)
			die("answer");
		size += n;
		text[size] = 0;
	} while (!strstr(text, "hello\n"));
	if (strncmp(text, "HTTP/1.1 200", 12) != 0)
		die(text);
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void measure_each(struct client *client, void (*work)(struct client *), uint64_t ms)
{
	uint64_t start = now_ns(), last = start, until = start + ms * 1000000;
	size_t count = 0;

	while (last < until && count < SAMPLES_MAX) {
		uint64_t now;

		work(client);
		now = now_ns();
		samples[count++] = (uint32_t)(now - last);
		last = now;
	}
	qsort(samples, count, sizeof *samples, by_size);
	printf("%u %.1f\n", samples[count / 2], (double)count * 1e9 / (double)(last - start));
}

static void measure_bytes(struct client *client, bool is_up, uint64_t ms)
{
	uint64_t start = now_ns(), last = start, until = start + ms * 1000000, total = 0;

	while (last < until) {
		ssize_t n = is_up ? send_some(&client->end, block, BLOCK) : receive_some(&client->end, block, BLOCK);

		if (n <= 0)
			die("transfer");
		total += (uint64_t)n;
		last = now_ns();
	}
	printf("%.0f\n", (double)total * 1e9 / (double)(last - start));
}

static void hold(struct client *client, long count)
{
	for (long i = 0; i < count; i++) {
		begin(client, 'p');
		trip(client);
	}
	printf("%ld\n", count);
}

/* ---- DNS ---- */

static uint8_t query[300];
static size_t query_size;

static void build_query(const char *host)
{
	static const uint8_t head[12] = { 0x12, 0x34, 0x01, 0, 0, 1 }, tail[5] = { 0, 0, 1, 0, 1 };
	size_t size = sizeof head;

	memcpy(query, head, sizeof head);
	while (*host) {
		size_t length = strcspn(host, ".");

		query[size++] = (uint8_t)length;
		memcpy(query + size, host, length);
		size += length;
		host += length + (host[length] == '.');
	}
	memcpy(query + size, tail, sizeof tail);
	query_size = size + sizeof tail;
}

static void look(struct client *client)
{
	uint8_t answer[1024];

	if (send(client->end.fd, query, query_size, 0) != (ssize_t)query_size ||
	    recv(client->end.fd, answer, sizeof answer, 0) < (ssize_t)query_size || answer[1] != query[1])
		die("DNS");
}

/* The resolver of this namespace where the client goes by name; else the server's port, which sends all back. */
static void begin_looks(struct client *client)
{
	struct sockaddr_in server = *(struct sockaddr_in *)client->target->ai_addr;
	FILE *file = inet_addr(client->host) == INADDR_NONE ? fopen("/etc/resolv.conf", "re") : NULL;
	char line[256], address[64];

	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "nameserver %63[0-9.]", address) == 1) {
			server.sin_addr.s_addr = inet_addr(address);
			server.sin_port = htons(53);
			break;
		}
	if (file)
		fclose(file);
	build_query(client->host);
	client->end = (struct end){ .fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) };
	if (connect(client->end.fd, (void *)&server, sizeof server) < 0)
		die("DNS");
}

static void obey(struct client *client, const char *line)
{
	char what[32];
	long number;

	if (sscanf(line, "%31s %ld", what, &number) != 2)
		die(line);
	client->is_tls = strncmp(what, "tls-", 4) == 0;
	if (client->is_tls)
		memmove(what, what + 4, strlen(what) - 3);
	if (strcmp(what, "connections") == 0) {
		measure_each(client, connection, (uint64_t)number);
	} else if (strcmp(what, "hold") == 0) {
		hold(client, number);
	} else if (strcmp(what, "look") == 0) {
		begin_looks(client);
		measure_each(client, look, (uint64_t)number);
		close_end(&client->end);
	} else {
		begin(client, strcmp(what, "requests") == 0 ? 0 : what[0] == 't' ? 'p' : what[0]);
		if (what[0] == 't' && receive_some(&client->end, &(char){ 0 }, 1) != 1)
			die("first byte");
		if (what[0] == 't' || what[0] == 'r')
			measure_each(client, what[0] == 't' ? trip : request, (uint64_t)number);
		else
			measure_bytes(client, what[0] == 'u', (uint64_t)number);
		close_end(&client->end);
	}
	fflush(stdout);
}

static int ask_client(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct client client = { .host = host, .port = port, .context = SSL_CTX_new(TLS_client_method()) };
	char line[128];

	if (getaddrinfo(host, port, &hints, &client.target) != 0)
		die(host);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin))
		obey(&client, line);
	return 0;
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	raise_files();
	memset(block, 'x', sizeof block);
	if ((argc == 4 || argc == 5) && strcmp(argv[1], "serve") == 0)
		return serve(argv[2], argv[3], argc == 5 ? (uint16_t)strtoul(argv[4], NULL, 10) : 0);
	if (argc == 4 && strcmp(argv[1], "client") == 0)
		return ask_client(argv[2], argv[3]);
	fprintf(stderr, "traffic serve CHAIN KEY [PORT] | client HOST PORT\n");
	return 2;
}
