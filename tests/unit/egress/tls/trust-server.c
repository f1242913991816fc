/* SPDX-License-Identifier: Apache-2.0 */

/*
 * trust-server DIR HOST: an authority, its trust files in DIR, and a server on loopback that is HOST; for
 * tests/integration/test_trust.py, which asks real programs whether they trust it. Says on stdout what the tables say,
 * with the files of DIR for those inside ("variable NAME FILE", "place PATH FILE"), then "port N"; ends with stdin.
 */

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/str.h"
#include "egress/tls/alpn.h"
#include "egress/tls/ca.h"
#include "egress/tls/certificates.h"
#include "os/fd.h"

static const char *const names[CERTIFICATE_FILE_COUNT] = { "authority.pem", "bundle.pem", "bundle.jks" };

static int write_file(const struct ca *ca, const char *directory, enum certificate_file file, const char *system)
{
	cleanup_buf struct buf pem, out;
	char path[4096];
	int r;

	buf_init(&pem, 64 << 10);
	buf_init(&out, CERTIFICATE_FILE_MAX);
	ca_put_pem(ca, &pem);
	r = certificates_format(file, buf_text(&pem), system, (uint64_t)time(NULL), &out);
	if (r == 0)
		r = str_format(path, sizeof path, "%s/%s", directory, names[file]);
	return r < 0 ? r : fd_replace_file_at(AT_FDCWD, path, out.bytes, out.size, 0644);
}

static const char *find_bundle(void)
{
	for (size_t i = 0; i < certificate_place_count; i++)
		if (certificate_places[i].file == CERTIFICATE_BUNDLE && access(certificate_places[i].path, R_OK) == 0)
			return certificate_places[i].path;
	return NULL;
}

static int write_files(const struct ca *ca, const char *directory)
{
	cleanup_free char *system = NULL;
	const char *path = find_bundle();
	size_t size;
	int r = path ? fd_read_file_at(AT_FDCWD, path, CERTIFICATE_FILE_MAX, &system, &size) : 0;

	for (int file = 0; r == 0 && file < CERTIFICATE_FILE_COUNT; file++)
		r = write_file(ca, directory, (enum certificate_file)file, system ? system : "");
	return r;
}

static void say_tables(const char *directory)
{
	for (size_t i = 0; i < certificate_variable_count; i++)
		printf("variable %s %s/%s\n", certificate_variables[i].name, directory,
		       names[certificate_variables[i].file]);
	for (size_t i = 0; i < certificate_place_count; i++)
		printf("place %s %s/%s\n", certificate_places[i].path, directory, names[certificate_places[i].file]);
}

/* What a request gets: git wants the refs of a repository, everybody else a word. */
static void answer(SSL *ssl)
{
	char request[8192], reply[512];
	int size = SSL_read(ssl, request, sizeof request - 1);
	const char *body = "trusted\n";

	if (size <= 0)
		return;
	request[size] = 0;
	if (strstr(request, "/info/refs"))
		body = "0123456789012345678901234567890123456789\trefs/heads/trusted\n";
	if (str_format(reply, sizeof reply, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
					    "Connection: close\r\n\r\n%s", strlen(body), body) == 0)
		SSL_write(ssl, reply, (int)strlen(reply));
	SSL_shutdown(ssl);
}

static void serve(struct ca *ca, const char *host, int fd)
{
	SSL *ssl;

	if (ca_accept(ca, host, (uint64_t)time(NULL), &ssl) < 0)
		return;
	/* Up to the client's hello, and from there on. */
	if (SSL_set_fd(ssl, fd) == 1 && SSL_do_handshake(ssl) != 1 && ca_offered(ssl) & ALPN_HTTP1) {
		ca_allow(ssl, ALPN_HTTP1);
		if (SSL_do_handshake(ssl) == 1)
			answer(ssl);
	}
	SSL_free(ssl);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct pollfd fds[2] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .events = POLLIN } };
	socklen_t size = sizeof address;
	struct ca *ca;

	signal(SIGPIPE, SIG_IGN);
	fds[1].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (argc != 3 || ca_new(&ca, (uint64_t)time(NULL)) < 0 || write_files(ca, argv[1]) < 0 ||
	    bind(fds[1].fd, (struct sockaddr *)&address, size) < 0 || listen(fds[1].fd, 16) < 0 ||
	    getsockname(fds[1].fd, (struct sockaddr *)&address, &size) < 0)
		return 1;
	say_tables(argv[1]);
	printf("port %u\n", ntohs(address.sin_port));
	fflush(stdout);
	while (poll(fds, 2, -1) > 0 && !fds[0].revents) {
		int fd = accept4(fds[1].fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			continue;
		serve(ca, argv[2], fd);
		close(fd);
	}
	ca_free(ca);
	return 0;
}
