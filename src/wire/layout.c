/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put_field(struct buf *out, const struct layout *row, const void *field)
{
	const char *text = NULL;

	switch (row->kind) {
	case LAYOUT_U32:
		frame_put_u32(out, *(const uint32_t *)field);
		return;
	case LAYOUT_U64:
		frame_put_u64(out, *(const uint64_t *)field);
		return;
	case LAYOUT_U16:
		frame_put_u32(out, *(const uint16_t *)field);
		return;
	case LAYOUT_BOOL:
		frame_put_u32(out, *(const bool *)field);
		return;
	case LAYOUT_STRV:
		frame_put_strv(out, *(const char *const *const *)field);
		return;
	case LAYOUT_HASH:
		frame_put_bytes(out, *(const uint8_t *const *)field, row->limit);
		return;
	case LAYOUT_ARRAY:
		frame_put_bytes(out, field, row->limit);
		return;
	default:
		text = *(const char *const *)field;
		frame_put_string(out, !text && row->kind == LAYOUT_TEXT_OR_EMPTY ? "" : text);
	}
}

void layout_put(struct buf *out, const struct layout *rows, size_t count, const void *from)
{
	for (size_t i = 0; i < count; i++)
		put_field(out, &rows[i], (const char *)from + rows[i].offset);
}

static bool get_number(struct frame *frame, const struct layout *row, void *field)
{
	uint64_t number = row->kind == LAYOUT_U64 ? frame_get_u64(frame) : frame_get_u32(frame);

	if (row->kind == LAYOUT_U64)
		*(uint64_t *)field = number;
	else if (row->kind == LAYOUT_U32)
		*(uint32_t *)field = (uint32_t)number;
	else if (row->kind == LAYOUT_U16)
		*(uint16_t *)field = (uint16_t)number;
	else
		*(bool *)field = number;
	return number <= row->limit && (row->kind != LAYOUT_BOOL || number <= 1) &&
	       (row->kind != LAYOUT_U16 || number <= UINT16_MAX);
}

static bool get_bytes(struct frame *frame, const struct layout *row, void *field)
{
	size_t size;
	const uint8_t *bytes = frame_get_bytes(frame, &size);

	if (!bytes || size != row->limit)
		return false;
	if (row->kind == LAYOUT_HASH)
		*(const uint8_t **)field = bytes;
	else
		memcpy(field, bytes, size);
	return true;
}

static bool get_text(struct frame *frame, const struct layout *row, void *field)
{
	const char *text = frame_get_string(frame);

	*(const char **)field = text;
	return text ? row->limit == UINT64_MAX || strlen(text) <= row->limit : row->kind == LAYOUT_TEXT_OR_NULL;
}

static bool get_field(struct frame *frame, const struct layout *row, void *field)
{
	switch (row->kind) {
	case LAYOUT_U32:
	case LAYOUT_U64:
	case LAYOUT_U16:
	case LAYOUT_BOOL:
		return get_number(frame, row, field);
	case LAYOUT_STRV:
		*(char ***)field = frame_get_strv(frame);
		return *(char ***)field;
	case LAYOUT_HASH:
	case LAYOUT_ARRAY:
		return get_bytes(frame, row, field);
	default:
		return get_text(frame, row, field);
	}
}

static size_t field_size(const struct layout *row)
{
	static const size_t sizes[] = {
		[LAYOUT_U32] = sizeof(uint32_t), [LAYOUT_U64] = sizeof(uint64_t), [LAYOUT_U16] = sizeof(uint16_t),
		[LAYOUT_BOOL] = sizeof(bool),
	};

	if (row->kind == LAYOUT_ARRAY)
		return row->limit;
	return row->kind < ARRAY_SIZE(sizes) ? sizes[row->kind] : sizeof(void *);
}

static void clear(const struct layout *rows, size_t count, void *to)
{
	for (size_t i = 0; i < count; i++)
		memset((char *)to + rows[i].offset, 0, field_size(&rows[i]));
}

int layout_refuse(struct frame *frame, const struct layout *rows, size_t count, void *to)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].kind == LAYOUT_STRV)
			free(*(char ***)((char *)to + rows[i].offset));
	clear(rows, count, to);
	frame->error = -EBADMSG;
	return -EBADMSG;
}

int layout_get(struct frame *frame, const struct layout *rows, size_t count, void *to)
{
	bool is_sound = true;

	clear(rows, count, to);
	for (size_t i = 0; is_sound && i < count; i++)
		is_sound = get_field(frame, &rows[i], (char *)to + rows[i].offset) && !frame->error;
	return is_sound ? 0 : layout_refuse(frame, rows, count, to);
}

int layout_put_frame(struct buf *out, uint16_t type, const struct layout *rows, size_t count, const void *from)
{
	frame_begin(out, type);
	layout_put(out, rows, count, from);
	return frame_end(out);
}

int layout_get_frame(struct frame *frame, const struct layout *rows, size_t count, void *to)
{
	int r = layout_get(frame, rows, count, to);

	return r == 0 && frame_finish(frame) < 0 ? layout_refuse(frame, rows, count, to) : r;
}
