/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "approve/queue-state.h"
#include "audit/writer.h"
#include "base/str.h"
#include "grant/runtime-mount.h"
#include "os/clock.h"
#include "os/fd.h"
#include "session/run-request.h"
#include "supervise/hub.h"
#include "supervise/run.h"

enum { TOLD_MAX = 5000 };

static const uint64_t minute_ns = 60000000000;

/* A queue that somebody follows, with a log of its own. */
struct fixture {
	struct run run;
	struct audit_writer audit;
	struct hub hub;
	struct runtime_mounts mounts;
	struct queue queue;
	bool is_heard;
	struct policy policy;
	struct run_policy compiled;
	struct run_request request;
	struct queue_outcome told[TOLD_MAX]; /* the texts are gone */
	char hint[96];                        /* of the last */
	uint64_t tokens[TOLD_MAX];
	size_t told_count;
};

static bool is_heard(void *context)
{
	return ((struct fixture *)context)->is_heard;
}

static struct fixture *begin(bool has_follower)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);
	char name[] = "/tmp/atolltest-asking-XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC | O_APPEND);

	assert_non_null(fixture);
	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(audit_writer_init(&fixture->audit, fd, "k3v9q2m4x7dt"), 0);
	fixture->policy.ask.timeout_ms = ASK_TIMEOUT_MS;
	fixture->compiled.policy = &fixture->policy;
	fixture->run.audit = &fixture->audit;
	fixture->run.hub = &fixture->hub;
	fixture->run.policy = &fixture->compiled;
	fixture->run.request = &fixture->request;
	fixture->is_heard = has_follower;
	fixture->queue = (struct queue){ .run = &fixture->run, .mounts = &fixture->mounts,
					 .channels = { { .is_heard = is_heard, .context = fixture } } };
	return fixture;
}

static void end(struct fixture *fixture)
{
	queue_module.done(&fixture->queue);
	assert_true(audit_writer_done(&fixture->audit) == 0 || fixture->audit.error);
	free(fixture);
}

static size_t count_in_log(struct fixture *fixture, const char *text)
{
	static char log[1 << 20];
	size_t count = 0;
	ssize_t size;

	assert_int_equal(audit_flush(&fixture->audit), 0);
	size = pread(fixture->audit.fd, log, sizeof log - 1, 0);
	assert_true(size >= 0);
	log[size] = 0;
	for (const char *at = log; (at = strstr(at, text)); at += strlen(text))
		count++;
	return count;
}

static int note_outcome(void *context, uint64_t token, const struct queue_outcome *outcome)
{
	struct fixture *fixture = context;

	assert_true(fixture->told_count < TOLD_MAX);
	fixture->tokens[fixture->told_count] = token;
	fixture->told[fixture->told_count++] = *outcome;
	assert_int_equal(str_copy(fixture->hint, sizeof fixture->hint, outcome->hint), 0);
	return 0;
}

static struct queue_request connect_to(const char *host)
{
	return (struct queue_request){
		.action = { .kind = ACTION_NET_CONNECT, .subject = host, .port = 443 },
		.decision = { VERDICT_ASK, { "network.default", "", 0 }, "the policy asks a person", "", NULL },
		.pid = 7,
		.actor = { .program = "/usr/bin/curl" },
	};
}

static int ask(struct fixture *fixture, struct queue_request request, uint64_t token,
	       struct queue_outcome *ret_outcome)
{
	struct queue_waiter waiter = { .done = note_outcome, .context = fixture, .token = token };

	return queue_begin(&fixture->queue, &request, &waiter, ret_outcome);
}

static struct question *question_at(struct fixture *fixture, uint32_t number)
{
	for (size_t i = 0; i < fixture->queue.state->question_count; i++)
		if (fixture->queue.state->questions[i]->number == number)
			return fixture->queue.state->questions[i];
	return NULL;
}

/* As it was shown just now. */
static struct asking_reply reply_to(struct fixture *fixture, uint32_t number, bool is_allowed, enum asking_scope scope,
				    uint64_t amount)
{
	struct question *question = question_at(fixture, number);

	assert_non_null(question);
	queue_seal(question);
	return (struct asking_reply){ number, question->hash.bytes, is_allowed, scope, amount };
}

static int answer(struct fixture *fixture, struct asking_reply reply, uint32_t *ret_grant)
{
	struct queue_answerer by = { "control", 1000, 4711 };
	struct err err = { 0 };
	int r = queue_answer(&fixture->queue, &reply, &by, ret_grant, &err);

	assert_int_equal(r == 1, err.code != ERR_NONE);
	return r;
}

static void nobody_hears_so_it_is_refused_and_listed(void **state)
{
	struct fixture *fixture = begin(false);
	struct queue_outcome outcome;
	uint32_t grant;

	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 0);
	assert_int_equal(outcome.verdict, QUEUE_UNANSWERED);
	assert_non_null(strstr(outcome.hint, "atoll approve 1"));
	/* A loop is no second question. */
	assert_int_equal(ask(fixture, connect_to("a.example"), 2, &outcome), 0);
	assert_int_equal(fixture->queue.state->question_count, 1);
	assert_int_equal(question_at(fixture, 1)->times, 2);
	assert_int_equal(count_in_log(fixture, "\"ask.open\""), 1);

	assert_int_equal(answer(fixture, reply_to(fixture, 1, true, ASKING_ONCE, 0), &grant), 0);
	assert_int_equal(grant, 1);
	assert_int_equal(ask(fixture, connect_to("a.example"), 3, &outcome), 0);
	assert_int_equal(outcome.verdict, QUEUE_ALLOWED);
	assert_string_equal(outcome.rule.id, "ask.grant[1]");
	/* Once. */
	assert_int_equal(ask(fixture, connect_to("a.example"), 4, &outcome), 0);
	assert_int_equal(outcome.verdict, QUEUE_UNANSWERED);
	assert_int_equal(fixture->told_count, 0);
	end(fixture);
}

static void in_a_trial_nobody_hears(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_outcome outcome;

	/* The control: somebody follows, and so it waits. */
	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 1);
	fixture->request.flags = REQUEST_TRIAL;
	assert_int_equal(ask(fixture, connect_to("b.example"), 2, &outcome), 0);
	assert_int_equal(outcome.verdict, QUEUE_UNANSWERED);
	assert_int_equal(count_in_log(fixture, "\"ask.open\""), 2);
	end(fixture);
}

static void once_lets_through_those_that_were_shown_and_no_more(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_outcome outcome;
	struct asking_reply reply;
	uint32_t grant;

	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 1);
	assert_int_equal(ask(fixture, connect_to("a.example"), 2, &outcome), 1);
	reply = reply_to(fixture, 1, true, ASKING_ONCE, 0);
	assert_int_equal(ask(fixture, connect_to("a.example"), 3, &outcome), 1);
	assert_int_equal(answer(fixture, reply, &grant), 0);
	assert_int_equal(grant, 0);
	assert_int_equal(fixture->told_count, 2);
	assert_int_equal(fixture->told[0].verdict, QUEUE_ALLOWED);
	assert_int_equal(fixture->tokens[1], 2);
	/* Who came later is another question. */
	assert_int_equal(question_at(fixture, 2)->waiting_count, 1);
	assert_int_equal(question_at(fixture, 2)->state, ASKING_WAITS);
	assert_int_equal(answer(fixture, reply_to(fixture, 2, false, ASKING_ONCE, 0), &grant), 0);
	assert_int_equal(fixture->told[2].verdict, QUEUE_DENIED);
	assert_int_equal(fixture->queue.state->waiting_count, 0);
	end(fixture);
}

static void the_first_answer_counts(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_outcome outcome;
	struct asking_reply yes, no;
	uint32_t grant;

	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 1);
	yes = reply_to(fixture, 1, true, ASKING_SESSION, 0);
	no = reply_to(fixture, 1, false, ASKING_ONCE, 0);
	assert_int_equal(answer(fixture, no, &grant), 0);
	assert_int_equal(answer(fixture, yes, &grant), 1);
	assert_int_equal(answer(fixture, no, &grant), 1);
	assert_int_equal(fixture->told_count, 1);
	assert_int_equal(fixture->told[0].verdict, QUEUE_DENIED);
	assert_int_equal(count_in_log(fixture, "\"ask.answer\""), 1);
	end(fixture);
}

static void an_answer_holds_for_what_it_was_shown(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_outcome outcome;
	struct asking_reply reply;
	uint32_t grant;

	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 1);
	assert_int_equal(ask(fixture, connect_to("b.example"), 2, &outcome), 1);
	reply = reply_to(fixture, 1, true, ASKING_SESSION, 0);
	reply.number = 2;
	assert_int_equal(answer(fixture, reply, &grant), 1);
	reply.number = 3;
	assert_int_equal(answer(fixture, reply, &grant), 1);
	assert_int_equal(fixture->told_count, 0);
	/* The control: as it was shown. */
	reply.number = 1;
	assert_int_equal(answer(fixture, reply, &grant), 0);
	assert_int_equal(fixture->told_count, 1);
	assert_int_equal(fixture->tokens[0], 1);
	end(fixture);
}

static void silence_refuses(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_request hasty = connect_to("a.example");
	uint64_t now_ns = clock_monotonic_ns();
	struct queue_outcome outcome;

	hasty.wait_max_ms = 1000;
	assert_int_equal(ask(fixture, hasty, 1, &outcome), 1);
	assert_int_equal(ask(fixture, connect_to("a.example"), 2, &outcome), 1);
	/* The second, and not the minute of the policy; counted from when it was asked, however long that took. */
	assert_in_range(queue_module.timeout_ms(&fixture->queue, now_ns), 1, 10000);
	assert_int_equal(queue_module.check(&fixture->queue, now_ns + minute_ns / 10), 0);
	assert_int_equal(fixture->told_count, 1);
	assert_int_equal(fixture->tokens[0], 1);
	assert_int_equal(fixture->told[0].verdict, QUEUE_UNANSWERED);
	assert_int_equal(queue_module.check(&fixture->queue, now_ns + 2 * minute_ns), 0);
	assert_int_equal(fixture->told_count, 2);
	assert_int_equal(question_at(fixture, 1)->state, ASKING_LISTED);
	assert_int_equal(count_in_log(fixture, "\"by\":\"timeout\""), 1);
	/* Listed for a while, then forgotten. */
	assert_int_equal(queue_module.check(&fixture->queue, now_ns + 20 * minute_ns), 0);
	assert_int_equal(fixture->queue.state->question_count, 0);
	assert_int_equal(queue_module.timeout_ms(&fixture->queue, now_ns), -1);
	end(fixture);
}

static void an_answer_that_comes_too_late_is_for_the_next_time(void **state)
{
	struct fixture *fixture = begin(true);
	uint64_t now_ns = clock_monotonic_ns();
	struct queue_outcome outcome;
	struct asking_reply reply;
	uint32_t grant;

	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 1);
	reply = reply_to(fixture, 1, true, ASKING_ONCE, 0);
	assert_int_equal(queue_module.check(&fixture->queue, now_ns + 2 * minute_ns), 0);
	assert_int_equal(answer(fixture, reply, &grant), 0);
	assert_int_equal(grant, 1);
	/* And even that does not hold for ever. */
	assert_int_equal(queue_module.check(&fixture->queue, now_ns + 20 * minute_ns), 0);
	assert_int_equal(fixture->queue.state->grant_count, 0);
	assert_int_equal(ask(fixture, connect_to("a.example"), 2, &outcome), 1);
	end(fixture);
}

static void a_grant_for_the_session_answers_what_else_is_open(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_request other = connect_to("a.example");
	struct queue_outcome outcome;
	uint32_t grant;

	other.actor.program = "/usr/bin/python3";
	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 1);
	assert_int_equal(ask(fixture, other, 2, &outcome), 1);
	assert_int_equal(ask(fixture, connect_to("b.example"), 3, &outcome), 1);
	assert_int_equal(fixture->queue.state->question_count, 3);
	assert_int_equal(answer(fixture, reply_to(fixture, 1, true, ASKING_SESSION, 0), &grant), 0);
	assert_int_equal(fixture->told_count, 2);
	assert_int_equal(fixture->told[1].verdict, QUEUE_ALLOWED);
	assert_int_equal(question_at(fixture, 3)->state, ASKING_WAITS);
	assert_int_equal(count_in_log(fixture, "\"policy.change\""), 1);
	end(fixture);
}

static void a_counted_grant_is_for_who_asked_and_runs_out(void **state)
{
	struct fixture *fixture = begin(false);
	struct queue_request other = connect_to("a.example");
	struct queue_outcome outcome;
	uint32_t grant;

	other.actor.program = "/usr/bin/python3";
	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 0);
	assert_int_equal(answer(fixture, reply_to(fixture, 1, true, ASKING_USES, 2), &grant), 0);
	assert_int_equal(ask(fixture, other, 2, &outcome), 0);
	assert_int_equal(outcome.verdict, QUEUE_UNANSWERED);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ask(fixture, connect_to("a.example"), 3, &outcome), 0);
		assert_int_equal(outcome.verdict, QUEUE_ALLOWED);
	}
	assert_int_equal(ask(fixture, connect_to("a.example"), 4, &outcome), 0);
	assert_int_equal(outcome.verdict, QUEUE_UNANSWERED);
	end(fixture);
}

static void a_refusal_is_remembered_until_it_is_taken_back(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_request again = connect_to("a.example");
	struct queue_answerer by = { "control", 1000, 4711 };
	struct queue_outcome outcome;
	struct err err = { 0 };
	uint32_t grant;

	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 1);
	assert_int_equal(answer(fixture, reply_to(fixture, 1, false, ASKING_ONCE, 0), &grant), 0);
	assert_int_equal(grant, 1);
	again.action.port = 80;
	again.actor.program = "/usr/bin/python3";
	assert_int_equal(ask(fixture, again, 2, &outcome), 0);
	assert_int_equal(outcome.verdict, QUEUE_DENIED);
	assert_int_equal(outcome.grant, 1);
	assert_int_equal(queue_revoke(&fixture->queue, 1, &by, &err), 0);
	assert_int_equal(queue_revoke(&fixture->queue, 1, &by, &err), 1);
	assert_int_equal(ask(fixture, again, 3, &outcome), 1);
	assert_int_equal(count_in_log(fixture, "\"change\":\"revoke\""), 1);
	end(fixture);
}

/* A question that a person was shown is about those who waited then, whatever joins it. */
static void late_ones_are_a_question_of_their_own_when_listed_or_left_alone(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_waiter waiter = { .done = note_outcome, .context = fixture, .token = 1 };
	struct queue_outcome outcome;
	uint32_t grant;

	for (uint64_t token = 1; token <= 5; token++) {
		assert_int_equal(ask(fixture, connect_to("a.example"), token, &outcome), 1);
		if (token == 1)
			queue_seal(question_at(fixture, 1));
	}
	assert_int_equal(queue_question_of(question_at(fixture, 1), 0).waiting, 1);
	assert_null(question_at(fixture, 2));
	/* Listed anew: who was shown keeps its number. */
	assert_int_equal(queue_split_late(&fixture->queue), 0);
	assert_int_equal(queue_question_of(question_at(fixture, 1), 0).waiting, 1);
	assert_int_equal(queue_question_of(question_at(fixture, 2), 0).waiting, 4);
	queue_seal(question_at(fixture, 2));
	assert_int_equal(ask(fixture, connect_to("a.example"), 6, &outcome), 1);
	assert_int_equal(outcome.question, 2);
	/* Who was shown first gives up: nobody inherits an answer that is on its way. */
	queue_forget(&fixture->queue, &waiter);
	assert_int_equal(question_at(fixture, 1)->state, ASKING_LISTED);
	assert_int_equal(answer(fixture, reply_to(fixture, 2, true, ASKING_ONCE, 0), &grant), 0);
	assert_int_equal(fixture->told_count, 4);
	assert_int_equal(question_at(fixture, 3)->waiting_count, 1);
	/* The same where those who came late are all that is left of one. */
	queue_seal(question_at(fixture, 3));
	assert_int_equal(ask(fixture, connect_to("a.example"), 7, &outcome), 1);
	waiter.token = 6;
	queue_forget(&fixture->queue, &waiter);
	assert_int_equal(queue_module.check(&fixture->queue, clock_monotonic_ns()), 0);
	assert_int_equal(question_at(fixture, 3)->state, ASKING_LISTED);
	assert_int_equal(question_at(fixture, 4)->waiting_count, 1);
	assert_int_equal(fixture->told_count, 4);
	end(fixture);
}

static void what_nobody_was_shown_is_answered_for_one(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_outcome outcome;
	struct asking_reply reply;
	uint32_t grant;

	for (uint64_t token = 1; token <= 3; token++)
		assert_int_equal(ask(fixture, connect_to("a.example"), token, &outcome), 1);
	reply = (struct asking_reply){ 1, question_at(fixture, 1)->hash.bytes, true, ASKING_ONCE, 0 };
	assert_int_equal(answer(fixture, reply, &grant), 0);
	assert_int_equal(fixture->told_count, 1);
	assert_int_equal(question_at(fixture, 2)->waiting_count, 2);
	end(fixture);
}

static void who_gives_up_or_ends_was_refused(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_waiter waiter = { .done = note_outcome, .context = fixture, .token = 1 };
	struct queue_outcome outcome;

	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 1);
	assert_int_equal(queue_give_up(&fixture->queue, &waiter, &outcome), 1);
	assert_int_equal(outcome.verdict, QUEUE_UNANSWERED);
	assert_non_null(strstr(outcome.reason, "gave up before anybody answered"));
	assert_non_null(strstr(outcome.hint, "atoll approve 1"));
	queue_forget(&fixture->queue, &waiter);
	assert_int_equal(queue_give_up(&fixture->queue, &waiter, &outcome), 0);
	assert_int_equal(ask(fixture, connect_to("b.example"), 2, &outcome), 1);
	assert_int_equal(queue_end(&fixture->queue), 0);
	assert_int_equal(fixture->told_count, 1);
	assert_int_equal(fixture->told[0].verdict, QUEUE_UNANSWERED);
	assert_int_equal(count_in_log(fixture, "\"ask.answer\""), 2);
	assert_int_equal(queue_unanswered(&fixture->queue), 2);
	end(fixture);
}

static void who_is_gone_is_not_told(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_waiter waiter = { .done = note_outcome, .context = fixture, .token = 1 };
	struct queue_outcome outcome;
	uint32_t grant;

	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 1);
	assert_int_equal(ask(fixture, connect_to("a.example"), 2, &outcome), 1);
	queue_forget(&fixture->queue, &waiter);
	assert_int_equal(question_at(fixture, 1)->waiting_count, 1);
	waiter.token = 2;
	queue_forget(&fixture->queue, &waiter);
	assert_int_equal(question_at(fixture, 1)->state, ASKING_LISTED);
	assert_int_equal(answer(fixture, reply_to(fixture, 1, true, ASKING_SESSION, 0), &grant), 0);
	assert_int_equal(fixture->told_count, 0);
	end(fixture);
}

static bool is_gone_if_even(void *context, uint64_t token)
{
	return token % 2 == 0;
}

static void who_died_is_found_and_not_told(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_waiter waiter = { .done = note_outcome, .is_gone = is_gone_if_even, .context = fixture };
	struct queue_request request = connect_to("a.example");
	struct queue_outcome outcome;
	uint64_t now_ns = clock_monotonic_ns();
	uint32_t grant;

	for (waiter.token = 1; waiter.token <= 5; waiter.token++)
		assert_int_equal(queue_begin(&fixture->queue, &request, &waiter, &outcome), 1);
	request = connect_to("b.example");
	waiter.token = 8;
	assert_int_equal(queue_begin(&fixture->queue, &request, &waiter, &outcome), 1);
	assert_true(queue_module.timeout_ms(&fixture->queue, now_ns) <= QUEUE_LOOK_MS + 100);
	assert_int_equal(queue_module.check(&fixture->queue, now_ns + minute_ns / 100), 0);
	assert_int_equal(question_at(fixture, 1)->waiting_count, 3);
	assert_int_equal(question_at(fixture, 2)->state, ASKING_LISTED);
	assert_int_equal(answer(fixture, reply_to(fixture, 1, true, ASKING_SESSION, 0), &grant), 0);
	assert_int_equal(fixture->told_count, 3);
	end(fixture);
}

struct forgetful {
	struct fixture *fixture;
	struct queue_waiter other;
	int told;
};

static int tell_and_forget(void *context, uint64_t token, const struct queue_outcome *outcome)
{
	struct forgetful *forgetful = context;
	struct queue_outcome again;

	forgetful->told++;
	queue_forget(&forgetful->fixture->queue, &forgetful->other);
	/* And asks again at once, as a program would. */
	assert_int_equal(ask(forgetful->fixture, connect_to("c.example"), 9, &again), 1);
	return 0;
}

static void who_is_forgotten_by_another_that_is_told_is_not_told(void **state)
{
	struct fixture *fixture = begin(true);
	struct forgetful forgetful = { fixture, { .done = note_outcome, .context = fixture, .token = 2 }, 0 };
	struct queue_waiter first = { .done = tell_and_forget, .context = &forgetful, .token = 1 };
	struct queue_request request = connect_to("a.example");
	struct queue_outcome outcome;
	uint32_t grant;

	assert_int_equal(queue_begin(&fixture->queue, &request, &first, &outcome), 1);
	assert_int_equal(ask(fixture, request, 2, &outcome), 1);
	assert_int_equal(ask(fixture, request, 3, &outcome), 1);
	assert_int_equal(answer(fixture, reply_to(fixture, 1, true, ASKING_ONCE, 0), &grant), 0);
	assert_int_equal(forgetful.told, 1);
	assert_int_equal(fixture->told_count, 1);
	assert_int_equal(fixture->tokens[0], 3);
	assert_string_equal(fixture->hint, "");
	end(fixture);
}

/* Questions cost a token each, which come back with time. */
static void refill(struct fixture *fixture)
{
	if (fixture->queue.state)
		fixture->queue.state->tokens = QUEUE_BURST;
}

static void a_flood_is_refused_and_said_once(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_outcome outcome;
	char host[32];

	for (int i = 0; i < 1000; i++) {
		assert_int_equal(str_format(host, sizeof host, "h%d.example", i), 0);
		assert_int_equal(ask(fixture, connect_to(host), (uint64_t)i, &outcome), i < QUEUE_BURST);
	}
	assert_int_equal(outcome.verdict, QUEUE_TOO_MANY);
	assert_int_equal(count_in_log(fixture, "\"ask.open\""), QUEUE_BURST);
	assert_int_equal(count_in_log(fixture, "\"limit.hit\""), 1);
	/* What is open already can still be joined. */
	assert_int_equal(ask(fixture, connect_to("h0.example"), 1, &outcome), 1);
	end(fixture);
}

static void questions_and_those_who_wait_are_bounded(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_outcome outcome;
	char host[32];
	uint64_t now_ns;

	for (int i = 0; i < QUEUE_QUESTIONS_MAX; i++) {
		refill(fixture);
		assert_int_equal(str_format(host, sizeof host, "h%d.example", i), 0);
		assert_int_equal(ask(fixture, connect_to(host), (uint64_t)i, &outcome), 1);
	}
	refill(fixture);
	assert_int_equal(ask(fixture, connect_to("more.example"), 1, &outcome), 0);
	assert_int_equal(outcome.verdict, QUEUE_TOO_MANY);
	for (int i = QUEUE_QUESTIONS_MAX; i < QUEUE_WAITERS_MAX; i++)
		assert_int_equal(ask(fixture, connect_to("h7.example"), (uint64_t)i, &outcome), 1);
	assert_int_equal(ask(fixture, connect_to("h7.example"), 1, &outcome), 0);
	assert_int_equal(outcome.verdict, QUEUE_TOO_MANY);
	/* With as many open, what asks and what is due cost next to nothing. */
	now_ns = clock_monotonic_ns();
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(ask(fixture, connect_to("h9.example"), 1, &outcome), 0);
		assert_int_equal(queue_module.check(&fixture->queue, now_ns), 0);
	}
	assert_int_equal(queue_module.check(&fixture->queue, now_ns + 5 * minute_ns), 0);
	assert_int_equal(fixture->told_count, QUEUE_WAITERS_MAX);
	/* Those that nobody waits for make room. */
	refill(fixture);
	assert_int_equal(ask(fixture, connect_to("more.example"), 1, &outcome), 1);
	assert_int_equal(fixture->queue.state->question_count, QUEUE_QUESTIONS_MAX);
	end(fixture);
}

static void what_cannot_be_shown_is_not_asked(void **state)
{
	struct fixture *fixture = begin(true);
	static char text[QUEUE_TEXT_MAX + 1];
	struct queue_request request = connect_to("a.example");
	struct queue_outcome outcome;

	memset(text, 'x', sizeof text - 1);
	request.action.path = text;
	assert_int_equal(ask(fixture, request, 1, &outcome), 0);
	assert_int_equal(outcome.verdict, QUEUE_TOO_MANY);
	assert_int_equal(fixture->queue.state->question_count, 0);
	/* The agent's own words may be cut. */
	request.action.path = NULL;
	request.words = text;
	assert_int_equal(ask(fixture, request, 1, &outcome), 1);
	assert_int_equal(strlen(question_at(fixture, 1)->shown.words), QUEUE_WORDS_MAX);
	end(fixture);
}

static void grants_are_bounded(void **state)
{
	struct fixture *fixture = begin(false);
	struct queue_grant_request request = { .terms = { .kind = ACTION_NET_CONNECT, .subject = "t.example" },
						.scope = ASKING_SESSION, .by = "token 1" };
	struct queue_outcome outcome;
	uint32_t number;

	for (int i = 0; i < QUEUE_GRANTS_MAX; i++)
		assert_int_equal(queue_grant_add(&fixture->queue, &request, &number), 0);
	assert_int_equal(queue_grant_add(&fixture->queue, &request, &number), -ENOSPC);
	assert_int_equal(ask(fixture, connect_to("t.example"), 1, &outcome), 0);
	assert_int_equal(outcome.verdict, QUEUE_ALLOWED);
	/* No room: a yes that holds on is refused, a no is not. */
	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 0);
	assert_int_equal(answer(fixture, reply_to(fixture, 1, true, ASKING_SESSION, 0), &number), 1);
	assert_int_equal(answer(fixture, reply_to(fixture, 1, false, ASKING_ONCE, 0), &number), 0);
	assert_int_equal(number, 0);
	end(fixture);
}

static void where_the_log_cannot_be_written_nobody_is_let_through(void **state)
{
	struct fixture *fixture = begin(true);
	struct queue_outcome outcome;
	uint32_t grant;
	int full = fd_open_at(AT_FDCWD, "/dev/full", O_WRONLY, 0);

	assert_true(full >= 0);
	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 1);
	assert_true(dup2(full, fixture->audit.fd) >= 0);
	assert_int_equal(answer(fixture, reply_to(fixture, 1, true, ASKING_SESSION, 0), &grant), -ENOSPC);
	assert_int_equal(fixture->told_count, 0);
	assert_int_equal(fixture->queue.state->grant_count, 0);
	close(full);
	end(fixture);
}

static void followers_are_told_what_changed(void **state)
{
	struct fixture *fixture = begin(true);
	struct asking_question told;
	struct queue_outcome outcome;
	struct frame frame;
	struct buf out;
	uint64_t after;

	buf_init(&out, FRAME_MESSAGE_MAX);
	assert_int_equal(queue_generation(&fixture->queue), 0);
	assert_int_equal(ask(fixture, connect_to("a.example"), 1, &outcome), 1);
	assert_int_equal(ask(fixture, connect_to("b.example"), 2, &outcome), 1);
	assert_int_equal(ask(fixture, connect_to("a.example"), 3, &outcome), 1);
	frame_begin(&out, 1);
	after = queue_put_questions(&fixture->queue, 0, true, &out);
	assert_int_equal(after, queue_generation(&fixture->queue));
	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	assert_int_equal(frame_get_u64(&frame), after);
	assert_int_equal(asking_question_get(&frame, &told), 1);
	assert_string_equal(told.shown.subject, "b.example");
	free(told.shown.argv);
	assert_int_equal(asking_question_get(&frame, &told), 1);
	assert_int_equal(told.number, 1);
	assert_int_equal(told.waiting, 2);
	assert_string_equal(told.shown.program, "/usr/bin/curl");
	free(told.shown.argv);
	assert_int_equal(asking_question_get(&frame, &told), 0);
	buf_done(&out);
	end(fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_hears_so_it_is_refused_and_listed),
		cmocka_unit_test(in_a_trial_nobody_hears),
		cmocka_unit_test(once_lets_through_those_that_were_shown_and_no_more),
		cmocka_unit_test(the_first_answer_counts),
		cmocka_unit_test(an_answer_holds_for_what_it_was_shown),
		cmocka_unit_test(silence_refuses),
		cmocka_unit_test(an_answer_that_comes_too_late_is_for_the_next_time),
		cmocka_unit_test(a_grant_for_the_session_answers_what_else_is_open),
		cmocka_unit_test(a_counted_grant_is_for_who_asked_and_runs_out),
		cmocka_unit_test(a_refusal_is_remembered_until_it_is_taken_back),
		cmocka_unit_test(late_ones_are_a_question_of_their_own_when_listed_or_left_alone),
		cmocka_unit_test(what_nobody_was_shown_is_answered_for_one),
		cmocka_unit_test(who_gives_up_or_ends_was_refused),
		cmocka_unit_test(who_is_gone_is_not_told),
		cmocka_unit_test(who_died_is_found_and_not_told),
		cmocka_unit_test(who_is_forgotten_by_another_that_is_told_is_not_told),
		cmocka_unit_test(a_flood_is_refused_and_said_once),
		cmocka_unit_test(questions_and_those_who_wait_are_bounded),
		cmocka_unit_test(what_cannot_be_shown_is_not_asked),
		cmocka_unit_test(grants_are_bounded),
		cmocka_unit_test(where_the_log_cannot_be_written_nobody_is_let_through),
		cmocka_unit_test(followers_are_told_what_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
