/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/http/intercept.h"

#include <event2/event_struct.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"
#include "egress/http/http2.h"
#include "egress/tls/alpn.h"
#include "egress/tls/ca.h"
#include "egress/tls/upstream.h"
#include "os/clock.h"

/*
 * Order of things: the client's hello is looked at (its offer of protocols); the handshake with the server,
 * offering the same; the handshake with the client, who gets what the server chose. Where the server cannot
 * be trusted the client is taken all the same and each request is told why, which says more than a broken
 * handshake.
 */

enum {
	HANDSHAKE_SECONDS = 30,
	FLUSH_SECONDS = 30,
	PATIENCE_MS = 60 * 1000,
	/* Times that long: a client may keep a connection, and a model think before it answers, some do for 10. */
	KEPT_TIMES = 2,
	STILL_TIMES = 15,
	READ_SIZE = 16 << 10,          /* one record of TLS */
	BUFFER_FULL = 64 << 10,        /* no more is read while so much waits to be written */
	BUFFER_MAX = 1 << 20,
	PROBLEM_SIZE = 512,
	ROUNDS_MAX = 32,               /* then other connections have a turn */
};

enum phase { PHASE_HELLO, PHASE_SERVER, PHASE_CLIENT, PHASE_STREAMS };

struct side {
	int fd;
	SSL *ssl;                      /* NULL: not yet, or plain text */
	struct event readable, writable;
	struct buf out;                /* plaintext that waits to be written */
	bool is_drained;               /* nothing to read before the socket says so */
	bool is_reading, is_writing;   /* waits for it */
	bool wants_write;              /* the last call did */
	bool has_ended;                /* nothing more comes */
	bool is_limited;               /* nothing more may be read of it at present */
	uint64_t read_bytes, written_bytes;
};

struct intercept {
	struct intercept_options options;
	struct side sides[HTTP2_SIDE_COUNT];
	struct event again, limit, slow, still;
	struct event pause;            /* the time to look at what is held back of bodies */
	struct event left;             /* the client's end, while nothing is read of it */
	struct memory_share memory;
	bool is_paused[HTTP2_SIDE_COUNT]; /* nothing is read of it, for too much waits for the other side */
	bool is_leaving;               /* what the client still says is read to its end, however much waits */
	bool is_watching_left;
	uint64_t slow_head;            /* that slow was set for: exchange_head_on_its_way() */
	uint64_t grown_bytes;          /* that went out beyond what was read inside */
	uint64_t seen_bytes;           /* read by both sides when still came last */
	unsigned still_times;          /* that it came since, without a byte more */
	enum phase phase;
	enum alpn protocol;
	const char *unreachable;
	char problem[PROBLEM_SIZE];    /* what that says of a server */
	struct exchange exchange;
	struct http2 *http2;
	struct buf unread;             /* of the client: what HTTP/1.1 may not look at yet */
	bool is_over;
	const char *why;               /* static: the answer was cut off */
};

static struct side *inside_of(struct intercept *intercept)
{
	return &intercept->sides[HTTP2_INSIDE];
}

static void be_patient(const struct intercept *intercept, struct event *timer)
{
	uint32_t ms = intercept->options.patience_ms;

	event_add(timer, &(struct timeval){ .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 });
}

/* Whether bytes can go over it: with TLS not before its handshake has begun. */
static bool is_there(const struct intercept *intercept, const struct side *side)
{
	return side->ssl || !intercept->options.server.is_tls;
}

static struct side *outside_of(struct intercept *intercept)
{
	return &intercept->sides[HTTP2_OUTSIDE];
}

/* What a call that did not succeed waits for: 1 it will go on later, 0 the end of the stream, -1 an error. */
static int later_plain(struct side *side, ssize_t result, bool is_write)
{
	side->wants_write = is_write && result < 0 && errno == EAGAIN;
	if (result < 0 && (errno == EAGAIN || errno == EINTR))
		return 1;
	return result == 0 && !is_write ? 0 : -1;
}

static int later(struct side *side, int result)
{
	int error = SSL_get_error(side->ssl, result);
	bool is_end = error == SSL_ERROR_ZERO_RETURN || (error == SSL_ERROR_SYSCALL && !ERR_peek_error() && !errno) ||
		      ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;

	ERR_clear_error();
	side->wants_write = error == SSL_ERROR_WANT_WRITE;
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE || error == SSL_ERROR_WANT_CLIENT_HELLO_CB)
		return 1;
	return is_end ? 0 : -1;
}

/* As SSL_read() and SSL_write(): what is not above 0 is for later_of(). */
static ssize_t read_some(struct side *side, void *bytes, size_t size)
{
	errno = 0;
	side->wants_write = false;
	return side->ssl ? SSL_read(side->ssl, bytes, (int)size) : recv(side->fd, bytes, size, 0);
}

static ssize_t write_some(struct side *side, const void *bytes, size_t size)
{
	errno = 0;
	side->wants_write = false;
	return side->ssl ? SSL_write(side->ssl, bytes, (int)size) : send(side->fd, bytes, size, MSG_NOSIGNAL);
}

static int later_of(struct side *side, ssize_t result, bool is_write)
{
	return side->ssl ? later(side, (int)result) : later_plain(side, result, is_write);
}

/* --- The handshakes. --- */

static int shake_hands(struct side *side)
{
	int r;

	errno = 0;
	side->wants_write = false;
	r = SSL_do_handshake(side->ssl);
	return r == 1 ? 0 : later(side, r) == 1 ? 1 : -1;
}

static int start_server(struct intercept *intercept)
{
	struct side *outside = outside_of(intercept);
	int r = upstream_connect(intercept->options.upstream, intercept->options.server.host,
				 ca_offered(inside_of(intercept)->ssl), &outside->ssl);

	if (r < 0 || SSL_set_fd(outside->ssl, intercept->options.outside_fd) != 1)
		return -1;
	intercept->phase = PHASE_SERVER;
	return 0;
}

static bool has_server(const struct intercept *intercept)
{
	return intercept->options.outside_fd >= 0;
}

/* Where no server chooses: what the recorded one chose, or what a usual one would. */
static enum alpn preferred(const struct intercept *intercept)
{
	const struct recording *recording = intercept->options.hooks.recording;

	if (has_server(intercept))
		return ALPN_HTTP1;
	return !recording_answers(recording) || recording_is_http2(recording, &intercept->options.server) ? ALPN_HTTP2
													  : ALPN_HTTP1;
}

/* Whose certificate it is stands in it: one program talks to many servers. */
static const char *describe_problem(struct intercept *intercept)
{
	const struct target_server *server = &intercept->options.server;
	const char *problem = upstream_problem(outside_of(intercept)->ssl);
	bool is_ipv6 = strchr(server->host, ':');

	if (str_format(intercept->problem, sizeof intercept->problem, "no TLS with %s%s%s:%u: %s", is_ipv6 ? "[" : "",
		       server->host, is_ipv6 ? "]" : "", (unsigned)server->port, problem) < 0)
		return problem;
	return intercept->problem;
}

static void start_client(struct intercept *intercept, bool is_reached)
{
	SSL *inside = inside_of(intercept)->ssl;
	unsigned offered = ca_offered(inside);

	if (is_reached)
		intercept->protocol = alpn_chosen(outside_of(intercept)->ssl);
	else
		intercept->protocol = offered & preferred(intercept) ? preferred(intercept) : offered;
	if (!is_reached && has_server(intercept))
		intercept->unreachable = describe_problem(intercept);
	ca_allow(inside, intercept->protocol);
	intercept->phase = PHASE_CLIENT;
}

static int start_streams(struct intercept *intercept)
{
	const struct intercept_options *options = &intercept->options;
	SSL *inside = inside_of(intercept)->ssl;
	int r = 0;

	intercept->phase = PHASE_STREAMS;
	/* A client that offered HTTP/2 and chose nothing of ALPN speaks what it was before there was a choice. */
	if (inside && alpn_chosen(inside) != intercept->protocol)
		return -1;
	if (intercept->protocol == ALPN_HTTP2) {
		r = http2_new(&intercept->http2, &options->server, options->policy, &options->hooks);
		if (r == 0 && intercept->unreachable)
			http2_set_unreachable(intercept->http2, intercept->unreachable);
	} else {
		exchange_init(&intercept->exchange, &options->server, options->policy, &options->hooks);
		intercept->exchange.unreachable = intercept->unreachable;
	}
	return r;
}

/* 0: done; 1: later; -1: it fails. */
static int shake_all(struct intercept *intercept)
{
	int r;

	if (intercept->phase == PHASE_HELLO) {
		errno = 0;
		inside_of(intercept)->wants_write = false;
		r = SSL_do_handshake(inside_of(intercept)->ssl);
		if (SSL_get_error(inside_of(intercept)->ssl, r) != SSL_ERROR_WANT_CLIENT_HELLO_CB)
			return later(inside_of(intercept), r) == 1 ? 1 : -1;
		if (!has_server(intercept))
			start_client(intercept, false);
		else if (start_server(intercept) < 0)
			return -1;
	}
	if (intercept->phase == PHASE_SERVER) {
		r = shake_hands(outside_of(intercept));
		if (r == 1)
			return 1;
		start_client(intercept, r == 0);
	}
	if (intercept->phase == PHASE_CLIENT) {
		r = shake_hands(inside_of(intercept));
		if (r != 0)
			return r;
		event_del(&intercept->limit);
		be_patient(intercept, &intercept->still);
		return start_streams(intercept);
	}
	return 0;
}

/* --- Bytes. --- */

static void give_client(struct intercept *intercept)
{
	struct buf *unread = &intercept->unread;
	size_t used;

	if (exchange_from_client(&intercept->exchange, unread->bytes, unread->size, &used,
				 &outside_of(intercept)->out, &inside_of(intercept)->out) == EXCHANGE_ENDED)
		intercept->is_over = true;
	buf_consume(unread, used);
}

/* What stands in for a server's answer; then requests that waited behind it. */
static void take_given(struct intercept *intercept)
{
	struct exchange *exchange = &intercept->exchange;

	if (!exchange_is_giving(exchange) || inside_of(intercept)->out.size >= READ_SIZE)
		return;
	if (exchange_take(exchange, &inside_of(intercept)->out, READ_SIZE) == EXCHANGE_ENDED)
		intercept->is_over = true;
	else if (!exchange_is_giving(exchange))
		give_client(intercept);
}

static void feed_protocol(struct intercept *intercept, enum http2_side from, const uint8_t *bytes, size_t size)
{
	intercept->sides[from].read_bytes += size;
	if (intercept->http2) {
		if (http2_give(intercept->http2, from, bytes, size) == EXCHANGE_ENDED)
			intercept->is_over = true;
	} else if (from == HTTP2_INSIDE) {
		buf_put(&intercept->unread, bytes, size);
		give_client(intercept);
	} else {
		if (exchange_from_server(&intercept->exchange, bytes, size, &inside_of(intercept)->out) ==
		    EXCHANGE_ENDED)
			intercept->is_over = true;
		else
			give_client(intercept);
	}
}

static void end_side(struct intercept *intercept, enum http2_side side)
{
	enum exchange_state state = EXCHANGE_OPEN;

	intercept->sides[side].has_ended = true;
	if (intercept->http2)
		http2_ended(intercept->http2, side);
	else if (side == HTTP2_INSIDE)
		state = exchange_client_ended(&intercept->exchange);
	else
		state = exchange_server_ended(&intercept->exchange, &inside_of(intercept)->out);
	if (state == EXCHANGE_ENDED)
		intercept->is_over = true;
}

/* The server's connection broke: what it began to answer is cut off, what it did not is answered here. */
static void break_server(struct intercept *intercept)
{
	if (!intercept->http2 && !http1_is_idle(&intercept->exchange.response))
		intercept->why = "the server's connection broke";
	end_side(intercept, HTTP2_OUTSIDE);
}

static bool is_idle(const struct intercept *intercept)
{
	return intercept->http2 ? http2_is_idle(intercept->http2) : exchange_is_idle(&intercept->exchange);
}

/*
 * The client's connection broke, and nobody is there to be told. Between requests that is an end like any other: a
 * client that has what it wanted closes without reading what HTTP/2 or TLS still says.
 */
static void break_client(struct intercept *intercept)
{
	if (!is_idle(intercept))
		intercept->why = "the client's connection broke";
	buf_reset(&inside_of(intercept)->out);
	intercept->is_over = true;
}

/* Whether there is room for what reading of this side may bring. */
static bool may_read(struct intercept *intercept, enum http2_side from)
{
	struct side *to = &intercept->sides[from == HTTP2_INSIDE ? HTTP2_OUTSIDE : HTTP2_INSIDE];

	if (intercept->is_over || intercept->sides[from].has_ended ||
	    (from == HTTP2_OUTSIDE && intercept->unreachable))
		return false;
	if (intercept->is_paused[from] && !intercept->is_leaving)
		return false;
	/* HTTP/2 has windows for this; it must read on to learn that they are open again. */
	if (intercept->http2)
		return true;
	/* While a person is asked, what follows the head stays in the socket. */
	if (from == HTTP2_INSIDE && exchange_is_waiting(&intercept->exchange))
		return false;
	return to->out.size < BUFFER_FULL && (from == HTTP2_OUTSIDE || !intercept->unread.size);
}

static bool is_used_up(const struct intercept *intercept)
{
	uint64_t now_ns = clock_monotonic_ns();

	return quota_is_used_up(intercept->options.share, QUOTA_OUT, now_ns) ||
	       quota_is_used_up(intercept->options.share, QUOTA_IN, now_ns);
}

/* 1: something came; 0: nothing now; -1: an error. */
static int read_side(struct intercept *intercept, enum http2_side from)
{
	static uint8_t bytes[READ_SIZE];
	const struct quota_share *share = intercept->options.share;
	enum quota_way way = from == HTTP2_INSIDE ? QUOTA_OUT : QUOTA_IN;
	struct side *side = &intercept->sides[from];
	size_t allowed;
	ssize_t size;
	int r;

	if (side->is_drained || !may_read(intercept, from))
		return 0;
	allowed = quota_ask(share, way, sizeof bytes, clock_monotonic_ns());
	side->is_limited = !allowed;
	if (!allowed) {
		event_add(&intercept->again, &(struct timeval){ .tv_usec = QUOTA_WAIT_MS * 1000 });
		return 0;
	}
	size = read_some(side, bytes, allowed);
	/* The socket tells where a short record was not the last one; to ask it again would mostly be in vain. */
	side->is_drained = size < (ssize_t)allowed && !(side->ssl && SSL_has_pending(side->ssl));
	if (size <= 0) {
		r = later_of(side, size, false);
		if (r == 0)
			end_side(intercept, from);
		return r == 1 ? 0 : r == 0 ? 1 : -1;
	}
	quota_use(share, way, (size_t)size);
	feed_protocol(intercept, from, bytes, (size_t)size);
	return 1;
}

/*
 * What goes out is counted as it is read inside, and so before it goes. Where it becomes more on its way (a field that
 * HTTP/2 repeats by a byte, which is written out in full again) the rest is counted as it leaves.
 */
static void count_grown(struct intercept *intercept)
{
	struct side *outside = outside_of(intercept);
	uint64_t counted = inside_of(intercept)->read_bytes + intercept->grown_bytes;

	if (outside->written_bytes <= counted)
		return;
	quota_use(intercept->options.share, QUOTA_OUT, outside->written_bytes - counted);
	intercept->grown_bytes += outside->written_bytes - counted;
}

/* 1: something went; 0: nothing now, or nothing to write; -1: an error. */
static int write_side(struct intercept *intercept, enum http2_side to)
{
	struct side *side = &intercept->sides[to];
	ssize_t size;

	if (intercept->http2 && is_there(intercept, side) &&
	    http2_take(intercept->http2, to, &side->out, READ_SIZE) == EXCHANGE_ENDED && !side->out.size &&
	    to == HTTP2_INSIDE)
		intercept->is_over = true;
	if (!intercept->http2 && to == HTTP2_INSIDE)
		take_given(intercept);
	if (buf_error(&side->out) < 0)
		return -1;
	if (!side->out.size || (to == HTTP2_OUTSIDE && (intercept->unreachable || side->has_ended))) {
		buf_reset(&side->out);
		return 0;
	}
	size = write_some(side, side->out.bytes, side->out.size < READ_SIZE ? side->out.size : READ_SIZE);
	if (size <= 0)
		return later_of(side, size, true) == 1 ? 0 : -1;
	buf_consume(&side->out, (size_t)size);
	side->written_bytes += (size_t)size;
	if (to == HTTP2_OUTSIDE)
		count_grown(intercept);
	return 1;
}

/* --- Events. --- */

static void stop_timers(struct intercept *intercept)
{
	event_del(&intercept->again);
	event_del(&intercept->limit);
	event_del(&intercept->slow);
	event_del(&intercept->still);
	event_del(&intercept->left);
	event_del(&intercept->pause);
}

static void end(struct intercept *intercept, const char *why)
{
	for (int side = 0; side < HTTP2_SIDE_COUNT; side++) {
		if (!why && intercept->sides[side].ssl && SSL_is_init_finished(intercept->sides[side].ssl))
			SSL_shutdown(intercept->sides[side].ssl);
		ERR_clear_error();
	}
	stop_timers(intercept);
	for (int side = 0; side < HTTP2_SIDE_COUNT; side++) {
		event_del(&intercept->sides[side].readable);
		event_del(&intercept->sides[side].writable);
	}
	intercept->options.on_end(intercept->options.context, why);
}

static bool is_waiting(const struct intercept *intercept)
{
	return intercept->phase == PHASE_STREAMS && !intercept->http2 && !intercept->is_over &&
	       exchange_is_waiting(&intercept->exchange);
}

/* Most requests change nothing of it. */
static void watch(struct event *event, bool *is_watched, bool is_wanted)
{
	if (*is_watched == is_wanted)
		return;
	*is_watched = is_wanted;
	if (is_wanted)
		event_add(event, NULL);
	else
		event_del(event);
}

static void wait_for(struct intercept *intercept)
{
	for (int i = 0; i < HTTP2_SIDE_COUNT; i++) {
		struct side *side = &intercept->sides[i];
		bool is_shaking = intercept->phase != PHASE_STREAMS;
		bool can = is_there(intercept, side);
		bool reads = can && (is_shaking ? (intercept->phase == PHASE_SERVER) == (i == HTTP2_OUTSIDE)
						     : may_read(intercept, (enum http2_side)i));
		bool writes = can && (side->wants_write || side->out.size);

		watch(&side->readable, &side->is_reading, reads);
		watch(&side->writable, &side->is_writing, writes);
	}
	watch(&intercept->left, &intercept->is_watching_left,
	      is_waiting(intercept) || (intercept->is_paused[HTTP2_INSIDE] && !intercept->is_leaving));
}

/* What was to go out may have had a credential in it. */
static void forget(struct buf *out)
{
	size_t max = out->max;

	if (out->bytes)
		explicit_bzero(out->bytes, out->capacity);
	buf_done(out);
	buf_init(out, max);
}

/*
 * Counts what is held for both sides. Where that is too much, no more is read of the side that most of it came from; of
 * the other it is, since it may be what opens a window.
 */
static void measure(struct intercept *intercept)
{
	size_t held[HTTP2_SIDE_COUNT] = { 0 };
	bool is_short, is_outward;

	for (int i = 0; i < HTTP2_SIDE_COUNT; i++) {
		struct buf *out = &intercept->sides[i].out;

		if (!out->size && out->capacity > BUFFER_FULL)
			forget(out);
		held[i] = out->capacity;
	}
	held[HTTP2_OUTSIDE] += intercept->unread.capacity;
	if (intercept->http2)
		http2_count_held(intercept->http2, held);
	memory_set(&intercept->memory, held[HTTP2_INSIDE] + held[HTTP2_OUTSIDE]);
	is_short = memory_is_short(&intercept->memory);
	is_outward = held[HTTP2_OUTSIDE] >= held[HTTP2_INSIDE];
	intercept->is_paused[HTTP2_INSIDE] = is_short && is_outward;
	intercept->is_paused[HTTP2_OUTSIDE] = is_short && !is_outward;
	if (is_short && !event_pending(&intercept->again, EV_TIMEOUT, NULL))
		event_add(&intercept->again, &(struct timeval){ .tv_usec = MEMORY_LOOK_MS * 1000 });
}

/* As far as it goes now. NULL, or why it cannot go on. */
static const char *move(struct intercept *intercept)
{
	bool moved = true;

	for (int round = 0; moved && round < ROUNDS_MAX; round++) {
		moved = false;
		for (int side = 0; side < HTTP2_SIDE_COUNT; side++) {
			int got = read_side(intercept, (enum http2_side)side);
			int sent = got < 0 ? 0 : write_side(intercept, (enum http2_side)(1 - side));

			if ((got < 0 && side == HTTP2_INSIDE) || (sent < 0 && side == HTTP2_OUTSIDE)) {
				break_client(intercept);
				return NULL;
			}
			if (got < 0 || sent < 0)
				break_server(intercept);
			moved = moved || got || sent;
		}
		if (is_used_up(intercept))
			return "EDQUOT";
	}
	if (moved)
		event_add(&intercept->again, &(struct timeval){ 0 });
	return NULL;
}

/* What is held back of bodies goes on when its time has come. */
static void settle_bodies(struct intercept *intercept)
{
	bool in_is_held_up = outside_of(intercept)->is_limited || !may_read(intercept, HTTP2_OUTSIDE);
	uint64_t now_ns, wait_ns = 0;

	if (!intercept->options.hooks.body || intercept->is_over)
		return;
	now_ns = clock_monotonic_ns();
	if (intercept->http2)
		wait_ns = http2_settle(intercept->http2, in_is_held_up, now_ns);
	else if (exchange_settle(&intercept->exchange, in_is_held_up, now_ns, &outside_of(intercept)->out,
				 &inside_of(intercept)->out, &wait_ns) == EXCHANGE_ENDED)
		intercept->is_over = true;
	if (wait_ns)
		event_add(&intercept->pause, &(struct timeval){ (time_t)(wait_ns / 1000000000),
								(suseconds_t)(wait_ns % 1000000000 / 1000) });
}

/* One timer for each head, from when it began. */
static void watch_head(struct intercept *intercept)
{
	uint64_t head = intercept->http2 || intercept->is_over ? 0 : exchange_head_on_its_way(&intercept->exchange);

	if (head == intercept->slow_head)
		return;
	intercept->slow_head = head;
	event_del(&intercept->slow);
	if (head)
		be_patient(intercept, &intercept->slow);
}

static void on_event(evutil_socket_t fd, short what, void *context)
{
	struct intercept *intercept = context;
	const char *why;
	int r;

	for (int side = 0; side < HTTP2_SIDE_COUNT; side++)
		if (intercept->sides[side].fd == fd)
			intercept->sides[side].is_drained = false;
	if (intercept->phase != PHASE_STREAMS) {
		r = shake_all(intercept);
		if (r < 0) {
			end(intercept, "the TLS handshake with the client failed");
			return;
		}
		if (r == 1) {
			wait_for(intercept);
			return;
		}
	}
	why = move(intercept);
	settle_bodies(intercept);
	/* The rest of what the client is told goes out first. */
	if (why || (intercept->is_over && !inside_of(intercept)->out.size)) {
		end(intercept, why ? why : intercept->why);
		return;
	}
	if (intercept->is_over && !event_pending(&intercept->limit, EV_TIMEOUT, NULL))
		event_add(&intercept->limit, &(struct timeval){ .tv_sec = FLUSH_SECONDS });
	watch_head(intercept);
	measure(intercept);
	wait_for(intercept);
	if (intercept->options.on_said && intercept_has_said(intercept))
		intercept->options.on_said(intercept->options.context);
}

/* After a last look whether more has come. */
static void on_pause(evutil_socket_t fd, short what, void *context)
{
	struct intercept *intercept = context;

	inside_of(intercept)->is_drained = outside_of(intercept)->is_drained = false;
	on_event(-1, 0, intercept);
}

static void on_left(evutil_socket_t fd, short what, void *context)
{
	struct intercept *intercept = context;

	if (is_waiting(intercept))
		end_side(intercept, HTTP2_INSIDE);
	intercept->is_leaving = true;
	intercept->is_watching_left = false;
	on_event(-1, 0, intercept);
}

void intercept_answered(struct intercept *intercept, struct exchange_record *record, const struct decision *answer)
{
	if (intercept->http2) {
		http2_answered(intercept->http2, record, answer);
	} else if (exchange_answered(&intercept->exchange, answer, &outside_of(intercept)->out,
				     &inside_of(intercept)->out) == EXCHANGE_ENDED) {
		intercept->is_over = true;
	} else {
		give_client(intercept);
	}
	/* What came meanwhile is looked at, and what was said is sent. */
	inside_of(intercept)->is_drained = outside_of(intercept)->is_drained = false;
	on_event(-1, 0, intercept);
}

static void on_slow(evutil_socket_t fd, short what, void *context)
{
	struct intercept *intercept = context;

	intercept->is_over = exchange_time_out(&intercept->exchange, &inside_of(intercept)->out) == EXCHANGE_ENDED;
	on_event(-1, EV_TIMEOUT, intercept);
}

/* Of an answer that has begun the client must not take what came for the whole; else it is told. */
static void give_up(struct intercept *intercept)
{
	struct exchange *exchange = intercept->http2 ? NULL : &intercept->exchange;

	if (!exchange || !http1_is_idle(&exchange->response))
		intercept->why = "nothing has moved for too long";
	if (!exchange || exchange_time_out(exchange, &inside_of(intercept)->out) == EXCHANGE_ENDED)
		intercept->is_over = true;
}

/* Bodies that come, but hardly. True: something was given up. */
static bool look_at_bodies(struct intercept *intercept)
{
	struct side *inside = inside_of(intercept), *outside = outside_of(intercept);
	const char *why;

	/* A rate of the policy makes slow what is not. */
	if (intercept->phase != PHASE_STREAMS || intercept->is_over || quota_has_rate(intercept->options.share))
		return false;
	if (intercept->http2) {
		http2_look(intercept->http2);
		return true;
	}
	why = exchange_look(&intercept->exchange, outside->out.size, inside->out.size);
	if (!why)
		return false;
	/* Of an answer that has begun the client must not take what came for the whole. */
	if (!http1_is_idle(&intercept->exchange.response))
		intercept->why = why;
	intercept->is_over = exchange_give_up(&intercept->exchange, why, &inside->out) == EXCHANGE_ENDED;
	return true;
}

/* Of all connections it holds the most, and there is no room for more. */
static void on_most(void *context)
{
	end(context, "too much waits for whoever does not read");
}

/* Counts, instead of being set anew for each byte. */
static void on_still(evutil_socket_t fd, short what, void *context)
{
	struct intercept *intercept = context;
	uint64_t bytes = inside_of(intercept)->read_bytes + outside_of(intercept)->read_bytes;
	bool has_switched = !intercept->http2 && exchange_has_switched(&intercept->exchange);

	/* A person takes as long as the policy lets him. */
	has_switched = has_switched || is_waiting(intercept) ||
		       (intercept->http2 && http2_is_waiting(intercept->http2));
	intercept->still_times = bytes == intercept->seen_bytes && !has_switched ? intercept->still_times + 1 : 0;
	intercept->seen_bytes = bytes;
	be_patient(intercept, &intercept->still);
	if (intercept->still_times >= KEPT_TIMES && is_idle(intercept))
		/* As a server does that has waited long enough. */
		end_side(intercept, HTTP2_OUTSIDE);
	else if (intercept->still_times >= STILL_TIMES)
		give_up(intercept);
	else if (!look_at_bodies(intercept))
		return;
	on_event(-1, EV_TIMEOUT, intercept);
}

static void on_limit(evutil_socket_t fd, short what, void *context)
{
	const struct intercept *intercept = context;

	end(context, intercept->phase == PHASE_STREAMS ? "the client does not read"
						       : "the TLS handshake took too long");
}

/* The client's end of TLS, as the host. */
static int accept_client(struct intercept *intercept, uint64_t now_s)
{
	const struct intercept_options *options = &intercept->options;
	struct side *inside = inside_of(intercept);
	int r = ca_accept(options->ca, options->server.host, now_s, &inside->ssl);

	if (r < 0 || SSL_set_fd(inside->ssl, options->inside_fd) == 1)
		return r;
	SSL_free(inside->ssl);
	return -ENOMEM;
}

int intercept_new(struct intercept **ret_intercept, const struct intercept_options *options, uint64_t now_s)
{
	struct intercept *intercept = calloc(1, sizeof *intercept);
	int fds[HTTP2_SIDE_COUNT] = { options->inside_fd, options->outside_fd };
	int r;

	if (!intercept)
		return -ENOMEM;
	intercept->options = *options;
	if (!intercept->options.patience_ms)
		intercept->options.patience_ms = PATIENCE_MS;
	intercept->protocol = options->is_http2 ? ALPN_HTTP2 : ALPN_HTTP1;
	intercept->unreachable = has_server(intercept) ? NULL : "no server is asked";
	r = options->server.is_tls ? accept_client(intercept, now_s) : start_streams(intercept);
	if (r < 0) {
		free(intercept);
		return r;
	}
	buf_init(&intercept->unread, BUFFER_MAX);
	for (int i = 0; i < HTTP2_SIDE_COUNT; i++) {
		struct side *side = &intercept->sides[i];

		side->fd = fds[i];
		buf_init(&side->out, BUFFER_MAX);
		event_assign(&side->readable, options->base, fds[i], EV_READ | EV_PERSIST, on_event, intercept);
		event_assign(&side->writable, options->base, fds[i], EV_WRITE | EV_PERSIST, on_event, intercept);
	}
	event_assign(&intercept->again, options->base, -1, 0, on_event, intercept);
	event_assign(&intercept->limit, options->base, -1, 0, on_limit, intercept);
	event_assign(&intercept->slow, options->base, -1, 0, on_slow, intercept);
	event_assign(&intercept->still, options->base, -1, 0, on_still, intercept);
	event_assign(&intercept->pause, options->base, -1, 0, on_pause, intercept);
	event_assign(&intercept->left, options->base, options->inside_fd, EV_CLOSED, on_left, intercept);
	if (options->memory)
		memory_open(options->memory, &intercept->memory, on_most, intercept);
	if (options->server.is_tls)
		event_add(&intercept->limit, &(struct timeval){ .tv_sec = HANDSHAKE_SECONDS });
	else
		be_patient(intercept, &intercept->still);
	wait_for(intercept);
	*ret_intercept = intercept;
	return 0;
}

void intercept_free(struct intercept *intercept)
{
	if (!intercept)
		return;
	memory_close(&intercept->memory);
	stop_timers(intercept);
	for (int i = 0; i < HTTP2_SIDE_COUNT; i++) {
		struct side *side = &intercept->sides[i];

		event_del(&side->readable);
		event_del(&side->writable);
		SSL_free(side->ssl);
		forget(&side->out);
	}
	if (intercept->http2)
		http2_free(intercept->http2);
	else if (intercept->phase == PHASE_STREAMS)
		exchange_done(&intercept->exchange);
	buf_done(&intercept->unread);
	free(intercept);
}

bool intercept_has_said(const struct intercept *intercept)
{
	return intercept->sides[HTTP2_INSIDE].has_ended && !intercept->sides[HTTP2_OUTSIDE].out.size;
}

void intercept_count(const struct intercept *intercept, uint64_t *ret_out_bytes, uint64_t *ret_in_bytes)
{
	*ret_out_bytes = intercept->sides[HTTP2_INSIDE].read_bytes + intercept->grown_bytes;
	*ret_in_bytes = intercept->sides[HTTP2_OUTSIDE].read_bytes;
}
