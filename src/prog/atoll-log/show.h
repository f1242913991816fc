/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Walks a log from its start, prints what the filter lets through, and goes on while the session lives. The log's
 * truth is not checked here: that is `atoll log verify`.
 */

#include <stdint.h>

#include "base/err.h"
#include "prog/atoll-log/entry.h"

struct show {
	struct entry_filter filter;
	bool json, colour, follow;
	uint64_t last;        /* only the last records that match; UINT64_MAX: all */
	int log_fd;
	int watch_fd;         /* inotify on the log; with follow */
};

/* Prints to stdout. 0, or -errno with *err. */
int show_log(const struct show *show, struct err *err) MUST_USE;
