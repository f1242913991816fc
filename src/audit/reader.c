/* SPDX-License-Identifier: Apache-2.0 */
#include "audit/reader.h"

#include <string.h>

#include "audit/writer.h"

enum { READ_MAX = 2 * AUDIT_RECORD_MAX };

int audit_reader_init(struct audit_reader *reader, int fd)
{
	*reader = (struct audit_reader){ .fd = fd, .bytes = malloc(READ_MAX) };
	return reader->bytes ? 0 : -ENOMEM;
}

void audit_reader_done(struct audit_reader *reader)
{
	free(reader->bytes);
	*reader = (struct audit_reader){ .fd = FD_NONE };
}

int audit_reader_rewind(struct audit_reader *reader)
{
	if (lseek(reader->fd, 0, SEEK_SET) < 0)
		return -errno;
	reader->start = reader->end = 0;
	reader->is_skipping = false;
	return 0;
}

/* Reads once behind what is there. The bytes read; 0: the end. */
static ssize_t fill(struct audit_reader *reader)
{
	ssize_t n;

	memmove(reader->bytes, reader->bytes + reader->start, reader->end - reader->start);
	reader->end -= reader->start;
	reader->start = 0;
	do
		n = read(reader->fd, reader->bytes + reader->end, READ_MAX - reader->end);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	reader->end += (size_t)n;
	return n;
}

/* Gives out the line at start if all of it is there. */
static bool take_line(struct audit_reader *reader, const char **ret_line, size_t *ret_size)
{
	char *line = reader->bytes + reader->start;
	char *newline = memchr(line, '\n', reader->end - reader->start);

	if (!newline)
		return false;
	*ret_line = line;
	*ret_size = (size_t)(newline - line);
	reader->start += *ret_size + 1;
	return true;
}

int audit_reader_next(struct audit_reader *reader, const char **ret_line, size_t *ret_size)
{
	for (;;) {
		ssize_t n;

		if (take_line(reader, ret_line, ret_size)) {
			bool was_skipping = reader->is_skipping;

			reader->is_skipping = false;
			if (was_skipping)
				continue;
			if (*ret_size < AUDIT_RECORD_MAX)
				return AUDIT_LINE_WHOLE;
			*ret_size = AUDIT_RECORD_MAX;
			return AUDIT_LINE_TOO_LONG;
		}
		if (reader->is_skipping) {
			reader->start = reader->end;
		} else if (reader->end - reader->start >= AUDIT_RECORD_MAX) {
			*ret_line = reader->bytes + reader->start;
			*ret_size = AUDIT_RECORD_MAX;
			reader->start = reader->end;
			reader->is_skipping = true;
			return AUDIT_LINE_TOO_LONG;
		}
		n = fill(reader);
		if (n < 0)
			return (int)n;
		if (n == 0) {
			*ret_line = reader->bytes + reader->start;
			*ret_size = reader->end - reader->start;
			return *ret_size ? AUDIT_LINE_PARTIAL : AUDIT_LINE_NONE;
		}
	}
}
