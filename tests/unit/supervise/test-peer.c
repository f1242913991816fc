/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/fd.h"
#include "supervise/loop.h"
#include "supervise/peer.h"
#include "supervise/run.h"
#include "wire/frame.h"

/* Each companion is a shell: what it does with its socket, number 3, is its argument. */

enum { MS = 1000000 };

struct here {
	struct loop loop;
	struct run_request request;
	struct run run;
	struct peer peer;
	uint8_t memory[2][FRAME_MESSAGE_MAX];
	unsigned broken, gone, late, said;
	enum peer_fault fault;
	int log_error;           /* what broke() and the handler give back */
};

static int broke(void *context, enum peer_fault fault)
{
	struct here *here = context;

	here->broken++;
	here->fault = fault;
	assert_true(here->peer.process.fd < 0);
	return here->log_error;
}

static void left(void *context)
{
	((struct here *)context)->gone++;
}

static int late(void *context, uint64_t now_ns)
{
	struct here *here = context;

	/* Once it is only noted. */
	if (here->late++)
		peer_break(&here->peer, PEER_LATE);
	else
		peer_expect(&here->peer, now_ns + 5 * MS);
	return 0;
}

static int on_word(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct here *here = context;

	here->said++;
	peer_serves(&here->peer);
	return here->log_error;
}

static const struct frame_rule rules[] = { { 7, PEER_BIT(STARTING), 64, 0, 0, on_word } };

static const struct peer_kind kind = {
	.program = "sh", .rules = rules, .rule_count = 1, .must_greet = true, .leave_ms = 50,
	.broke = broke, .left = left,
};
static const struct peer_kind patient = {
	.program = "sh", .rules = rules, .rule_count = 1, .leave_ms = 50, .may_leave = true,
	.broke = broke, .late = late,
};

static void begin(struct here *here, const struct peer_kind *of, unsigned falls_max)
{
	here->request.init_path = "/bin/init";
	here->run.request = &here->request;
	here->run.loop = &here->loop;
	buf_init_fixed(&here->run.out, here->memory[0], FRAME_MESSAGE_MAX);
	buf_init_fixed(&here->run.scratch, here->memory[1], FRAME_MESSAGE_MAX);
	assert_int_equal(loop_init(&here->loop), 0);
	peer_init(&here->peer, &here->run, of, falls_max, here);
}

static int start(struct here *here, const char *script)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
	int r = peer_start(&here->peer, &(struct peer_spec){ .argv = argv });

	frame_begin(&here->run.out, 1);
	return r < 0 ? r : peer_greet(&here->peer, frame_end(&here->run.out), NULL, 0);
}

/* The loop of box/serve.c, until it is in this state, or for two seconds. Negative: what a module or handler gave. */
static int turn_until(struct here *here, enum peer_state state)
{
	uint64_t until_ns = clock_monotonic_ns() + 2000ULL * MS;
	int r = 0;

	while (r >= 0 && here->peer.state != state && clock_monotonic_ns() < until_ns) {
		int ms = peers_module.timeout_ms(&here->run, clock_monotonic_ns());

		r = loop_step(&here->loop, ms < 0 || ms > 100 ? 100 : ms);
		if (r >= 0)
			r = peers_module.check(&here->run, clock_monotonic_ns());
	}
	return r < 0 ? r : here->peer.state == state ? 0 : 1;
}

static void finish(struct here *here)
{
	peer_retire(&here->peer, false);
	assert_null(here->run.peers);
	assert_int_equal(peers_module.timeout_ms(&here->run, clock_monotonic_ns()), -1);
	loop_done(&here->loop);
}

static void one_that_hangs_up_is_started_again_until_it_is_spent(void **state)
{
	struct here here = { 0 };

	begin(&here, &kind, 2);
	assert_int_equal(start(&here, "sleep 0.05"), 0);
	assert_int_equal(here.peer.state, PEER_STARTING);
	assert_int_equal(start(&here, "sleep 0.05"), -ESHUTDOWN); /* it runs already */
	assert_int_equal(turn_until(&here, PEER_IDLE), 0);
	assert_int_equal(here.fault, PEER_HUNG_UP);
	assert_int_equal(start(&here, "sleep 0.05"), 0);
	assert_int_equal(turn_until(&here, PEER_SPENT), 0);
	assert_int_equal(here.broken, 2);
	assert_int_equal(start(&here, "sleep 0.05"), -ESHUTDOWN);
	finish(&here);
}

static void nonsense_ends_it(void **state)
{
	struct here here = { 0 };

	begin(&here, &kind, 1);
	assert_int_equal(start(&here, "echo hello >&3; exec sleep 60"), 0);
	assert_int_equal(turn_until(&here, PEER_SPENT), 0);
	assert_int_equal(here.fault, PEER_NONSENSE);
	finish(&here);
}

static void what_breaks_is_concluded_in_the_next_turn(void **state)
{
	struct here here = { 0 };

	begin(&here, &kind, 1);
	assert_int_equal(start(&here, "exec sleep 60"), 0);
	peer_break(&here.peer, PEER_DEAF);
	peer_break(&here.peer, PEER_LATE); /* the first stays */
	assert_int_equal(here.broken, 0);
	assert_false(peer_is_there(&here.peer));
	assert_int_equal(peers_module.timeout_ms(&here.run, clock_monotonic_ns()), 0);
	assert_int_equal(turn_until(&here, PEER_SPENT), 0);
	assert_int_equal(here.fault, PEER_DEAF);
	finish(&here);
}

static void who_is_late_is_asked_about_first(void **state)
{
	struct here here = { 0 };

	begin(&here, &patient, 1);
	assert_int_equal(start(&here, "exec sleep 60"), 0);
	assert_int_equal(here.peer.state, PEER_SERVING);
	peer_expect(&here.peer, clock_monotonic_ns() + 10 * MS);
	assert_int_equal(turn_until(&here, PEER_SPENT), 0);
	assert_int_equal(here.late, 2);
	assert_int_equal(here.fault, PEER_LATE);
	finish(&here);
}

static void one_that_may_leave_does_not_fall(void **state)
{
	struct here here = { 0 };

	begin(&here, &patient, 1);
	assert_int_equal(start(&here, "sleep 0.05"), 0);
	assert_int_equal(turn_until(&here, PEER_IDLE), 0);
	assert_int_equal(here.peer.falls, 0);
	finish(&here);
}

static void a_dismissed_one_goes_by_itself_or_is_ended(void **state)
{
	static const char *const scripts[] = { "cat <&3 >/dev/null", "exec sleep 60" };

	for (size_t i = 0; i < 2; i++) {
		struct here here = { 0 };

		begin(&here, &kind, 1);
		assert_int_equal(start(&here, scripts[i]), 0);
		peer_dismiss(&here.peer);
		assert_int_equal(here.peer.state, PEER_LEAVING);
		assert_int_equal(turn_until(&here, PEER_IDLE), 0);
		assert_int_equal(here.gone, 1);
		assert_int_equal(here.broken, 0);
		finish(&here);
	}
}

static void a_log_that_fails_is_not_its_fault(void **state)
{
	struct here here = { .log_error = -ENOSPC };

	begin(&here, &kind, 9);
	assert_int_equal(start(&here, "sleep 0.05"), 0);
	assert_int_equal(turn_until(&here, PEER_IDLE), -ENOSPC);
	finish(&here);
}

/* A frame of type 7 without fields, as a command that says it. */
static void make_word(char out[256])
{
	uint8_t memory[64];
	struct buf frame, text;

	buf_init_fixed(&frame, memory, sizeof memory);
	frame_begin(&frame, 7);
	assert_int_equal(frame_end(&frame), 0);
	buf_init_fixed(&text, out, 256);
	buf_put_text(&text, "printf '");
	for (size_t i = 0; i < frame.size; i++)
		buf_printf(&text, "\\%03o", frame.bytes[i]);
	buf_put_text(&text, "' >&3; exec sleep 60");
	buf_put_char(&text, 0);
	assert_int_equal(buf_error(&text), 0);
}

static void it_serves_once_it_has_said_so_and_says_that_once(void **state)
{
	struct here here = { 0 };
	char word[256];

	make_word(word);
	begin(&here, &kind, 1);
	assert_int_equal(start(&here, word), 0);
	assert_int_equal(turn_until(&here, PEER_SERVING), 0);
	assert_int_equal(here.said, 1);
	peer_close(&here.peer, false);
	assert_int_equal(here.peer.state, PEER_IDLE);
	assert_int_equal(here.broken, 0);
	here.log_error = -EBADMSG;
	assert_int_equal(start(&here, word), 0);
	assert_int_equal(turn_until(&here, PEER_SPENT), -EBADMSG); /* broke() gives that back */
	assert_int_equal(here.fault, PEER_NONSENSE);
	here.log_error = -EIO;
	peer_init(&here.peer, &here.run, &kind, 1, &here);
	assert_int_equal(start(&here, word), 0);
	assert_int_equal(turn_until(&here, PEER_SPENT), -EIO);
	assert_int_equal(here.broken, 1); /* the handler's error is the log's: nobody is blamed */
	finish(&here);
}

static void a_time_without_a_process_comes_too(void **state)
{
	struct here here = { .late = 1 };

	begin(&here, &patient, 1);
	peer_expect(&here.peer, clock_monotonic_ns());
	assert_int_equal(peers_module.check(&here.run, clock_monotonic_ns()), 0);
	assert_int_equal(here.late, 2);
	assert_int_equal(here.peer.state, PEER_IDLE);
	finish(&here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_hangs_up_is_started_again_until_it_is_spent),
		cmocka_unit_test(nonsense_ends_it),
		cmocka_unit_test(what_breaks_is_concluded_in_the_next_turn),
		cmocka_unit_test(who_is_late_is_asked_about_first),
		cmocka_unit_test(one_that_may_leave_does_not_fall),
		cmocka_unit_test(a_dismissed_one_goes_by_itself_or_is_ended),
		cmocka_unit_test(a_log_that_fails_is_not_its_fault),
		cmocka_unit_test(it_serves_once_it_has_said_so_and_says_that_once),
		cmocka_unit_test(a_time_without_a_process_comes_too),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
