/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the exchanges of one gate are recorded to, or answered from: `atoll run --record` and `--replay`. A take is one
 * exchange on it. Bodies are held in memory until their exchange is over, within one bound for all of them. Runs in
 * atoll-egress, which gets the file as a descriptor.
 */

#include "egress/message/http1.h"
#include "egress/record/answer.h"
#include "http/target.h"

enum { TAPE_HELD_MAX = 64 << 20, TAPE_TAKES_MAX = 4096 };

struct tape;
struct take;
struct err;   /* base/err.h, whose names OpenSSL has too */

/* Takes fd. The first line is written here. */
int tape_record(struct tape **ret_tape, int fd, struct err *err) MUST_USE;

/* Takes fd, and reads all of it. */
int tape_replay(struct tape **ret_tape, int fd, struct err *err) MUST_USE;
void tape_free(struct tape *tape);

struct record_hidden;

/* What shall not stand in a recording, nor be looked for in one; its scanner is borrowed. */
void tape_hide(struct tape *tape, const struct record_hidden *hidden);

/* Whether exchanges are answered from it. */
bool tape_answers(const struct tape *tape);

/* The version of HTTP that a server of the recording spoke. */
bool tape_is_http2(const struct tape *tape, const struct target_server *server);

/* 0, or the sticky -errno of writing: no exchange may begin any more. */
int tape_error(const struct tape *tape);

/*
 * A request as the sandbox sent it, without its body; server and tape are borrowed until take_end(). NULL with
 * *ret_problem (static): there is no memory, or the recording is full or cannot be written.
 */
struct take *take_begin(struct tape *tape, const struct target_server *server, const struct http1_head *request,
			bool is_http2, const char **ret_problem);

/* Bytes of the request's body. NULL: nothing. */
void take_sent(struct take *take, const void *bytes, size_t size);

/* The request is whole: its answer; see replay_find(). */
const struct answer *take_answer(struct take *take, const char **ret_problem);

/* What the sandbox gets: a head that is final, bytes of the body, trailers. NULL: nothing. */
void take_answered(struct take *take, const struct http1_head *answer);
void take_received(struct take *take, const void *bytes, size_t size);
void take_trailers(struct take *take, const struct http1_head *trailers);

/* It was not to be: as if it had not begun. Frees take; NULL is fine. */
void take_drop(struct take *take);

/* It is over; a recording writes it down. is_whole: the server ended its answer. Frees take; NULL is fine. */
void take_end(struct take *take, bool is_whole);
