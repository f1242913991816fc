/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Messages of envd's process.Process: requests read from JSON, events and answers written as JSON. Pure.
 * Run by atoll-front.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "wire/service.h"

enum { PROCESS_WHY_SIZE = 160 };

/* Which process: by its number or by the client's name for it. */
struct process_selector {
	uint32_t pid;                /* 0: by tag */
	char tag[257];
};

/* What is written to a process. */
struct process_input {
	struct process_selector selector;
	bool is_for_pty;
	struct buf bytes;            /* owned: buf_done() */
};

/*
 * Puts the fields of SERVICE_EXEC for a StartRequest onto a request frame that was begun. *ret_has_pty. 0; -EINVAL
 * with a sentence in why; or the buffer's error.
 */
int process_read_start(const void *json, size_t size, struct buf *out, bool *ret_has_pty,
		       char why[PROCESS_WHY_SIZE]) MUST_USE;

/* The selector of any other request. 0, -EINVAL with a sentence, -ENOMEM. */
int process_read_selector(const void *json, size_t size, struct process_selector *ret_selector,
			  char why[PROCESS_WHY_SIZE]) MUST_USE;

/* UpdateRequest; *ret_rows is 0 where nothing is to be changed. SendSignalRequest. As above. */
int process_read_update(const void *json, size_t size, struct process_selector *ret_selector, uint32_t *ret_rows,
			uint32_t *ret_columns, char why[PROCESS_WHY_SIZE]) MUST_USE;
int process_read_signal(const void *json, size_t size, struct process_selector *ret_selector, uint32_t *ret_signal,
			char why[PROCESS_WHY_SIZE]) MUST_USE;

/* SendInputRequest, at most max bytes. *ret_input is set on success alone. As above; -ENOBUFS: it is larger. */
int process_read_input(const void *json, size_t size, size_t max, struct process_input *ret_input,
		       char why[PROCESS_WHY_SIZE]) MUST_USE;

/* How a process ended, as SERVICE_EXIT says it. */
struct process_end {
	uint32_t exit, signal, errnum;
	bool is_timeout;             /* it was killed at its deadline */
};

enum process_stream { PROCESS_STDOUT, PROCESS_STDERR, PROCESS_PTY };

/* Each appends one message; those of streams (StartResponse and ConnectResponse are alike) in an envelope. */
void process_put_started(struct buf *out, uint32_t pid);
void process_put_data(struct buf *out, enum process_stream stream, const void *bytes, size_t size);
void process_put_keepalive(struct buf *out);
void process_put_ended(struct buf *out, const struct process_end *end);

/* ListResponse: begin, one for each row of SERVICE_COMMANDS, end. at: how many there were before. */
void process_begin_list(struct buf *out);
void process_put_listed(struct buf *out, const struct service_message *row, size_t at);
void process_end_list(struct buf *out);

/* Puts a selector as values of a request about a command. */
void process_put_selector(struct buf *out, const struct process_selector *selector);
