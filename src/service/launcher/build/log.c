/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/build/log.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

void build_log_init(struct build_log *log)
{
	*log = (struct build_log){ .step = "base" };
	for (size_t i = 0; i < ARRAY_SIZE(log->line); i++)
		buf_init(&log->line[i], BUILD_LOG_LINE_MAX + 1);
}

void build_log_done(struct build_log *log)
{
	for (size_t i = 0; i < log->count; i++)
		free(log->entries[i].text);
	free(log->entries);
	for (size_t i = 0; i < ARRAY_SIZE(log->line); i++)
		buf_done(&log->line[i]);
}

static bool has_room(struct build_log *log)
{
	struct build_log_entry *entries;
	size_t room = log->room ? 2 * log->room : 64;

	if (log->count < log->room)
		return true;
	entries = realloc(log->entries, room * sizeof *entries);
	if (!entries)
		return false;
	log->entries = entries;
	log->room = room;
	return true;
}

void build_log_add(struct build_log *log, uint64_t time_ms, const char *level, const char *text)
{
	struct build_log_entry entry = { .time_ms = time_ms, .level = level };

	if (log->count >= BUILD_LOG_ENTRIES_MAX || log->bytes >= BUILD_LOG_BYTES_MAX || !has_room(log))
		return;
	log->bytes += strlen(text);
	if (log->count == BUILD_LOG_ENTRIES_MAX - 1 || log->bytes >= BUILD_LOG_BYTES_MAX) {
		entry.level = "warn";
		text = "the log of this build is full: nothing more is kept";
		log->bytes = BUILD_LOG_BYTES_MAX;
	}
	entry.text = str_dup(text);
	if (!entry.text || str_copy(entry.step, sizeof entry.step, log->step) < 0) {
		free(entry.text);
		return;
	}
	log->entries[log->count++] = entry;
}

static void end_line(struct build_log *log, uint64_t time_ms, struct buf *line)
{
	if (line->size)
		build_log_add(log, time_ms, "info", buf_text(line));
	buf_reset(line);
}

void build_log_output(struct build_log *log, uint64_t time_ms, unsigned stream, const char *bytes, size_t size)
{
	struct buf *line = &log->line[stream == 2];

	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == '\n' || line->size >= BUILD_LOG_LINE_MAX - 1)
			end_line(log, time_ms, line);
		if (bytes[i] != '\n' && bytes[i] != '\r' && bytes[i])
			buf_put_char(line, bytes[i]);
	}
}

void build_log_flush(struct build_log *log, uint64_t time_ms)
{
	for (size_t i = 0; i < ARRAY_SIZE(log->line); i++)
		end_line(log, time_ms, &log->line[i]);
}
