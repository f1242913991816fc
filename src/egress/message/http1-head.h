/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The head of an HTTP/1.1 message: every byte of it judged, its fields told apart, its framing decided (RFC
 * 9112 2 to 6). For http1.c, which also asks libhttp_parser and refuses what the two do not read alike. Pure.
 */

#include "egress/message/http1.h"

/*
 * Reads a whole head of size bytes, empty line included, and cuts it up in place: ret_head borrows from bytes. What a
 * response answers stands in http. NULL, or why it is refused (static).
 */
const char *http1_head_parse(const struct http1 *http, char *bytes, size_t size, struct http1_head *ret_head);

/* Frees what was set, wiped, and empties the head. */
void http1_head_reset(struct http1_head *head);

/*
 * Trailers ("Name: value\r\n" each) that may pass behind this message, appended to out: not what frames, routes or
 * authenticates, and nothing that the head has; none of a request, which nobody needs, and which nobody looked at.
 * Bytes are cut up. False: they are malformed.
 */
bool http1_put_trailers(const struct http1 *http, char *bytes, size_t size, struct buf *out);

/* Whether this is the name of a framing or routing field with _ in place of -. */
bool http1_name_is_masked(const char *name);

/* Fields of one hop (RFC 9110 7.6.1) and those that frame a body: never passed on as they came. */
bool http1_name_is_of_hop(const char *name);

/* Whether a field can stand in a head like this: a token, and no control character in the value. */
bool http1_field_is_valid(const char *name, const char *value);

/* Whether two field names are the same to any server: any case, and _ as good as - (CGI makes them one). */
bool http1_name_is(const char *a, const char *b);
