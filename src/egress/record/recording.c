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

struct tape {
	struct replay *replay;         /* NULL: records */
	int fd;
	uint64_t started_ns;
	uint64_t file_bytes, answer_bytes;
	size_t exchanges, takes;
	size_t room;                   /* bytes of bodies that may still be held */
	int error;
	struct record_hidden hidden;
};

struct take {
	struct tape *tape;
	const struct target_server *server;
	uint64_t started_ns;
	bool is_http2, has_answer, has_trailers;
	struct http1_head request, answer, trailers;   /* owned copies */
	char *target;
	char reason[64];
	struct record_body sent, received;
};

static int tape_new(struct tape **ret_tape, int fd, struct err *err)
{
	struct tape *tape = calloc(1, sizeof *tape);

	if (!tape) {
		close_fd(&fd);
		return err_set(err, ERR_INTERNAL, ENOMEM, "recording", "out of memory");
	}
	tape->fd = fd;
	tape->room = TAPE_HELD_MAX;
	tape->started_ns = clock_monotonic_ns();
	*ret_tape = tape;
	return 0;
}

/* In one call, so that a line is there whole or not at all wherever the disk has room. */
static void write_out(struct tape *tape, const struct buf *out)
{
	if (tape->error == 0)
		tape->error = buf_error(out);
	if (tape->error == 0)
		tape->error = fd_write_full(tape->fd, out->bytes, out->size);
	tape->file_bytes += out->size;
}

int tape_record(struct tape **ret_tape, int fd, struct err *err)
{
	cleanup_buf struct buf out;
	struct tape *tape = NULL;
	int r = tape_new(&tape, fd, err);

	if (r < 0)
		return r;
	buf_init(&out, 256);
	record_put_start(&out);
	write_out(tape, &out);
	if (tape->error < 0) {
		r = err_set(err, ERR_STATE, -tape->error, "recording", "the recording cannot be written: %s",
			    err_errno_name(-tape->error));
		tape_free(tape);
		return r;
	}
	*ret_tape = tape;
	return 0;
}

int tape_replay(struct tape **ret_tape, int fd, struct err *err)
{
	struct tape *tape = NULL;
	int r = tape_new(&tape, fd, err);

	if (r < 0)
		return r;
	r = replay_new(&tape->replay, fd, err);
	if (r < 0) {
		tape_free(tape);
		return r;
	}
	close_fd(&tape->fd);
	*ret_tape = tape;
	return 0;
}

void tape_free(struct tape *tape)
{
	if (!tape)
		return;
	replay_free(tape->replay);
	close_fd(&tape->fd);
	free(tape);
}

void tape_hide(struct tape *tape, const struct record_hidden *hidden)
{
	tape->hidden = *hidden;
}

bool tape_answers(const struct tape *tape)
{
	return tape && tape->replay;
}

bool tape_is_http2(const struct tape *tape, const struct target_server *server)
{
	return replay_is_http2(tape->replay, server);
}

int tape_error(const struct tape *tape)
{
	return tape->error;
}

static const char *full_problem(const struct tape *tape)
{
	if (tape->error < 0)
		return "the recording cannot be written";
	if (tape->takes == TAPE_TAKES_MAX)
		return "there are too many requests at one time to record them";
	if (tape->exchanges >= RECORD_EXCHANGES_MAX || tape->file_bytes >= RECORD_FILE_MAX - RECORD_LINE_MAX ||
	    tape->answer_bytes >= RECORD_ANSWERS_MAX - RECORD_LINE_MAX)
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

static void free_take(struct take *take)
{
	take->tape->room += take->sent.kept.size + take->received.kept.size;
	take->tape->takes--;
	http1_head_reset(&take->request);
	http1_head_reset(&take->answer);
	http1_head_reset(&take->trailers);
	record_body_done(&take->sent);
	record_body_done(&take->received);
	free(take->target);
	free(take);
}

struct take *take_begin(struct tape *tape, const struct target_server *server, const struct http1_head *request,
			bool is_http2, const char **ret_problem)
{
	struct take *take;

	*ret_problem = tape->replay ? NULL : full_problem(tape);
	if (*ret_problem)
		return NULL;
	take = calloc(1, sizeof *take);
	*ret_problem = "there is no memory";
	if (!take)
		return NULL;
	*take = (struct take){
		.tape = tape, .server = server, .started_ns = clock_monotonic_ns(), .is_http2 = is_http2,
	};
	tape->takes++;
	record_body_init(&take->sent);
	record_body_init(&take->received);
	memcpy(take->request.method, request->method, sizeof take->request.method);
	take->target = str_dup(request->target);
	take->request.target = take->target;
	if (!take->target || (!tape->replay && copy_fields(&take->request, request) < 0)) {
		free_take(take);
		return NULL;
	}
	*ret_problem = NULL;
	return take;
}

void take_sent(struct take *take, const void *bytes, size_t size)
{
	size_t nothing = 0;

	if (take)
		record_body_add(&take->sent, bytes, size, take->tape->replay ? &nothing : &take->tape->room);
}

const struct answer *take_answer(struct take *take, const char **ret_problem)
{
	cleanup_buf struct buf target;
	struct hash hash;

	buf_init(&target, HTTP1_HEAD_MAX);
	record_hide(&take->tape->hidden, take->target, strlen(take->target), &target);
	hash_stream_end(&take->sent.hash, &hash);
	return replay_find(take->tape->replay, take->request.method, take->server, buf_text(&target), &hash,
			   ret_problem);
}

void take_answered(struct take *take, const struct http1_head *answer)
{
	if (!take || take->tape->replay)
		return;
	take->answer.status = answer->status;
	take->answer.framing = answer->framing;
	take->answer.closes = answer->closes;
	/* One that is longer is left out, which it may always be (RFC 9112 4). */
	(void)!str_copy(take->reason, sizeof take->reason, answer->reason);
	take->answer.reason = take->reason;
	take->has_answer = copy_fields(&take->answer, answer) == 0;
}

void take_received(struct take *take, const void *bytes, size_t size)
{
	if (take && !take->tape->replay)
		record_body_add(&take->received, bytes, size, &take->tape->room);
}

void take_trailers(struct take *take, const struct http1_head *trailers)
{
	if (take && !take->tape->replay)
		take->has_trailers = copy_fields(&take->trailers, trailers) == 0;
}

/* What a replay needs to hold them. */
static size_t fields_size(const struct http1_head *head)
{
	size_t size = 64;

	for (size_t i = 0; i < head->field_count; i++)
		size += strlen(head->fields[i].name) + strlen(head->fields[i].value) + 2 * sizeof(char *) + 2;
	return size;
}

static void write_take(struct take *take, bool is_whole)
{
	cleanup_buf struct buf out;
	struct tape *tape = take->tape;
	struct record_exchange exchange = {
		.at_us = (take->started_ns - tape->started_ns) / 1000,
		.us = (clock_monotonic_ns() - take->started_ns) / 1000,
		.is_http2 = take->is_http2,
		.server = take->server,
		.request = &take->request,
		.sent = &take->sent,
		.answer = take->has_answer ? &take->answer : NULL,
		.trailers = take->has_trailers ? &take->trailers : NULL,
		.received = &take->received,
		.is_whole = is_whole,
		.hidden = tape->hidden,
	};

	buf_init(&out, RECORD_LINE_MAX);
	record_put_exchange(&exchange, &out);
	write_out(tape, &out);
	tape->exchanges++;
	tape->answer_bytes += take->received.kept.size + fields_size(&take->answer) + fields_size(&take->trailers);
}

void take_drop(struct take *take)
{
	if (take)
		free_take(take);
}

void take_end(struct take *take, bool is_whole)
{
	if (!take)
		return;
	if (!take->tape->replay)
		write_take(take, is_whole);
	free_take(take);
}
