/* SPDX-License-Identifier: Apache-2.0 */

/* Connects by internet address, which the supervisor makes in its own process: to the gate's door, and without end. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"
#include "os/clock.h"

static const int calls[] = { SYS_connect };

static int begin(void **state)
{
	guest_options = (struct watch_options){ 0 };
	guest_on_gate = NULL;
	guest_on_gated = NULL;
	return 0;
}

/* ---- the network gate ---- */

static struct {
	int asked, refuse_with;
	struct watch_network event;
} gate;

static struct {
	int count;
	pid_t pid;
	struct sockaddr_in source, target;
} routed;

static int judge_gate(void *context, const struct watch_network *event)
{
	gate.asked++;
	gate.event = *event;
	return gate.refuse_with;
}

static int note_route(void *context, pid_t pid, const struct sockaddr *source, const struct sockaddr *target)
{
	routed.count++;
	routed.pid = pid;
	memcpy(&routed.source, source, sizeof routed.source);
	memcpy(&routed.target, target, sizeof routed.target);
	return 0;
}

static int open_door(void)
{
	struct sockaddr_in door = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof door;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (void *)&door, sizeof door), 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (void *)&door, &size), 0);
	memset(&gate, 0, sizeof gate);
	memset(&routed, 0, sizeof routed);
	guest_options.gate = (struct watch_gate){ .is_there = true, .door4 = door };
	guest_on_gate = judge_gate;
	guest_on_gated = note_route;
	return fd;
}

static int run_gated(void *argument)
{
	struct sockaddr_in target = { .sin_family = AF_INET, .sin_port = htons(443) };
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6, .sin6_port = htons(443) };
	int *kind = argument, fd;

	inet_pton(AF_INET, "203.0.113.9", &target.sin_addr);
	inet_pton(AF_INET6, "::ffff:203.0.113.9", &mapped.sin6_addr);
	if (*kind == 0)
		fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	else
		fd = socket(*kind == 1 ? AF_INET6 : AF_INET, *kind == 2 ? SOCK_DGRAM : SOCK_STREAM, 0);
	if (connect(fd, *kind == 1 ? (void *)&mapped : (void *)&target, *kind == 1 ? sizeof mapped : sizeof target) < 0)
		return errno;
	return write(fd, "x", 1) == 1 ? 0 : 1;
}

static void test_a_stream_beyond_loopback_goes_to_the_door(void **state)
{
	for (int kind = 3; kind >= 0; kind--) {
		int door = open_door(), result, accepted;
		struct sockaddr_in peer;
		socklen_t size = sizeof peer;
		struct seen seen = { 0 };

		result = guest_run(calls, 1, run_gated, &kind, &seen);
		accepted = accept(door, (void *)&peer, &size);
		assert_int_equal(gate.asked, 1);
		assert_int_equal(gate.event.port, 443);
		/* A datagram goes where it was meant to go, which in the empty network is nowhere. */
		assert_int_equal(accepted >= 0, kind != 2);
		assert_int_equal(routed.count, kind != 2);
		if (kind != 2) {
			assert_int_equal(result, kind == 0 ? EINPROGRESS : 0);
			assert_int_equal(routed.pid, gate.event.pid);
		}
		if (kind == 3) {
			assert_int_equal(routed.source.sin_port, peer.sin_port);
			assert_int_equal(ntohl(routed.target.sin_addr.s_addr), 0xcb007109);
			assert_int_equal(ntohs(routed.target.sin_port), 443);
		}
		close(accepted);
		close(door);
	}
}

static void test_what_the_gate_refuses_is_not_connected(void **state)
{
	int door = open_door(), kind = 3;
	struct seen seen = { 0 };

	gate.refuse_with = ENETUNREACH;
	assert_int_equal(guest_run(calls, 1, run_gated, &kind, &seen), ENETUNREACH);
	assert_int_equal(accept(door, NULL, NULL), -1);
	assert_int_equal(routed.count, 0);
	close(door);
}

/* A second connect() of a caller that does not wait asks how the first is doing: it is no other connection. */
static int run_asking(void *argument)
{
	struct sockaddr_in target = { .sin_family = AF_INET, .sin_port = htons(443) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	inet_pton(AF_INET, "203.0.113.9", &target.sin_addr);
	if (connect(fd, (void *)&target, sizeof target) != -1 || errno != EINPROGRESS)
		return 1;
	if (connect(fd, (void *)&target, sizeof target) != 0)
		return 2;
	return connect(fd, (void *)&target, sizeof target) == -1 && errno == EISCONN ? 0 : 3;
}

static void test_a_connection_is_told_of_once(void **state)
{
	int door = open_door();
	struct seen seen = { 0 };

	assert_int_equal(guest_run(calls, 1, run_asking, NULL, &seen), 0);
	assert_int_equal(gate.asked, 3);
	assert_int_equal(routed.count, 1);
	close(door);
}

/* ---- who would make the supervisor wait ---- */

enum { TRIES = 4000, LINGER_SECONDS = 20 };

static struct closing {
	int fd;
	uint64_t delay_ns;
} closings[TRIES];

static void *close_soon(void *argument)
{
	const struct closing *closing = argument;
	uint64_t until_ns = clock_monotonic_ns() + closing->delay_ns;

	while (clock_monotonic_ns() < until_ns)
		;
	close(closing->fd);
	return NULL;
}

/* Bytes that nobody takes, and SO_LINGER: whoever closes it last waits for their delivery. */
static int open_lingering(const struct sockaddr_in *address)
{
	static const char block[1 << 12];
	struct linger linger = { .l_onoff = 1, .l_linger = LINGER_SECONDS };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ 4096 }, sizeof(int));
	(void)!connect(fd, (void *)address, sizeof *address);
	while (write(fd, block, sizeof block) > 0)
		;
	fcntl(fd, F_SETFL, 0);
	return setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) < 0 ? -1 : fd;
}

/* The caller's own close comes while the supervisor has its copy, sooner or later within the tries. */
static int run_lingering(void *argument)
{
	struct sockaddr_in address = *(struct sockaddr_in *)argument;

	for (long i = 0; i < TRIES; i++) {
		pthread_t thread;

		closings[i] = (struct closing){ open_lingering(&address), (uint64_t)i * 40 };
		/* Nobody waits for the thread: where it is the last, it lingers itself. */
		if (closings[i].fd < 0 || pthread_create(&thread, NULL, close_soon, &closings[i]) != 0)
			return 1;
		connect(closings[i].fd, (void *)&address, sizeof address);
	}
	return 0;
}

static void test_the_last_copy_of_a_lingering_socket_is_closed_at_once(void **state)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof address;
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct seen seen = { 0 };
	time_t started = time(NULL);

	setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &(int){ 4096 }, sizeof(int));
	assert_int_equal(bind(listening, (void *)&address, sizeof address), 0);
	assert_int_equal(listen(listening, TRIES), 0);
	assert_int_equal(getsockname(listening, (void *)&address, &size), 0);
	assert_int_equal(guest_run(calls, 1, run_lingering, &address, &seen), 0);
	assert_true(time(NULL) - started < LINGER_SECONDS);
	close(listening);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_a_stream_beyond_loopback_goes_to_the_door, begin),
		cmocka_unit_test_setup(test_what_the_gate_refuses_is_not_connected, begin),
		cmocka_unit_test_setup(test_a_connection_is_told_of_once, begin),
		cmocka_unit_test_setup(test_the_last_copy_of_a_lingering_socket_is_closed_at_once, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
