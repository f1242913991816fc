/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rows one by one: those that are there, those that a job brings, or the lines of a log. It looks into no row. Part of
 * libatoll.
 */

#include "client/api/job.h"
#include "client/api/rows.h"
#include "client/api/sandbox.h"

struct log_reader;

struct atoll_cursor {
	struct atoll_context *context;
	uint32_t kind;
	struct rows rows;
	size_t at;
	int fd;                  /* owned; what can be polled where there is no job and no log */
	struct job *job;         /* owned; its rows are not there yet */
	bool is_lax;             /* what the job prints is no JSON: it has no rows */
	struct log_reader *log;  /* owned; NULL: none */
};

/* An empty one without a job or a log, which holds its context alive; atoll_cursor_free() ends it. NULL with *error. */
struct atoll_cursor *cursor_new(struct atoll_context *context, uint32_t kind, struct atoll_error *error) MUST_USE;

/* One whose rows a verb of atoll prints as JSON. */
struct atoll_cursor *cursor_of_job(struct atoll_context *context, uint32_t kind, const char *const *argv,
				   struct atoll_error *error) MUST_USE;

/* Of the log of a session: atoll_log(). 1, 0, -EAGAIN, or another -errno. */
int log_reader_new(const struct atoll_context *context, const char *id, const struct atoll_record *from,
		   struct log_reader **ret) MUST_USE;
int log_reader_next(struct log_reader *log, struct atoll_record **ret) MUST_USE;
int log_reader_fd(const struct log_reader *log);
void log_reader_free(struct log_reader *log);
