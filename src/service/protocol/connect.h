/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The Connect protocol (connectrpc.com/docs/protocol), as far as its JSON codec over HTTP/1.1 goes: error codes, the
 * envelopes of streams, and the headers that bound a call in time. Pure. Run by atoll-front.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum connect_code {
	CONNECT_OK,
	CONNECT_CANCELED, CONNECT_UNKNOWN, CONNECT_INVALID_ARGUMENT, CONNECT_DEADLINE_EXCEEDED, CONNECT_NOT_FOUND,
	CONNECT_ALREADY_EXISTS, CONNECT_PERMISSION_DENIED, CONNECT_RESOURCE_EXHAUSTED, CONNECT_FAILED_PRECONDITION,
	CONNECT_ABORTED, CONNECT_OUT_OF_RANGE, CONNECT_UNIMPLEMENTED, CONNECT_INTERNAL, CONNECT_UNAVAILABLE,
	CONNECT_DATA_LOSS, CONNECT_UNAUTHENTICATED,
	CONNECT_CODE_COUNT,
};

/* "not_found"; and back: CONNECT_UNKNOWN for a name (NULL too) that is none. */
const char *connect_code_name(enum connect_code code);
enum connect_code connect_code_from_name(const char *name);

/* The HTTP status of a unary call that failed so; and what a status of another server or of HTTP itself means. */
unsigned connect_code_status(enum connect_code code);
enum connect_code connect_code_from_status(unsigned status);

/* Appends {"code":"not_found","message":"…"}. */
void connect_put_error(struct buf *out, enum connect_code code, const char *message);

enum { CONNECT_ENVELOPE_SIZE = 5, CONNECT_COMPRESSED = 1, CONNECT_END = 2 };

/* Appends room for the head of an envelope; end: fills it in for what was appended since. at: the former buf->size. */
void connect_envelope_begin(struct buf *out);
void connect_envelope_end(struct buf *out, size_t at, uint8_t flags);

/* Appends the last envelope of a stream; code CONNECT_OK: one that says that all is well. */
void connect_put_end(struct buf *out, enum connect_code code, const char *message);

/* An envelope that has come in whole; payload is borrowed. */
struct connect_envelope {
	uint8_t flags;
	const uint8_t *payload;
	size_t size;
};

/*
 * Looks at the first envelope of bytes. 1: it is whole, and *ret_used bytes long with its head; 0: more must come;
 * -EMSGSIZE: it says that it is longer than max; -ENOTSUP: it is compressed; -EBADMSG: it has flags that there are not.
 */
int connect_envelope_read(const void *bytes, size_t size, size_t max, struct connect_envelope *ret_envelope,
			  size_t *ret_used) MUST_USE;

/* "Connect-Timeout-Ms": 0 for none (NULL) and no bound; -EINVAL: not at most ten digits. */
int connect_read_timeout(const char *text, uint64_t *ret_ms) MUST_USE;

/* "Keepalive-Ping-Interval" in seconds; anything else than 1 to an hour is the usual one. */
unsigned connect_read_keepalive(const char *text);
