/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One of atoll's own programs, started beside this one and waited for. What it says goes to our stderr; what it is
 * handed stands at descriptors that both know.
 */

#include "base/cleanup.h"
#include "base/err.h"

enum { PROGRAM_FDS_MAX = 3 };

struct program {
	const char *name;                /* "atoll-learn" */
	const char *const *argv;         /* NULL-terminated, with argv[0] */
	struct {
		int from, to;            /* borrowed; from is above every to. An empty row: from and to are 0 */
	} fds[PROGRAM_FDS_MAX];
	size_t fd_count;
};

/* Starts it and waits: its exit status, or negative with *err, also where a signal ended it. */
int program_run(const struct program *program, struct err *err) MUST_USE;
