/* SPDX-License-Identifier: Apache-2.0 */

/* The launcher opens a file, the body is written to it, and the launcher is told how long it was. */

#include "service/archive/archive.h"

#include <string.h>

#include "base/str.h"
#include "os/fd.h"
#include "service/front/exchange.h"
#include "service/front/extension.h"
#include "service/front/launcher.h"

enum { TOKEN_SIZE = 129, MESSAGE_SIZE = 256 };

struct upload {
	struct exchange *exchange;
	int fd;                      /* owned; FD_NONE: it is not open */
	bool is_asked, is_waiting, is_body_done, is_committed;
	char token[TOKEN_SIZE], part[SERVICE_ID_MAX + 1];
	uint64_t size, max;
	unsigned status;             /* of what failed; 0: nothing */
	char message[MESSAGE_SIZE];
};

static void fail(struct upload *upload, unsigned status, const char *message)
{
	close_fd(&upload->fd);
	if (upload->status)
		return;
	upload->status = status;
	if (!message || str_copy(upload->message, sizeof upload->message, message) < 0)
		upload->message[0] = 0;
}

static void go_on_with(struct upload *upload);

static void on_reply(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct upload *upload = exchange->data;
	const char *part = service_string(reply, "part");

	exchange->ticket = 0;
	upload->is_waiting = false;
	if (reply->status >= 300)
		fail(upload, reply->status, service_string(reply, "message"));
	else if (!upload->is_body_done || !upload->is_committed)
		upload->fd = service_take_fd(reply, "archive");
	if (part && str_copy(upload->part, sizeof upload->part, part) < 0)
		fail(upload, 500, "the archive cannot be written");
	upload->max = service_number(reply, "max", upload->max);
	go_on_with(upload);
}

static void put_part(const struct upload *upload, struct buf *out)
{
	exchange_put_path_values(upload->exchange, out);
	field_put_string(out, "upload", upload->token);
	field_put_string(out, "part", upload->part[0] ? upload->part : NULL);
}

static void ask(struct upload *upload, bool is_commit)
{
	struct buf *out = exchange_ask(upload->exchange, SERVICE_BUILD_UPLOAD);

	if (!out) {
		fail(upload, 503, "the launcher cannot be asked");
		return;
	}
	put_part(upload, out);
	if (is_commit)
		field_put_u64(out, "commit", upload->size);
	upload->is_waiting = true;
	exchange_send(upload->exchange, on_reply);
	if (!upload->exchange->ticket) {
		upload->is_waiting = false;
		fail(upload, 400, "the path cannot be one");
	}
}

/* Behind an answer of the launcher, and at the end of the body: an answer is given behind the body alone. */
static void go_on_with(struct upload *upload)
{
	struct exchange *exchange = upload->exchange;

	if (upload->is_waiting || exchange->is_answered)
		return;
	if (upload->is_body_done && !upload->status && !upload->is_committed) {
		upload->is_committed = true;
		close_fd(&upload->fd);
		ask(upload, true);
		if (upload->is_waiting)
			return;
	}
	if (!upload->is_body_done)
		exchange_resume(exchange);
	else if (upload->status)
		exchange_fail(exchange, upload->status, CONNECT_UNKNOWN, upload->message);
	else
		exchange_answer_bytes(exchange, 200, NULL, NULL);
}

static void write_bytes(struct upload *upload, const char *bytes, size_t size)
{
	int r;

	if (size > upload->max - upload->size) {
		fail(upload, 413, "the archive is too large");
		return;
	}
	r = fd_write_full(upload->fd, bytes, size);
	upload->size += size;
	if (r < 0)
		fail(upload, r == -ENOSPC || r == -EDQUOT ? 507 : 500,
		     r == -ENOSPC || r == -EDQUOT ? "not enough disk space is left" : "the archive cannot be written");
}

/* At the head libmicrohttpd 0.9 would lose a chunked body by a suspension. */
static void begin_asking(struct upload *upload)
{
	if (upload->is_asked)
		return;
	upload->is_asked = true;
	if (!upload->status)
		ask(upload, false);
}

static size_t take_piece(struct exchange *exchange, const char *bytes, size_t size)
{
	struct upload *upload = exchange->data;

	if (!upload) {
		exchange->excess += size;
		return size;
	}
	begin_asking(upload);
	if (upload->is_waiting)
		return 0;
	if (upload->status)
		exchange->excess += size;
	else
		write_bytes(upload, bytes, size);
	return size;
}

static void run(struct exchange *exchange)
{
	struct upload *upload = exchange->data;

	if (!upload)
		return;
	begin_asking(upload);
	upload->is_body_done = true;
	go_on_with(upload);
}

static void begin(struct exchange *exchange)
{
	struct upload *upload = calloc(1, sizeof *upload);

	if (!upload) {
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
		return;
	}
	upload->exchange = exchange;
	upload->fd = FD_NONE;
	exchange->data = upload;
	if (query_get(exchange->query, "upload", upload->token, sizeof upload->token) != 1)
		fail(upload, 401, "the URL is not signed");
}

/* Whoever goes away in the middle leaves nothing behind. Where this cannot be said, the next one's bound removes it. */
static void drop(const struct upload *upload)
{
	struct launcher *launcher = front_launcher(upload->exchange->front);
	uint64_t ticket = 0;
	struct buf *out = launcher_begin(launcher, SERVICE_BUILD_UPLOAD, &ticket);

	if (!out)
		return;
	put_part(upload, out);
	(void)!launcher_send(launcher, ticket, NULL, NULL);
}

static void done(struct exchange *exchange)
{
	struct upload *upload = exchange->data;

	if (!upload)
		return;
	close_fd(&upload->fd);
	if (upload->part[0] && !upload->is_committed)
		drop(upload);
	free(upload);
}

const struct exchange_handler archive_handler = { .begin = begin, .take = take_piece, .run = run, .done = done };
