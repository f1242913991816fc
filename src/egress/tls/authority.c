/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/tls/authority.h"

#include <openssl/ssl.h>
#include <string.h>

#include "base/str.h"
#include "egress/tls/ca.h"
#include "egress/tls/certificates.h"
#include "egress/tls/upstream.h"
#include "os/clock.h"
#include "os/fd.h"

static uint64_t now_s(void)
{
	return clock_realtime_ns() / 1000000000;
}

int authority_init(struct authority *authority)
{
	/* Not by the host's openssl.cnf, which may name engines to load. */
	if (!OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL))
		return -EIO;
	return ca_new(&authority->ca, now_s());
}

void authority_done(struct authority *authority)
{
	ca_free(authority->ca);
	SSL_CTX_free(authority->upstream);
	free(authority->bundle);
	*authority = (struct authority){ 0 };
}

static int read_bundle(int fd, struct buf *out)
{
	enum { PIECE = 64 << 10 };

	for (;;) {
		uint8_t *at = buf_reserve(out, PIECE);
		ssize_t n = at ? read(fd, at, PIECE) : 0;

		if (!at)
			return buf_error(out) == -ENOBUFS ? -EFBIG : buf_error(out);
		if (n < 0)
			return -errno;
		out->size -= PIECE - (size_t)n;
		if (n == 0)
			return 0;
	}
}

static int write_file(const struct authority *authority, enum certificate_file file, const char *bundle, int fd)
{
	cleanup_buf struct buf own, content;
	int r;

	buf_init(&own, CERTIFICATE_FILE_MAX);
	buf_init(&content, CERTIFICATE_FILE_MAX);
	ca_put_pem(authority->ca, &own);
	r = buf_error(&own);
	if (r == 0)
		r = certificates_format(file, buf_text(&own), bundle, now_s(), &content);
	return r < 0 ? r : fd_write_full(fd, content.bytes, content.size);
}

int authority_introduce(struct authority *authority, int bundle_fd, const int *files)
{
	cleanup_buf struct buf bundle;
	int r;

	buf_init(&bundle, CERTIFICATE_FILE_MAX);
	r = read_bundle(bundle_fd, &bundle);
	if (r == 0 && !strstr(buf_text(&bundle), "-----BEGIN "))
		r = -ENOENT;
	for (int file = 0; r == 0 && file < CERTIFICATE_FILE_COUNT; file++)
		if (files[file] >= 0)
			r = write_file(authority, (enum certificate_file)file, buf_text(&bundle), files[file]);
	if (r < 0)
		return r;
	authority->bundle = str_dup(buf_text(&bundle));
	return authority->bundle ? 0 : -ENOMEM;
}

SSL_CTX *authority_upstream(struct authority *authority)
{
	if (!authority->upstream && authority->bundle && upstream_new(authority->bundle, &authority->upstream) < 0)
		authority->upstream = NULL;
	free(authority->bundle);
	authority->bundle = NULL;
	return authority->upstream;
}
