/* SPDX-License-Identifier: Apache-2.0 */
#include "service/front/watch.h"

#include <string.h>

#include "base/str.h"
#include "os/clock.h"
#include "service/front/handlers.h"
#include "service/front/state.h"
#include "service/front/stream.h"
#include "service/protocol/filesystem.h"

enum { EVENTS_MAX = 256 << 10, WATCHERS_MAX = 256, UNASKED_MS = 600000, TOKEN_SIZE = 129 };

/* One directory that is watched for one client. */
struct watcher {
	struct front *front;
	struct watcher *next, **link;
	char sandbox[HOST_ID_SIZE], token[TOKEN_SIZE];
	uint64_t number;                 /* the launcher's */
	struct stream *stream;           /* NULL: it is asked */
	char id[SESSION_ID_SIZE];        /* of one that is asked */
	char *path;                      /* owned: of the directory, as it is inside; NULL: not known */
	struct buf events;               /* what nobody asked for yet: JSON, with commas */
	bool has_lost;
	uint64_t asked_ms;
};

static void no_answer(void *context, struct service_message *reply)
{
}

/* Tells the launcher too; whether it hears is of no account. */
static void watcher_free(struct watcher *watcher, bool is_gone)
{
	uint64_t ticket;
	struct buf *out = is_gone ? NULL : launcher_begin(watcher->front->launcher, SERVICE_UNWATCH, &ticket);

	if (out) {
		field_put_string(out, "sandbox", watcher->sandbox);
		field_put_u64(out, "watch", watcher->number);
		if (watcher->token[0])
			field_put_string(out, "token", watcher->token);
		if (launcher_send(watcher->front->launcher, ticket, no_answer, NULL) < 0)
			is_gone = true;
	}
	*watcher->link = watcher->next;
	if (watcher->next)
		watcher->next->link = watcher->link;
	buf_done(&watcher->events);
	free(watcher->path);
	free(watcher);
}

static struct watcher *watcher_new(struct exchange *exchange, const struct service_message *reply)
{
	struct front *front = exchange->front;
	const char *token = exchange_header(exchange, "X-Access-Token");
	struct watcher *watcher = calloc(1, sizeof *watcher);

	if (!watcher)
		return NULL;
	watcher->front = front;
	watcher->number = service_number(reply, "watch", 0);
	watcher->asked_ms = front->now_ms;
	buf_init(&watcher->events, EVENTS_MAX);
	watcher->path = service_string(reply, "path") ? str_dup(service_string(reply, "path")) : NULL;
	if (str_copy(watcher->sandbox, sizeof watcher->sandbox, exchange->target.sandbox) < 0 ||
	    str_copy(watcher->token, sizeof watcher->token, token ? token : "") < 0 ||
	    random_session_id(watcher->id) < 0) {
		free(watcher->path);
		free(watcher);
		return NULL;
	}
	watcher->link = &front->watchers;
	watcher->next = front->watchers;
	if (watcher->next)
		watcher->next->link = &watcher->next;
	front->watchers = watcher;
	return watcher;
}

static struct watcher *find(struct front *front, const struct service_message *event)
{
	const char *sandbox = service_string(event, "sandbox");
	uint64_t number = service_number(event, "watch", 0);

	for (struct watcher *watcher = front->watchers; watcher; watcher = watcher->next)
		if (watcher->number == number && str_equal(watcher->sandbox, sandbox))
			return watcher;
	return NULL;
}

void watch_on_change(struct front *front, const struct service_message *event)
{
	struct watcher *watcher = find(front, event);

	if (!watcher)
		return;
	if (watcher->stream) {
		if (watcher->stream->out.size > STREAM_MAX) {
			stream_end(watcher->stream, CONNECT_RESOURCE_EXHAUSTED, "this client reads too slowly");
			return;
		}
		if (watcher->stream->is_ended)
			return;
		filesystem_put_change(&watcher->stream->out, event, watcher->path);
		stream_wake(watcher->stream);
		return;
	}
	if (watcher->events.size)
		buf_put_char(&watcher->events, ',');
	filesystem_put_event(&watcher->events, event, watcher->path);
	if (buf_error(&watcher->events) < 0)
		watcher->has_lost = true;
}

void watch_on_lost(struct front *front, const struct service_message *event)
{
	struct watcher *watcher = find(front, event);

	if (watcher && watcher->stream)
		stream_end(watcher->stream, CONNECT_DATA_LOSS, "changes came faster than they were read: watch again");
	else if (watcher)
		watcher->has_lost = true;
}

void watch_on_gone(struct front *front, const char *sandbox)
{
	struct watcher *next;

	for (struct watcher *watcher = front->watchers; watcher; watcher = next) {
		next = watcher->next;
		if (!str_equal(watcher->sandbox, sandbox))
			continue;
		/* The stream's exchange frees its own when it is done. */
		if (watcher->stream)
			stream_fail(watcher->stream);
		else
			watcher_free(watcher, true);
	}
}

void watch_tick(struct front *front)
{
	struct watcher *next;

	for (struct watcher *watcher = front->watchers; watcher; watcher = next) {
		next = watcher->next;
		if (watcher->stream && stream_is_silent(watcher->stream, front->now_ms)) {
			filesystem_put_keepalive(&watcher->stream->out);
			stream_wake(watcher->stream);
		}
		if (!watcher->stream && front->now_ms - watcher->asked_ms >= UNASKED_MS)
			watcher_free(watcher, false);
	}
}

/* Asks for a watch with what a message says. */
static void ask(struct exchange *exchange, const void *json, size_t size, launcher_replied replied)
{
	char why[FILESYSTEM_WHY_SIZE] = "the request is too large", user[65];
	int has_user = exchange_user(exchange, user);
	struct buf *out = has_user < 0 ? NULL : exchange_ask(exchange, SERVICE_WATCH);

	if (!out)
		return;
	if (filesystem_read(SERVICE_WATCH, json, size, out, why) < 0) {
		exchange->ticket = 0;
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, why);
		return;
	}
	if (has_user)
		field_put_string(out, "user", user);
	exchange_send(exchange, replied);
}

/* WatchDir. */
struct watching {
	struct stream stream;
	struct watcher *watcher;
};

static void on_watching(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct watching *watching = NULL;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	watching = calloc(1, sizeof *watching);
	if (watching)
		watching->watcher = watcher_new(exchange, reply);
	if (!watching || !watching->watcher) {
		free(watching);
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
		return;
	}
	watching->watcher->stream = &watching->stream;
	exchange->data = watching;
	stream_begin(&watching->stream, exchange);
	filesystem_put_watching(&watching->stream.out);
	stream_wake(&watching->stream);
}

static void run_watch(struct exchange *exchange)
{
	struct connect_envelope envelope;

	if (exchange_message(exchange, &envelope))
		ask(exchange, envelope.payload, envelope.size, on_watching);
}

static void watch_done(struct exchange *exchange)
{
	struct watching *watching = exchange->data;

	if (!watching)
		return;
	watcher_free(watching->watcher, false);
	stream_done(&watching->stream);
	free(watching);
}

const struct exchange_handler watch_handler = { .run = run_watch, .done = watch_done };

/* CreateWatcher, GetWatcherEvents, RemoveWatcher. */
static void on_created(void *context, struct service_message *reply)
{
	struct exchange *exchange = context;
	struct watcher *watcher;
	struct buf body;

	exchange->ticket = 0;
	if (reply->status >= 300) {
		exchange_fail_reply(exchange, reply);
		return;
	}
	watcher = watcher_new(exchange, reply);
	if (!watcher) {
		exchange_fail(exchange, 503, CONNECT_UNAVAILABLE, "there is no memory");
		return;
	}
	buf_init(&body, 100);
	buf_printf(&body, "{\"watcherId\":\"%s\"}", watcher->id);
	exchange_answer_bytes(exchange, 200, "application/json", &body);
}

static void take_events(struct exchange *exchange, struct watcher *watcher)
{
	struct buf body;

	watcher->asked_ms = exchange->front->now_ms;
	if (watcher->has_lost) {
		watcher->has_lost = false;
		buf_reset(&watcher->events);
		exchange_fail(exchange, 500, CONNECT_DATA_LOSS, "changes came faster than they were asked for");
		return;
	}
	buf_init(&body, EVENTS_MAX + 100);
	buf_put_text(&body, "{\"events\":[");
	buf_put(&body, watcher->events.bytes, watcher->events.size);
	buf_put_text(&body, "]}");
	buf_reset(&watcher->events);
	exchange_answer_bytes(exchange, 200, "application/json", &body);
}

static void remove_watcher(struct exchange *exchange, struct watcher *watcher)
{
	struct buf body;

	watcher_free(watcher, false);
	buf_init(&body, 16);
	buf_put_text(&body, "{}");
	exchange_answer_bytes(exchange, 200, "application/json", &body);
}

/* Its id is random and its own: who has it was given it. The token must be the same all the same. */
static struct watcher *find_asked(const struct exchange *exchange, const char *id)
{
	const char *token = exchange_header(exchange, "X-Access-Token");

	for (struct watcher *watcher = exchange->front->watchers; watcher; watcher = watcher->next)
		if (!watcher->stream && str_equal(watcher->id, id) &&
		    str_equal(watcher->sandbox, exchange->target.sandbox))
			return str_equal(watcher->token, token ? token : "") ? watcher : NULL;
	return NULL;
}

static size_t count_asked(const struct front *front)
{
	size_t count = 0;

	for (const struct watcher *watcher = front->watchers; watcher; watcher = watcher->next)
		count += !watcher->stream;
	return count;
}

static void run_watcher(struct exchange *exchange)
{
	bool is_removal = str_has_suffix(exchange->match.route->pattern, "/RemoveWatcher");
	char why[FILESYSTEM_WHY_SIZE] = "", id[64];
	struct watcher *watcher;

	if (str_has_suffix(exchange->match.route->pattern, "/CreateWatcher")) {
		if (count_asked(exchange->front) < WATCHERS_MAX)
			ask(exchange, exchange->body.bytes, exchange->body.size, on_created);
		else
			exchange_fail(exchange, 429, CONNECT_RESOURCE_EXHAUSTED, "there are too many watchers");
		return;
	}
	if (filesystem_read_watcher(exchange->body.bytes, exchange->body.size, id, sizeof id, why) < 0) {
		exchange_fail(exchange, 400, CONNECT_INVALID_ARGUMENT, why);
		return;
	}
	watcher = find_asked(exchange, id);
	if (!watcher)
		exchange_fail(exchange, 404, CONNECT_NOT_FOUND, "there is no such watcher");
	else if (is_removal)
		remove_watcher(exchange, watcher);
	else
		take_events(exchange, watcher);
}

const struct exchange_handler watcher_handler = { .run = run_watcher };
