/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-top/events.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { READ_SIZE = 16 << 10 };

void events_clear(struct events *events)
{
	events->next = events->count = events->partial_size = 0;
}

static void end_line(struct events *events)
{
	memcpy(events->lines[events->next], events->partial, events->partial_size);
	events->lines[events->next][events->partial_size] = 0;
	events->partial_size = 0;
	events->next = (events->next + 1) % EVENTS_MAX;
	if (events->count < EVENTS_MAX)
		events->count++;
}

int events_read(struct events *events, int fd)
{
	char bytes[READ_SIZE];
	ssize_t n = read(fd, bytes, sizeof bytes);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? -EAGAIN : 0;
	for (ssize_t i = 0; i < n; i++)
		if (bytes[i] == '\n')
			end_line(events);
		else if (events->partial_size < EVENT_SIZE - 1)
			events->partial[events->partial_size++] = bytes[i] ? bytes[i] : '?';
	return 1;
}

const char *events_at(const struct events *events, size_t back)
{
	return back < events->count ? events->lines[(events->next + EVENTS_MAX - 1 - back) % EVENTS_MAX] : NULL;
}

/* Day, time, type, verdict. */
bool events_is_refusal(const char *line)
{
	for (int word = 0; word < 3; word++) {
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	return strncmp(line, "deny ", 5) == 0;
}
