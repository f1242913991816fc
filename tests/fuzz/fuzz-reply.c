/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What atoll-files says of a file, which is passed on to a client of the sandbox (field_put_rest()), on arbitrary
 * bytes: what comes out is a whole frame with the same values in the same order, but no descriptor.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/field.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static bool is_same_list(char **a, char **b)
{
	size_t i = 0;

	while (a && b && a[i] && b[i] && strcmp(a[i], b[i]) == 0)
		i++;
	return !a == !b && (!a || (!a[i] && !b[i]));
}

static void require_same(const struct field *a, const struct field *b)
{
	require(a->kind == b->kind && strcmp(a->key, b->key) == 0 && a->number == b->number && a->size == b->size);
	require(!a->size || memcmp(a->bytes, b->bytes, a->size) == 0);
	require(is_same_list(a->strings, b->strings));
}

/* The next value that is no descriptor. */
static int get_value(struct frame *frame, struct field *ret_field)
{
	int r;

	do {
		r = field_get(frame, ret_field);
	} while (r == 1 && ret_field->kind == FIELD_FD);
	return r;
}

static void compare(struct frame *from, struct frame *to)
{
	struct field given = { 0 }, found = { 0 };

	while (get_value(to, &found) == 1) {
		require(get_value(from, &given) == 1);
		require_same(&given, &found);
		free(given.strings);
		free(found.strings);
	}
	require(!to->error && get_value(from, &given) != 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	cleanup_free uint8_t *copy = malloc(size ? size : 1);
	struct frame frame, again, passed;
	cleanup_buf struct buf out = { 0 };

	if (!copy || size > FRAME_MESSAGE_MAX)
		return 0;
	if (size)
		memcpy(copy, bytes, size);
	if (frame_open(&frame, copy, size) < 0)
		return 0;
	again = frame;
	buf_init(&out, 2 * FRAME_MESSAGE_MAX);
	frame_begin(&out, 1);
	field_put_rest(&out, &frame);
	require(frame_end(&out) == 0 && frame_open(&passed, out.bytes, out.size) == 0);
	compare(&again, &passed);
	return 0;
}
