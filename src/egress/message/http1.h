/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * HTTP/1.1 messages in one direction of an intercepted connection (RFC 9112): a head that is whole is shown and may be
 * changed, its body streams through and is framed anew, so that the other side never sees framing that was not
 * understood here. Strict: what two parsers could read in two ways is refused. Pure, bounded. Runs in atoll-egress.
 */

#include <http_parser.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	HTTP1_HEAD_MAX = 64 << 10,
	HTTP1_FIELDS_MAX = 128,
	HTTP1_NAME_MAX = 256,
	HTTP1_TRAILERS_MAX = 8 << 10,
	HTTP1_METHOD_SIZE = 24,
	HTTP1_FILTERED_MAX = 256 << 10,   /* what one feed and what was kept back can bring */
};

enum http1_kind { HTTP1_REQUEST, HTTP1_RESPONSE };

enum http1_framing {
	HTTP1_NO_BODY,
	HTTP1_LENGTH,
	HTTP1_CHUNKED,
	HTTP1_UNTIL_END,     /* responses only: until the connection ends */
};

/* NUL-terminated; values without leading and trailing blanks. Borrowed from the head unless owned. */
struct http1_field {
	const char *name, *value;
	char *owned;         /* wiped when it goes: it may be a secret */
	bool is_secret;      /* it is one */
};

struct http1_head {
	enum http1_kind kind;
	char method[HTTP1_METHOD_SIZE];   /* requests */
	const char *target;               /* requests; borrowed, and may be pointed elsewhere before http1_put_head() */
	unsigned status;                  /* responses */
	const char *reason;               /* responses; borrowed, may be "" */
	unsigned minor;                   /* HTTP/1.minor: 0 or 1 */
	size_t field_count;
	enum http1_framing framing;
	uint64_t length;                  /* HTTP1_LENGTH */
	bool closes;                      /* nothing follows on this connection */
	bool wants_continue;              /* requests: Expect: 100-continue */
	bool is_upgrade;                  /* a request for WebSocket, or the answer that grants it */
	struct http1_field fields[HTTP1_FIELDS_MAX];   /* behind field_count: anything */
};

enum http1_result {
	HTTP1_MORE,          /* all bytes were used; feed the next */
	HTTP1_HEAD,          /* a head is whole: look, change it, http1_put_head(), then feed on */
	HTTP1_END,           /* the message is over: http1_next() */
	HTTP1_BAD,           /* refused; problem says why. Nothing can follow */
};

/* What is said to a filter with the next bytes of a body, or with none. */
enum http1_moment {
	HTTP1_GOES_ON,
	HTTP1_PAUSES,        /* nothing comes behind them for a while: what was kept back is to go on */
	HTTP1_ENDS,
};

struct http1 {
	enum http1_kind kind;
	int state;
	http_parser parser;
	char *bytes;                      /* owned: the head as it came */
	size_t size;
	bool has_first_line;
	struct http1_head head;
	struct buf trailers;              /* "Name: value\r\n" each, as they come in pieces */
	int trailer_part;
	struct buf *out;                  /* borrowed during a feed */
	/*
	 * Where it is set, content goes through it before it is framed: it appends to out what may go on, or says that
	 * nothing may (then the feed ends with HTTP1_BAD). The number of bytes stays the same.
	 */
	bool (*filter)(void *context, const void *bytes, size_t size, enum http1_moment moment, struct buf *out);
	/* Called with the trailers of an answer before they are sent on; may be NULL. */
	void (*trailer_filter)(void *context, struct http1_head *trailers);
	void *filter_context;
	struct buf filtered;
	size_t withheld;                  /* bytes that it keeps back */
	bool is_stopped;                  /* by the filter */
	/* Called with what the body is, without framing, before the filter; may be NULL. */
	void (*on_content)(void *context, const void *bytes, size_t size);
	void *content_context;
	bool is_dropped;                  /* of this message: its body goes nowhere */
	bool is_to_head, asked_upgrade;   /* responses: what the request was */
	uint64_t body_bytes;              /* of this message, without framing */
	const char *problem;              /* static */
};

/* Ready for the first message; all callbacks are NULL. */
void http1_init(struct http1 *http, enum http1_kind kind);
/* Frees the head, the trailers and what a filter keeps back. */
void http1_done(struct http1 *http);

/*
 * The next bytes of the stream; *ret_used of them were used. What the body turns into is appended to out: never more
 * than was used and a few bytes of framing, so that a caller bounds out by what it feeds. After HTTP1_BAD and HTTP1_END
 * nothing is used.
 */
enum http1_result http1_feed(struct http1 *http, const uint8_t *bytes, size_t size, struct buf *out, size_t *ret_used);

/* What the filter keeps back of a body goes on. HTTP1_MORE, or HTTP1_BAD. */
enum http1_result http1_release(struct http1 *http, struct buf *out);

/* The stream has ended. HTTP1_END where that is the end of the message, HTTP1_BAD within one, HTTP1_MORE
 * between two. */
enum http1_result http1_finish(struct http1 *http, struct buf *out);

/* Ready for the next message, after HTTP1_END. */
void http1_next(struct http1 *http);

/* Whether nothing of a message has come yet. */
bool http1_is_idle(const struct http1 *http);

/* Whether a head has begun to come, and is not whole yet. */
bool http1_is_in_head(const struct http1 *http);

/* For a response, before its head comes: what it answers. */
void http1_expect(struct http1 *http, const struct http1_head *request);

/* From now on bytes pass as they are, without an end (after 101). */
void http1_pass_raw(struct http1 *http);

/* The head as it is to be sent on, with framing and Connection fields of our own making. */
void http1_put_head(const struct http1_head *head, struct buf *out);

/* The value of the first field of this name (any case), or NULL. */
const char *http1_find(const struct http1_head *head, const char *name);

/* Removes every field that has this name in any case of letters; none: nothing. */
void http1_remove(struct http1_head *head, const char *name);

/* One more field, copied. -ENOMEM, -E2BIG (too many), -EINVAL (no name, or a control character in the value). */
int http1_add(struct http1_head *head, const char *name, const char *value) MUST_USE;

/* Replaces all fields of this name by one; value is copied. -ENOMEM, -E2BIG (too many), -EINVAL (a line break
 * in it). */
int http1_set(struct http1_head *head, const char *name, const char *value) MUST_USE;
