/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The keys by which a person leaves a command without ending it. They are looked for in what is typed: the beginning of
 * the sequence is held back until it is clear that it is none. Knows no terminal.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

enum { DETACH_KEYS_MAX = 8 };

struct detach_keys {
	uint8_t keys[DETACH_KEYS_MAX];
	size_t count;            /* 0: there are none */
	size_t held;             /* so many of them were typed, and held back */
	bool is_complete;
};

/*
 * Reads "ctrl-p,ctrl-q": keys with commas between them, each one character or ctrl- and one of a-z @ [ \ ] ^ _; "" is
 * no key. -EINVAL: it is none of that, or more than DETACH_KEYS_MAX.
 */
int detach_keys_parse(struct detach_keys *keys, const char *text) MUST_USE;

/*
 * Takes n typed bytes and leaves in their place those that go on, also such as were held back before: their number.
 * room: of bytes, at least n + DETACH_KEYS_MAX. Nothing goes on behind the last key; is_complete then.
 */
size_t detach_keys_sift(struct detach_keys *keys, uint8_t *bytes, size_t n, size_t room);
