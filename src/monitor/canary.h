/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Canaries: files that look like somebody's credentials and are nobody's. Each has a token that is in no other session,
 * so whoever has it read the file here. Pure but for the random bytes, which are handed in. Run by atoll-box; the
 * network gate looks for the tokens in what it reads (egress/credentials/scan.h), here they are looked for in short
 * texts.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum {
	CANARY_RANDOM = 96,         /* bytes that one is made of */
	CANARY_TOKEN_MAX = 80,
	CANARY_TEXT_MAX = 1024,
	CANARY_SPELLINGS = 5,       /* plain, hexadecimal, base64 at each alignment */
	CANARY_SPELLING_MAX = 2 * CANARY_TOKEN_MAX + 1,
};

struct canary {
	char token[CANARY_TOKEN_MAX];
	char text[CANARY_TEXT_MAX]; /* of the file, with the token in it */
	size_t text_size;
	char spellings[CANARY_SPELLINGS][CANARY_SPELLING_MAX]; /* of the token */
};

/* What the file of this path would hold: told by its name. */
int canary_make(struct canary *canary, const char *path, const uint8_t random[CANARY_RANDOM]) MUST_USE;

/* How the token is spelled in text: "plain", "hex", "base64"; NULL: it is not in it. */
const char *canary_find(const struct canary *canary, const char *text);

/*
 * The same in a name that was looked up, where letters have no case and dots and dashes may stand anywhere. A name
 * has at most 255 bytes.
 */
const char *canary_find_in_name(const struct canary *canary, const char *name);
