/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/store/kept.h"

#include <string.h>

void kept_done(struct kept *kept)
{
	if (kept->message)
		service_message_done(kept->message);
	free(kept->message);
	free(kept->bytes);
	*kept = (struct kept){ 0 };
}

void kept_put(struct buf *out, const struct service_message *message, const char *key)
{
	const struct field *field = service_get(message, key);

	if (!field)
		return;
	switch (field->kind) {
	case FIELD_U64:
		field_put_u64(out, key, field->number);
		break;
	case FIELD_STRING:
		field_put_string(out, key, field->bytes);
		break;
	case FIELD_STRINGS:
		field_put_strings(out, key, (const char *const *)field->strings);
		break;
	default:
		break;
	}
}

/* Takes the bytes. */
static int adopt(struct kept *kept)
{
	struct frame frame;
	const char *problem;
	int r;

	kept->message = malloc(sizeof *kept->message);
	if (!kept->message)
		return -ENOMEM;
	r = frame_open(&frame, kept->bytes, kept->size);
	if (r == 0)
		r = service_read(&frame, NULL, 0, kept->message, &problem);
	if (r < 0) {
		free(kept->message);
		kept->message = NULL;
	}
	return r;
}

int kept_copy(struct kept *ret_kept, const struct service_message *message, enum service_operation operation)
{
	struct kept kept = { 0 };
	struct buf out;
	int r;

	buf_init(&out, FRAME_MESSAGE_MAX);
	service_begin_request(&out, 1, operation);
	for (const struct service_field *field = service_rule(operation)->request; field->key; field++)
		kept_put(&out, message, field->key);
	r = frame_end(&out);
	if (r < 0) {
		buf_done(&out);
		return r;
	}
	kept = (struct kept){ .bytes = out.bytes, .size = out.size };
	r = adopt(&kept);
	if (r < 0)
		kept_done(&kept);
	else
		*ret_kept = kept;
	return r;
}

int kept_read(struct kept *ret_kept, const void *bytes, size_t size)
{
	struct kept kept = { .bytes = malloc(size ? size : 1), .size = size };
	int r;

	if (!kept.bytes)
		return -ENOMEM;
	memcpy(kept.bytes, bytes, size);
	r = adopt(&kept);
	if (r < 0)
		kept_done(&kept);
	else
		*ret_kept = kept;
	return r;
}
