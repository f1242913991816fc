/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/call/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "os/clock.h"
#include "service/launcher/store/journal.h"
#include "service/launcher/store/user.h"
#include "session/directories.h"

enum { NS_PER_US = 1000, MESSAGE_SIZE = 1024, ROOM = 1 << 20 };

struct call *call_new(struct daemon *daemon, uint8_t *bytes, struct service_message *message)
{
	struct call *call = calloc(1, sizeof *call);

	if (!call) {
		service_message_done(message);
		free(message);
		free(bytes);
		return NULL;
	}
	call->daemon = daemon;
	call->generation = daemon->front.generation;
	call->bytes = bytes;
	call->message = message;
	call->began_ns = clock_monotonic_ns();
	call->asked_ns = service_number(message, "asked_ns", 0);
	if (!call->asked_ns || call->asked_ns > call->began_ns)
		call->asked_ns = call->began_ns;
	daemon->due.calls.under_way++;
	daemon->due.calls.last_ns = call->began_ns;
	buf_init(&call->rows, CALL_ROWS_MAX);
	return call;
}

int call_check_user(const struct call *call, struct err *err)
{
	const char *user = call_string(call, "user");
	char root[PATH_MAX];
	bool is_root = str_equal(user, "root") &&
		       session_root_of(call->daemon->places.state, call->sandbox->session, root, sizeof root) == 0;

	return user_check(user, is_root, err);
}

static void free_call(struct call *call)
{
	call->daemon->due.calls.under_way--;
	call->daemon->due.calls.last_ns = clock_monotonic_ns();
	service_message_done(call->message);
	free(call->message);
	free(call->bytes);
	buf_done(&call->rows);
	free(call);
}

/* ---- the log ---- */

struct noted {
	const struct call *call;
	uint32_t status;
	const char *text;
};

static void write_us(struct json *json, const char *key, uint64_t from_ns, uint64_t to_ns)
{
	if (to_ns >= from_ns)
		json_u64(json, key, (to_ns - from_ns) / NS_PER_US);
}

static void write_call(struct json *json, const void *context)
{
	const struct noted *noted = context;
	const struct call *call = noted->call;

	json_u64(json, "status", noted->status);
	if (call->caller.has_key) {
		json_string(json, "key", call->caller.key.name);
		json_string(json, "owner", call->caller.key.owner);
	}
	if (call_string(call, "client"))
		json_string(json, "client", call_string(call, "client"));
	if (noted->text)
		json_string(json, "message", noted->text);
	write_us(json, "us", call->asked_ns, clock_monotonic_ns());
	if (!call->steps.from)
		return;
	json_string(json, "from", call->steps.from);
	write_us(json, "read_us", call->asked_ns, call->began_ns);
	write_us(json, "started_us", call->asked_ns, call->steps.started_ns);
	write_us(json, "ready_us", call->asked_ns, call->steps.ready_ns);
}

/*
 * A log that a full disk did not take fails for good. When there is room again, another file is begun: the one before
 * it ends with its last whole record. Not sooner, or each try would push out an older file.
 */
static int begin_again(struct daemon *daemon)
{
	struct audit_writer next;
	struct err err = { 0 };

	if (daemon->audit.error != -ENOSPC ||
	    quotas_is_disk_short(&daemon->quotas, daemon->places.state, ROOM, clock_monotonic_ns()) ||
	    journal_open(daemon->places.directory, &next, &err) < 0)
		return daemon->audit.error;
	(void)!audit_writer_done(&daemon->audit);
	daemon->audit = next;
	return 0;
}

static int write_record(struct daemon *daemon, const struct audit_event *event)
{
	int r = daemon->audit.error ? begin_again(daemon) : 0;

	if (r == 0)
		r = audit_write(&daemon->audit, event);
	return r < 0 ? r : audit_flush(&daemon->audit);
}

/* The log comes before the answer. Where it cannot be written no answer says that something was done. */
static int note(const struct call *call, uint32_t status, const char *text)
{
	const char *sandbox = call->sandbox ? call->sandbox->id : call_string(call, "sandbox");
	const char *subject = sandbox ? sandbox : call_string(call, "function");
	const struct noted noted = { call, status, text };
	struct audit_event event = {
		.type = AUDIT_SERVICE_CALL,
		.verdict = status < 400 ? "allow" : "deny",
		.rule = service_rule(call->message->operation)->name,
		.subject = subject,
		.subject_size = subject ? strlen(subject) : 0,
		.write_detail = write_call,
		.context = &noted,
	};

	return write_record(call->daemon, &event);
}

static void write_text(struct json *json, const void *context)
{
	json_string(json, "message", context);
}

int call_note(struct daemon *daemon, const char *what, const char *sandbox, const char *text)
{
	struct audit_event event = {
		.type = AUDIT_SERVICE_CALL, .rule = what, .subject = sandbox,
		.subject_size = sandbox ? strlen(sandbox) : 0,
		.write_detail = text ? write_text : NULL, .context = text,
	};

	return write_record(daemon, &event);
}

/* ---- replies ---- */

struct buf *call_begin_reply(struct call *call, uint32_t status)
{
	struct buf *out = &call->daemon->reply;

	service_begin_reply(out, call->message->ticket, (enum service_operation)call->message->operation, status);
	return out;
}

/* What a reply says of itself, for the log. */
static uint32_t status_of(const struct buf *out)
{
	struct frame frame;

	if (frame_open(&frame, out->bytes, out->size) < 0)
		return 500;
	frame_get_u64(&frame);
	frame_get_u32(&frame);
	return frame_get_u32(&frame);
}

static void put_error(struct call *call, uint32_t status, const char *connect, const char *message)
{
	struct buf *out = call_begin_reply(call, status);

	field_put_string(out, "message", message);
	field_put_string(out, "connect", connect);
	if (call->retry_after_s)
		field_put_u64(out, "retry_after", call->retry_after_s);
}

uint32_t call_unwritten_status(int r)
{
	return r == -ENOSPC || r == -EDQUOT ? 507 : 500;
}

static void send_reply(struct call *call, int *fds, size_t fd_count)
{
	struct front *front = &call->daemon->front;

	/* Whoever asked a front that is gone hears of its end by that. */
	if (call->generation == front->generation)
		front_send(front, &call->daemon->reply, fds, fd_count);
	else
		for (size_t i = 0; i < fd_count; i++)
			close_fd(&fds[i]);
	free_call(call);
}

void call_end_reply(struct call *call, int *fds, size_t fd_count)
{
	struct buf *out = &call->daemon->reply;
	int r = service_end(out, fd_count);

	if (r == 0)
		r = note(call, status_of(out), NULL);
	if (r < 0) {
		for (size_t i = 0; i < fd_count; i++)
			close_fd(&fds[i]);
		fd_count = 0;
		put_error(call, call_unwritten_status(r), "internal",
			  call_unwritten_status(r) == 507 ? "the audit log cannot be written: the disk is full" :
					 "the reply cannot be made or logged");
		(void)!service_end(out, 0);
	}
	send_reply(call, fds, fd_count);
}

void call_reply(struct call *call, uint32_t status)
{
	call_begin_reply(call, status);
	call_end_reply(call, NULL, 0);
}

static const char *connect_of(uint32_t status)
{
	static const struct {
		uint32_t status;
		const char *connect;
	} names[] = {
		{ 400, "invalid_argument" }, { 401, "unauthenticated" }, { 403, "permission_denied" },
		{ 404, "not_found" }, { 409, "already_exists" }, { 429, "resource_exhausted" },
		{ 501, "unimplemented" }, { 502, "unavailable" }, { 503, "unavailable" },
		{ 504, "deadline_exceeded" }, { 507, "resource_exhausted" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].status == status)
			return names[i].connect;
	return "internal";
}

static void fail(struct call *call, uint32_t status, const char *connect, const char *message)
{
	if (call->failed)
		call->failed(call, message);
	put_error(call, status, connect ? connect : connect_of(status), message);
	(void)!service_end(&call->daemon->reply, 0);
	(void)!note(call, status, message);
	send_reply(call, NULL, 0);
}

void call_fail(struct call *call, uint32_t status, const char *connect, const char *format, ...)
{
	char message[MESSAGE_SIZE];
	va_list args;

	va_start(args, format);
	(void)!vsnprintf(message, sizeof message, format, args);
	va_end(args);
	fail(call, status, connect, message);
}

void call_fail_atoll(struct call *call, int code, const char *what, const char *hint)
{
	static const struct {
		int code;
		uint32_t status;
		const char *connect;
	} codes[] = {
		{ ATOLL_E_INVALID, 400, NULL }, { ATOLL_E_POLICY, 403, NULL }, { ATOLL_E_NOT_FOUND, 404, NULL },
		{ ATOLL_E_NOT_RUNNABLE, 400, NULL }, { ATOLL_E_AGAIN, 503, NULL }, { ATOLL_E_TIMEOUT, 504, NULL },
		{ ATOLL_E_GONE, 502, NULL }, { ATOLL_E_BUSY, 409, "failed_precondition" },
		{ ATOLL_E_DENIED, 403, NULL }, { ATOLL_E_LIMIT, 429, NULL }, { ATOLL_E_UNSUPPORTED, 501, NULL },
		{ ATOLL_E_EXISTS, 409, NULL }, { ATOLL_E_STATE, 500, NULL },
	};
	char message[MESSAGE_SIZE];
	uint32_t status = 500;
	const char *connect = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].code == code) {
			status = codes[i].status;
			connect = codes[i].connect;
		}
	if (!what || !*what)
		what = "the sandbox did not say what failed";
	if (str_format(message, sizeof message, hint && *hint ? "%s; %s" : "%s", what, hint) < 0)
		(void)!str_copy(message, sizeof message, "it failed");
	fail(call, status, connect, message);
}

void call_fail_err(struct call *call, uint32_t status, const struct err *err)
{
	char message[MESSAGE_SIZE];

	if (str_format(message, sizeof message, err->hint[0] ? "%s; %s" : "%s", err->message, err->hint) < 0)
		(void)!str_copy(message, sizeof message, "it failed");
	fail(call, status, NULL, message);
}

void call_fail_unknown(struct call *call)
{
	const char *id = call_string(call, "sandbox");

	call->sandbox = NULL;
	call_fail(call, 404, NULL, "Sandbox \"%s\" was not found", id ? id : "");
}
