/* SPDX-License-Identifier: Apache-2.0 */
#include "service/function/deployment.h"

#include <errno.h>
#include <unistd.h>

#include "os/fd.h"
#include "service/protocol/control.h"
#include "service/protocol/value.h"

enum { ARCHIVE_MAX = 9 << 20, REPLY_MAX = 256 << 10 };

static void refuse(struct exchange *exchange, int r, const char *why)
{
	if (r == -ENOTSUP)
		exchange_fail(exchange, 501, CONNECT_UNIMPLEMENTED, why);
	else if (r == -EINVAL)
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, why);
	else
		exchange_fail(exchange, 413, CONNECT_RESOURCE_EXHAUSTED, "the request is too large");
}

static void on_committed(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	enum route_form form = exchange->match.route->form;
	struct control_reply answer;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	control_reply_init(&answer, REPLY_MAX);
	control_begin_reply(form, &answer);
	if (control_put_reply(form, reply, &answer) < 0) {
		exchange_fail(exchange, 500, CONNECT_INTERNAL, "the answer is too large");
	} else {
		control_end_reply(form, &answer);
		exchange_answer_bytes(exchange, reply->status, "application/json", &answer.text);
	}
	control_reply_done(&answer);
}

static void on_place(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct buf *archive = exchange->data, *out;
	cleanup_fd int fd = FD_NONE;
	int r;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	fd = service_take_fd(reply, "file");
	r = fd < 0 ? -EBADF : fd_write_full(fd, archive->bytes, archive->size);
	if (r < 0) {
		exchange_fail(exchange, r == -ENOSPC ? 507 : 503, CONNECT_UNAVAILABLE, "the archive cannot be stored");
		return;
	}
	out = exchange_ask(exchange, SERVICE_FUNCTION_COMMIT);
	if (!out)
		return;
	field_put_string(out, "function", service_string(reply, "function"));
	exchange_send(exchange, on_committed);
}

static int read_archive(const struct exchange *exchange, struct buf *archive, char why[VALUE_WHY_SIZE])
{
	json_t *object = NULL;
	int r = value_parse(exchange->body.bytes, exchange->body.size, &object, why);

	if (r < 0)
		return r;
	r = value_bytes(object, "archive", archive, why);
	json_decref(object);
	return r < 0 ? r : buf_error(archive);
}

void deployment_run(struct exchange *exchange)
{
	char why[CONTROL_WHY_SIZE] = "";
	struct buf *archive = calloc(1, sizeof *archive), *out;
	int r;

	if (!archive) {
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
		return;
	}
	exchange->data = archive;
	buf_init(archive, ARCHIVE_MAX);
	r = read_archive(exchange, archive, why);
	if (r < 0) {
		refuse(exchange, r, why);
		return;
	}
	out = exchange_ask(exchange, SERVICE_FUNCTION_DEPLOY);
	if (!out)
		return;
	r = control_read_body(exchange->match.route, exchange->body.bytes, exchange->body.size, out, why);
	if (r == 0) {
		exchange_send(exchange, on_place);
		return;
	}
	exchange->ticket = 0;
	refuse(exchange, r, why);
}

void deployment_done(struct exchange *exchange)
{
	struct buf *archive = exchange->data;

	buf_done(archive);
	free(archive);
}
