/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One of atoll's own programs, started beside this one and waited for. What it says goes to our stderr; what it is
 * handed stands at descriptors that both know.
 */

#include "base/cleanup.h"
#include "base/err.h"

enum { BESIDE_FDS_MAX = 3 };

struct beside {
	const char *program;             /* "atoll-learn" */
	const char *const *argv;         /* NULL-terminated, with argv[0] */
	struct {
		int from, to;            /* borrowed; from is above every to. An empty row: from and to are 0 */
	} fds[BESIDE_FDS_MAX];
	size_t fd_count;
};

/* Starts it and waits: its exit status, or negative with *err, also where a signal ended it. */
int beside_run(const struct beside *beside, struct err *err) MUST_USE;
