/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The client's side of TLS towards the real server of an intercepted host: its certificate is checked against the
 * host's own trusted authorities and against the name, as the program inside would have done. Runs in atoll-egress.
 */

#include <openssl/ssl.h>

#include "base/cleanup.h"

/*
 * What connections have in common: the authorities that the host trusts, a text of PEM certificates. -ENOENT: there is
 * none in it; -ENOMEM. Freed with SSL_CTX_free().
 */
int upstream_new(const char *bundle, SSL_CTX **ret_context) MUST_USE;

/*
 * A connection to this host (TLS 1.2 or later) that offers these protocols (enum alpn); the handshake fails
 * unless the certificate is the host's. The caller frees *ret_ssl with SSL_free(). -ENOMEM, -EINVAL.
 */
int upstream_connect(SSL_CTX *context, const char *host, unsigned protocols, SSL **ret_ssl) MUST_USE;

/* Why the handshake failed, in words for the log and the client (static): the certificate's fault, if it was one. */
const char *upstream_problem(const SSL *ssl);
