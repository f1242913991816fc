/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/field.h"

#include <stdlib.h>
#include <string.h>

static void put_head(struct buf *out, const char *key, enum field_kind kind)
{
	frame_put_string(out, key);
	frame_put_u32(out, kind);
}

void field_put_u64(struct buf *out, const char *key, uint64_t number)
{
	put_head(out, key, FIELD_U64);
	frame_put_u64(out, number);
}

void field_put_string(struct buf *out, const char *key, const char *text)
{
	if (!text)
		return;
	put_head(out, key, FIELD_STRING);
	frame_put_string(out, text);
}

void field_put_bytes(struct buf *out, const char *key, const void *bytes, size_t size)
{
	put_head(out, key, FIELD_BYTES);
	frame_put_bytes(out, bytes, size);
}

void field_put_strings(struct buf *out, const char *key, const char *const *strings)
{
	put_head(out, key, FIELD_STRINGS);
	frame_put_strv(out, strings);
}

void field_put_fd(struct buf *out, const char *key, uint64_t index)
{
	put_head(out, key, FIELD_FD);
	frame_put_u64(out, index);
}

static void get_value(struct frame *frame, struct field *field)
{
	switch (field->kind) {
	case FIELD_U64:
	case FIELD_FD:
		field->number = frame_get_u64(frame);
		break;
	case FIELD_STRING:
		field->bytes = frame_get_string(frame);
		field->size = field->bytes ? strlen(field->bytes) : 0;
		break;
	case FIELD_BYTES:
		field->bytes = frame_get_bytes(frame, &field->size);
		break;
	case FIELD_STRINGS:
		field->strings = frame_get_strv(frame);
		break;
	default:
		frame->error = -EBADMSG;
	}
}

int field_get(struct frame *frame, struct field *ret_field)
{
	struct field field = { 0 };

	if (frame->error || frame->at == frame->size)
		return frame->error;
	field.key = frame_get_string(frame);
	field.kind = (enum field_kind)frame_get_u32(frame);
	get_value(frame, &field);
	if (!field.key || (field.kind == FIELD_STRING && !field.bytes))
		frame->error = -EBADMSG;
	if (frame->error) {
		free(field.strings);
		return frame->error;
	}
	*ret_field = field;
	return 1;
}

void field_done(struct field *field)
{
	free(field->strings);
	*field = (struct field){ 0 };
}

void field_put_rest(struct buf *out, struct frame *frame)
{
	struct field field = { 0 };

	while (field_get(frame, &field) == 1) {
		if (field.kind == FIELD_U64)
			field_put_u64(out, field.key, field.number);
		else if (field.kind == FIELD_STRING)
			field_put_string(out, field.key, field.bytes);
		else if (field.kind == FIELD_BYTES)
			field_put_bytes(out, field.key, field.bytes, field.size);
		else if (field.kind == FIELD_STRINGS)
			field_put_strings(out, field.key, (const char *const *)field.strings);
		field_done(&field);
	}
}
