/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/inside/metrics.h"

#include <string.h>

#include "base/json-reader.h"
#include "base/str.h"
#include "os/clock.h"
#include "service/launcher/call/access.h"
#include "service/launcher/call/await.h"

enum { LOOKS_MAX = 240, NS_PER_MS = 1000000, KEY_MAX = 64, PERCENT_MILLI = 100000, MIB = 20 };

struct look {
	uint64_t time_ms;            /* since 1970 */
	uint64_t cpu_ms, memory, disk; /* used so far; bytes */
	uint64_t cpu_used_milli;     /* thousandths of a percent of one CPU, since the look before */
};

/* What one status says. */
struct status {
	uint64_t cpu_ms, memory, disk, uptime_ms;
	uint64_t memory_max, disk_max, cpus;     /* of the policy; 0: none */
};

struct metrics {
	struct look looks[LOOKS_MAX];            /* a ring */
	uint64_t count;                          /* of all so far */
	struct status last;
};

/* ---- reading ---- */

static void read_number(struct json_reader *reader, uint64_t *ret)
{
	uint64_t number;

	if (json_peek(reader) < '0' || json_peek(reader) > '9')
		json_skip(reader);
	else if (json_read_number(reader, &number))
		*ret = number;
}

typedef void read_member(struct json_reader *reader, const char *key, struct status *status);

static void read_object(struct json_reader *reader, read_member *member, struct status *status)
{
	char memory[KEY_MAX];
	struct buf key;

	json_expect(reader, '{');
	if (json_accept(reader, '}'))
		return;
	do {
		buf_init_fixed(&key, memory, sizeof memory);
		json_read_string(reader, &key);
		json_expect(reader, ':');
		member(reader, buf_text(&key), status);
	} while (json_accept(reader, ','));
	json_expect(reader, '}');
}

/* A fraction of a processor counts as one: clients know whole ones. */
static void read_cpus(struct json_reader *reader, uint64_t *ret)
{
	const char *at, *end;

	(void)json_peek(reader);
	at = reader->at;
	json_skip(reader);
	end = reader->at;
	for (*ret = 0; at < end && *at >= '0' && *at <= '9' && *ret < 10000; at++)
		*ret = *ret * 10 + (uint64_t)(*at - '0');
	*ret += at < end && *at == '.';
}

static void read_limit(struct json_reader *reader, const char *key, struct status *status)
{
	if (str_equal(key, "memory"))
		read_number(reader, &status->memory_max);
	else if (str_equal(key, "disk"))
		read_number(reader, &status->disk_max);
	else if (str_equal(key, "cpus"))
		read_cpus(reader, &status->cpus);
	else
		json_skip(reader);
}

static void read_changes(struct json_reader *reader, const char *key, struct status *status)
{
	if (str_equal(key, "bytes"))
		read_number(reader, &status->disk);
	else
		json_skip(reader);
}

static void read_top(struct json_reader *reader, const char *key, struct status *status)
{
	if (str_equal(key, "cpu_ms"))
		read_number(reader, &status->cpu_ms);
	else if (str_equal(key, "memory_bytes"))
		read_number(reader, &status->memory);
	else if (str_equal(key, "uptime_ms"))
		read_number(reader, &status->uptime_ms);
	else if (str_equal(key, "changes") && json_peek(reader) == '{')
		read_object(reader, read_changes, status);
	else if (str_equal(key, "limits") && json_peek(reader) == '{')
		read_object(reader, read_limit, status);
	else
		json_skip(reader);
}

static bool read_status(const atoll_record *result, struct status *ret_status)
{
	struct json_reader reader = { 0 };
	const void *bytes;
	size_t size;

	*ret_status = (struct status){ 0 };
	if (!atoll_get_bytes(result, "status", &bytes, &size))
		return false;
	reader.at = bytes;
	reader.end = reader.at + size;
	read_object(&reader, read_top, ret_status);
	return !reader.is_broken;
}

/* ---- keeping ---- */

static void add_sample(struct sandbox *sandbox, const struct status *status)
{
	struct metrics *metrics = sandbox->metrics;
	uint64_t now_ms = clock_realtime_ns() / NS_PER_MS, since_ms, used_ms;
	struct look *look, *before;

	before = metrics->count ? &metrics->looks[(metrics->count - 1) % LOOKS_MAX] : NULL;
	since_ms = before ? now_ms - before->time_ms : status->uptime_ms;
	used_ms = before && status->cpu_ms >= before->cpu_ms ? status->cpu_ms - before->cpu_ms : status->cpu_ms;
	look = &metrics->looks[metrics->count++ % LOOKS_MAX];
	*look = (struct look){ .time_ms = now_ms, .cpu_ms = status->cpu_ms, .memory = status->memory,
			       .disk = status->disk,
			       .cpu_used_milli = since_ms ? used_ms * PERCENT_MILLI / since_ms : 0 };
	metrics->last = *status;
}

static bool take_status(struct sandbox *sandbox, const struct outcome *outcome)
{
	struct status status;

	if (outcome->code || !read_status(outcome->result, &status))
		return false;
	if (!sandbox->metrics)
		sandbox->metrics = calloc(1, sizeof *sandbox->metrics);
	if (sandbox->metrics)
		add_sample(sandbox, &status);
	return sandbox->metrics != NULL;
}

static void ask(struct sandbox *sandbox, struct call *call, await_done *done)
{
	struct atoll_error error = { .size = sizeof error };
	uint64_t ticket = 0;
	int r = atoll_status(sandbox->handle, &ticket, NULL, &error);

	await_answer(sandbox, call, r, ticket, &error, done);
}

static void begun(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	(void)take_status(sandbox, outcome);
}

void metrics_begin(struct sandbox *sandbox)
{
	ask(sandbox, NULL, begun);
}

uint64_t metrics_memory_of(const struct registry *registry, const char *owner)
{
	uint64_t sum = 0;

	for (const struct sandbox *sandbox = registry->oldest; sandbox; sandbox = sandbox->newer)
		if (sandbox->handle && sandbox->metrics && str_equal(sandbox->owner, owner))
			sum += sandbox->metrics->last.memory_max >> MIB;
	return sum;
}

void metrics_put_limits(const struct sandbox *sandbox, struct buf *out)
{
	const struct status *last = sandbox->metrics ? &sandbox->metrics->last : NULL;

	if (last && last->cpus)
		field_put_u64(out, "cpu_count", last->cpus);
	if (last && last->memory_max)
		field_put_u64(out, "memory_mb", last->memory_max >> MIB);
	if (last && last->disk_max)
		field_put_u64(out, "disk_mb", last->disk_max >> MIB);
}

/* ---- showing ---- */

static void put_look(struct call *call, const struct sandbox *sandbox, const struct look *look)
{
	const struct status *last = &sandbox->metrics->last;
	struct buf *row = &call->daemon->row;

	service_begin_row(row);
	field_put_string(row, "sandbox", sandbox->id);
	field_put_u64(row, "time_ms", look->time_ms);
	if (last->cpus)
		field_put_u64(row, "cpu_count", last->cpus);
	field_put_u64(row, "cpu_used_milli", look->cpu_used_milli);
	field_put_u64(row, "mem_used", look->memory);
	if (last->memory_max)
		field_put_u64(row, "mem_total", last->memory_max);
	field_put_u64(row, "disk_used", look->disk);
	if (last->disk_max)
		field_put_u64(row, "disk_total", last->disk_max);
	service_put_row(&call->rows, row);
}

static void end(struct call *call)
{
	struct buf *out = call_begin_reply(call, 200);

	buf_put(out, call->rows.bytes, call->rows.size);
	call_end_reply(call, NULL, 0);
}

/* The newest of those in the time that was asked for, the oldest of them first. */
static void put_looks(struct call *call, const struct sandbox *sandbox)
{
	const struct metrics *metrics = sandbox->metrics;
	uint64_t from = call_number(call, "start_ms", 0), to = call_number(call, "end_ms", UINT64_MAX);
	uint64_t first = metrics->count > SERVICE_ROWS_MAX ? metrics->count - SERVICE_ROWS_MAX : 0;

	for (uint64_t i = first; i < metrics->count; i++) {
		const struct look *look = &metrics->looks[i % LOOKS_MAX];

		if (look->time_ms >= from && look->time_ms <= to)
			put_look(call, sandbox, look);
	}
}

static void looked(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (outcome->code) {
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
		return;
	}
	if (take_status(sandbox, outcome))
		put_looks(call, sandbox);
	end(call);
}

void metrics_show(struct call *call)
{
	const char *const *ids = service_strings(call->message, "sandboxes");

	if (call->sandbox && call->sandbox->handle) {
		ask(call->sandbox, call, looked);
		return;
	}
	for (; ids && *ids; ids++) {
		struct sandbox *sandbox = registry_find(&call->daemon->registry, *ids);

		if (!sandbox || !sandbox->metrics || !access_sees(&call->caller, sandbox->owner))
			continue;
		put_look(call, sandbox, &sandbox->metrics->looks[(sandbox->metrics->count - 1) % LOOKS_MAX]);
		if (sandbox->handle)
			metrics_begin(sandbox);
	}
	end(call);
}
