/* SPDX-License-Identifier: Apache-2.0 */

/* Handler of the unary calls of filesystem.Filesystem: one operation each; a directory comes page by page. */

#include "service/protocol/filesystem.h"

#include <string.h>

#include "base/str.h"
#include "service/front/handlers.h"

enum { REPLY_MAX = 16 << 20, NEXT_SIZE = 257, PAGES_MAX = 2048 };

struct listing {
	struct buf reply;
	size_t rows, pages;
	char next[NEXT_SIZE];        /* of the page to ask for; "": the first */
};

static void on_reply(void *context, struct service_message *reply);

static void ask(struct exchange *exchange)
{
	enum service_operation operation = exchange->match.route->operation;
	struct listing *listing = exchange->data;
	char why[FILESYSTEM_WHY_SIZE] = "the request is too large", user[65];
	int has_user = exchange_user(exchange, user);
	struct buf *out = has_user < 0 ? NULL : exchange_ask(exchange, operation);
	int r;

	if (!out)
		return;
	r = filesystem_read(operation, exchange->body.bytes, exchange->body.size, out, why);
	if (r < 0) {
		exchange->ticket = 0;
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, why);
		return;
	}
	if (has_user)
		field_put_string(out, "user", user);
	if (operation == SERVICE_READDIR && listing->next[0])
		field_put_string(out, "next", listing->next);
	exchange_send(exchange, on_reply);
}

static int put_rows(struct listing *listing, const struct service_message *reply)
{
	struct service_message *row = malloc(sizeof *row);
	size_t at = 0;
	int r = row ? 0 : -ENOMEM;

	if (listing->pages++ == 0)
		filesystem_begin_list(&listing->reply);
	while (r >= 0 && (r = service_next_row(reply, &at, row)) > 0) {
		filesystem_put_listed(&listing->reply, row, listing->rows++);
		service_message_done(row);
	}
	free(row);
	return r < 0 ? r : buf_error(&listing->reply);
}

static void on_rows(struct exchange *exchange, struct service_message *reply)
{
	struct listing *listing = exchange->data;
	const char *next = service_string(reply, "next");

	if (put_rows(listing, reply) < 0 || (next && listing->pages == PAGES_MAX)) {
		exchange_fail(exchange, 429, CONNECT_RESOURCE_EXHAUSTED,
			      "the directory has too many entries: ask for less depth");
		return;
	}
	if (next && str_copy(listing->next, sizeof listing->next, next) == 0) {
		ask(exchange);
		return;
	}
	filesystem_end_list(&listing->reply);
	exchange_answer_bytes(exchange, 200, "application/json", &listing->reply);
}

static void on_reply(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct listing *listing = exchange->data;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	if (exchange->match.route->operation == SERVICE_READDIR) {
		on_rows(exchange, reply);
		return;
	}
	if (exchange->match.route->operation == SERVICE_REMOVE)
		buf_put_text(&listing->reply, "{}");
	else
		filesystem_put_entry(&listing->reply, reply);
	exchange_answer_bytes(exchange, 200, "application/json", &listing->reply);
}

static void run(struct exchange *exchange)
{
	struct listing *listing = calloc(1, sizeof *listing);

	if (!listing) {
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
		return;
	}
	buf_init(&listing->reply, REPLY_MAX);
	exchange->data = listing;
	ask(exchange);
}

static void done(struct exchange *exchange)
{
	struct listing *listing = exchange->data;

	if (!listing)
		return;
	buf_done(&listing->reply);
	free(listing);
}

const struct exchange_handler filesystem_handler = { .run = run, .done = done };
