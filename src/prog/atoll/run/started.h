/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll` as another program starts it (wire/link.h): under a name of its own, with one request in a sealed memfd and a
 * socket to the one who asked. Nothing is taken from the environment, the terminal or the working directory of that
 * one, and nothing is printed.
 */

#include "base/cleanup.h"
#include "base/err.h"
#include "client/run-setup.h"
#include "wire/field.h"
#include "wire/link.h"

/*
 * The entry of a sandbox's supervisor, for `atoll run`, which is it in place, and for who starts one from outside. Ends
 * with the sandbox: its exit status, or negative with *err.
 *
 * A sandbox that is parked enters here, too (given->starter->completion): there is one wait, behind init's start
 * (box/park.c), and the request is complete only after it. Nothing before that point may use the request's command,
 * environment or name; session is the one under which it waits.
 */
int box_main(const struct run_setup *given, char **command, uint64_t started_ns, struct err *err) MUST_USE;

/* LINK_BOX_NAME: the exit status. */
int started_box_main(void);

/* LINK_JOB_NAME: runs one verb, sends its status, what it printed and what it explained. The exit status. */
int started_job_main(void);

/* A request as it comes, and the descriptors behind it. */
struct start_request {
	struct frame frame;
	char *bytes;             /* owned; the frame and its strings are in it */
	int fds[LINK_FDS_MAX];   /* owned where they came with LINK_TAKE; else LINK_FIRST_FD and above, until the end */
	size_t fd_count;
};

void start_request_done(struct start_request *request);

/* Checks the seals and the form of the memfd at LINK_START_FD. Everything above 2 becomes close-on-exec. */
int start_request_read(struct start_request *request, struct err *err) MUST_USE;

/* What LINK_TAKE brought, copied; takes the fds. */
int start_request_copy(struct start_request *request, const struct frame *frame, int *fds, size_t fd_count,
		       struct err *err) MUST_USE;

/* A field that a request may have, and where its value goes. */
struct start_field {
	const char *key;
	enum field_kind kind;
	size_t offset;           /* of const char *, char **, uint64_t or int (FIELD_FD), in what is filled in */
};

/* Fills in target by this table. Each once; another one is an error. Vectors are owned by the caller (free()). */
int start_request_get(struct start_request *request, const struct start_field *fields, size_t count, void *target,
		      struct err *err) MUST_USE;
