/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A strict reader of JSON (RFC 8259) that goes through a text once and builds nothing. After the first byte that is
 * wrong everything fails; what is no text of ours may be read with it. Pure. Used by libatoll.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct json_reader {
	const char *at, *end;
	bool is_broken;
	unsigned depth;
};

/* The next byte that is no space; 0 at the end, and where it is broken. */
char json_peek(struct json_reader *reader);

/* Takes this byte where it is the next; expect: else it is broken. */
bool json_accept(struct json_reader *reader, char c);
void json_expect(struct json_reader *reader, char c);

/* Takes true, false or null, where that is next. */
bool json_accept_word(struct json_reader *reader, const char *word);

/* The content of a string, which is next, appended to out; NULL: it is passed over. */
void json_read_string(struct json_reader *reader, struct buf *out);

/* Whether the number that is next is whole and fits: then *ret is it. */
bool json_read_number(struct json_reader *reader, uint64_t *ret);

/* Passes over one value of any kind, at most 32 deep. */
void json_skip(struct json_reader *reader);
