/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is kept of HTTP exchanges, as lines of JSON (doc/format/recording.md): one line for each exchange, credentials
 * taken out. Written here, read by replay.h. Pure. Runs in atoll-egress.
 */

#include "base/buf.h"
#include "base/hash.h"
#include "egress/credentials/scan.h"
#include "egress/message/http1.h"
#include "http/target.h"

enum {
	RECORD_VERSION = 1,
	RECORD_BODY_MAX = 8 << 20,          /* a larger body is counted and hashed, and not kept */
	RECORD_LINE_MAX = 48 << 20,
	RECORD_EXCHANGES_MAX = 100000,
	RECORD_ANSWERS_MAX = 192 << 20,     /* bytes of all answers together: a replay holds them in memory */
	RECORD_FILE_MAX = 512 << 20,
};

extern const char *const record_framing_names[HTTP1_UNTIL_END + 1];

/* A body as it came by. */
struct record_body {
	struct buf kept;                    /* empty when it is too large, or there was no room for it */
	bool is_left_out;
	uint64_t size_bytes;
	struct hash_stream hash;
};

/* Texts that are known to be secrets, and become '*' wherever they stand. All zero: there are none. */
struct record_hidden {
	const struct scanner *scanner;      /* borrowed */
	uint32_t words;                     /* of it */
	uint32_t long_words;                /* longer than the scanner knows: all of what one stands in is hidden */
};

/* One exchange; everything borrowed. */
struct record_exchange {
	uint64_t at_us, us;                 /* since the recording began; how long it took */
	bool is_http2;
	const struct target_server *server;
	const struct http1_head *request;   /* as the sandbox sent it, before credentials are put in */
	struct record_body *sent;
	const struct http1_head *answer;    /* as the sandbox got it; NULL: none came */
	const struct http1_head *trailers;  /* NULL: none */
	struct record_body *received;
	bool is_whole;                      /* the server ended its answer */
	struct record_hidden hidden;
};

/* Empty; the hash of its bytes begins. */
void record_body_init(struct record_body *body);
/* Frees the bytes that were kept; room is given back by whoever counts it. */
void record_body_done(struct record_body *body);

/* The next bytes. room: how many more may be kept; those that are, are taken off. */
void record_body_add(struct record_body *body, const void *bytes, size_t size, size_t *room);

/* Appends bytes to out without what is hidden. */
void record_hide(const struct record_hidden *hidden, const void *bytes, size_t size, struct buf *out);

/* The line that says what the file is and its version; it stands before all others. */
void record_put_start(struct buf *out);

/*
 * One line; out is empty and has RECORD_LINE_MAX. What makes it too long is left out: the body of the request first.
 * The hashes of the bodies are ended.
 */
void record_put_exchange(const struct record_exchange *exchange, struct buf *out);
