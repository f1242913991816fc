/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What becomes of one request on a stream, and of its answer: checked, judged, and sent on, refused, or answered by a
 * rule or from a recording. All results are 0 or an error of nghttp2, which ends the connection. Runs in atoll-egress.
 */

#include "egress/http/http2-stream.h"

/* Its head is whole: it is checked and judged, and goes out, waits for a person, or is answered here. */
int http2_request_begin(struct http2_stream *stream) MUST_USE;

/* A request that does not go out is whole: its answer. */
int http2_request_give(struct http2_stream *stream) MUST_USE;

/* What is not sent is nothing to record: it may have been refused for what it would have carried out. */
void http2_request_forget(struct http2_stream *stream);

/* What a person said of a request that waits for it (exchange_judge()). */
int http2_request_answered(struct http2_stream *stream, const struct decision *answer) MUST_USE;

/* The head of the server's answer, also an interim one. */
int http2_answer_begin(struct http2_stream *stream) MUST_USE;
