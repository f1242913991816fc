/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What commands and functions that only change text would put out: echo, printf, base64 -d, xxd -r -p, rev, tr.
 * So that a command that was hidden in them is judged as what it is. Pure.
 */

#include "verify/model/operation.h"

/* What base64 text stands for, standard or URL alphabet, white space skipped. False where it is none. */
bool decode_base64(struct arena *arena, const struct word *text, struct word *ret_decoded) MUST_USE;

/* The same for base32 and for hex digits (with or without 0x, \x, white space and colons between them). */
bool decode_base32(struct arena *arena, const struct word *text, struct word *ret_decoded) MUST_USE;
bool decode_hex(struct arena *arena, const struct word *text, struct word *ret_decoded) MUST_USE;

/*
 * Escapes of C: \n \t \xHH \NNN \uHHHH \e, as in $'…', echo -e and printf. *ret_is_hidden: printable characters were
 * written as numbers.
 */
struct word decode_escapes(struct arena *arena, const struct word *text, bool *ret_is_hidden);

/*
 * The output of a command that only changes text. document: its standard input, or NULL where that is not known. False
 * where the output is not known.
 */
bool decode_output(struct arena *arena, const struct word *words, size_t count, const struct word *document,
		   struct word *ret_output) MUST_USE;
