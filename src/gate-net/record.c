/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/record.h"

#include <string.h>

#include "base/json.h"
#include "session/run-request.h"
#include "supervise/run.h"
#include "wire/gate.h"

static const char *type_name(uint32_t type)
{
	static const struct {
		uint32_t type;
		const char *name;
	} names[] = { { 1, "A" },    { 5, "CNAME" }, { 12, "PTR" },  { 15, "MX" },   { 16, "TXT" },    { 28, "AAAA" },
		      { 33, "SRV" }, { 64, "SVCB" }, { 65, "HTTPS" }, { 255, "ANY" }, { 257, "CAA" } };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].type == type)
			return names[i].name;
	return "other";
}

/* names: separated by spaces. */
static void write_names(struct json *json, const char *key, const char *names)
{
	json_array_begin(json, key);
	while (*names) {
		size_t size = strcspn(names, " ");

		json_string_n(json, NULL, names, size);
		names += size + (names[size] == ' ');
	}
	json_array_end(json);
}

static void write_reading(struct json *json, const struct action *reading)
{
	static const char *const keys[] = { [REQUEST_PATH_READ] = "read_as", [REQUEST_PATH_BEGINS] = "read_below" };

	if (reading && reading->path_kind != REQUEST_PATH_SENT)
		json_bytes(json, keys[reading->path_kind], reading->path, strlen(reading->path));
}

static void write_request(struct json *json, const struct gate_request *request)
{
	json_string(json, "method", request->method);
	json_bytes(json, "path", request->path, strlen(request->path));
	if (request->climbs)
		json_u64(json, "query_climbs", request->climbs);
	if (request->status)
		json_u64(json, "status", request->status);
	json_u64(json, "in_bytes", request->in_bytes);
	json_u64(json, "out_bytes", request->out_bytes);
	json_u64(json, "wall_us", request->us);
	json_string(json, "error", request->problem);
	if (*request->secrets)
		write_names(json, "secrets", request->secrets);
}

void net_detail_to_json(struct json *json, const void *context)
{
	const struct net_detail *detail = context;
	const struct gate_closed *closed = detail->closed;

	if (detail->type)
		json_string(json, "type", type_name(detail->type));
	if (detail->port)
		json_u64(json, "port", detail->port);
	if (detail->id)
		json_u64(json, "connection", detail->id);
	if (detail->detail)
		json_bytes(json, detail->detail_key, detail->detail, strlen(detail->detail));
	if (detail->published)
		json_string(json, "published", detail->published);
	if (detail->request)
		write_request(json, detail->request);
	write_reading(json, detail->reading);
	if (!closed)
		return;
	json_string(json, "address", closed->address);
	json_u64(json, "in_bytes", closed->in_bytes);
	json_u64(json, "out_bytes", closed->out_bytes);
	json_u64(json, "wall_us", closed->us);
	json_string(json, "error", closed->why);
}

/* Nothing that a replay allows goes out: the log says so. */
static const char *verdict_name(const struct run *run, enum audit_type type, enum verdict verdict)
{
	bool is_replayed = run->request->recording.mode == RECORDING_REPLAY && verdict == VERDICT_ALLOW &&
			   type != AUDIT_NET_DNS;

	return is_replayed ? "replay" : verdict_names[verdict];
}

int gate_record(struct run *run, enum audit_type type, const struct action *action, const struct decision *decision,
		pid_t pid, const struct net_detail *detail)
{
	struct audit_event event = {
		.type = type,
		.verdict = decision ? verdict_name(run, type, decision->verdict) : NULL,
		.rule = decision ? decision->rule.id : NULL,
		.pid = pid,
		.subject = action->subject,
		.subject_size = strlen(action->subject),
		.write_detail = net_detail_to_json,
		.context = detail,
	};

	return audit_write(run->audit, &event);
}
