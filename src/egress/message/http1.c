/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/message/http1.h"

#include <string.h>

#include "base/str.h"
#include "egress/message/http1-head.h"

/*
 * A head is collected whole (bounded); libhttp_parser reads it, http1-head.c reads it byte by byte, and the two must
 * agree on the framing. The parser then goes on with the body. Debian's build of it is not the strict one: what it lets
 * through in a head is refused by the other reader, and of a body only the content is kept, under framing of our own.
 */

enum state { STATE_HEAD, STATE_BODY, STATE_END, STATE_RAW, STATE_BAD };
enum trailer_part { TRAILER_NONE, TRAILER_NAME, TRAILER_VALUE };

static int on_headers_complete(http_parser *parser)
{
	const struct http1 *http = parser->data;

	/* 1: no body follows, whatever the fields say (RFC 9112 6.3), which the parser leaves to us. */
	return http->kind == HTTP1_RESPONSE && (http->is_to_head || parser->status_code < 200 ||
						parser->status_code == 204 || parser->status_code == 304);
}

static bool put_framed(struct http1 *http, const void *bytes, size_t size)
{
	/* An empty chunk would be the last one. */
	if (!size)
		return true;
	if (http->head.framing == HTTP1_CHUNKED)
		buf_printf(http->out, "%zx\r\n", size);
	buf_put(http->out, bytes, size);
	if (http->head.framing == HTTP1_CHUNKED)
		buf_put_text(http->out, "\r\n");
	return buf_error(http->out) == 0;
}

static bool put_content(struct http1 *http, const void *bytes, size_t size, enum http1_moment moment)
{
	if (!http->filter)
		return put_framed(http, bytes, size);
	buf_reset(&http->filtered);
	http->is_stopped = !http->filter(http->filter_context, bytes, size, moment, &http->filtered);
	http->withheld += size;
	http->withheld -= http->is_stopped ? http->withheld : http->filtered.size;
	return !http->is_stopped && buf_error(&http->filtered) == 0 &&
	       put_framed(http, http->filtered.bytes, http->filtered.size);
}

static int on_body(http_parser *parser, const char *at, size_t size)
{
	struct http1 *http = parser->data;

	/* Within what is the head to us: it took CR and anything for the empty line. Not a byte of it may go out. */
	if (http->state != STATE_BODY)
		return 1;
	http->body_bytes += size;
	if (http->on_content)
		http->on_content(http->content_context, at, size);
	if (http->is_dropped)
		return 0;
	return !put_content(http, at, size, HTTP1_GOES_ON);
}

/* The parser tells of fields in pieces. Those of the head are http1-head.c's; what comes in the body are trailers. */
static int add_trailer(struct http1 *http, int part, const char *at, size_t size)
{
	if (http->state != STATE_BODY)
		return 0;
	if (part == TRAILER_NAME && http->trailer_part == TRAILER_VALUE)
		buf_put_text(&http->trailers, "\r\n");
	if (part == TRAILER_VALUE && http->trailer_part == TRAILER_NAME)
		buf_put_text(&http->trailers, ": ");
	http->trailer_part = part;
	buf_put(&http->trailers, at, size);
	return buf_error(&http->trailers) < 0;
}

static int on_field_name(http_parser *parser, const char *at, size_t size)
{
	return add_trailer(parser->data, TRAILER_NAME, at, size);
}

static int on_field_value(http_parser *parser, const char *at, size_t size)
{
	return add_trailer(parser->data, TRAILER_VALUE, at, size);
}

static int on_message_complete(http_parser *parser)
{
	/* What follows belongs to the next message, which gets a parser of its own. */
	http_parser_pause(parser, 1);
	return 0;
}

static const http_parser_settings settings = {
	.on_header_field = on_field_name, .on_header_value = on_field_value, .on_headers_complete = on_headers_complete,
	.on_body = on_body, .on_message_complete = on_message_complete,
};

void http1_init(struct http1 *http, enum http1_kind kind)
{
	*http = (struct http1){ .kind = kind, .head.kind = kind };
	buf_init(&http->trailers, HTTP1_TRAILERS_MAX);
	buf_init(&http->filtered, HTTP1_FILTERED_MAX);
	http1_next(http);
}

static void wipe_head(struct http1 *http)
{
	http1_head_reset(&http->head);
	/* Tools send credentials of their own. */
	if (http->bytes)
		explicit_bzero(http->bytes, http->size);
	free(http->bytes);
	http->bytes = NULL;
	http->size = 0;
}

void http1_done(struct http1 *http)
{
	wipe_head(http);
	buf_done(&http->trailers);
	buf_done(&http->filtered);
}

void http1_next(struct http1 *http)
{
	wipe_head(http);
	buf_reset(&http->trailers);
	http->trailer_part = TRAILER_NONE;
	http->has_first_line = false;
	http->state = STATE_HEAD;
	http->body_bytes = 0;
	http->is_stopped = false;
	http->withheld = 0;
	http->is_dropped = false;
	http->problem = NULL;
	http_parser_init(&http->parser, http->kind == HTTP1_REQUEST ? HTTP_REQUEST : HTTP_RESPONSE);
	http->parser.data = http;
}

bool http1_is_idle(const struct http1 *http)
{
	return http->state == STATE_HEAD && http->size == 0;
}

bool http1_is_in_head(const struct http1 *http)
{
	return http->state == STATE_HEAD && http->size > 0;
}

void http1_expect(struct http1 *http, const struct http1_head *request)
{
	http->is_to_head = str_equal(request->method, "HEAD");
	http->asked_upgrade = request->is_upgrade;
}

void http1_pass_raw(struct http1 *http)
{
	http->state = STATE_RAW;
}

static enum http1_result refuse(struct http1 *http, const char *problem)
{
	http->state = STATE_BAD;
	http->problem = problem;
	return HTTP1_BAD;
}

/* Whether the parser, which has just read the head, frames the body as http1-head.c does. */
static bool framing_agrees(const struct http1 *http, bool is_complete)
{
	const struct http1_head *head = &http->head;

	if (head->framing == HTTP1_NO_BODY || (head->framing == HTTP1_LENGTH && head->length == 0))
		return is_complete;
	if (is_complete)
		return false;
	if (head->framing == HTTP1_CHUNKED)
		return http->parser.flags & F_CHUNKED;
	if (http->parser.flags & F_CHUNKED)
		return false;
	return head->framing == HTTP1_LENGTH ? http->parser.content_length == head->length
					     : http->parser.content_length == UINT64_MAX;
}

static enum http1_result end_head(struct http1 *http)
{
	size_t used = http_parser_execute(&http->parser, &settings, http->bytes, http->size);
	enum http_errno error = HTTP_PARSER_ERRNO(&http->parser);
	const char *problem;

	if (error != HPE_OK && error != HPE_PAUSED)
		return refuse(http, http_errno_description(error));
	problem = http1_head_parse(http, http->bytes, http->size, &http->head);
	if (problem)
		return refuse(http, problem);
	if (http->head.status == 101) {
		http->state = STATE_RAW;
		return HTTP1_HEAD;
	}
	if (used != http->size || !framing_agrees(http, error == HPE_PAUSED))
		return refuse(http, "its head can be read in two ways");
	http->state = error == HPE_PAUSED ? STATE_END : STATE_BODY;
	return HTTP1_HEAD;
}

/* Where the head ends within bytes, given that http->bytes came before; 0: not yet. */
static size_t find_end(const struct http1 *http, const uint8_t *bytes, size_t size)
{
	/* How much of CRLF CRLF has been seen. */
	static const char end[] = "\r\n\r\n";
	const uint8_t *found = memmem(bytes, size, end, 4);
	size_t matched = 0;

	/* Nearly all come in one piece. */
	if (http->size == 0)
		return found ? (size_t)(found - bytes) + 4 : 0;
	for (size_t before = http->size < 3 ? http->size : 3; before > 0; before--)
		if (memcmp(http->bytes + http->size - before, end, before) == 0) {
			matched = before;
			break;
		}
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == (uint8_t)end[matched])
			matched++;
		else
			matched = bytes[i] == '\r';
		if (matched == 4)
			return i + 1;
	}
	return 0;
}

/* Told at once: without it the end of such a head would never come. */
static bool has_bare_lf(const struct http1 *http, const uint8_t *bytes, size_t size)
{
	uint8_t before = http->size ? (uint8_t)http->bytes[http->size - 1] : 0;
	const uint8_t *at = bytes, *lf;

	for (; (lf = memchr(at, '\n', size - (size_t)(at - bytes))); at = lf + 1)
		if ((lf == bytes ? before : lf[-1]) != '\r')
			return true;
	return false;
}

/* A client of another protocol waits for an answer where HTTP goes on to an empty line: it is told after one line. */
static bool is_of_http(struct http1 *http)
{
	const char *end = http->has_first_line ? NULL : memchr(http->bytes, '\n', http->size);

	if (!end)
		return true;
	http->has_first_line = true;
	if (http->kind == HTTP1_RESPONSE)
		return str_has_prefix(http->bytes, "HTTP/1.");
	return end - http->bytes > 10 && memcmp(end - 10, " HTTP/1.", 8) == 0;
}

/* Before a request, a leftover of old clients (RFC 9112 2.2). */
static size_t skip_empty_lines(struct http1 *http, const uint8_t *bytes, size_t size)
{
	size_t used = 0;

	if (http->kind != HTTP1_REQUEST)
		return 0;
	if (size && http->size == 1 && http->bytes[0] == '\r' && bytes[0] == '\n') {
		http->size = 0;
		used = 1;
	}
	while (http->size == 0 && used + 1 < size && bytes[used] == '\r' && bytes[used + 1] == '\n')
		used += 2;
	return used;
}

static enum http1_result feed_head(struct http1 *http, const uint8_t *bytes, size_t size, size_t *ret_used)
{
	size_t end, wanted;
	char *grown;

	*ret_used = skip_empty_lines(http, bytes, size);
	if (*ret_used == size)
		return HTTP1_MORE;
	end = find_end(http, bytes + *ret_used, size - *ret_used);
	wanted = end ? end : size - *ret_used;
	if (has_bare_lf(http, bytes + *ret_used, wanted))
		return refuse(http, "a line ends with LF alone");
	if (http->size + wanted > HTTP1_HEAD_MAX)
		return refuse(http, "its head is too large");
	grown = realloc(http->bytes, http->size + wanted + 1);
	if (!grown)
		return refuse(http, "there is no memory");
	http->bytes = grown;
	memcpy(grown + http->size, bytes + *ret_used, wanted);
	http->size += wanted;
	grown[http->size] = 0;
	*ret_used += wanted;
	if (!is_of_http(http))
		return refuse(http, "it does not begin like HTTP/1");
	return end ? end_head(http) : HTTP1_MORE;
}

/* Why content did not go on. */
static enum http1_result refuse_content(struct http1 *http)
{
	return refuse(http, http->is_stopped ? "its content must not be passed on" : "there is no memory");
}

static enum http1_result end_body(struct http1 *http)
{
	http->state = STATE_END;
	if (http->is_dropped)
		return HTTP1_END;
	if (http->filter && !put_content(http, NULL, 0, HTTP1_ENDS))
		return refuse_content(http);
	if (http->head.framing != HTTP1_CHUNKED)
		return HTTP1_END;
	buf_put_text(http->out, "0\r\n");
	if (http->trailer_part != TRAILER_NONE) {
		buf_put_text(&http->trailers, "\r\n");
		if (buf_error(&http->trailers) < 0 ||
		    !http1_put_trailers(http, (char *)http->trailers.bytes, http->trailers.size, http->out))
			return refuse(http, "its trailers are malformed");
	}
	buf_put_text(http->out, "\r\n");
	return HTTP1_END;
}

static enum http1_result feed_body(struct http1 *http, const uint8_t *bytes, size_t size, size_t *ret_used)
{
	enum http_errno error;

	*ret_used += http_parser_execute(&http->parser, &settings, (const char *)bytes, size);
	error = HTTP_PARSER_ERRNO(&http->parser);
	if (error == HPE_PAUSED)
		return end_body(http);
	if (http->is_stopped || buf_error(http->out) < 0 || buf_error(&http->filtered) < 0)
		return refuse_content(http);
	if (error != HPE_OK)
		return refuse(http, http_errno_description(error));
	return HTTP1_MORE;
}

/*
 * Of a protocol that was switched to. Messages go to and fro at once, so nothing is held back: the filter of an answer
 * sees what comes at one time, and mostly that is a message.
 */
static enum http1_result feed_raw(struct http1 *http, const uint8_t *bytes, size_t size)
{
	http->body_bytes += size;
	if (http->kind == HTTP1_REQUEST || !http->filter) {
		buf_put(http->out, bytes, size);
		return buf_error(http->out) < 0 ? refuse(http, "there is no memory") : HTTP1_MORE;
	}
	return put_content(http, bytes, size, HTTP1_GOES_ON) && put_content(http, NULL, 0, HTTP1_PAUSES)
		? HTTP1_MORE : refuse_content(http);
}

enum http1_result http1_feed(struct http1 *http, const uint8_t *bytes, size_t size, struct buf *out, size_t *ret_used)
{
	enum http1_result result = HTTP1_END;

	*ret_used = 0;
	http->out = out;
	switch ((enum state)http->state) {
	case STATE_HEAD:
		result = feed_head(http, bytes, size, ret_used);
		break;
	case STATE_BODY:
		result = size ? feed_body(http, bytes, size, ret_used) : HTTP1_MORE;
		break;
	case STATE_RAW:
		*ret_used = size;
		result = feed_raw(http, bytes, size);
		break;
	case STATE_END:
		break;
	case STATE_BAD:
		result = HTTP1_BAD;
		break;
	}
	return result;
}

enum http1_result http1_release(struct http1 *http, struct buf *out)
{
	if (http->state == STATE_BAD)
		return HTTP1_BAD;
	if (http->state != STATE_BODY || !http->withheld)
		return HTTP1_MORE;
	http->out = out;
	return put_content(http, NULL, 0, HTTP1_PAUSES) ? HTTP1_MORE : refuse_content(http);
}

enum http1_result http1_finish(struct http1 *http, struct buf *out)
{
	if (http->state == STATE_HEAD && http->size == 0)
		return HTTP1_MORE;
	if (http->state == STATE_END || http->state == STATE_RAW)
		return HTTP1_END;
	if (http->state != STATE_BODY || http->head.framing != HTTP1_UNTIL_END)
		return http->state == STATE_BAD ? HTTP1_BAD : refuse(http, "it ends in the middle");
	http->out = out;
	/* Nobody knows whether it was to end here. */
	if (http->filter && !put_content(http, NULL, 0, HTTP1_PAUSES))
		return refuse_content(http);
	return end_body(http);
}
