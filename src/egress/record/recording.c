/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/record/recording.h"

#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "egress/message/http1-head.h"
#include "egress/record/record.h"
#include "egress/record/replay.h"
#include "os/clock.h"
#include "os/fd.h"

struct recording {
	struct replay *replay;         /* NULL: records */
	int fd;
	uint64_t started_ns;
	uint64_t file_bytes, answer_bytes;
	size_t exchanges;              /* written */
	size_t open;                   /* struct recorded */
	size_t room;                   /* bytes of bodies that may still be held */
	int error;
	struct record_hidden hidden;
};

struct recorded {
	struct recording *recording;
	const struct target_server *server;
	uint64_t started_ns;
	bool is_http2, has_answer, has_trailers;
	struct http1_head request, answer, trailers;   /* owned copies */
	char *target;
	char reason[64];
	struct record_body sent, received;
};

static int recording_new(struct recording **ret_recording, int fd, struct err *err)
{
	struct recording *recording = calloc(1, sizeof *recording);

	if (!recording) {
		close_fd(&fd);
		return err_set(err, ERR_INTERNAL, ENOMEM, "recording", "out of memory");
	}
	recording->fd = fd;
	recording->room = RECORDING_HELD_MAX;
	recording->started_ns = clock_monotonic_ns();
	*ret_recording = recording;
	return 0;
}

/* In one call, so that a line is there whole or not at all wherever the disk has room. */
static void write_out(struct recording *recording, const struct buf *out)
{
	if (recording->error == 0)
		recording->error = buf_error(out);
	if (recording->error == 0)
		recording->error = fd_write_full(recording->fd, out->bytes, out->size);
	recording->file_bytes += out->size;
}

int recording_write(struct recording **ret_recording, int fd, struct err *err)
{
	cleanup_buf struct buf out = { 0 };
	struct recording *recording = NULL;
	int r = recording_new(&recording, fd, err);

	if (r < 0)
		return r;
	buf_init(&out, 256);
	record_put_start(&out);
	write_out(recording, &out);
	if (recording->error < 0) {
		r = err_set(err, ERR_STATE, -recording->error, "recording", "the recording cannot be written: %s",
			    err_errno_name(-recording->error));
		recording_free(recording);
		return r;
	}
	*ret_recording = recording;
	return 0;
}

int recording_read(struct recording **ret_recording, int fd, struct err *err)
{
	struct recording *recording = NULL;
	int r = recording_new(&recording, fd, err);

	if (r < 0)
		return r;
	r = replay_new(&recording->replay, fd, err);
	if (r < 0) {
		recording_free(recording);
		return r;
	}
	close_fd(&recording->fd);
	*ret_recording = recording;
	return 0;
}

void recording_free(struct recording *recording)
{
	if (!recording)
		return;
	replay_free(recording->replay);
	close_fd(&recording->fd);
	free(recording);
}

void recording_hide(struct recording *recording, const struct record_hidden *hidden)
{
	recording->hidden = *hidden;
}

bool recording_answers(const struct recording *recording)
{
	return recording && recording->replay;
}

bool recording_is_http2(const struct recording *recording, const struct target_server *server)
{
	return replay_is_http2(recording->replay, server);
}

int recording_error(const struct recording *recording)
{
	return recording->error;
}

static const char *full_problem(const struct recording *recording)
{
	if (recording->error < 0)
		return "the recording cannot be written";
	if (recording->open == RECORDING_OPEN_MAX)
		return "there are too many requests at one time to record them";
	if (recording->exchanges >= RECORD_EXCHANGES_MAX ||
	    recording->file_bytes >= RECORD_FILE_MAX - RECORD_LINE_MAX ||
	    recording->answer_bytes >= RECORD_ANSWERS_MAX - RECORD_LINE_MAX)
		return "the recording is full";
	return NULL;
}

/* Copies what is borrowed from bytes that go away. */
static int copy_fields(struct http1_head *to, const struct http1_head *from)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->field_count; i++)
		r = http1_add(to, from->fields[i].name, from->fields[i].value);
	return r;
}

static void free_take(struct recorded *recorded)
{
	recorded->recording->room += recorded->sent.kept.size + recorded->received.kept.size;
	recorded->recording->open--;
	http1_head_reset(&recorded->request);
	http1_head_reset(&recorded->answer);
	http1_head_reset(&recorded->trailers);
	record_body_done(&recorded->sent);
	record_body_done(&recorded->received);
	free(recorded->target);
	free(recorded);
}

struct recorded *recorded_begin(struct recording *recording, const struct target_server *server,
				const struct http1_head *request, bool is_http2, const char **ret_problem)
{
	struct recorded *recorded;

	*ret_problem = recording->replay ? NULL : full_problem(recording);
	if (*ret_problem)
		return NULL;
	recorded = calloc(1, sizeof *recorded);
	*ret_problem = "there is no memory";
	if (!recorded)
		return NULL;
	*recorded = (struct recorded){
		.recording = recording, .server = server, .started_ns = clock_monotonic_ns(), .is_http2 = is_http2,
	};
	recording->open++;
	record_body_init(&recorded->sent);
	record_body_init(&recorded->received);
	memcpy(recorded->request.method, request->method, sizeof recorded->request.method);
	recorded->target = str_dup(request->target);
	recorded->request.target = recorded->target;
	if (!recorded->target || (!recording->replay && copy_fields(&recorded->request, request) < 0)) {
		free_take(recorded);
		return NULL;
	}
	*ret_problem = NULL;
	return recorded;
}

void recorded_add_sent(struct recorded *recorded, const void *bytes, size_t size)
{
	size_t nothing = 0;

	if (recorded)
		record_body_add(&recorded->sent, bytes, size,
				recorded->recording->replay ? &nothing : &recorded->recording->room);
}

const struct answer *recorded_find_answer(struct recorded *recorded, const char **ret_problem)
{
	cleanup_buf struct buf target;
	struct hash hash;

	buf_init(&target, HTTP1_HEAD_MAX);
	record_hide(&recorded->recording->hidden, recorded->target, strlen(recorded->target), &target);
	hash_stream_end(&recorded->sent.hash, &hash);
	return replay_find(recorded->recording->replay, recorded->request.method, recorded->server, buf_text(&target),
			   &hash, ret_problem);
}

void recorded_set_answer(struct recorded *recorded, const struct http1_head *answer)
{
	if (!recorded || recorded->recording->replay)
		return;
	recorded->answer.status = answer->status;
	recorded->answer.framing = answer->framing;
	recorded->answer.closes = answer->closes;
	/* One that is longer is left out, which it may always be (RFC 9112 4). */
	(void)!str_copy(recorded->reason, sizeof recorded->reason, answer->reason);
	recorded->answer.reason = recorded->reason;
	recorded->has_answer = copy_fields(&recorded->answer, answer) == 0;
}

void recorded_add_received(struct recorded *recorded, const void *bytes, size_t size)
{
	if (recorded && !recorded->recording->replay)
		record_body_add(&recorded->received, bytes, size, &recorded->recording->room);
}

void recorded_set_trailers(struct recorded *recorded, const struct http1_head *trailers)
{
	if (recorded && !recorded->recording->replay)
		recorded->has_trailers = copy_fields(&recorded->trailers, trailers) == 0;
}

/* What a replay needs to hold them. */
static size_t fields_size(const struct http1_head *head)
{
	size_t size = 64;

	for (size_t i = 0; i < head->field_count; i++)
		size += strlen(head->fields[i].name) + strlen(head->fields[i].value) + 2 * sizeof(char *) + 2;
	return size;
}

static void write_take(struct recorded *recorded, bool is_whole)
{
	cleanup_buf struct buf out;
	struct recording *recording = recorded->recording;
	struct record_exchange exchange = {
		.at_us = (recorded->started_ns - recording->started_ns) / 1000,
		.us = (clock_monotonic_ns() - recorded->started_ns) / 1000,
		.is_http2 = recorded->is_http2,
		.server = recorded->server,
		.request = &recorded->request,
		.sent = &recorded->sent,
		.answer = recorded->has_answer ? &recorded->answer : NULL,
		.trailers = recorded->has_trailers ? &recorded->trailers : NULL,
		.received = &recorded->received,
		.is_whole = is_whole,
		.hidden = recording->hidden,
	};

	buf_init(&out, RECORD_LINE_MAX);
	record_put_exchange(&exchange, &out);
	write_out(recording, &out);
	recording->exchanges++;
	recording->answer_bytes += recorded->received.kept.size + fields_size(&recorded->answer) +
				   fields_size(&recorded->trailers);
}

void recorded_drop(struct recorded *recorded)
{
	if (recorded)
		free_take(recorded);
}

void recorded_end(struct recorded *recorded, bool is_whole)
{
	if (!recorded)
		return;
	if (!recorded->recording->replay)
		write_take(recorded, is_whole);
	free_take(recorded);
}
