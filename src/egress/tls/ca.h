/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The certificate authority of one session, for hosts whose requests are looked at: made at the start,
 * trusted only inside that one sandbox, gone with the process. Its key is in this process alone, and nothing
 * here can write it anywhere. Runs in atoll-egress.
 */

#include <openssl/ssl.h>
#include <stdint.h>

#include "base/buf.h"

enum { CA_LEAVES_MAX = 256 };

struct ca;

/* A new P-256 key and its certificate, valid from a day before now_s (CLOCK_REALTIME) for a year. -ENOMEM, -EIO. */
int ca_new(struct ca **ret_ca, uint64_t now_s) MUST_USE;
void ca_free(struct ca *ca);

/* Appends the certificate as PEM. Errors are sticky in out. */
void ca_put_pem(const struct ca *ca, struct buf *out);

/*
 * The server's side of a TLS connection (1.2 or later) that is this host to the client: the client must name
 * it, if anything. host is a name in lower case or the text of an address; its certificate is made once and
 * kept for later connections (the CA_LEAVES_MAX used last). The handshake stands still behind the client's
 * hello (SSL_ERROR_WANT_CLIENT_HELLO_CB) until ca_allow(). The caller frees *ret_ssl with SSL_free(). -EINVAL
 * (no host), -ENOMEM, -EIO.
 */
int ca_accept(struct ca *ca, const char *host, uint64_t now_s, SSL **ret_ssl) MUST_USE;

/* What the client's hello offers (enum alpn): to be offered to the server. A client that offers nothing known
 * is refused. */
unsigned ca_offered(const SSL *ssl);

/* What the client may choose of it: what the server has chosen. Then SSL_do_handshake() goes on. */
void ca_allow(SSL *ssl, unsigned protocols);
