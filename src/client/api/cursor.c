/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/cursor.h"

#include "base/err.h"
#include "client/api/fault.h"
#include "os/fd.h"

struct atoll_cursor *cursor_new(struct atoll_context *context, uint32_t kind, struct atoll_error *error)
{
	struct atoll_cursor *cursor = calloc(1, sizeof *cursor);

	if (!cursor) {
		(void)fault_errno(error, -ENOMEM, "cursor");
		return NULL;
	}
	cursor->context = context_ref(context);
	cursor->kind = kind;
	cursor->fd = FD_NONE;
	return cursor;
}

struct atoll_cursor *cursor_of_job(struct atoll_context *context, uint32_t kind, const char *const *argv,
				   struct atoll_error *error)
{
	struct atoll_cursor *cursor = cursor_new(context, kind, error);

	if (!cursor)
		return NULL;
	cursor->job = job_start(context, &(struct job_work){ .argv = argv }, error);
	if (cursor->job)
		return cursor;
	atoll_cursor_free(cursor);
	return NULL;
}

void atoll_cursor_free(atoll_cursor *cursor)
{
	if (!cursor)
		return;
	rows_done(&cursor->rows);
	job_free(cursor->job);
	log_reader_free(cursor->log);
	close_fd(&cursor->fd);
	atoll_context_free(cursor->context);
	free(cursor);
}

int atoll_cursor_fd(const atoll_cursor *cursor)
{
	if (!cursor)
		return ATOLL_E_INVALID;
	if (cursor->job)
		return cursor->job->fd;
	return cursor->log ? log_reader_fd(cursor->log) : ATOLL_E_NOT_FOUND;
}

/* 0: the rows are there. */
static int take_job(struct atoll_cursor *cursor, struct atoll_error *error)
{
	struct job_result result = { 0 };
	int r = job_look(cursor->job, &result);

	if (r == 0)
		return fault_set(error, ATOLL_E_AGAIN, EAGAIN, "cursor", "the rows are not there yet");
	job_free(cursor->job);
	cursor->job = NULL;
	if (r < 0)
		return fault_set(error, ATOLL_E_INTERNAL, -r, "job", "atoll gave no answer: %s", err_errno_name(-r));
	/* A review that left something says so by its status; what it left is among the rows. */
	r = result.size && !cursor->is_lax ? rows_from_json(&cursor->rows, cursor->kind, result.text, result.size)
					   : job_status(&result, error);
	if (r == -EBADMSG)
		r = job_status(&result, error) < 0 ? job_status(&result, error)
						   : fault_errno(error, -EBADMSG, "cursor");
	else if (r == -ENOMEM)
		r = fault_errno(error, r, "cursor");
	job_result_done(&result);
	return r;
}

int atoll_cursor_next(atoll_cursor *cursor, atoll_record **ret, struct atoll_error *error)
{
	int r = context_check(cursor ? cursor->context : NULL, error);

	if (r < 0)
		return r;
	if (!ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "cursor", "there is no place for a row");
	if (cursor->log) {
		r = log_reader_next(cursor->log, ret);
		if (r == -EAGAIN)
			return fault_set(error, ATOLL_E_AGAIN, EAGAIN, "cursor", "there is no further record yet");
		return r < 0 ? fault_errno(error, r, "log") : r;
	}
	if (cursor->job) {
		r = take_job(cursor, error);
		if (r < 0)
			return r;
	}
	if (cursor->at == cursor->rows.count)
		return 0;
	*ret = cursor->rows.list[cursor->at];
	cursor->rows.list[cursor->at++] = NULL;
	return 1;
}
