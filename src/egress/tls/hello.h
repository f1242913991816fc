/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The hello of a TLS client, as far as it names a server (RFC 8446 4.1.2, RFC 6066 3), and that of a server, as far as
 * it asks for another one (RFC 8446 4.1.3, 4.1.4). Fed with bytes as they come, one at a time if need be; bounded;
 * nothing is decrypted. Pure. Runs in atoll-egress.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HELLO_BODY_MAX = 16 << 10,   /* of the handshake message, put together from its records */
	HELLO_NAME_SIZE = 256,
};

enum hello_kind {
	HELLO_FIRST,         /* what a client says first */
	HELLO_SECOND,        /* when it was asked for another; early data of the first may stand before it */
	HELLO_OF_SERVER,
};

enum hello_state {
	HELLO_MORE,          /* not all of it has come yet */
	HELLO_PLAIN,         /* the first bytes are none of TLS; of a server: anything but HELLO_RETRY */
	HELLO_NAMED,         /* whole; name is what the client wants */
	HELLO_UNNAMED,       /* whole, without a server name */
	HELLO_MALFORMED,     /* says TLS, but is cut, contradicts itself, is too large, or shares its record */
	HELLO_RETRY,         /* of a server: it wants another hello */
};

struct hello {
	enum hello_kind kind;
	enum hello_state state;
	size_t size;                     /* bytes of the stream that it took */
	char name[HELLO_NAME_SIZE];      /* lower case; bytes that no host name has are kept, NUL is malformed */
	uint8_t header[5];               /* of the record that is coming in */
	size_t header_size, record_left;
	bool is_skipping;                /* this record */
	uint8_t *body;                   /* owned */
	size_t body_size, body_capacity;
};

/* Nothing has come yet. Allocates only once a record begins. */
void hello_init(struct hello *hello, enum hello_kind kind);
/* Frees the bytes; state, size and name stay. Twice is fine. */
void hello_done(struct hello *hello);

/* The next bytes of the stream. What follows a state other than HELLO_MORE is not looked at. */
enum hello_state hello_feed(struct hello *hello, const uint8_t *bytes, size_t size);

/* Whether the server name is this one (lower case, no trailing dot). */
bool hello_names(const struct hello *hello, const char *host);

/* Whether both are whole, and name the same server, or none. */
bool hello_is_same(const struct hello *a, const struct hello *b);
