/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Reading bytes that somebody else wrote: a view that only ever gets smaller. Reading beyond its end, or marking what
 * was read as wrong, makes it fail for good, so that a parser may look once, at its end. It borrows the bytes and
 * allocates nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct view {
	const uint8_t *at;
	size_t left;
	bool is_bad;
};

/* The next size bytes, borrowed; NULL when the view failed. size 0 may give a pointer that must not be read. */
const uint8_t *view_take(struct view *view, size_t size);

/* The next number of width bytes (at most 8), its lowest or its highest byte first; 0 when the view failed. */
uint64_t view_take_le(struct view *view, size_t width);
uint64_t view_take_be(struct view *view, size_t width);

/* As many bytes as a number of this width, highest byte first, announces. It fails together with its view. */
struct view view_take_vector(struct view *view, size_t width);
