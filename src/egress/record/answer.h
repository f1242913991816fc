/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An answer that no server gives now: recorded before (replay.h), or written in the policy. exchange.h and http2.h send
 * it, in the version of HTTP that the client speaks. Pure. Runs in atoll-egress.
 */

#include <nghttp2/nghttp2.h>

#include "base/buf.h"
#include "egress/message/http1.h"
#include "policy/policy.h"

/* Everything borrowed. Fields: name, value, name, value, NULL; NULL: none. */
struct answer {
	unsigned status;                 /* 200 to 599 */
	const char *reason;              /* "" is fine */
	const char *const *fields, *const *trailers;
	const uint8_t *body;
	size_t body_size;
	enum http1_framing framing;      /* for HTTP/1.1 */
	bool closes;                     /* HTTP/1.1: the server ended the connection with it */
	bool is_cut;                     /* it breaks off behind the body */
};

/* One that is being given. */
struct answer_source {
	const struct answer *answer;     /* borrowed; NULL: none */
	size_t done;                     /* bytes of its body that were handed on */
	bool is_to_head;                 /* without its body */
	bool is_chunked;                 /* HTTP/1.1 */
};

enum answer_state {
	ANSWER_MORE,
	ANSWER_WHOLE,
	ANSWER_CUT,                      /* the connection, or the stream, is to break off here */
};

/* What a rule of network.simulate says. */
struct answer answer_of_rule(const struct net_answer *rule);

/* HTTP/1.1: the head; *closes becomes true where nothing can follow on this connection. minor: of the request. */
void answer_put_head(struct answer_source *source, unsigned minor, bool *closes, struct buf *out);

/* HTTP/1.1: the body, framed, until out has max bytes or more. */
enum answer_state answer_put_body(struct answer_source *source, struct buf *out, size_t max);

/* HTTP/2: the head; provider has the rest, where there is any, by answer_read(). Negative as nghttp2. */
int answer_submit(const struct answer_source *source, nghttp2_session *session, int32_t stream_id,
		  const nghttp2_data_provider *provider) MUST_USE;

/* HTTP/2: up to max of the next bytes of the body; how many they are. */
size_t answer_read(struct answer_source *source, void *bytes, size_t max, enum answer_state *ret_state);

/* HTTP/2: behind a whole body, where the answer has trailers. */
int answer_submit_trailers(const struct answer_source *source, nghttp2_session *session, int32_t stream_id) MUST_USE;
