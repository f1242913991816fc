/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One verb of atoll, run by a process of its own (LINK_JOB_NAME), and what came of it. It ends whatever becomes of us.
 * Part of libatoll.
 */

#include <stdbool.h>

#include "base/err.h"
#include "client/api/context.h"

struct job {
	int fd;                  /* owned: readable when it is done */
	const char *result_key;  /* member of what it prints that becomes the result's "name"; NULL: none */
};

struct job_result {
	uint64_t status;         /* its exit status */
	char *text;              /* owned: what it printed; NUL behind */
	size_t size;
	char *hash;              /* owned: 32 bytes, of a policy; NULL */
	struct err err;          /* with status: the last line of what it explained */
};

/* Frees text and hash, and leaves it zero: may be called again, and for a result that was never filled. */
void job_result_done(struct job_result *result);

struct job_work {
	const char *const *argv;
	const char *level, *policy, *project;
};

/*
 * Starts `atoll` for one verb, in a process that is no child of the caller, and does not wait for what comes of it.
 * argv: NULL for the compilation of a policy, with level, policy, project. The job is the caller's; NULL with *error.
 */
struct job *job_start(const struct atoll_context *context, const struct job_work *work, struct atoll_error *error)
	MUST_USE;

/* Closes the socket that the result would come by: nobody learns it any more. NULL is fine. */
void job_free(struct job *job);

/* 1: done, and *ret_result is filled; 0: not yet. Negative errno: it was lost. */
int job_look(struct job *job, struct job_result *ret_result) MUST_USE;

/* The same, and waits. 0, or ATOLL_E_*, also for what the verb itself failed with. */
int job_wait(struct job *job, int timeout_ms, struct job_result *ret_result, struct atoll_error *error) MUST_USE;

/* The whole of a file from its beginning, owned; a NUL stands behind it. -E2BIG, or -errno. */
int job_read_memory(int fd, size_t max, char **ret, size_t *ret_size) MUST_USE;

/* What a status says: 0, or ATOLL_E_* with *error. */
int job_status(const struct job_result *result, struct atoll_error *error);
