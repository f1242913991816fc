/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/secret.h"

#include <string.h>

int secret_put_value(struct buf *out, const char *name, const void *value, size_t size)
{
	frame_begin(out, SECRET_VALUE);
	frame_put_string(out, name);
	frame_put_bytes(out, value, size);
	return frame_end(out);
}

int secret_put_end(struct buf *out)
{
	frame_begin(out, SECRET_END);
	return frame_end(out);
}

int secret_get_value(struct frame *frame, const char **ret_name, const char **ret_value, size_t *ret_size)
{
	const char *name = frame_get_string(frame), *value;
	size_t size;
	int r;

	value = frame_get_bytes(frame, &size);
	r = frame_finish(frame);
	if (r < 0)
		return r;
	if (!name || !*name || size == 0 || memchr(value, 0, size))
		return -EBADMSG;
	*ret_name = name;
	*ret_value = value;
	*ret_size = size;
	return 0;
}
