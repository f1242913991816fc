/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One output of a command that lasts, and those who read it: part of lasting.c, and of nobody else. Never blocks.
 * Run by atoll-box.
 */

#include "supervise/lasting.h"
#include "supervise/loop.h"

struct lasting_stream;

struct lasting_reader {
	struct lasting_stream *stream;
	struct loop_source source;
	int fd;                          /* owned; FD_NONE: none */
	bool is_socket;
	uint64_t at;                     /* the position that it gets next */
};

struct lasting_stream {
	const struct lasting_owner *owner;
	struct loop_source source;
	int in;                          /* owned; FD_NONE: not there, or over */
	bool is_there;                   /* it is, or was */
	bool waits_for_room;             /* of the only reader, who gets pages and no copies */
	struct ring ring;
	uint64_t dropped;
	struct lasting_reader readers[LASTING_CLIENTS_MAX];
};

/* Nothing comes yet, and nobody reads. done: closes all of it. */
void lasting_stream_init(struct lasting_stream *stream, const struct lasting_owner *owner);
void lasting_stream_done(struct lasting_stream *stream);

/* stream->in is set: it is read from now on. 0 or -errno of the loop. */
int lasting_stream_listen(struct lasting_stream *stream) MUST_USE;

/* One more reader (fd taken, also on failure): from what is in the ring on, where it is the only one. */
int lasting_stream_attach(struct lasting_stream *stream, int fd, bool is_socket) MUST_USE;

/* What is in the ring goes, where nobody is about to get it. */
void lasting_stream_forget(struct lasting_stream *stream);

/* It is read no more; those who are attached get what is left. */
void lasting_stream_end(struct lasting_stream *stream);

/* As lasting_is_settled() and lasting_is_drained(), of this one; how many read it. */
bool lasting_stream_is_settled(struct lasting_stream *stream);
bool lasting_stream_is_drained(const struct lasting_stream *stream);
unsigned lasting_stream_readers(const struct lasting_stream *stream);
