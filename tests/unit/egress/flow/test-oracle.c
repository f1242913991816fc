/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"
#include "egress/credentials/scan.h"
#include "egress/flow/gate-state.h"
#include "egress/flow/requests.h"
#include "egress/http/http2.h"
#include "os/clock.h"
#include "wire/secret.h"

/*
 * Whoever is inside guesses a secret, one character more at a time, on every channel that is searched: right and wrong
 * guesses must look alike in everything that can be seen inside or at a server. What is seen of a guess is reduced to
 * one number: how many bytes had gone to either side after each step, what flow control gave back, whether the
 * connection went on, and when the gate wants to look again. The guesser learns from half of the guesses which numbers
 * mean "right", and is judged by the other half: no better than a coin. With ATOLL_TESTS_LONG=1 each channel is played
 * 20,000 times, else less often, the dear ones least.
 */

/* The sanitizers look at the same paths; that nothing is told is shown by the other builds. */
#ifdef ATOLL_SANITIZED
enum { FEW = 400, SCANS = 1000 };
#else
enum { FEW = 2000, SCANS = 4000 };
#endif
enum { GUESSES = 10000, MOMENT_NS = 2000000, SEEN_MAX = 1 << 14, WINDOW_HALF = HTTP2_STREAM_WINDOW / 2 };

static const char secret[] = "sk-ant-api03-Zk3vQ9mB7xLpT2wRfYcD8hJnW5sG1eUa";
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

static const uint16_t tls_ports[] = { 443 }, plain_ports[] = { 80 };
static const struct http_rule any_request = { .origin = { "network.allow[0].http[0]" } };
static const struct net_rule rules[] = {
	{ .verdict = VERDICT_ALLOW, .host = "api.example.org", .ports = tls_ports, .port_count = 1,
	  .http = &any_request, .http_count = 1, .origin = { "network.allow[0]" },
	  .inject = { .kind = INJECT_RAW, .name = "x-api-key", .secret = "model" } },
	{ .verdict = VERDICT_ALLOW, .host = "web.example.org", .ports = plain_ports, .port_count = 1,
	  .http = &any_request, .http_count = 1, .origin = { "network.allow[1]" } },
};
static const struct policy policy = { .network = { .default_verdict = VERDICT_DENY, .rules = rules,
						  .count = 2, .exact_count = 2 },
				      .data.outgoing = DATA_DENY };

static struct gate *gate;
static void (*tell_over)(void *context, const struct exchange_record *record);
static unsigned alerts;

/* --- A gate of one process. --- */

static void on_limit(void *context, const struct quota_hit *hit)
{
	abort();
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
}

/* As atoll-secret gives it. */
static void give_secret(void)
{
	const struct secret_value value = { "model", secret, strlen(secret), "sk-ant-api03-what-stands-for-it" };
	cleanup_buf struct buf out;
	int fds[2];

	buf_init(&out, 1 << 16);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	assert_int_equal(secret_put_value(&out, &value), 0);
	assert_true(send(fds[0], out.bytes, out.size, 0) == (ssize_t)out.size);
	close(fds[0]);
	assert_int_equal(dup2(fds[1], GATE_SECRETS_FD), GATE_SECRETS_FD);
	if (fds[1] != GATE_SECRETS_FD)
		close(fds[1]);
}

static int make_gate(void **state)
{
	struct err err;

	gate = calloc(1, sizeof *gate);
	assert_non_null(gate);
	gate->policy = &policy;
	gate->base = event_base_new();
	buf_init(&gate->link.requests, 1 << 20);
	evtimer_assign(&gate->link.queue_timer, gate->base, on_timer, gate);
	assert_int_equal(quota_new(&gate->quota, &policy, 0, on_limit, NULL), 0);
	give_secret();
	assert_int_equal(gate_secrets_load(&gate->secrets, &policy, &err), 0);
	return 0;
}

static int free_gate(void **state)
{
	gate_secrets_done(&gate->secrets);
	quota_free(gate->quota);
	event_del(&gate->link.queue_timer);
	event_base_free(gate->base);
	buf_done(&gate->link.requests);
	free(gate);
	return 0;
}

static void on_over(void *context, const struct exchange_record *record)
{
	alerts += record->leak.secret != NULL;
	tell_over(context, record);
	buf_reset(&gate->link.requests);
}

static struct exchange_hooks hooks_of(struct requests *requests, bool is_tls)
{
	const struct gate_open connection = { .id = 1, .host = is_tls ? "api.example.org" : "web.example.org",
					      .port = is_tls ? 443 : 80 };
	struct exchange_hooks hooks;

	requests_init(requests, gate, &connection, is_tls);
	hooks = requests_hooks(requests);
	tell_over = hooks.over;
	hooks.over = on_over;
	return hooks;
}

/* --- What is seen, and who guesses. --- */

static uint64_t random_state;

/* SplitMix64 (Steele, Lea and Flood, 2014). */
static uint32_t choose(uint32_t count)
{
	uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ z >> 31) >> 32) % count;
}

static void see(uint64_t *seen, uint64_t what)
{
	*seen = (*seen ^ what) * UINT64_C(0x100000001b3) ^ *seen >> 29;
}

/* One guess: known characters of the secret, and one more, which is_right or not. */
struct guess {
	char text[sizeof secret];
	size_t size;
	unsigned way;            /* of sending it: the guesser's choice */
	bool is_right;
};

static struct guess make_guess(bool is_short)
{
	/* The whole may be told. */
	size_t known = is_short ? choose(4) : 4 + choose((uint32_t)strlen(secret) - 5);
	struct guess guess = { .size = known + 1, .way = choose(4), .is_right = choose(2) };

	memcpy(guess.text, secret, known + 1);
	while (!guess.is_right && guess.text[known] == secret[known])
		guess.text[known] = letters[choose(sizeof letters - 1)];
	return guess;
}

struct channel {
	const char *name;
	uint64_t (*play)(const struct guess *guess);
	unsigned guesses;
};

struct memory {
	uint64_t situation;
	unsigned right, wrong;
};

/* What was seen of a guess of this size and way before: always the same. */
struct look_alike {
	uint64_t seen[sizeof secret][4];
};

static void assert_alike(struct look_alike *alike, const char *name, const struct guess *guess, uint64_t seen)
{
	uint64_t *before = &alike->seen[guess->size][guess->way];

	if (*before && *before != seen)
		fail_msg("%s: %zu bytes sent in way %u do not look as others do (%s)", name, guess->size, guess->way,
			 guess->is_right ? "right" : "wrong");
	*before = seen;
}

static struct memory *remember(struct memory *memories, uint64_t situation)
{
	size_t at = situation % SEEN_MAX;

	while (memories[at].right + memories[at].wrong && memories[at].situation != situation)
		at = (at + 1) % SEEN_MAX;
	memories[at].situation = situation;
	return &memories[at];
}

/* How many of the second half are told right by what was seen in the first; ties are tossed. */
static unsigned play(const struct channel *channel, bool is_short, unsigned guesses)
{
	struct memory *memories = calloc(SEEN_MAX, sizeof *memories);
	struct look_alike alike = { 0 };
	unsigned told = 0;

	assert_non_null(memories);
	for (unsigned i = 0; i < guesses; i++) {
		struct guess guess = make_guess(is_short);
		uint64_t situation = channel->play(&guess);
		struct memory *memory;
		bool says_right;

		assert_alike(&alike, channel->name, &guess, situation);
		see(&situation, guess.size);
		see(&situation, guess.way);
		memory = remember(memories, situation);
		says_right = memory->right == memory->wrong ? choose(2) : memory->right > memory->wrong;
		if (i >= guesses / 2)
			told += says_right == guess.is_right;
		else if (guess.is_right)
			memory->right++;
		else
			memory->wrong++;
	}
	free(memories);
	return told;
}

static void assert_a_coin(const char *name, unsigned told, unsigned of)
{
	double share = (double)told / of, square = (share - 0.5) * (share - 0.5);

	print_message("%s: %.4f of %u told\n", name, share, of);
	/* The interval of 95 % around a half, for all of some 30 plays together: of each alone it is 1.96 wide. */
	if (square > 3.1 * 3.1 * 0.25 / of)
		fail_msg("%s: right and wrong guesses are told apart: %.4f of %u", name, share, of);
}

/* --- HTTP/1.1. --- */

struct one {
	struct exchange exchange;
	struct requests requests;
	struct buf to_server, to_client;
	uint64_t now_ns, seen;
	bool is_over;
};

static void look(struct one *one)
{
	uint64_t wait_ns = 0;

	if (!one->is_over)
		one->is_over = exchange_settle(&one->exchange, false, one->now_ns, &one->to_server, &one->to_client,
					       &wait_ns) == EXCHANGE_ENDED;
	see(&one->seen, one->to_server.size);
	see(&one->seen, one->to_client.size);
	see(&one->seen, wait_ns);
	see(&one->seen, one->is_over);
	buf_reset(&one->to_server);
	buf_reset(&one->to_client);
}

/* The guess is sent, and then: nothing; a moment passes; other text follows; or it comes byte by byte. */
static void send_in_a_way(const struct guess *guess, void (*send)(void *context, const void *bytes, size_t size),
			  void (*wait)(void *context), void *context)
{
	for (size_t i = 0; guess->way == 3 && i < guess->size; i++)
		send(context, guess->text + i, 1);
	if (guess->way != 3)
		send(context, guess->text, guess->size);
	if (guess->way == 1)
		wait(context);
	if (guess->way == 2)
		send(context, " and what follows it", 20);
}

static void from_client(void *context, const void *bytes, size_t size)
{
	struct one *one = context;
	size_t used;

	if (!one->is_over)
		one->is_over = exchange_from_client(&one->exchange, bytes, size, &used, &one->to_server,
						    &one->to_client) == EXCHANGE_ENDED;
	look(one);
}

static void from_client_chunked(void *context, const void *bytes, size_t size)
{
	cleanup_buf struct buf chunk;

	buf_init(&chunk, 1 << 10);
	buf_printf(&chunk, "%zx\r\n", size);
	buf_put(&chunk, bytes, size);
	buf_put_text(&chunk, "\r\n");
	from_client(context, chunk.bytes, chunk.size);
}

static void from_server(void *context, const void *bytes, size_t size)
{
	struct one *one = context;

	if (!one->is_over)
		one->is_over = exchange_from_server(&one->exchange, bytes, size, &one->to_client) == EXCHANGE_ENDED;
	look(one);
}

static void pass_time(void *context)
{
	struct one *one = context;

	one->now_ns += MOMENT_NS;
	look(one);
}

static void one_init(struct one *one, bool is_tls, const char *head)
{
	struct exchange_hooks hooks;

	one->now_ns = UINT64_C(1000000000);
	one->seen = 1;
	one->is_over = false;
	buf_init(&one->to_server, 1 << 20);
	buf_init(&one->to_client, 1 << 20);
	hooks = hooks_of(&one->requests, is_tls);
	exchange_init(&one->exchange, &one->requests.server, &policy, &hooks);
	from_client(one, head, strlen(head));
}

static uint64_t one_done(struct one *one)
{
	exchange_done(&one->exchange);
	buf_done(&one->to_server);
	buf_done(&one->to_client);
	return one->seen;
}

#define POST "POST /v1 HTTP/1.1\r\nHost: api.example.org\r\n"

static uint64_t play_body(const struct guess *guess)
{
	struct one one;

	one_init(&one, true, POST "Content-Length: 100000\r\n\r\n");
	send_in_a_way(guess, from_client, pass_time, &one);
	return one_done(&one);
}

static uint64_t play_chunks(const struct guess *guess)
{
	struct one one;

	one_init(&one, true, POST "Transfer-Encoding: chunked\r\n\r\n");
	send_in_a_way(guess, from_client_chunked, pass_time, &one);
	return one_done(&one);
}

static uint64_t play_plain(const struct guess *guess)
{
	struct one one;

	one_init(&one, false, "POST / HTTP/1.1\r\nHost: web.example.org\r\nContent-Length: 100000\r\n\r\n");
	send_in_a_way(guess, from_client, pass_time, &one);
	return one_done(&one);
}

/* Behind so much that the gate has let go of most of it. */
static uint64_t play_long_body(const struct guess *guess)
{
	static char filler[4000];
	struct one one;

	memset(filler, 'x', sizeof filler);
	one_init(&one, true, POST "Content-Length: 100000\r\n\r\n");
	from_client(&one, filler, sizeof filler);
	send_in_a_way(guess, from_client, pass_time, &one);
	return one_done(&one);
}

static uint64_t play_web_socket(const struct guess *guess)
{
	static const char head[] = "GET /v1 HTTP/1.1\r\nHost: api.example.org\r\nConnection: Upgrade\r\n"
				   "Upgrade: websocket\r\n\r\n";
	static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
				     "Upgrade: websocket\r\n\r\n";
	struct one one;

	one_init(&one, true, head);
	from_server(&one, answer, strlen(answer));
	send_in_a_way(guess, from_client, pass_time, &one);
	return one_done(&one);
}

static uint64_t play_header(const struct guess *guess)
{
	struct one one;

	one_init(&one, true, "GET /v1 HTTP/1.1\r\nHost: api.example.org\r\nX-Mine: ");
	send_in_a_way(guess, from_client, pass_time, &one);
	from_client(&one, "\r\n\r\n", 4);
	return one_done(&one);
}

static uint64_t play_url(const struct guess *guess)
{
	struct guess spaceless = *guess;
	struct one one;

	spaceless.way = guess->way == 2 ? 0 : guess->way;
	one_init(&one, true, "GET /v1?q=");
	send_in_a_way(&spaceless, from_client, pass_time, &one);
	from_client(&one, " HTTP/1.1\r\nHost: api.example.org\r\n\r\n", 36);
	return one_done(&one);
}

/* A server that repeats what it is sent. */
static uint64_t play_answer(const struct guess *guess)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
	struct one one;

	one_init(&one, true, "GET /v1 HTTP/1.1\r\nHost: api.example.org\r\n\r\n");
	from_server(&one, answer, strlen(answer));
	send_in_a_way(guess, from_server, pass_time, &one);
	return one_done(&one);
}

static uint64_t play_answer_header(const struct guess *guess)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Echo: ";
	struct one one;

	one_init(&one, true, "GET /v1 HTTP/1.1\r\nHost: api.example.org\r\n\r\n");
	from_server(&one, answer, strlen(answer));
	send_in_a_way(guess, from_server, pass_time, &one);
	from_server(&one, "\r\n\r\n", 4);
	return one_done(&one);
}

/* --- HTTP/2. --- */

struct two {
	nghttp2_session *client, *server;
	struct http2 *http2;
	struct requests requests;
	int32_t id;
	uint64_t now_ns, seen;
	size_t arrived, came_back;   /* bytes of bodies */
	struct buf body;             /* what the sender has for its next frames */
	bool server_sends;
};

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t size,
		   void *context)
{
	struct two *two = context;

	*(session == two->server ? &two->arrived : &two->came_back) += size;
	return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *bytes, size_t max, uint32_t *flags,
			 nghttp2_data_source *source, void *context)
{
	struct two *two = context;
	size_t size = two->body.size < max ? two->body.size : max;

	if (!size)
		return NGHTTP2_ERR_DEFERRED;
	memcpy(bytes, two->body.bytes, size);
	buf_consume(&two->body, size);
	return (ssize_t)size;
}

static bool move(nghttp2_session *session, struct http2 *http2, enum http2_side side)
{
	cleanup_buf struct buf out;
	const uint8_t *bytes;
	ssize_t size = nghttp2_session_mem_send(session, &bytes);

	if (size > 0)
		(void)http2_give(http2, side, bytes, (size_t)size);
	buf_init(&out, 1 << 20);
	(void)http2_take(http2, side, &out, 16 << 10);
	if (out.size)
		assert_true(nghttp2_session_mem_recv(session, out.bytes, out.size) == (ssize_t)out.size);
	return size > 0 || out.size;
}

static void look2(void *context)
{
	struct two *two = context;
	nghttp2_session *sender = two->server_sends ? two->server : two->client;
	uint64_t wait_ns;

	for (int again = 0; again < 2; again++) {
		bool goes_on = true;

		while (goes_on) {
			goes_on = move(two->client, two->http2, HTTP2_INSIDE);
			goes_on |= move(two->server, two->http2, HTTP2_OUTSIDE);
		}
		wait_ns = http2_settle(two->http2, false, two->now_ns);
	}
	see(&two->seen, two->arrived);
	see(&two->seen, two->came_back);
	see(&two->seen, wait_ns);
	/* What flow control has given back. */
	see(&two->seen, (uint64_t)nghttp2_session_get_stream_remote_window_size(sender, two->id));
	see(&two->seen, (uint64_t)nghttp2_session_get_remote_window_size(sender));
}

static void pass_time2(void *context)
{
	struct two *two = context;

	two->now_ns += MOMENT_NS;
	look2(context);
}

static void send2(void *context, const void *bytes, size_t size)
{
	struct two *two = context;

	buf_put(&two->body, bytes, size);
	(void)nghttp2_session_resume_data(two->server_sends ? two->server : two->client, two->id);
	look2(two);
}

static nghttp2_nv nv(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE };
}

static void two_init(struct two *two, bool server_sends, const char *mine)
{
	nghttp2_settings_entry window = { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 1 << 20 };
	nghttp2_data_provider provider = { .read_callback = read_body };
	nghttp2_nv request[] = { nv(":method", "POST"), nv(":scheme", "https"), nv(":authority", "api.example.org"),
				 nv(":path", "/v1"), nv("x-mine", mine) };
	nghttp2_nv answer[] = { nv(":status", "200") };
	nghttp2_session_callbacks *callbacks;
	struct exchange_hooks hooks;

	*two = (struct two){ .now_ns = 1000000000, .seen = 1, .server_sends = server_sends };
	buf_init(&two->body, 1 << 20);
	assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	assert_int_equal(nghttp2_session_client_new(&two->client, callbacks, two), 0);
	assert_int_equal(nghttp2_session_server_new(&two->server, callbacks, two), 0);
	nghttp2_session_callbacks_del(callbacks);
	assert_int_equal(nghttp2_submit_settings(two->client, 0, &window, 1), 0);
	assert_int_equal(nghttp2_submit_settings(two->server, 0, &window, 1), 0);
	assert_int_equal(nghttp2_submit_window_update(two->server, 0, 0, 1 << 20), 0);
	hooks = hooks_of(&two->requests, true);
	assert_int_equal(http2_new(&two->http2, &two->requests.server, &policy, &hooks), 0);
	look2(two);
	two->id = nghttp2_submit_request(two->client, NULL, request, 5, server_sends ? NULL : &provider, NULL);
	look2(two);
	if (server_sends)
		assert_int_equal(nghttp2_submit_response(two->server, two->id, answer, 1, &provider), 0);
	look2(two);
}

static uint64_t two_done(struct two *two)
{
	http2_free(two->http2);
	nghttp2_session_del(two->client);
	nghttp2_session_del(two->server);
	buf_done(&two->body);
	return two->seen;
}

static uint64_t play_stream(const struct guess *guess)
{
	struct two two;

	two_init(&two, false, "x");
	send_in_a_way(guess, send2, pass_time2, &two);
	return two_done(&two);
}

/* With so much before it that a few bytes make the difference whether the window is opened again. */
static uint64_t play_window(const struct guess *guess)
{
	static char filler[WINDOW_HALF];
	struct two two;

	memset(filler, '\n', sizeof filler);
	two_init(&two, false, "x");
	send2(&two, filler, sizeof filler - guess->size);
	send_in_a_way(guess, send2, pass_time2, &two);
	return two_done(&two);
}

static uint64_t play_stream_header(const struct guess *guess)
{
	struct two two;

	two_init(&two, false, guess->text);
	return two_done(&two);
}

static uint64_t play_stream_answer(const struct guess *guess)
{
	struct two two;

	two_init(&two, true, "x");
	send_in_a_way(guess, send2, pass_time2, &two);
	return two_done(&two);
}

/* --- The tests. --- */

static void test_no_channel_tells_how_much_is_right(void **state)
{
	static const struct channel channels[] = {
		{ "body", play_body, FEW },		    { "chunks", play_chunks, FEW },
		{ "plain HTTP", play_plain, FEW },	    { "long body", play_long_body, FEW },
		{ "WebSocket", play_web_socket, FEW },  { "header", play_header, FEW },
		{ "URL", play_url, FEW },		    { "answer", play_answer, FEW },
		{ "header of an answer", play_answer_header, FEW },
		{ "HTTP/2", play_stream, FEW / 2 },	    { "HTTP/2 header", play_stream_header, FEW / 2 },
		{ "HTTP/2 answer", play_stream_answer, FEW / 2 },
		{ "HTTP/2 window", play_window, FEW / 10 },
	};
	bool is_long = getenv("ATOLL_TESTS_LONG");

	for (size_t i = 0; i < ARRAY_SIZE(channels); i++)
		for (int is_short = 0; is_short < 2; is_short++) {
			unsigned guesses = is_long ? GUESSES : channels[i].guesses;

			assert_a_coin(channels[i].name, play(&channels[i], is_short, guesses), guesses - guesses / 2);
		}
}

/* The control: the whole secret is told, on each channel that is searched. */
static void test_the_whole_is_told(void **state)
{
	uint64_t (*const searched[])(const struct guess *guess) = {
		play_body, play_chunks, play_plain, play_long_body, play_header, play_url, play_stream, play_window,
		play_stream_header,
	};
	struct guess whole = { .size = strlen(secret) };

	memcpy(whole.text, secret, sizeof secret);
	for (size_t i = 0; i < ARRAY_SIZE(searched); i++) {
		struct guess other = whole;
		unsigned before = alerts;
		uint64_t seen = searched[i](&whole);

		assert_int_equal(alerts, before + 1);
		other.text[other.size - 1] ^= 1;
		assert_true(searched[i](&other) != seen);
	}
}

/* Most of it is let through, and is told to people alone, when it comes again. */
static void test_a_long_part_that_repeats_is_an_alert(void **state)
{
	struct guess guess = { .size = strlen(secret) * 3 / 4 };
	struct guess most = { .size = strlen(secret) - 1 };
	uint64_t seen;
	unsigned before;

	/* Others have come by in the tests before. */
	gate->secrets.items[0].parts_seen = 0;
	before = alerts;
	memcpy(guess.text, secret, guess.size);
	memcpy(most.text, secret, most.size);
	seen = play_body(&most);
	for (int i = 0; i < 20; i++)
		(void)play_body(&guess);
	assert_int_equal(alerts, before);
	assert_true(play_chunks(&most) && alerts == before);
	assert_int_equal(play_body(&most), seen);
	assert_int_equal(alerts, before + 1);
	(void)play_header(&most);
	(void)play_stream(&most);
	assert_int_equal(alerts, before + 3);
}

/* What is to be masked is refused where a part of it has left already. */
static void test_what_began_to_leave_is_not_masked(void **state)
{
	struct policy masking = policy;
	size_t half = strlen(secret) / 2;
	unsigned before = alerts;
	struct one one;

	masking.data.outgoing = DATA_MASK;
	gate->policy = &masking;
	one_init(&one, true, POST "Content-Length: 100000\r\n\r\n");
	from_client(&one, secret, strlen(secret));
	from_client(&one, secret, half);
	assert_false(one.is_over);
	pass_time(&one);
	from_client(&one, secret + half, strlen(secret) - half);
	assert_true(one.is_over);
	(void)one_done(&one);
	assert_int_equal(alerts, before + 1);
	gate->policy = &policy;
}

static int compare_times(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/* How long 8 KiB of the guess, over and over, take: with an automaton twice as long where most of it is right. */
static void test_no_time_tells_how_much_is_right(void **state)
{
	enum { TIMES = SCANS, SIZE = 8 << 10 };
	static uint64_t times[2][TIMES / 2], sorted[TIMES];
	static char texts[2][SIZE], text[SIZE];
	/*
	 * All that is right and no match: with one more unknown character, eight of them behind what the placeholder
	 * says as well, it is a head, which ends an answer (scanner_add_head()), and 0.8 are told.
	 */
	size_t counts[2] = { 0 }, known = strlen("sk-ant-api03-") + 8 - 1;
	unsigned told = 0;
	uint64_t limit;

	/* Right up to there, or wrong from the first character on. */
	for (size_t at = 0; at < SIZE; at++) {
		texts[0][at] = secret[at % known];
		texts[1][at] = at % known ? secret[at % known] : 'q';
	}
	for (size_t i = 0; i < TIMES; i++) {
		size_t kind = (i + choose(2)) % 2;
		uint64_t started_ns;

		if (counts[kind] == TIMES / 2)
			kind = 1 - kind;
		/* By the same steps in the same place: what is done before a scan can be seen in its time. */
		memcpy(text, texts[kind], SIZE);
		started_ns = clock_monotonic_ns();
		assert_int_equal(scanner_find(gate->secrets.scanner, text, SIZE).words, 0);
		times[kind][counts[kind]++] = sorted[i] = clock_monotonic_ns() - started_ns;
	}
	qsort(sorted, TIMES, sizeof *sorted, compare_times);
	limit = sorted[TIMES / 2];
	for (size_t i = 0; i < TIMES / 2; i++)
		told += (times[0][i] > limit) + (times[1][i] <= limit);
	print_message("time: %.4f of %u told\n", (double)told / TIMES, TIMES);
	/* Another machine may have its own ideas of some nanoseconds; a difference that is one tells nearly all. */
	if (told > TIMES * 0.65 || told < TIMES * 0.35)
		fail_msg("time tells %u of %u", told, TIMES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_channel_tells_how_much_is_right),
		cmocka_unit_test(test_the_whole_is_told),
		cmocka_unit_test(test_a_long_part_that_repeats_is_an_alert),
		cmocka_unit_test(test_what_began_to_leave_is_not_masked),
		cmocka_unit_test(test_no_time_tells_how_much_is_right),
	};

	return cmocka_run_group_tests(tests, make_gate, free_gate);
}
