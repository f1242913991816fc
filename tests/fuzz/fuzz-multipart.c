/* SPDX-License-Identifier: Apache-2.0 */

/* A form, read whole and byte by byte: both say the same, and nothing is longer than what went in. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "service/protocol/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static struct multipart multipart;

static void read_all(const uint8_t *bytes, size_t size, size_t step, struct buf *out)
{
	size_t at = 0;

	if (multipart_init(&multipart, "multipart/form-data; boundary=XY") < 0)
		abort();
	while (at < size) {
		size_t end = size - at < step ? size : at + step;

		while (at < end) {
			const void *data;
			size_t used, data_size;
			int piece = multipart_next(&multipart, bytes + at, end - at, &used, &data, &data_size);

			if (piece < 0) {
				buf_put_char(out, '!');
				return;
			}
			if (used > end - at || (piece == MULTIPART_MORE && used != end - at) || data_size > size)
				abort();
			at += used;
			if (piece == MULTIPART_PART)
				buf_put_text(out, multipart.filename);
			if (piece == MULTIPART_DATA)
				buf_put(out, data, data_size);
			if (piece == MULTIPART_PART_END)
				buf_put_char(out, '.');
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	cleanup_buf struct buf whole, single;

	buf_init(&whole, 4 * size + 4096);
	buf_init(&single, 4 * size + 4096);
	read_all(bytes, size, size ? size : 1, &whole);
	read_all(bytes, size, 1, &single);
	if (whole.size != single.size || (whole.size && memcmp(whole.bytes, single.bytes, whole.size) != 0))
		abort();
	return 0;
}
