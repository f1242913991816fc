/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/apply/outcome.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"

enum { SHOWN_MAX = 4096, PROGRESS_AFTER_MS = 500, PROGRESS_EVERY_MS = 100 };

void outcome_put_path(const struct opened *opened, size_t tree, const char *path, struct buf *out)
{
	const char *root = opened_tree(opened, tree), *base = opened->session->base;
	cleanup_buf struct buf raw;
	size_t length = base ? strlen(base) : 0;

	buf_init(&raw, 2 << 20);
	buf_put_text(&raw, str_equal(root, "/") ? "" : root);
	if (*path || str_equal(root, "/"))
		buf_put_char(&raw, '/');
	buf_put_text(&raw, path);
	if (length > 1 && raw.size > length + 1 && memcmp(raw.bytes, base, length) == 0 && raw.bytes[length] == '/')
		buf_consume(&raw, length + 1);
	buf_put_escaped(out, raw.bytes, raw.size, SHOWN_MAX);
}

void outcome_put_json_path(const struct opened *opened, size_t tree, const char *path, struct json *json)
{
	const char *root = opened_tree(opened, tree);
	cleanup_buf struct buf raw;

	buf_init(&raw, 2 << 20);
	buf_put_text(&raw, str_equal(root, "/") ? "" : root);
	if (*path || str_equal(root, "/"))
		buf_put_char(&raw, '/');
	buf_put_text(&raw, path);
	json_bytes(json, "path", raw.bytes, raw.size);
}

void outcome_put_counts(const size_t counts[STAGE_CHANGE_KIND_COUNT], struct buf *out)
{
	static const enum stage_change_kind order[] = { STAGE_MODIFIED, STAGE_ADDED, STAGE_DELETED };
	size_t total = counts[STAGE_ADDED] + counts[STAGE_MODIFIED] + counts[STAGE_DELETED];
	const char *separator = " (";

	buf_printf(out, "%zu path%s", total, total == 1 ? "" : "s");
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		if (!counts[order[i]])
			continue;
		buf_printf(out, "%s%zu %s", separator, counts[order[i]], stage_change_kind_names[order[i]]);
		separator = ", ";
	}
	buf_put_text(out, total ? ")" : "");
}

/* One for the process, which does one thing. */
static struct {
	uint64_t started_ms, shown_ms;
	bool is_shown;
} progress;

void outcome_progress(void *context, const char *phase, size_t done, size_t total)
{
	uint64_t now_ms = clock_monotonic_ns() / 1000000;

	(void)context;
	if (!progress.started_ms)
		progress.started_ms = now_ms;
	if (now_ms - progress.started_ms < PROGRESS_AFTER_MS || now_ms - progress.shown_ms < PROGRESS_EVERY_MS)
		return;
	progress.shown_ms = now_ms;
	progress.is_shown = true;
	fprintf(stderr, "\r\x1b[Katoll: %s %zu of %zu", phase, done, total);
	fflush(stderr);
}

void outcome_end_progress(void)
{
	if (!progress.is_shown)
		return;
	fprintf(stderr, "\r\x1b[K");
	fflush(stderr);
	progress.is_shown = false;
}
