/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * UTF-8 (RFC 3629), strict: no overlong forms, no surrogates, nothing above U+10FFFF. Pure.
 * Also tells which characters must not reach a terminal or a log as they are.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decodes one character. The bytes used (1–4), or 0 where bytes do not begin with a valid one. */
size_t utf8_decode(const uint8_t *bytes, size_t size, uint32_t *ret_rune);

/* C1 controls, bidirectional, zero-width and other invisible characters, line separators, blanks that are no space. */
bool utf8_is_unsafe(uint32_t rune);

/* RFC 3629: no overlong form, no surrogate, nothing beyond U+10FFFF. NUL is as any other. */
bool utf8_is_valid(const void *bytes, size_t size);
