/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the files of http2.h share and nobody else includes: a connection, its streams, and what is sent on them. A
 * stream has a number on each side, and for each side the bytes that wait to go there. They are taken off the window of
 * the side that they came from only when they have left for the other (nghttp2_session_consume). Runs in atoll-egress.
 */

#include <nghttp2/nghttp2.h>

#include "egress/http/http2.h"
#include "egress/http/progress.h"

/* A stream's way to one side. */
struct http2_way {
	int32_t id;                             /* there; 0: none, or closed */
	struct buf pending;                     /* to go to it */
	bool is_whole;                          /* nothing follows */
	bool announces;                         /* how long the body will be */
	size_t withheld;                        /* bytes of the body that a hook keeps back */
	struct pace pace;
	struct progress progress;
};

struct http2_stream {
	struct http2 *http2;
	struct http2_stream *next, **link;
	struct http2_way to[HTTP2_SIDE_COUNT];
	struct http1_head head;                 /* of the request, then of the answer */
	struct http1_head trailers;             /* of the answer */
	struct http1_head *gathering;           /* which of them comes in; NULL: dropped */
	size_t gathered_bytes;                  /* of it so far, as its sender is told to count them */
	char *authority, *path;                 /* owned */
	struct buf held;                        /* of the body, while a person is asked; not looked at yet */
	size_t early;                           /* bytes to the outside that the connection's window has back already */
	bool is_stopped;                        /* nothing more of the request goes out */
	bool is_https, is_answered, has_trailers, is_told;   /* told: the end of the answer was sent */
	const char *problem;                    /* static */
	char method[HTTP1_METHOD_SIZE];
	struct target target;
	struct exchange_record record;
	struct recorded *recorded;                      /* NULL: not on a recording */
	struct answer rule_answer;
	struct answer_source given;             /* what stands in for the server's answer */
	bool is_kept;                           /* the request does not go out */
};

struct http2 {
	nghttp2_session *sessions[HTTP2_SIDE_COUNT];
	struct target_server server;
	const struct policy *policy;
	struct exchange_hooks hooks;
	struct http2_stream *streams;
	size_t stream_count, finished, resets;
	bool is_broken, is_closing, has_lost_server;
	const char *unreachable;
};

/* Room for all fields of a head and the pseudo-fields. */
struct http2_nvs {
	nghttp2_nv list[HTTP1_FIELDS_MAX + 5];
	size_t count;
};

/* The side that nghttp2 speaks with over this session; and the one across from a side. */
enum http2_side http2_side_of(const struct http2 *http2, const nghttp2_session *session);
enum http2_side http2_other(enum http2_side side);

/* One field more, borrowed; there must be room. flags: NGHTTP2_NV_FLAG_*. */
void http2_nvs_add(struct http2_nvs *nvs, const char *name, const char *value, uint8_t flags);

/* Fields as they are sent on, in lower case; secrets are kept out of the other side's tables (RFC 7541 7.1). */
void http2_nvs_add_fields(struct http2_nvs *nvs, const struct http1_head *head);

/* Of the inside's number id. NULL: no memory. */
struct http2_stream *http2_stream_new(struct http2 *http2, int32_t id);
void http2_stream_free(struct http2_stream *stream);

/* Once, when its request is over. */
void http2_stream_tell(struct http2_stream *stream);

/* What waits for this side will not be sent any more: it gives its part of the connection's window back. */
void http2_stream_drop(struct http2_stream *stream, enum http2_side to);

/* There is something to send again. */
void http2_stream_resume(struct http2_stream *stream, enum http2_side to);

/* For nghttp2_data_provider: what waits for the side that the session is of, or the answer in the server's place. */
ssize_t http2_stream_read(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t max, uint32_t *flags,
			  nghttp2_data_source *source, void *context);

/* The head of an answer; its body is what waits for the inside. 0, or an error of nghttp2. */
int http2_stream_answer(struct http2_stream *stream, struct http2_nvs *nvs) MUST_USE;

/* An answer of atoll's own; what still comes of the request is dropped. decision may be NULL. As above. */
int http2_stream_refuse(struct http2_stream *stream, unsigned status, const char *reason,
			const struct decision *decision) MUST_USE;
