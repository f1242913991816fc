/* SPDX-License-Identifier: Apache-2.0 */
#include "base/view.h"

const uint8_t *view_take(struct view *view, size_t size)
{
	const uint8_t *at = view->at;

	if (view->is_bad || size > view->left) {
		view->is_bad = true;
		return NULL;
	}
	view->at += size;
	view->left -= size;
	return at;
}

uint64_t view_take_le(struct view *view, size_t width)
{
	const uint8_t *at = view_take(view, width);
	uint64_t value = 0;

	for (size_t i = width; at && i-- > 0;)
		value = value << 8 | at[i];
	return value;
}

uint64_t view_take_be(struct view *view, size_t width)
{
	const uint8_t *at = view_take(view, width);
	uint64_t value = 0;

	for (size_t i = 0; at && i < width; i++)
		value = value << 8 | at[i];
	return value;
}

struct view view_take_vector(struct view *view, size_t width)
{
	size_t size = (size_t)view_take_be(view, width);
	const uint8_t *at = view_take(view, size);

	return (struct view){ .at = at, .left = at ? size : 0, .is_bad = !at };
}
