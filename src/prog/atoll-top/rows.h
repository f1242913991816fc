/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sandboxes that atoll-top shows: what `atoll` told of each (two JSON objects, read with jansson and kept), the
 * figures in them, and what follows from two looks at them. Their texts are hostile and are kept escaped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "os/clock.h"
#include "policy/policy.h"
#include "wire/top.h"

/* jansson's json_t: its header and base/json.h have names in common, so no file includes both. */
struct json_t;

enum { ROW_NAME_SIZE = 96, ROW_TEXT_SIZE = 512 };

/* What a box said last. */
struct row_usage {
	uint64_t uptime_ms, cpu_ms, commands, processes, memory_bytes, memory_peak, output_bytes;
	uint64_t denials, alerts, questions;
	uint64_t net_in, net_out, connections, changes;
	bool has_changes;        /* something is staged, and could be counted */
	bool has_more_changes;   /* than changes says */
};

struct row {
	char id[SESSION_ID_SIZE];
	char name[ROW_NAME_SIZE], policy[ROW_NAME_SIZE], level[ROW_NAME_SIZE];
	char project[ROW_TEXT_SIZE], command[ROW_TEXT_SIZE];
	struct json_t *session, *status;   /* as told; status: NULL before the first */
	struct row_usage now, before;
	uint64_t now_ns, before_ns;        /* when; 0: never */
	uint64_t limits[RESOURCE_COUNT];   /* NUM_UNLIMITED: none; cpus in thousandths */
	bool is_silent;                    /* its box did not answer last time */
};

struct rows {
	struct row *items[TOP_SESSIONS_MAX];
	size_t count;
	uint32_t left_out;                 /* sandboxes that there is no room for */
};

/* Thousandths of a CPU since the look before; of its whole life where there was none. */
uint64_t row_millicpus(const struct row *row);

/* Bytes a second since the look before. */
uint64_t row_rate_in(const struct row *row);
uint64_t row_rate_out(const struct row *row);

/* Whether text, in any case, is in one of its texts; "" is in all. */
bool row_matches(const struct row *row, const char *text);

/* NULL: there is none. */
struct row *rows_find(const struct rows *rows, const char *id);

/* Each -EBADMSG where the bytes are not what they should be; -ENOMEM. */
int rows_add(struct rows *rows, const char *id, const void *json, size_t size) MUST_USE;
int rows_update(struct rows *rows, const char *id, const void *json, size_t size, uint64_t now_ns) MUST_USE;
void rows_remove(struct rows *rows, const char *id);
void rows_done(struct rows *rows);

/* One array of these rows: both objects in one, and what follows. */
int rows_to_json(struct row *const *rows, size_t count, struct buf *out) MUST_USE;
