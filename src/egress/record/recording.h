/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the exchanges of one gate are recorded to, or answered from: `atoll run --record` and `--replay`. One exchange
 * on it is a struct recorded. Bodies are held in memory until their exchange is over, within one bound for all. Runs in
 * atoll-egress, which gets the file as a descriptor.
 */

#include "egress/message/http1.h"
#include "egress/record/answer.h"
#include "http/target.h"

enum { RECORDING_HELD_MAX = 64 << 20, RECORDING_OPEN_MAX = 4096 };

struct recording;
struct recorded;
struct err;   /* base/err.h, whose names OpenSSL has too */

/* One to write to. Takes fd, also when it fails. The first line is written here. */
int recording_write(struct recording **ret_recording, int fd, struct err *err) MUST_USE;

/* One to answer from. Takes fd, also when it fails, and reads all of it: hostile bytes. */
int recording_read(struct recording **ret_recording, int fd, struct err *err) MUST_USE;

/* Closes its descriptor; every exchange is over by then. NULL is fine. */
void recording_free(struct recording *recording);

struct record_hidden;

/* What shall not stand in a recording, nor be looked for in one; its scanner is borrowed. */
void recording_hide(struct recording *recording, const struct record_hidden *hidden);

/* Whether requests get their answers from it, and none goes out. NULL: no. */
bool recording_answers(const struct recording *recording);

/* The version of HTTP that a server of the recording spoke. */
bool recording_is_http2(const struct recording *recording, const struct target_server *server);

/* 0, or the sticky -errno of writing: no exchange may begin any more. */
int recording_error(const struct recording *recording);

/*
 * A request as the sandbox sent it, without its body; server and recording are borrowed until recorded_end(). NULL with
 * *ret_problem (static): there is no memory, or the recording is full or cannot be written.
 */
struct recorded *recorded_begin(struct recording *recording, const struct target_server *server,
				const struct http1_head *request, bool is_http2, const char **ret_problem);

/* Bytes of the request's body, copied as far as there is room. recorded NULL: nothing. */
void recorded_add_sent(struct recorded *recorded, const void *bytes, size_t size);

/* The request is whole: its answer; see replay_find(). */
const struct answer *recorded_find_answer(struct recorded *recorded, const char **ret_problem);

/* What the sandbox gets: a head that is final, bytes of the body, trailers. Copied. recorded NULL: nothing. */
void recorded_set_answer(struct recorded *recorded, const struct http1_head *answer);
void recorded_add_received(struct recorded *recorded, const void *bytes, size_t size);
void recorded_set_trailers(struct recorded *recorded, const struct http1_head *trailers);

/* It was not to be: as if it had not begun. Frees recorded; NULL is fine. */
void recorded_drop(struct recorded *recorded);

/* It is over; a recording writes it down. is_whole: the server ended its answer. Frees recorded; NULL is fine. */
void recorded_end(struct recorded *recorded, bool is_whole);
