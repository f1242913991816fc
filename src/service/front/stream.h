/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An answer whose end is not known yet: envelopes of Connect that come bit by bit. What the client does not read stays
 * in a buffer; who fills it looks at how full that is, and is told when there is room again. Run by atoll-front.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "service/protocol/connect.h"

struct exchange;

enum {
	STREAM_FULL = 96 << 10,      /* the only reader of a source holds it up from here on */
	STREAM_LOW = 32 << 10,       /* and lets it go on here */
	STREAM_MAX = 1 << 20,        /* one of several readers is dropped here */
	STREAM_ROOM = STREAM_MAX + (128 << 10),
};

struct stream {
	struct exchange *exchange;   /* borrowed */
	struct buf out;
	bool is_ended, is_failed;
	unsigned keepalive_s;
	uint64_t last_ms;            /* when something was put last */
	void (*drained)(void *context); /* below STREAM_LOW again; may be NULL */
	void *context;
};

/* Answers the exchange with a stream, which must live until the exchange is done. */
void stream_begin(struct stream *stream, struct exchange *exchange);
/* The same with another type of content than that of Connect's envelopes, and no more than max bytes in out. */
void stream_begin_as(struct stream *stream, struct exchange *exchange, const char *type, size_t max);
/* Frees what is left. */
void stream_done(struct stream *stream);

/* Something was appended to out: it is sent. */
void stream_wake(struct stream *stream);

/* The end, after what is in out; code CONNECT_OK: all is well. Nothing may be appended any more. */
void stream_end(struct stream *stream, enum connect_code code, const char *message);

/* The end after what is in out, without an envelope that says so. */
void stream_close(struct stream *stream);

/* Cuts the connection, so that the client sees that there is no proper end. */
void stream_fail(struct stream *stream);

/* Whether it is time for a sign of life. */
bool stream_is_silent(const struct stream *stream, uint64_t now_ms);
