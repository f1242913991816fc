/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/job.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "client/api/fault.h"
#include "client/api/spawn.h"
#include "os/fd.h"
#include "wire/link.h"

enum { TEXT_MAX = 64 << 20, EXPLAINED_MAX = 64 << 10, HASH_SIZE = 32 };

void job_result_done(struct job_result *result)
{
	free(result->text);
	free(result->hash);
	*result = (struct job_result){ 0 };
}

struct job *job_start(const struct atoll_context *context, const struct job_work *work, struct atoll_error *error)
{
	struct job *job = calloc(1, sizeof *job);
	struct spawn_request request;
	int r;

	if (!job) {
		(void)fault_errno(error, -ENOMEM, "job");
		return NULL;
	}
	spawn_request_init(&request, context, LINK_JOB_NAME);
	if (work->argv)
		field_put_strings(&request.frame, "argv", work->argv);
	field_put_string(&request.frame, "level", work->level);
	field_put_string(&request.frame, "policy", work->policy);
	field_put_string(&request.frame, "project", work->project);
	r = spawn_request_start(&request, context, &job->fd, error);
	spawn_request_done(&request);
	if (r == 0)
		return job;
	free(job);
	return NULL;
}

void job_free(struct job *job)
{
	if (job)
		close_fd(&job->fd);
	free(job);
}

int job_read_memory(int fd, size_t max, char **ret, size_t *ret_size)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || (uint64_t)st.st_size > max)
		return -E2BIG;
	return fd_read_sized(fd, st.st_size, max, ret, ret_size);
}

/* The last line, without the name that it begins with, is what failed; behind "; " is what to do. */
static void take_explanation(char *text, struct err *err)
{
	size_t length = strlen(text);
	char *line, *joint;

	while (length && text[length - 1] == '\n')
		text[--length] = 0;
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	if (str_has_prefix(line, "atoll: "))
		line += strlen("atoll: ");
	joint = strstr(line, "; ");
	if (joint)
		*joint = 0;
	err_set(err, ERR_STATE, 0, "job", "%s", line);
	if (joint)
		err_hint(err, "%s", joint + 2);
}

static char *copy_hash(const void *bytes)
{
	char *copy = malloc(HASH_SIZE);

	return copy ? memcpy(copy, bytes, HASH_SIZE) : NULL;
}

static int take_fields(struct frame *frame, struct job_result *result)
{
	struct field field = { 0 };
	int r;

	while ((r = field_get(frame, &field)) == 1) {
		if (str_equal(field.key, "status") && field.kind == FIELD_U64)
			result->status = field.number;
		if (str_equal(field.key, "hash") && field.kind == FIELD_BYTES && field.size == HASH_SIZE &&
		    !result->hash)
			result->hash = copy_hash(field.bytes);
		field_done(&field);
	}
	return r;
}

static int take_failure(struct frame *frame, struct job_result *result)
{
	struct field field = { 0 };

	result->status = 125;
	err_set(&result->err, ERR_INTERNAL, 0, "job", "the request was refused");
	while (field_get(frame, &field) == 1) {
		if (str_equal(field.key, "what") && field.kind == FIELD_STRING)
			err_set(&result->err, ERR_INTERNAL, 0, "job", "%s", (const char *)field.bytes);
		field_done(&field);
	}
	return 0;
}

static int take_message(void *bytes, size_t size, const int fds[2], size_t fd_count, struct job_result *result)
{
	cleanup_free char *explained = NULL;
	struct frame frame;
	size_t length;
	uint32_t code;
	int r = frame_open(&frame, bytes, size);

	(void)frame_get_u64(&frame);
	code = frame_get_u32(&frame);
	if (r == 0 && frame.type == LINK_EVENT && code == LINK_EVENT_FAILED)
		return take_failure(&frame, result);
	if (r == 0 && (frame.type != LINK_REPLY || fd_count != 2))
		r = -EPROTO;
	if (r == 0)
		r = take_fields(&frame, result);
	if (r == 0)
		r = job_read_memory(fds[0], TEXT_MAX, &result->text, &result->size);
	if (r == 0)
		r = job_read_memory(fds[1], EXPLAINED_MAX, &explained, &length);
	if (r == 0 && *explained)
		take_explanation(explained, &result->err);
	return r;
}

int job_look(struct job *job, struct job_result *ret_result)
{
	int fds[2] = { FD_NONE, FD_NONE }, r;
	struct job_result result = { 0 };
	uint8_t bytes[4096];
	size_t fd_count = 0;
	ssize_t n = fd_receive_message(job->fd, bytes, sizeof bytes, fds, ARRAY_SIZE(fds), &fd_count);

	if (n == -EAGAIN)
		return 0;
	/* -EMSGSIZE: there is no room here for the descriptors that it sent. */
	r = n == 0		? -ECONNRESET
	    : n == -EMSGSIZE	? -EMFILE
	    : n < 0		? (int)n
				: take_message(bytes, (size_t)n, fds, fd_count, &result);
	close_fd(&fds[0]);
	close_fd(&fds[1]);
	if (r < 0) {
		job_result_done(&result);
		return r;
	}
	*ret_result = result;
	return 1;
}

int job_status(const struct job_result *result, struct atoll_error *error)
{
	if (result->status == 0)
		return 0;
	if (result->err.code != ERR_NONE)
		return fault_from_err(error, &result->err);
	return fault_set(error, ATOLL_E_STATE, 0, "job", "atoll ended with status %u", (unsigned)result->status);
}

int job_wait(struct job *job, int timeout_ms, struct job_result *ret_result, struct atoll_error *error)
{
	struct pollfd waited = { .fd = job->fd, .events = POLLIN };
	int r = poll(&waited, 1, timeout_ms);

	while (r < 0 && errno == EINTR)
		r = poll(&waited, 1, timeout_ms);
	if (r == 0)
		return fault_set(error, ATOLL_E_TIMEOUT, ETIMEDOUT, "job", "atoll did not answer in %d ms", timeout_ms);
	r = job_look(job, ret_result);
	return r < 0 ? fault_set(error, r == -EMFILE ? ATOLL_E_LIMIT : ATOLL_E_INTERNAL, -r, "job",
				 "atoll gave no answer: %s", err_errno_name(-r))
		     : 0;
}
