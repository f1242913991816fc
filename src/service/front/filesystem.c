/* SPDX-License-Identifier: Apache-2.0 */

/* Handler of the unary calls of filesystem.Filesystem: one operation each; a directory comes page by page. */

#include "service/protocol/filesystem.h"

#include <string.h>

#include "base/str.h"
#include "service/front/handlers.h"

enum { REPLY_MAX = 16 << 20, NEXT_SIZE = 257, PAGES_MAX = 2048 };

/* One row of a directory: JSON in a buffer that all share, behind its path. */
struct row {
	size_t path, json, size;
};

struct listing {
	struct buf reply;            /* JSON; of a directory, once all rows are there */
	struct buf bytes, rows;      /* paths, each with its NUL, and JSON; struct row */
	size_t pages;
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

static int put_row(struct listing *listing, const struct service_message *values)
{
	const char *path = service_string(values, "path");
	struct row row = { .path = listing->bytes.size };

	buf_put_text(&listing->bytes, path ? path : "");
	buf_put_char(&listing->bytes, 0);
	row.json = listing->bytes.size;
	filesystem_put_listed(&listing->bytes, values, 0);
	row.size = listing->bytes.size - row.json;
	buf_put(&listing->rows, &row, sizeof row);
	return buf_error(&listing->bytes) < 0 ? buf_error(&listing->bytes) : buf_error(&listing->rows);
}

static int put_rows(struct listing *listing, const struct service_message *reply)
{
	struct service_message *row = malloc(sizeof *row);
	size_t at = 0;
	int r = row ? 0 : -ENOMEM;

	listing->pages++;
	while (r >= 0 && (r = service_next_row(reply, &at, row)) > 0) {
		r = put_row(listing, row);
		service_message_done(row);
	}
	free(row);
	return r;
}

/* As a walk in order of names goes: what is below a directory comes before its next neighbour. */
static int compare_rows(const void *a, const void *b, void *context)
{
	const char *bytes = context;
	const char *one = bytes + ((const struct row *)a)->path, *other = bytes + ((const struct row *)b)->path;

	while (*one && *one == *other) {
		one++;
		other++;
	}
	return (*one == '/' ? 1 : (unsigned char)*one) - (*other == '/' ? 1 : (unsigned char)*other);
}

/* The kernel names entries in no order; clients are used to one. */
static void put_sorted(struct listing *listing)
{
	struct row *rows = (struct row *)listing->rows.bytes;
	size_t count = listing->rows.size / sizeof *rows;

	if (count)
		qsort_r(rows, count, sizeof *rows, compare_rows, listing->bytes.bytes);
	filesystem_begin_list(&listing->reply);
	for (size_t i = 0; i < count; i++) {
		if (i)
			buf_put_char(&listing->reply, ',');
		buf_put(&listing->reply, listing->bytes.bytes + rows[i].json, rows[i].size);
	}
	filesystem_end_list(&listing->reply);
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
	put_sorted(listing);
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
	buf_init(&listing->bytes, REPLY_MAX);
	buf_init(&listing->rows, REPLY_MAX);
	exchange->data = listing;
	ask(exchange);
}

static void done(struct exchange *exchange)
{
	struct listing *listing = exchange->data;

	if (!listing)
		return;
	buf_done(&listing->reply);
	buf_done(&listing->bytes);
	buf_done(&listing->rows);
	free(listing);
}

const struct exchange_handler filesystem_handler = { .run = run, .done = done };
