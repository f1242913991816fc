/* SPDX-License-Identifier: Apache-2.0 */

/*
 * intercept-server FILE PORT BUNDLE [PATIENCE]: stands between clients and the server of localhost:PORT, whose
 * authority is in BUNDLE, as the gate does: only /allowed/ may be asked for, with a credential that the client does not
 * have. For tests/integration/test_intercept.py. PATIENCE: milliseconds instead of a minute. Writes the session's
 * certificate to FILE, says "port N", then one line for each request; ends with stdin.
 */

#include <arpa/inet.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/num.h"
#include "egress/credentials/inject.h"
#include "egress/http/intercept.h"
#include "egress/tls/ca.h"
#include "egress/tls/upstream.h"
#include "os/fd.h"

static const char *const paths[] = { "/allowed/**", NULL };
static const struct http_rule http_rule = { .paths = paths, .origin = { "network.allow[0].http[0]" } };
static uint16_t port, server_port;
static uint64_t patience_ms;
static struct net_rule net_rule = { .verdict = VERDICT_ALLOW, .host = "localhost", .ports = &port, .port_count = 1,
				    .http = &http_rule, .http_count = 1,
				    .inject = { .kind = INJECT_BEARER, .name = "Authorization", .secret = "s" },
				    .origin = { "network.allow[0]" } };
/* localhost leads outside by its port alone. */
static struct host_port host_port = { .origin = { "network.host_ports[0]" } };
static const struct policy policy = { .network = { .mode = NETWORK_GATE, .default_verdict = VERDICT_DENY,
						  .rules = &net_rule, .count = 1, .exact_count = 1,
						  .host_ports = &host_port, .host_port_count = 1 } };
static const struct injection injection = { &net_rule, "sk-real-0123456789" };

static struct event_base *base;
static struct ca *ca;
static SSL_CTX *upstream;
static struct policy unlimited;
static struct quota_share share;

struct visit {
	struct intercept *intercept;
	int inside_fd, outside_fd;
};

static bool on_outgoing(void *context, struct exchange_record *record, struct http1_head *head,
			const struct target *target, char **ret_owned, const char **ret_problem)
{
	struct target_server server = { "localhost", port, true };

	*ret_problem = "the credential cannot be put in";
	return inject_request(&injection, &server, target, head, ret_owned) == INJECT_DONE;
}

static void on_incoming(void *context, struct exchange_record *record, struct http1_head *head)
{
	if (inject_redact(&injection, head) < 0)
		abort();
}

static void on_over(void *context, const struct exchange_record *record)
{
	printf("%s %s %u %llu %llu %s\n", *record->method ? record->method : "-", *record->path ? record->path : "-",
	       record->status, (unsigned long long)record->bytes_out, (unsigned long long)record->bytes_in,
	       record->problem ? record->problem : "");
	fflush(stdout);
}

static void on_end(void *context, const char *why)
{
	struct visit *visit = context;

	if (why)
		fprintf(stderr, "ended: %s\n", why);
	intercept_free(visit->intercept);
	close(visit->inside_fd);
	close(visit->outside_fd);
	free(visit);
}

static int dial(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(server_port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
		close_fd(&fd);
	return fd;
}

static void on_client(evutil_socket_t listener, short what, void *context)
{
	struct visit *visit = calloc(1, sizeof *visit);
	struct intercept_options options = {
		.base = base, .server = { "localhost", port, true }, .policy = &policy, .ca = ca, .upstream = upstream,
		.share = &share, .hooks = { .outgoing = on_outgoing, .incoming = on_incoming, .over = on_over },
		.on_end = on_end, .context = visit, .patience_ms = (uint32_t)patience_ms,
	};

	if (!visit)
		return;
	visit->inside_fd = options.inside_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	visit->outside_fd = options.outside_fd = dial();
	if (options.inside_fd < 0 || options.outside_fd < 0 || fd_set_nonblocking(options.outside_fd, true) < 0 ||
	    intercept_new(&visit->intercept, &options, (uint64_t)time(NULL)) < 0) {
		close_fd(&visit->inside_fd);
		close_fd(&visit->outside_fd);
		free(visit);
	}
}

static void on_stdin(evutil_socket_t fd, short what, void *context)
{
	event_base_loopbreak(base);
}

static int listen_on_loopback(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 128) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return -1;
	port = ntohs(address.sin_port);
	host_port.port = port;
	return fd;
}

static void on_hit(void *context, const struct quota_hit *hit)
{
	abort();
}

static int prepare(char **argv)
{
	cleanup_free char *bundle = NULL;
	cleanup_buf struct buf pem;
	uint64_t number;
	size_t size;

	buf_init(&pem, 64 << 10);
	signal(SIGPIPE, SIG_IGN);
	if (quota_new(&share.quota, &unlimited, 0, on_hit, NULL) < 0)
		return -1;
	if (num_parse_u64(argv[2], &number) < 0 || ca_new(&ca, (uint64_t)time(NULL)) < 0 ||
	    fd_read_file_at(AT_FDCWD, argv[3], 64 << 10, &bundle, &size) < 0 || upstream_new(bundle, &upstream) < 0)
		return -1;
	server_port = (uint16_t)number;
	if (argv[4] && num_parse_u64(argv[4], &patience_ms) < 0)
		return -1;
	ca_put_pem(ca, &pem);
	return fd_replace_file_at(AT_FDCWD, argv[1], pem.bytes, pem.size, 0644);
}

int main(int argc, char **argv)
{
	struct event *client, *input;
	int fd;

	base = event_base_new();
	if (argc < 4 || argc > 5 || !base || prepare(argv) < 0 || (fd = listen_on_loopback()) < 0)
		return 1;
	client = event_new(base, fd, EV_READ | EV_PERSIST, on_client, NULL);
	input = event_new(base, STDIN_FILENO, EV_READ, on_stdin, NULL);
	if (!client || !input || event_add(client, NULL) < 0 || event_add(input, NULL) < 0)
		return 1;
	printf("port %u\n", port);
	fflush(stdout);
	event_base_dispatch(base);
	event_free(client);
	event_free(input);
	event_base_free(base);
	SSL_CTX_free(upstream);
	ca_free(ca);
	return 0;
}
