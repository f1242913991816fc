/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/secret.h"

#include <string.h>

int secret_put_value(struct buf *out, const struct secret_value *value)
{
	frame_begin(out, SECRET_VALUE);
	frame_put_string(out, value->name);
	frame_put_bytes(out, value->value, value->size);
	frame_put_string(out, value->placeholder);
	return frame_end(out);
}

int secret_put_end(struct buf *out)
{
	frame_begin(out, SECRET_END);
	return frame_end(out);
}

int secret_put_placeholder(struct buf *out, const char *name, const char *placeholder)
{
	frame_begin(out, SECRET_PLACEHOLDER);
	frame_put_string(out, name);
	frame_put_string(out, placeholder);
	return frame_end(out);
}

static bool is_placeholder(const char *text)
{
	return text && *text && strlen(text) <= SECRET_PLACEHOLDER_MAX;
}

int secret_get_value(struct frame *frame, struct secret_value *ret_value)
{
	struct secret_value value = { .name = frame_get_string(frame) };
	int r;

	value.value = frame_get_bytes(frame, &value.size);
	value.placeholder = frame_get_string(frame);
	r = frame_finish(frame);
	if (r < 0)
		return r;
	if (!value.name || !*value.name || value.size == 0 || memchr(value.value, 0, value.size) ||
	    !is_placeholder(value.placeholder))
		return -EBADMSG;
	*ret_value = value;
	return 0;
}

int secret_get_placeholder(struct frame *frame, const char **ret_name, const char **ret_placeholder)
{
	const char *name = frame_get_string(frame), *placeholder = frame_get_string(frame);
	int r = frame_finish(frame);

	if (r < 0)
		return r;
	if (!name || !*name || !is_placeholder(placeholder))
		return -EBADMSG;
	*ret_name = name;
	*ret_placeholder = placeholder;
	return 0;
}
