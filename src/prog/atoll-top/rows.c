/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-top/rows.h"

#include <jansson.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000, MS_PER_S = 1000, SPAN_MIN_NS = 20 * NS_PER_MS, SHOWN_MAX = 400 };

static void set_text(char *out, size_t size, const json_t *value)
{
	const char *text = json_string_value(value);
	struct buf buf;

	buf_init_fixed(&buf, out, size);
	/* A path that is no UTF-8 comes as base64; who has such names knows them by the rest. */
	if (text)
		buf_put_escaped(&buf, text, json_string_length(value), size < SHOWN_MAX ? size - 8 : SHOWN_MAX);
	else if (json_is_object(value))
		buf_put_char(&buf, '?');
	(void)buf_text(&buf);
}

static uint64_t number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static json_t *load(const void *json, size_t size)
{
	json_t *object = json_loadb(json, size, JSON_ALLOW_NUL, NULL);

	if (json_is_object(object))
		return object;
	json_decref(object);
	return NULL;
}

struct row *rows_find(const struct rows *rows, const char *id)
{
	for (size_t i = 0; id && i < rows->count; i++)
		if (str_equal(rows->items[i]->id, id))
			return rows->items[i];
	return NULL;
}

static void row_free(struct row *row)
{
	json_decref(row->session);
	json_decref(row->status);
	free(row);
}

int rows_add(struct rows *rows, const char *id, const void *json, size_t size)
{
	struct row *row;

	if (!id || strlen(id) != SESSION_ID_SIZE - 1 || rows_find(rows, id) || rows->count == TOP_SESSIONS_MAX)
		return -EBADMSG;
	row = calloc(1, sizeof *row);
	if (!row)
		return -ENOMEM;
	row->session = load(json, size);
	if (!row->session) {
		row_free(row);
		return -EBADMSG;
	}
	memcpy(row->id, id, SESSION_ID_SIZE);
	set_text(row->name, sizeof row->name, json_object_get(row->session, "name"));
	set_text(row->policy, sizeof row->policy, json_object_get(row->session, "policy"));
	set_text(row->level, sizeof row->level, json_object_get(row->session, "level"));
	set_text(row->project, sizeof row->project, json_object_get(row->session, "project"));
	set_text(row->command, sizeof row->command, json_object_get(row->session, "command"));
	for (int i = 0; i < RESOURCE_COUNT; i++)
		row->limits[i] = NUM_UNLIMITED;
	rows->items[rows->count++] = row;
	return 0;
}

static struct row_usage read_usage(const json_t *status)
{
	const json_t *changes = json_object_get(status, "changes");

	return (struct row_usage){
		.uptime_ms = number(status, "uptime_ms"),
		.cpu_ms = number(status, "cpu_ms"),
		.commands = number(status, "commands"),
		.processes = number(status, "processes"),
		.memory_bytes = number(status, "memory_bytes"),
		.memory_peak = number(status, "memory_peak"),
		.output_bytes = number(status, "output_bytes"),
		.denials = number(status, "denials"),
		.alerts = number(status, "alerts"),
		.questions = number(status, "questions"),
		.net_in = number(status, "net_in"),
		.net_out = number(status, "net_out"),
		.connections = number(status, "connections"),
		.changes = number(changes, "paths"),
		.has_changes = json_is_object(changes),
		.has_more_changes = json_is_true(json_object_get(changes, "at_least")),
	};
}

static void read_limits(struct row *row, const json_t *limits)
{
	for (int i = 0; i < RESOURCE_COUNT; i++) {
		const json_t *value = json_object_get(limits, resource_name(i));
		double amount = json_number_value(value);

		row->limits[i] = !json_is_number(value) || amount < 0 ? NUM_UNLIMITED :
				 i == RESOURCE_CPUS && amount < UINT32_MAX ? (uint64_t)(amount * MS_PER_S + 0.5) :
				 number(limits, resource_name(i));
	}
}

int rows_update(struct rows *rows, const char *id, const void *json, size_t size, uint64_t now_ns)
{
	struct row *row = rows_find(rows, id);
	json_t *status = row ? load(json, size) : NULL;

	if (!status)
		return -EBADMSG;
	json_decref(row->status);
	row->status = status;
	row->before = row->now;
	row->before_ns = row->now_ns;
	row->now = read_usage(status);
	row->now_ns = now_ns;
	row->is_silent = false;
	read_limits(row, json_object_get(status, "limits"));
	return 0;
}

void rows_remove(struct rows *rows, const char *id)
{
	for (size_t i = 0; id && i < rows->count; i++)
		if (str_equal(rows->items[i]->id, id)) {
			row_free(rows->items[i]);
			rows->items[i] = rows->items[--rows->count];
			return;
		}
}

void rows_done(struct rows *rows)
{
	while (rows->count)
		row_free(rows->items[--rows->count]);
}

static uint64_t grown(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

static uint64_t span_ns(const struct row *row)
{
	return row->before_ns ? grown(row->before_ns, row->now_ns) : 0;
}

uint64_t row_millicpus(const struct row *row)
{
	uint64_t ns = span_ns(row), used_ms = grown(row->before.cpu_ms, row->now.cpu_ms);

	if (ns < SPAN_MIN_NS)
		return row->now.uptime_ms ? row->now.cpu_ms * 1000 / row->now.uptime_ms : 0;
	return (uint64_t)((double)used_ms * NS_PER_MS * 1000 / (double)ns);
}

static uint64_t rate(const struct row *row, uint64_t before, uint64_t now)
{
	uint64_t ns = span_ns(row);

	return ns < SPAN_MIN_NS ? 0 : (uint64_t)((double)grown(before, now) * NS_PER_S / (double)ns);
}

uint64_t row_rate_in(const struct row *row)
{
	return rate(row, row->before.net_in, row->now.net_in);
}

uint64_t row_rate_out(const struct row *row)
{
	return rate(row, row->before.net_out, row->now.net_out);
}

bool row_matches(const struct row *row, const char *text)
{
	const char *const texts[] = { row->id, row->name, row->project, row->policy, row->command };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (strcasestr(texts[i], text))
			return true;
	return false;
}

static json_t *to_json(const struct row *row)
{
	json_t *object = json_copy(row->session);

	/* A box that does not answer: what it said last, or nothing. */
	if (object && row->status && json_object_update_missing(object, row->status) < 0) {
		json_decref(object);
		return NULL;
	}
	if (object && (json_object_set_new(object, "answers", json_boolean(!row->is_silent && row->status)) < 0 ||
		       json_object_set_new(object, "cpu_percent", json_real((double)row_millicpus(row) / 10)) < 0 ||
		       json_object_set_new(object, "net_in_rate", json_integer((json_int_t)row_rate_in(row))) < 0 ||
		       json_object_set_new(object, "net_out_rate", json_integer((json_int_t)row_rate_out(row))) < 0)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

int rows_to_json(struct row *const *rows, size_t count, struct buf *out)
{
	json_t *array = json_array();
	char *text = NULL;

	for (size_t i = 0; array && i < count; i++)
		if (json_array_append_new(array, to_json(rows[i])) < 0) {
			json_decref(array);
			array = NULL;
		}
	/* In ASCII: it may go to a terminal. */
	if (array)
		text = json_dumps(array, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6));
	json_decref(array);
	if (!text)
		return -ENOMEM;
	buf_put_text(out, text);
	buf_put_char(out, '\n');
	free(text);
	return buf_error(out);
}
