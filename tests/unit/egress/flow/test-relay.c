/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "egress/flow/relay.h"
#include "os/clock.h"

enum { BIG = 1 << 20 };

/* inside[0] and outside[0] belong to the relay, the others are the client and the server. */
static struct {
	struct event_base *base;
	struct relay relay;
	struct policy policy;
	struct quota_share share;
	int hits;
	int inside[2], outside[2];
	int ended, errnum, said;
} here;

static void on_end(void *context, int errnum)
{
	here.ended++;
	here.errnum = errnum;
	relay_done(&here.relay);
}

static void on_said(void *context)
{
	here.said++;
}

static void on_hit(void *context, const struct quota_hit *hit)
{
	here.hits++;
}

static int begin(void **state)
{
	struct relay_options options = { .share = &here.share, .on_end = on_end, .on_said = on_said };

	memset(&here, 0, sizeof here);
	here.base = event_base_new();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, here.inside) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, here.outside) < 0)
		return -1;
	options.inside_fd = here.inside[0];
	options.outside_fd = here.outside[0];
	if (quota_new(&here.share.quota, &here.policy, clock_monotonic_ns(), on_hit, NULL) < 0 ||
	    relay_init(&here.relay, here.base, &options) < 0)
		return -1;
	return 0;
}

static int end(void **state)
{
	relay_done(&here.relay);
	for (int i = 0; i < 2; i++) {
		close_fd(&here.inside[i]);
		close_fd(&here.outside[i]);
	}
	event_base_free(here.base);
	quota_free(here.share.quota);
	return 0;
}

static void turn(void)
{
	for (int i = 0; i < 50; i++)
		event_base_loop(here.base, EVLOOP_NONBLOCK);
}

static void start_both(void)
{
	relay_start(&here.relay, RELAY_OUT);
	relay_start(&here.relay, RELAY_IN);
}

static void bytes_and_ends_of_both_ways(void **state)
{
	char text[16] = { 0 };

	start_both();
	assert_int_equal(write(here.inside[1], "question", 8), 8);
	turn();
	assert_int_equal(read(here.outside[1], text, sizeof text), 8);
	assert_string_equal(text, "question");
	shutdown(here.inside[1], SHUT_WR);
	turn();
	assert_int_equal(read(here.outside[1], text, sizeof text), 0);
	assert_int_equal(here.said, 1);
	assert_int_equal(here.ended, 0);
	assert_int_equal(write(here.outside[1], "answer", 6), 6);
	close_fd(&here.outside[1]);
	turn();
	assert_int_equal(read(here.inside[1], text, sizeof text), 6);
	assert_int_equal(read(here.inside[1], text, sizeof text), 0);
	assert_int_equal(here.ended, 1);
	assert_int_equal(here.errnum, 0);
	assert_int_equal(here.relay.halves[RELAY_OUT].moved_bytes, 8);
	assert_int_equal(here.relay.halves[RELAY_IN].moved_bytes, 6);
}

static void a_way_that_was_not_opened_stays_shut(void **state)
{
	char text[16];

	relay_start(&here.relay, RELAY_IN);
	assert_int_equal(write(here.inside[1], "secret", 6), 6);
	assert_int_equal(write(here.outside[1], "banner", 6), 6);
	turn();
	assert_int_equal(read(here.outside[1], text, sizeof text), -1);
	assert_int_equal(read(here.inside[1], text, sizeof text), 6);
}

static void a_way_takes_what_it_may_and_not_the_end(void **state)
{
	char text[16] = { 0 };

	relay_allow(&here.relay, RELAY_OUT, 5);
	start_both();
	assert_int_equal(write(here.inside[1], "question", 8), 8);
	shutdown(here.inside[1], SHUT_WR);
	turn();
	assert_int_equal(read(here.outside[1], text, sizeof text), 5);
	assert_true(relay_is_at_bound(&here.relay, RELAY_OUT));
	assert_int_equal(read(here.outside[1], text, sizeof text), -1);
	assert_int_equal(here.said, 0);
	relay_allow(&here.relay, RELAY_OUT, UINT64_MAX);
	turn();
	assert_int_equal(read(here.outside[1], text, sizeof text), 3);
	assert_int_equal(read(here.outside[1], text, sizeof text), 0);
	assert_int_equal(here.said, 1);
}

static void who_does_not_read_holds_back_the_sender(void **state)
{
	static char block[65536], back[BIG];
	size_t sent = 0, received = 0;
	ssize_t n;

	start_both();
	for (int i = 0; i < 200; i++) {
		n = write(here.inside[1], block, sizeof block);
		sent += n > 0 ? (size_t)n : 0;
		turn();
	}
	assert_true(sent < 2 * BIG);
	/* All of it comes when it is read. */
	for (int i = 0; i < 200 && received < sent; i++) {
		n = read(here.outside[1], back, sizeof back);
		received += n > 0 ? (size_t)n : 0;
		turn();
	}
	assert_int_equal(received, sent);
	assert_int_equal(here.ended, 0);
}

static void a_receiver_that_is_gone(void **state)
{
	start_both();
	close_fd(&here.outside[1]);
	assert_int_equal(write(here.inside[1], "x", 1), 1);
	turn();
	assert_int_equal(here.ended, 1);
	assert_int_equal(here.errnum, EPIPE);
}

static void the_total_cuts(void **state)
{
	char text[64];

	here.policy.network.limits.of[NET_LIMIT_TOTAL].amount = 10;
	assert_int_equal(quota_change(here.share.quota, &here.policy, clock_monotonic_ns()), 0);
	start_both();
	assert_int_equal(write(here.inside[1], "0123456789abcdef", 16), 16);
	turn();
	assert_int_equal(read(here.outside[1], text, sizeof text), 10);
	assert_int_equal(here.ended, 1);
	assert_int_equal(here.errnum, EDQUOT);
	assert_int_equal(here.hits, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bytes_and_ends_of_both_ways, begin, end),
		cmocka_unit_test_setup_teardown(a_way_that_was_not_opened_stays_shut, begin, end),
		cmocka_unit_test_setup_teardown(a_way_takes_what_it_may_and_not_the_end, begin, end),
		cmocka_unit_test_setup_teardown(who_does_not_read_holds_back_the_sender, begin, end),
		cmocka_unit_test_setup_teardown(a_receiver_that_is_gone, begin, end),
		cmocka_unit_test_setup_teardown(the_total_cuts, begin, end),
	};

	/* As atoll-egress does. */
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
