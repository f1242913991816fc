/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/build/build.h"
#include "service/launcher/recover.h"

#include "base/str.h"
#include "os/clock.h"
#include "service/launcher/function/operations.h"
#include "service/launcher/inside/metrics.h"
#include "service/launcher/lifecycle.h"
#include "service/launcher/tidy.h"

/*
 * A box that was being started when its daemon died may come into being some time later, under the name that the row
 * has. It is looked for until LATE_MS have gone by, in which every start is done or has failed.
 */
enum { LATE_MS = 30000, LOOK_MS = 500, NS_PER_MS = 1000000 };

static int add_row(void *context, const struct sandbox_row *row)
{
	struct daemon *daemon = context;
	struct sandbox *sandbox = registry_add(&daemon->registry, daemon, row->id);
	int r;

	if (!sandbox)
		return -ENOMEM;
	(void)!str_copy(sandbox->session, sizeof sandbox->session, row->session);
	(void)!str_copy(sandbox->owner, sizeof sandbox->owner, row->owner);
	sandbox->key = row->key;
	sandbox->state = row->state;
	sandbox->created_ms = row->created_ms;
	sandbox->end_ms = row->end_ms;
	sandbox->left_ms = row->left_ms;
	r = kept_read(&sandbox->made, row->made.bytes, row->made.size);
	if (r == 0 && row->network.size)
		r = kept_read(&sandbox->network, row->network.bytes, row->network.size);
	/* What an earlier atoll wrote and this one cannot read is nothing to go on with. */
	if (r == -EBADMSG)
		sandbox->state = SANDBOX_KILLING;
	return r == -ENOMEM ? r : 0;
}

static void noted(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (outcome->code && outcome->code != ATOLL_E_GONE)
		(void)!call_note(sandbox->daemon, "sandbox.recover", sandbox->id, outcome->what);
}

static void hold_again(struct sandbox *sandbox)
{
	struct atoll_error error = { .size = sizeof error };
	atoll_record *how = atoll_record_new(ATOLL_HOLD);
	uint64_t ticket = 0;
	int r = how ? atoll_set_u64(how, "keep", 1, &error) : ATOLL_E_NO_MEMORY;

	if (r == 0)
		r = atoll_hold(sandbox->handle, how, &ticket, NULL, &error);
	atoll_record_free(how);
	await_answer(sandbox, NULL, r, ticket, &error, noted);
}

static void stop(struct sandbox *sandbox)
{
	struct atoll_error error = { .size = sizeof error };
	uint64_t ticket = 0;
	int r = atoll_stop(sandbox->handle, 0, &ticket, NULL, &error);

	await_answer(sandbox, NULL, r, ticket, &error, noted);
}

/* True: it is there, and its events come from now on, its end too. */
static bool find(struct sandbox *sandbox)
{
	atoll_sandbox *handle = NULL;

	if (atoll_find(sandbox->daemon->context, sandbox->id, &handle, NULL) < 0)
		return false;
	return lifecycle_adopt(sandbox, handle) == 0;
}

/* Nothing of it runs. Another session of its name is one that began when the daemon died: it is ended. */
static void look_at_stored(struct sandbox *sandbox)
{
	char before[SESSION_ID_SIZE];

	(void)!str_copy(before, sizeof before, sandbox->session);
	if (!find(sandbox))
		return;
	if (str_equal(before, sandbox->session)) {
		stop(sandbox);
		return;
	}
	stop(sandbox);
	(void)!str_copy(sandbox->session, sizeof sandbox->session, before);
}

static void take_on(struct sandbox *sandbox)
{
	switch (sandbox->state) {
	case SANDBOX_RUNNING:
	case SANDBOX_PAUSED:
		if (!find(sandbox)) {
			(void)!call_note(sandbox->daemon, "sandbox.recover", sandbox->id, "it is not there any more");
			lifecycle_forget(sandbox);
			return;
		}
		sandbox->is_known = true;
		metrics_begin(sandbox);
		if (sandbox->state == SANDBOX_PAUSED)
			hold_again(sandbox);
		else if (lifecycle_is_auto_pause(sandbox) && sandbox->end_ms)
			lifecycle_wake(sandbox);
		return;
	case SANDBOX_STORED:
		look_at_stored(sandbox);
		return;
	default:
		sandbox->state = SANDBOX_KILLING;
		if (find(sandbox))
			stop(sandbox);
	}
}

int recover_all(struct daemon *daemon, struct err *err)
{
	int r = database_each_sandbox(daemon->store, add_row, daemon);

	if (r == 0)
		r = build_recover(daemon);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "store", "the sandboxes cannot be read: %s",
			       r == -ENOMEM ? "out of memory" : database_problem(daemon->store));
	for (struct sandbox *sandbox = daemon->registry.oldest, *newer; sandbox; sandbox = newer) {
		newer = sandbox->newer;
		take_on(sandbox);
	}
	/* Also what ended while nobody was here. */
	(void)!tidy_hold(daemon);
	tidy_soon(daemon);
	daemon->due.recover_until_ns = clock_monotonic_ns() + (uint64_t)LATE_MS * NS_PER_MS;
	return functions_load(daemon, tidy_note_end, err);
}

uint64_t recover_late(struct daemon *daemon)
{
	uint64_t now_ns = clock_monotonic_ns();
	bool is_over = now_ns >= daemon->due.recover_until_ns, is_waiting;

	if (!daemon->due.recover_until_ns)
		return UINT64_MAX;
	is_waiting = functions_recover(daemon, is_over);
	for (struct sandbox *sandbox = daemon->registry.oldest, *newer; sandbox; sandbox = newer) {
		newer = sandbox->newer;
		if (sandbox->state != SANDBOX_KILLING || sandbox->handle)
			continue;
		if (find(sandbox))
			stop(sandbox);
		else if (is_over)
			lifecycle_forget(sandbox);
		else
			is_waiting = true;
	}
	if (is_over || !is_waiting)
		daemon->due.recover_until_ns = 0;
	return daemon->due.recover_until_ns ? now_ns + (uint64_t)LOOK_MS * NS_PER_MS : UINT64_MAX;
}
