/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/events.h"

#include "base/str.h"
#include "os/clock.h"
#include "service/launcher/build/builds.h"
#include "service/launcher/inside/commands.h"
#include "service/launcher/lifecycle.h"
#include "service/launcher/pool.h"
#include "service/launcher/rules.h"
#include "service/launcher/tidy.h"
#include "service/launcher/warm.h"
#include "service/launcher/inside/metrics.h"
#include "service/launcher/inside/watches.h"

/* ---- the sandbox itself ---- */

/* It stands on its own: what it was stored as need not be named any more. */
static void begun_again(struct sandbox *sandbox)
{
	char before[SESSION_ID_SIZE];

	(void)!str_copy(before, sizeof before, sandbox->beginning.stored);
	sandbox->beginning.stored[0] = 0;
	tidy_forget(sandbox->daemon, before, LIFECYCLE_STORED);
	(void)!tidy_hold(sandbox->daemon);
}

/* What waits for the next one like it. */
static void want_more(struct sandbox *sandbox, const struct policy_found *found)
{
	bool is_warm = sandbox->beginning.is_warm;

	pool_want(sandbox->daemon, found, !is_warm && !sandbox->beginning.is_pooled);
	if (str_equal(service_string(sandbox->made.message, "template"), LIFECYCLE_INTERPRETER))
		warm_want(sandbox->daemon, found, !is_warm);
}

/* It is as it was asked for: from now on it is there. */
static void on_made(struct sandbox *sandbox)
{
	struct call *call = sandbox->creator;
	struct policy_found found;

	sandbox->creator = NULL;
	/* It stays what nobody was told of: where this process dies, the next one ends it. */
	if (call && call->message->operation == SERVICE_BUILD_START) {
		builds_begun(sandbox, call);
		return;
	}
	sandbox->state = SANDBOX_RUNNING;
	if (call)
		call->steps.ready_ns = clock_monotonic_ns();
	if (sandbox->beginning.stored[0])
		begun_again(sandbox);
	if (lifecycle_store(sandbox) < 0) {
		if (call)
			lifecycle_failed(call, ATOLL_E_STATE, "the database cannot be written", "");
		lifecycle_kill(sandbox, NULL);
		return;
	}
	if (lifecycle_is_auto_pause(sandbox) && sandbox->end_ms)
		lifecycle_wake(sandbox);
	/* Whoever waits is answered first. */
	if (call)
		lifecycle_created(sandbox, call);
	metrics_begin(sandbox);
	if (lifecycle_policy(sandbox, NULL, &found, NULL) == 0)
		want_more(sandbox, &found);
}

/* What a client was promised of it cannot be: it ends, and what it began with is stored again. */
static void is_started(struct sandbox *sandbox, struct call *unused, const struct outcome *outcome)
{
	struct call *call = sandbox->creator;
	uint64_t ticket = 0;

	if (!outcome->code && sandbox->state == SANDBOX_CREATING) {
		on_made(sandbox);
		return;
	}
	/* Whose end is told elsewhere. */
	if (outcome->code == ATOLL_E_GONE || sandbox->state != SANDBOX_CREATING)
		return;
	sandbox->creator = NULL;
	if (call)
		lifecycle_failed(call, outcome->code, outcome->what, outcome->hint);
	(void)!atoll_stop(sandbox->handle, 0, &ticket, NULL, NULL);
}

static void rules_are_set(struct sandbox *sandbox, struct call *unused, const struct outcome *outcome)
{
	if (!outcome->code && sandbox->state == SANDBOX_CREATING && start_is_wanted(sandbox))
		start_begin(sandbox, is_started);
	else
		is_started(sandbox, NULL, outcome);
}

static void on_ready(struct sandbox *sandbox)
{
	const struct service_message *said = sandbox->network.message ? sandbox->network.message :
									sandbox->made.message;
	const struct outcome done = { .code = 0, .what = "", .hint = "" };

	sandbox->is_known = true;
	if (sandbox->state != SANDBOX_CREATING)
		return;
	if (rules_are_there(said))
		rules_set(sandbox, said, NULL, rules_are_set);
	else
		rules_are_set(sandbox, NULL, &done);
}

void events_begun(struct sandbox *sandbox)
{
	on_ready(sandbox);
}

static void on_failed(struct sandbox *sandbox, const atoll_record *event)
{
	const char *what = "", *hint = "";
	struct call *call = sandbox->creator;
	uint64_t code = 0, errnum = 0;

	if (sandbox->beginning.is_pooled && sandbox->state == SANDBOX_CREATING) {
		sandbox->beginning.is_given_up = true;
		return;
	}
	atoll_get_string(event, "what", &what);
	atoll_get_string(event, "hint", &hint);
	atoll_get_u64(event, "code", &code);
	atoll_get_u64(event, "errno", &errnum);
	sandbox->creator = NULL;
	if (call)
		lifecycle_not_started(call, code == -ATOLL_E_INVALID ? ATOLL_E_INVALID : ATOLL_E_STATE, (int)errnum,
				      what, hint);
}

/* The end of the handle. True: it is forgotten. */
static bool on_end(struct sandbox *sandbox, const atoll_record *event)
{
	struct call *call = sandbox->creator;
	const char *ended = "lost";

	if (sandbox->beginning.is_given_up && sandbox->beginning.is_pooled && sandbox->state == SANDBOX_CREATING) {
		lifecycle_start_anew(sandbox);
		return true;
	}
	atoll_get_string(event, "ended", &ended);
	sandbox->creator = NULL;
	build_gone(sandbox, ended);
	commands_gone(sandbox);
	if (sandbox->state == SANDBOX_STORED) {
		lifecycle_put_away(sandbox);
		if (call)
			call_reply(call, 204);
		return false;
	}
	if (call)
		lifecycle_failed(call, ATOLL_E_STATE, "the sandbox could not be started", ended);
	if (sandbox->state == SANDBOX_CREATING && sandbox->beginning.stored[0]) {
		lifecycle_store_again(sandbox);
		return false;
	}
	if (sandbox->state != SANDBOX_KILLING) {
		lifecycle_tell(sandbox, SERVICE_GONE, ended);
		(void)!call_note(sandbox->daemon, "sandbox.end", sandbox->id, ended);
	}
	lifecycle_forget(sandbox);
	return true;
}

/* ---- one after the other ---- */

/* True: the sandbox is forgotten. */
static bool handle(struct sandbox *sandbox, atoll_record *event)
{
	uint64_t type = 0;

	atoll_get_u64(event, "event", &type);
	switch (type) {
	case ATOLL_EVENT_READY:
		on_ready(sandbox);
		break;
	case ATOLL_EVENT_FAILED:
		on_failed(sandbox, event);
		break;
	case ATOLL_EVENT_STARTED:
		commands_started(sandbox, event);
		break;
	case ATOLL_EVENT_OUTPUT:
		if (sandbox->beginning.build)
			build_event(sandbox, event);
		break;
	case ATOLL_EVENT_EXIT:
		if (sandbox->beginning.build)
			build_event(sandbox, event);
		else if (!start_ended(sandbox, event))
			commands_ended(sandbox, event);
		break;
	case ATOLL_EVENT_LOST:
		commands_lost(sandbox);
		break;
	case ATOLL_EVENT_WATCH:
		watches_changed(sandbox, event);
		break;
	case ATOLL_EVENT_DONE:
		await_event(sandbox, event);
		break;
	case ATOLL_EVENT_END:
		return on_end(sandbox, event);
	default:
		break;
	}
	return false;
}

int events_ready(void *context, uint32_t events)
{
	struct sandbox *sandbox = context;
	atoll_record *event;
	bool is_gone = false;

	/* A handler may have released the handle: what the others do not hear is said by its end. */
	while (!is_gone && sandbox->handle && atoll_next(sandbox->handle, &event, NULL) == 1) {
		is_gone = handle(sandbox, event);
		atoll_record_free(event);
	}
	return 0;
}
