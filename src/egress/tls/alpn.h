/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which HTTP both ends of an intercepted connection speak, told by ALPN (RFC 7301): the client's offer is
 * seen before it is answered, made to the server, and what that chose is what the client gets. Runs in
 * atoll-egress.
 */

#include <openssl/ssl.h>

enum alpn {
	ALPN_HTTP1 = 1 << 0,
	ALPN_HTTP2 = 1 << 1,
};

enum { ALPN_LIST_MAX = 16 };

/* The protocols as a list for OpenSSL, the newest first, in out. Its size. */
unsigned alpn_format(unsigned protocols, unsigned char out[ALPN_LIST_MAX]);

/* Those of a list that are known here; ALPN_HTTP1 for an empty one, which says nothing about protocols. 0:
 * none of them. */
unsigned alpn_parse(const unsigned char *list, size_t size);

/* What a handshake that is over agreed on: HTTP/1.1 where it agreed on nothing. */
enum alpn alpn_chosen(const SSL *ssl);
