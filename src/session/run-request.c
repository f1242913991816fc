/* SPDX-License-Identifier: Apache-2.0 */
#include "session/run-request.h"

/* A text that was cut at the end of its memory is told as far as it goes. */
void run_request_tell(const struct run_request *request, struct buf *text)
{
	if (!request->notice || !text->size)
		return;
	if (!text->is_fixed)
		buf_put_char(text, 0);
	text->size -= !text->is_fixed || text->size == text->capacity;
	text->bytes[text->size] = 0;
	request->notice((const char *)text->bytes);
}
