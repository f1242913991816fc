/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One record of the log, read with jansson: whether it was asked for, and its line in the table. Every string in it
 * may be hostile; nothing leaves here unescaped.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/options.h"

/* jansson's json_t: its header and base/json.h have names in common, so no file includes both. */
struct json_t;

struct entry_filter {
	const struct option_list *types;   /* "exec.start", or a family: "exec"; empty: all */
	const char *since;                 /* RFC 3339 in UTC or a beginning of it; NULL: all */
	bool denied_only;
};

/* Before confinement: what jansson and the time zone would otherwise read from files later. */
void entry_init(void);

/* NULL where the line is no JSON object. Freed with json_decref(). */
struct json_t *entry_parse(const char *line, size_t size) MUST_USE;

bool entry_matches(const struct json_t *entry, const struct entry_filter *filter);

/* One line, with its newline: time, type, verdict, pid, program, subject. */
void entry_format(const struct json_t *entry, bool colour, struct buf *out);

/* The record as JSON, with its newline: as it stands, or all in ASCII where it holds what a terminal obeys. */
void entry_format_json(const struct json_t *entry, const char *line, size_t size, struct buf *out);
