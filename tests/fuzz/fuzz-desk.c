/* SPDX-License-Identifier: Apache-2.0 */

/* A line of ask.sock: what is taken stays within the bounds of its frame, and comes out of one as it went in. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "desk/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_frame(const struct desk_want *want)
{
	cleanup_buf struct buf out;
	struct desk_want read;
	struct frame frame;

	buf_init(&out, FRAME_MESSAGE_MAX);
	if (desk_want_put(&out, DESK_WANT, want) < 0 || frame_open(&frame, out.bytes, out.size) < 0 ||
	    desk_want_get(&frame, &read) < 0)
		abort();
	if (strcmp(read.subject, want->subject) != 0 || read.port != want->port || read.wait_ms != want->wait_ms)
		abort();
	free(read.argv);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const char *why = NULL;
	struct line line;

	if (line_parse((const char *)bytes, size, &line, &why) < 0) {
		if (!why)
			abort();
		return 0;
	}
	if (line.kind == LINE_WANT || line.kind == LINE_EXPLAIN)
		check_frame(&line.want);
	else if (line.want.subject)
		abort();
	if ((line.kind == LINE_TOKEN) != (line.token != NULL) || (line.token && strlen(line.token) > size))
		abort();
	line_done(&line);
	return 0;
}
