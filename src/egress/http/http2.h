/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One intercepted HTTP/2 connection (RFC 9113): a server to the sandbox and a client to the real server,
 * stream by stream, each request judged by itself as exchange.h does it for HTTP/1.1. Bodies stream both ways
 * under the flow control of both sides: who does not read stops who writes. Pure: bytes in, bytes out. Runs
 * in atoll-egress.
 */

#include "egress/http/exchange.h"

enum {
	HTTP2_STREAMS_MAX = 128,           /* open at one time; the client is told */
	HTTP2_STREAM_WINDOW = 256 << 10,   /* bytes on their way in one stream and direction */
	HTTP2_WINDOW = 1 << 20,            /* in all streams of one direction */
	HTTP2_RESETS_MAX = 256,            /* requests that were given up more than were finished: the end */
};

enum http2_side { HTTP2_INSIDE, HTTP2_OUTSIDE, HTTP2_SIDE_COUNT };

struct http2;

/* Copies hooks; borrows server->host and policy. The hooks are those of exchange.h. -ENOMEM. */
int http2_new(struct http2 **ret_http2, const struct target_server *server, const struct policy *policy,
	      const struct exchange_hooks *hooks) MUST_USE;
void http2_free(struct http2 *http2);

/* The server is not to be had: every request that is allowed is answered with the reason (static). */
void http2_set_unreachable(struct http2 *http2, const char *why);

/* Bytes from one side; all are used, or the connection is over (what http2_take() still gives is to be flushed). */
enum exchange_state http2_give(struct http2 *http2, enum http2_side side, const uint8_t *bytes, size_t size);

/* What is to be sent to one side, until out has max bytes or more. Look at both after every give and every take. */
enum exchange_state http2_take(struct http2 *http2, enum http2_side side, struct buf *out, size_t max);

/* The answer to a question about the request of this record; unknown ones are gone. Look at both sides afterwards. */
void http2_answered(struct http2 *http2, struct exchange_record *record, const struct decision *answer);

/* Whether a request waits for a person. */
bool http2_is_waiting(const struct http2 *http2);

/* Once in a while (progress.h): gives up streams whose bodies do not come. Look at both sides afterwards. */
void http2_look(struct http2 *http2);

/* As exchange_settle(); returns what that has in *ret_wait_ns. Look at both sides afterwards. */
uint64_t http2_settle(struct http2 *http2, bool in_is_held_up, uint64_t now_ns);

/* Adds the memory that is held for each side: bodies and heads that it has not taken. */
void http2_count_held(const struct http2 *http2, size_t bytes[HTTP2_SIDE_COUNT]);

/* Whether no stream is open: nobody waits for an answer, and the connection may end. */
bool http2_is_idle(const struct http2 *http2);

/* One side has ended its stream: what is open there is answered, or given up, on the other. */
void http2_ended(struct http2 *http2, enum http2_side side);
