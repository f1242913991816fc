/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/output.h"

#include "client/api/record.h"
#include "os/fd.h"

enum { READ_SIZE = 32 << 10 };

static struct streams *streams_find(const struct atoll_sandbox *sandbox, uint64_t command)
{
	struct streams *streams = sandbox->streams;

	while (streams && streams->command != command)
		streams = streams->next;
	return streams;
}

/* Our ends of a command's pipes go to the caller. */
int streams_hand_out(struct streams *streams, struct atoll_record *record)
{
	static const char *const names[] = { "stdin", "stdout", "stderr" };
	int r = 0;

	for (int i = 0; r == 0 && streams && !streams->is_captured && i < 3; i++)
		if (streams->fds[i] >= 0)
			r = record_put_fd(record, streams->is_pty ? "terminal" : names[i], take_fd(&streams->fds[i]));
	return r;
}

/* A terminal's size may be changed later; the pipes of the sandbox's own command had no reply to come with. */
int streams_start(struct atoll_sandbox *sandbox, struct atoll_record *event)
{
	struct streams *streams;
	uint64_t command = 0, is_main = 0;
	int fd = record_fd(event, "terminal"), r = 0;

	(void)record_u64(event, "command", &command);
	(void)record_u64(event, "main", &is_main);
	streams = streams_find(sandbox, command);
	if (!streams)
		return 0;
	if (fd >= 0)
		streams->terminal_fd = fd_duplicate(fd);
	/* Only from here on: what a command writes comes behind the word that it runs. */
	for (int i = 1; r == 0 && streams->is_captured && i <= 2; i++)
		if (streams->fds[i] >= 0)
			r = sandbox_watch(sandbox, streams->fds[i]);
	return r == 0 && is_main ? streams_hand_out(streams, event) : r;
}

static void forget_streams(struct atoll_sandbox *sandbox, struct streams *gone)
{
	for (struct streams **at = &sandbox->streams; *at; at = &(*at)->next) {
		if (*at != gone)
			continue;
		*at = gone->next;
		for (int i = 0; gone->is_captured && i < 3; i++)
			sandbox_unwatch(sandbox, gone->fds[i]);
		streams_free(gone);
		return;
	}
}

/* ---- what is captured ---- */

static int queue_output(struct atoll_sandbox *sandbox, const struct streams *streams, int which, const void *bytes,
			size_t size)
{
	struct atoll_record *event = event_new(LINK_EVENT_OUTPUT, 0);
	int r = record_put_u64(event, "command", streams->command);

	if (r == 0)
		r = record_put_u64(event, "stream", (uint64_t)which);
	if (r == 0)
		r = record_put_bytes(event, "bytes", bytes, size);
	if (r == 0)
		return sandbox_queue(sandbox, event, false);
	atoll_record_free(event);
	return r;
}

/* 1: something was there; 0: nothing now, or the end, where it is closed. */
int output_read(struct atoll_sandbox *sandbox, struct streams *streams, int which)
{
	char *bytes = malloc(READ_SIZE);
	ssize_t n;
	int r;

	if (!bytes)
		return -ENOMEM;
	do
		n = read(streams->fds[which], bytes, READ_SIZE);
	while (n < 0 && errno == EINTR);
	r = n > 0 ? queue_output(sandbox, streams, which, bytes, (size_t)n) : 0;
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		sandbox_unwatch(sandbox, streams->fds[which]);
		close_fd(&streams->fds[which]);
	}
	free(bytes);
	return r < 0 ? r : n > 0;
}

static int drain(struct atoll_sandbox *sandbox, struct streams *streams)
{
	int r = 0;

	for (int which = 1; streams->is_captured && r >= 0 && which <= 2; which++) {
		r = streams->fds[which] >= 0;
		while (r == 1 && streams->fds[which] >= 0)
			r = output_read(sandbox, streams, which);
	}
	return r < 0 ? r : 0;
}

int output_drain(struct atoll_sandbox *sandbox)
{
	int r = 0;

	for (struct streams *streams = sandbox->streams; r == 0 && streams; streams = streams->next)
		r = drain(sandbox, streams);
	return r;
}

/* What it wrote comes before its end. */
int streams_end(struct atoll_sandbox *sandbox, const struct atoll_record *event)
{
	struct streams *streams;
	uint64_t command = 0;
	int r;

	(void)record_u64(event, "command", &command);
	streams = streams_find(sandbox, command);
	if (!streams)
		return 0;
	r = drain(sandbox, streams);
	forget_streams(sandbox, streams);
	return r;
}
