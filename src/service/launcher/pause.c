/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/pause.h"

#include "base/str.h"
#include "os/clock.h"
#include "service/launcher/lifecycle.h"
#include "service/launcher/tidy.h"

/*
 * A pause with memory has everything inside stand still until a resume (atoll_hold with "keep": also when this process
 * is dead); no clock of the sandbox runs meanwhile. Without memory the sandbox ends,
	and what it staged is what the next
 * one begins with.
 */

enum { TIMEOUT_DEFAULT_MS = 300000, STOP_GRACE_MS = 2000, NS_PER_MS = 1000000 };

static void fail_or_note(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (call)
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
	else
		(void)!call_note(sandbox->daemon, "sandbox.pause", sandbox->id, outcome->what);
}

/* It was killed while it changed: nothing else becomes of it. */
static bool is_ending(struct sandbox *sandbox, struct call *call)
{
	if (sandbox->state != SANDBOX_KILLING)
		return false;
	sandbox->is_changing = false;
	if (call)
		call_fail_unknown(call);
	return true;
}

/* ---- pause ---- */

static void held(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (is_ending(sandbox, call))
		return;
	sandbox->is_changing = false;
	if (outcome->code) {
		sandbox->state = SANDBOX_RUNNING;
		(void)!lifecycle_store(sandbox);
		fail_or_note(sandbox, call, outcome);
		return;
	}
	lifecycle_tell(sandbox, SERVICE_PAUSED, NULL);
	if (call)
		call_reply(call, 204);
	else
		(void)!call_note(sandbox->daemon, "sandbox.pause", sandbox->id, "its time is over");
}

static void stopped(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (is_ending(sandbox, call))
		return;
	if (outcome->code && outcome->code != ATOLL_E_GONE) {
		sandbox->is_changing = false;
		sandbox->state = SANDBOX_RUNNING;
		(void)!lifecycle_store(sandbox);
		fail_or_note(sandbox, call, outcome);
		return;
	}
	lifecycle_tell(sandbox, SERVICE_PAUSED, NULL);
	/* A connect can come as soon as this is answered: the answer waits for the end of the handle. */
	if (!outcome->code)
		sandbox->creator = call;
	else if (call)
		call_reply(call, 204);
}

/* What it staged has a name by which the next one begins with it. */
static void kept(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	struct atoll_error error = { .size = sizeof error };
	uint64_t ticket = 0;
	int r;

	if (is_ending(sandbox, call))
		return;
	if (outcome->code) {
		sandbox->is_changing = false;
		fail_or_note(sandbox, call, outcome);
		return;
	}
	sandbox->state = SANDBOX_STORED;
	if (lifecycle_store(sandbox) < 0 || tidy_hold(sandbox->daemon) < 0) {
		const struct outcome failed = { ATOLL_E_STATE, NULL, "what it staged cannot be kept", "" };

		stopped(sandbox, call, &failed);
		return;
	}
	r = atoll_stop(sandbox->handle, STOP_GRACE_MS, &ticket, NULL, &error);
	await_answer(sandbox, call, r, ticket, &error, stopped);
}

static void store_files(struct sandbox *sandbox, struct call *call)
{
	struct atoll_error error = { .size = sizeof error };
	atoll_record *record = atoll_record_new(ATOLL_SNAPSHOT);
	uint64_t ticket = 0;
	int r = record ? atoll_set_string(record, "name", LIFECYCLE_STORED, &error) : ATOLL_E_NO_MEMORY;

	if (r == 0)
		r = atoll_snapshot(sandbox->handle, record, &ticket, NULL, &error);
	atoll_record_free(record);
	await_answer(sandbox, call, r, ticket, &error, kept);
}

/* call NULL: its time is over. */
static void pause_sandbox(struct sandbox *sandbox, struct call *call, bool keeps_memory)
{
	struct atoll_error error = { .size = sizeof error };
	atoll_record *how = keeps_memory ? atoll_record_new(ATOLL_HOLD) : NULL;
	uint64_t now_ms = lifecycle_now_ms(), ticket = 0;
	int r = 0;

	sandbox->is_changing = true;
	sandbox->left_ms = sandbox->end_ms > now_ms ? sandbox->end_ms - now_ms : 0;
	if (!keeps_memory) {
		store_files(sandbox, call);
		return;
	}
	sandbox->state = SANDBOX_PAUSED;
	if (lifecycle_store(sandbox) < 0) {
		r = ATOLL_E_STATE;
		(void)!str_copy(error.what, sizeof error.what, "the database cannot be written");
	}
	if (r == 0)
		r = how ? atoll_set_u64(how, "keep", 1, &error) : ATOLL_E_NO_MEMORY;
	if (r == 0)
		r = atoll_set_string(how, "reason", "paused by the service", &error);
	if (r == 0)
		r = atoll_hold(sandbox->handle, how, &ticket, NULL, &error);
	atoll_record_free(how);
	await_answer(sandbox, call, r, ticket, &error, held);
}

void pause_call(struct call *call)
{
	struct sandbox *sandbox = call->sandbox;

	if (sandbox->state != SANDBOX_RUNNING || sandbox->is_changing || !sandbox->is_known) {
		call_fail(call, 409, NULL, sandbox->state == SANDBOX_RUNNING ? "the sandbox is changing" :
			  "the sandbox is paused already");
		return;
	}
	pause_sandbox(sandbox, call, call_number(call, "memory", 1) != 0);
}

uint64_t pause_ended(struct daemon *daemon)
{
	uint64_t now_ms = lifecycle_now_ms(), next_ms = UINT64_MAX;

	for (struct sandbox *sandbox = daemon->registry.oldest, *newer; sandbox; sandbox = newer) {
		newer = sandbox->newer;
		if (sandbox->state != SANDBOX_RUNNING || sandbox->is_changing || !sandbox->is_known ||
		    !sandbox->end_ms || !lifecycle_is_auto_pause(sandbox))
			continue;
		if (sandbox->end_ms <= now_ms)
			pause_sandbox(sandbox, NULL,
				      service_number(sandbox->made.message, "auto_pause_memory", 1) != 0);
		else if (sandbox->end_ms < next_ms)
			next_ms = sandbox->end_ms;
	}
	return next_ms == UINT64_MAX ? UINT64_MAX : clock_monotonic_ns() + (next_ms - now_ms) * NS_PER_MS;
}

/* ---- resume ---- */

/* All who waited go on, whatever came of it: what they find then is what they are told. */
static void let_go_on(struct sandbox *sandbox)
{
	struct call *call = sandbox->sleepers;

	sandbox->sleepers = NULL;
	while (call) {
		struct call *next = call->next;

		call->next = NULL;
		call->then(call);
		call = next;
	}
}

static void reply_connected(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (outcome->code) {
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
		return;
	}
	lifecycle_describe(sandbox, call_begin_reply(call, call->count ? 201 : 200), DETAIL_WITH_TOKENS);
	call_end_reply(call, NULL, 0);
}

/* A client that connects never shortens what the sandbox has. */
static void set_time(struct sandbox *sandbox, struct call *call)
{
	uint64_t timeout_ms = call_number(call, "timeout_ms", TIMEOUT_DEFAULT_MS), now_ms = lifecycle_now_ms();

	if (!call->count && sandbox->end_ms > now_ms + timeout_ms)
		timeout_ms = sandbox->end_ms - now_ms;
	lifecycle_set_time(sandbox, call, timeout_ms ? timeout_ms : 1, reply_connected);
}

static void thawed(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (is_ending(sandbox, call))
		return;
	sandbox->is_changing = false;
	if (outcome->code) {
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
		let_go_on(sandbox);
		return;
	}
	sandbox->state = SANDBOX_RUNNING;
	lifecycle_tell(sandbox, SERVICE_RESUMED, NULL);
	call->count = 1;
	set_time(sandbox, call);
	let_go_on(sandbox);
}

static void woken(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	uint64_t timeout_ms = service_number(sandbox->made.message, "timeout_ms", TIMEOUT_DEFAULT_MS);

	sandbox->is_changing = false;
	if (!outcome->code && sandbox->state == SANDBOX_PAUSED) {
		sandbox->state = SANDBOX_RUNNING;
		sandbox->end_ms = lifecycle_now_ms() + timeout_ms;
		(void)!lifecycle_store(sandbox);
		lifecycle_tell(sandbox, SERVICE_RESUMED, NULL);
		(void)!call_note(sandbox->daemon, "sandbox.resume", sandbox->id, "something reached it");
		lifecycle_wake(sandbox);
	}
	let_go_on(sandbox);
}

bool pause_wake_for(struct call *call, void (*then)(struct call *call))
{
	struct sandbox *sandbox = call->sandbox;
	struct atoll_error error = { .size = sizeof error };
	uint64_t ticket = 0;
	int r;

	if (sandbox->state != SANDBOX_PAUSED || !sandbox->handle || call->count ||
	    !service_number(sandbox->made.message, "auto_resume", 0))
		return false;
	/* Once: what is paused again meanwhile is said to be so. */
	call->count = 1;
	call->then = then;
	call->next = sandbox->sleepers;
	sandbox->sleepers = call;
	if (sandbox->is_changing)
		return true;
	sandbox->is_changing = true;
	r = atoll_thaw(sandbox->handle, &ticket, NULL, &error);
	await_answer(sandbox, NULL, r, ticket, &error, woken);
	return true;
}

void pause_connect(struct call *call)
{
	struct sandbox *sandbox = call->sandbox;
	struct atoll_error error = { .size = sizeof error };
	uint64_t ticket = 0;
	int r;

	if (sandbox->is_changing || sandbox->state == SANDBOX_CREATING) {
		call_fail(call, 409, NULL, "the sandbox is changing its state; try again");
		return;
	}
	if (sandbox->state == SANDBOX_RUNNING) {
		set_time(sandbox, call);
		return;
	}
	if (sandbox->state == SANDBOX_PAUSED && !call_number(call, "memory", 1)) {
		call_fail(call, 501, NULL, "memory: a sandbox that was paused with its memory goes on with it here");
		return;
	}
	if (sandbox->state == SANDBOX_STORED) {
		lifecycle_begin_again(sandbox, call, call_number(call, "timeout_ms", TIMEOUT_DEFAULT_MS));
		return;
	}
	sandbox->is_changing = true;
	r = atoll_thaw(sandbox->handle, &ticket, NULL, &error);
	await_answer(sandbox, call, r, ticket, &error, thawed);
}
