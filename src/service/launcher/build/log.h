/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a build says, line by line. An entry keeps its number, so that a client reads on where it was. Beyond a bound
 * nothing more is kept, and that is said. Runs in atolld.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { BUILD_LOG_ENTRIES_MAX = 10000, BUILD_LOG_BYTES_MAX = 1 << 20, BUILD_LOG_LINE_MAX = 2000 };

struct build_log_entry {
	uint64_t time_ms;            /* since 1970 */
	const char *level;           /* static */
	char step[16];
	char *text;                  /* owned */
};

struct build_log {
	struct build_log_entry *entries; /* owned */
	size_t count, room, bytes;
	struct buf line[2];          /* of each stream: what has no end yet */
	char step[16];               /* that is being done */
};

/* An empty one, whose step is "base"; done frees every entry, and what has no end of line yet. */
void build_log_init(struct build_log *log);
void build_log_done(struct build_log *log);

/* One entry. level is static: debug, info, warn or error. */
void build_log_add(struct build_log *log, uint64_t time_ms, const char *level, const char *text);

/* What a command wrote to a stream (1, 2): an entry for each line. */
void build_log_output(struct build_log *log, uint64_t time_ms, unsigned stream, const char *bytes, size_t size);

/* The command has ended: what is left of its lines. */
void build_log_flush(struct build_log *log, uint64_t time_ms);
