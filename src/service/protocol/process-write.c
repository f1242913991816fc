/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/json.h"
#include "base/base64.h"
#include "base/str.h"
#include "service/protocol/connect.h"
#include "service/protocol/process.h"

enum { STATUS_SIZE = 64 };

/* {"event":{ … }} in an envelope; the rest is the caller's. */
static size_t begin(struct buf *out, struct json *json)
{
	size_t at = out->size;

	connect_envelope_begin(out);
	json_init(json, out);
	json_object_begin(json, NULL);
	json_object_begin(json, "event");
	return at;
}

static void end(struct buf *out, struct json *json, size_t at)
{
	json_object_end(json);
	json_object_end(json);
	connect_envelope_end(out, at, 0);
}

void process_put_started(struct buf *out, uint32_t pid)
{
	struct json json;
	size_t at = begin(out, &json);

	json_object_begin(&json, "start");
	json_u64(&json, "pid", pid);
	json_object_end(&json);
	end(out, &json, at);
}

/* Written without the writer of JSON: base64 needs no escapes, and this is what most bytes go through. */
void process_put_data(struct buf *out, enum process_stream stream, const void *bytes, size_t size)
{
	static const char *const heads[] = {
		[PROCESS_STDOUT] = "{\"event\":{\"data\":{\"stdout\":\"",
		[PROCESS_STDERR] = "{\"event\":{\"data\":{\"stderr\":\"",
		[PROCESS_PTY] = "{\"event\":{\"data\":{\"pty\":\"",
	};
	size_t at = out->size;

	connect_envelope_begin(out);
	buf_put_text(out, heads[stream]);
	base64_put(out, bytes, size);
	buf_put_text(out, "\"}}}");
	connect_envelope_end(out, at, 0);
}

void process_put_keepalive(struct buf *out)
{
	struct json json;
	size_t at = begin(out, &json);

	json_object_begin(&json, "keepalive");
	json_object_end(&json);
	end(out, &json, at);
}

/* The words are those of Go's os.ProcessState, which clients show. */
static void format_status(const struct process_end *ended, char out[STATUS_SIZE])
{
	int r = ended->signal ? str_format(out, STATUS_SIZE, "signal: %s",
					   ended->signal == 9 ? "killed" : strsignal((int)ended->signal))
			      : str_format(out, STATUS_SIZE, "exit status %u", ended->exit);

	if (r < 0)
		out[0] = 0;
	if (ended->signal && str_has_prefix(out, "signal: ") && out[8] >= 'A' && out[8] <= 'Z')
		out[8] = (char)(out[8] - 'A' + 'a');
}

void process_put_ended(struct buf *out, const struct process_end *ended)
{
	struct json json;
	char status[STATUS_SIZE];
	size_t at = begin(out, &json);

	format_status(ended, status);
	json_object_begin(&json, "end");
	json_i64(&json, "exitCode", ended->signal ? -1 : (int64_t)ended->exit);
	json_bool(&json, "exited", !ended->signal);
	json_string(&json, "status", status);
	if (ended->signal || ended->exit)
		json_string(&json, "error", status);
	json_object_end(&json);
	end(out, &json, at);
}

void process_begin_list(struct buf *out)
{
	buf_put_text(out, "{\"processes\":[");
}

static void put_environment(struct json *json, const char *const *env)
{
	json_object_begin(json, "envs");
	for (size_t i = 0; i < strv_count(env); i++) {
		size_t length = strcspn(env[i], "=");
		char *name = str_printf("%.*s", (int)length, env[i]);

		if (name)
			json_string(json, name, env[i][length] ? env[i] + length + 1 : "");
		free(name);
	}
	json_object_end(json);
}

void process_put_listed(struct buf *out, const struct service_message *row, size_t at)
{
	const char *const *argv = service_strings(row, "argv");
	struct json json;

	if (at)
		buf_put_char(out, ',');
	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_object_begin(&json, "config");
	json_string(&json, "cmd", argv && argv[0] ? argv[0] : "");
	json_array_begin(&json, "args");
	for (size_t i = 1; i < strv_count(argv); i++)
		json_string(&json, NULL, argv[i]);
	json_array_end(&json);
	put_environment(&json, service_strings(row, "env"));
	if (service_string(row, "cwd"))
		json_string(&json, "cwd", service_string(row, "cwd"));
	json_object_end(&json);
	json_u64(&json, "pid", service_number(row, "pid", 0));
	if (service_string(row, "tag"))
		json_string(&json, "tag", service_string(row, "tag"));
	json_object_end(&json);
}

void process_end_list(struct buf *out)
{
	buf_put_text(out, "]}");
}

void process_put_selector(struct buf *out, const struct process_selector *selector)
{
	if (selector->pid)
		field_put_u64(out, "pid", selector->pid);
	else
		field_put_string(out, "tag", selector->tag);
}
