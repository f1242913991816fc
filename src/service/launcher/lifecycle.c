/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/lifecycle.h"

#include <sys/epoll.h>

#include "base/str.h"
#include "os/clock.h"
#include "service/launcher/inside/metrics.h"
#include "service/launcher/pool.h"
#include "service/launcher/store/user.h"
#include "service/launcher/warm.h"
#include "service/launcher/tidy.h"

enum { NS_PER_MS = 1000000, LACK_S = 5 };

static const struct atoll_error no_error = { .size = sizeof no_error };

uint64_t lifecycle_now_ms(void)
{
	return clock_realtime_ns() / NS_PER_MS;
}

bool lifecycle_is_auto_pause(const struct sandbox *sandbox)
{
	return sandbox->made.message && service_number(sandbox->made.message, "auto_pause", 0);
}

int lifecycle_store(struct sandbox *sandbox)
{
	struct sandbox_row row = sandbox_to_row(sandbox);

	daemon_note_change(sandbox->daemon);
	return database_put_sandbox(sandbox->daemon->store, &row);
}

void lifecycle_tell(struct sandbox *sandbox, enum service_event event, const char *ended)
{
	struct buf *out = &sandbox->daemon->reply;

	service_begin_event(out, event);
	field_put_string(out, "sandbox", sandbox->id);
	if (event == SERVICE_GONE)
		field_put_string(out, "ended", ended);
	if (service_end(out, 0) == 0)
		front_send(&sandbox->daemon->front, out, NULL, 0);
}

static void release(struct sandbox *sandbox)
{
	loop_remove(&sandbox->daemon->loop, &sandbox->source);
	atoll_sandbox_free(sandbox->handle);
	sandbox->handle = NULL;
}

/* Whoever waits for something else than an answer of the box. */
static void fail_waiting(struct sandbox *sandbox)
{
	struct call *creator = sandbox->creator, *sleeper = sandbox->sleepers;

	sandbox->creator = sandbox->sleepers = NULL;
	if (creator)
		lifecycle_failed(creator, ATOLL_E_GONE, "the sandbox has ended", "");
	while (sleeper) {
		struct call *next = sleeper->next;

		call_fail_atoll(sleeper, ATOLL_E_GONE, "the sandbox has ended", "");
		sleeper = next;
	}
}

void lifecycle_let_go(struct sandbox *sandbox)
{
	await_gone(sandbox);
	fail_waiting(sandbox);
	release(sandbox);
}

void lifecycle_forget(struct sandbox *sandbox)
{
	struct daemon *daemon = sandbox->daemon;

	await_gone(sandbox);
	fail_waiting(sandbox);
	release(sandbox);
	(void)!database_remove_sandbox(daemon->store, sandbox->id);
	daemon_note_change(daemon);
	registry_remove(&daemon->registry, sandbox);
	tidy_note_end(daemon);
}

int lifecycle_adopt(struct sandbox *sandbox, atoll_sandbox *handle)
{
	int r;

	release(sandbox);
	sandbox->handle = handle;
	(void)!str_copy(sandbox->session, sizeof sandbox->session, atoll_id(handle));
	sandbox->source = (struct loop_source){
		.fd = atoll_fd(handle), .events = EPOLLIN, .ready = sandbox->daemon->hooks.heard,
		.context = sandbox };
	r = loop_add(&sandbox->daemon->loop, &sandbox->source);
	if (r < 0)
		release(sandbox);
	return r;
}

int lifecycle_policy(struct sandbox *sandbox, const struct service_message *network, struct policy_found *ret_found,
		     struct err *err)
{
	const struct service_message *said = network ? network : sandbox->network.message;
	struct key_row key;
	int r = database_key_by_number(sandbox->daemon->store, sandbox->key, &key);

	if (r <= 0)
		return err_set(err, ERR_STATE, ENOKEY, "policy", "the key that the sandbox was made with is gone");
	return policies_find(&sandbox->daemon->policies, key.policy, said ? said : sandbox->made.message, ret_found,
			     err);
}

void lifecycle_wake(struct sandbox *sandbox)
{
	uint64_t now_ms = lifecycle_now_ms();

	daemon_wake_at(sandbox->daemon, clock_monotonic_ns() +
		       (sandbox->end_ms > now_ms ? (sandbox->end_ms - now_ms) * NS_PER_MS : 0));
}

void lifecycle_store_again(struct sandbox *sandbox)
{
	(void)!str_copy(sandbox->session, sizeof sandbox->session, sandbox->beginning.stored);
	sandbox->beginning.stored[0] = 0;
	sandbox->state = SANDBOX_STORED;
	(void)!lifecycle_store(sandbox);
	lifecycle_put_away(sandbox);
}

void lifecycle_put_away(struct sandbox *sandbox)
{
	await_gone(sandbox);
	release(sandbox);
	sandbox->is_changing = false;
	sandbox->is_known = false;
}

/* ---- what is said of it ---- */

/* Headers of rules may be credentials: who has set them knows them. */
static void put_network(const struct sandbox *sandbox, struct buf *out)
{
	static const char *const keys[] = { "allow_out", "deny_out" };
	const struct service_message *said = sandbox->network.message ? sandbox->network.message :
									sandbox->made.message;

	field_put_u64(out, "internet", service_number(said, "internet", 1));
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		kept_put(out, said, keys[i]);
}

void lifecycle_describe(const struct sandbox *sandbox, struct buf *out, enum lifecycle_detail detail)
{
	static const char *const keys[] = { "metadata", "public_traffic", "mask_host", "volumes", "auto_pause",
		"auto_resume" };
	const struct service_message *made = sandbox->made.message;
	bool is_paused = sandbox->state == SANDBOX_PAUSED || sandbox->state == SANDBOX_STORED;
	const char *template = service_string(made, "template");
	char token[CREDENTIAL_TOKEN_SIZE];

	field_put_string(out, "sandbox", sandbox->id);
	field_put_string(out, "template", template ? template : "base");
	field_put_string(out, "state", is_paused ? "paused" : "running");
	field_put_u64(out, "started_ms", sandbox->created_ms);
	field_put_u64(out, "end_ms", is_paused ? lifecycle_now_ms() + sandbox->left_ms : sandbox->end_ms);
	metrics_put_limits(sandbox, out);
	field_put_string(out, "domain", sandbox->daemon->domain);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		kept_put(out, made, keys[i]);
	if (detail >= DETAIL_WHOLE)
		put_network(sandbox, out);
	if (detail < DETAIL_WITH_TOKENS)
		return;
	credential_token(sandbox->daemon->secret, "envd", sandbox->id, token);
	field_put_string(out, "token", token);
	/* The code interpreter's clients send this one alone where they make contexts. */
	if (service_number(made, "public_traffic", 1) && (!template || str_equal(template, "base")))
		return;
	credential_token(sandbox->daemon->secret, "traffic", sandbox->id, token);
	field_put_string(out, "traffic_token", token);
}

/* ---- creation ---- */

/* One row of a fork is complete; the last one completes the reply. */
static void add_row(struct call *call)
{
	struct sandbox *parent;
	struct buf *out;

	service_put_row(&call->rows, &call->daemon->row);
	if (++call->done < call->count)
		return;
	/* Each fork names what it stands on itself by now. */
	parent = registry_find(&call->daemon->registry, call_string(call, "sandbox"));
	if (parent)
		tidy_forget(call->daemon, parent->session, call->text);
	call->sandbox = NULL;
	out = call_begin_reply(call, 201);
	buf_put(out, call->rows.bytes, call->rows.size);
	call_end_reply(call, NULL, 0);
}

void lifecycle_created(struct sandbox *sandbox, struct call *call)
{
	struct buf *row = &call->daemon->row;

	if (call->message->operation != SERVICE_FORK) {
		lifecycle_describe(sandbox, call_begin_reply(call, 201), DETAIL_WITH_TOKENS);
		call_end_reply(call, NULL, 0);
		return;
	}
	service_begin_row(row);
	lifecycle_describe(sandbox, row, DETAIL_WITH_TOKENS);
	field_put_u64(row, "files_only", 1);
	add_row(call);
}

static void add_failed_row(struct call *call, uint32_t status, const char *what)
{
	struct buf *row = &call->daemon->row;

	service_begin_row(row);
	field_put_u64(row, "status", status);
	field_put_string(row, "message", what);
	add_row(call);
}

void lifecycle_failed(struct call *call, int code, const char *what, const char *hint)
{
	if (call->message->operation == SERVICE_FORK)
		add_failed_row(call, code == ATOLL_E_INVALID ? 400 : 500, what);
	else
		call_fail_atoll(call, code, what, hint);
}

/* 0: the code says it. */
static uint32_t status_of_lack(int code, int errnum)
{
	static const struct {
		int errnum;
		uint32_t status;
	} lacks[] = { { ENOSPC, 507 }, { EDQUOT, 507 }, { EAGAIN, 503 }, { ENOMEM, 503 }, { EMFILE, 503 },
		      { ENFILE, 503 } };

	for (size_t i = 0; i < ARRAY_SIZE(lacks); i++)
		if (lacks[i].errnum == errnum)
			return lacks[i].status;
	return code == ATOLL_E_LIMIT || code == ATOLL_E_NO_MEMORY ? 503 : 0;
}

void lifecycle_not_started(struct call *call, int code, int errnum, const char *what, const char *hint)
{
	uint32_t status = status_of_lack(code, errnum);

	if (!status) {
		lifecycle_failed(call, code, what, hint);
	} else if (call->message->operation == SERVICE_FORK) {
		add_failed_row(call, status, what);
	} else {
		call->retry_after_s = LACK_S;
		call_fail(call, status, NULL, "%s%s%s", what, *hint ? "; " : "", hint);
	}
}

static void fail_unwritten(struct call *call, int r)
{
	static const char what[] = "the database cannot be written";

	if (call->message->operation == SERVICE_FORK)
		add_failed_row(call, call_unwritten_status(r), what);
	else
		call_fail(call, call_unwritten_status(r), NULL, "%s; %s", what,
			  database_problem(call->daemon->store));
}

static int set_start(const struct sandbox *sandbox, atoll_record *record, const char *project, uint64_t timeout_ms,
		     struct atoll_error *error)
{
	int r = atoll_set_string(record, "project", project, error);

	if (r == 0)
		r = atoll_set_string(record, "name", sandbox->id, error);
	if (r == 0 && timeout_ms && !lifecycle_is_auto_pause(sandbox))
		r = atoll_set_u64(record, "deadline_ms", timeout_ms, error);
	return r == 0 ? atoll_set_string(record, "at_end", "discard", error) : r;
}

/* What one that waited in the pool has already. */
static int set_walls(const struct sandbox *sandbox, atoll_record *record, struct atoll_error *error)
{
	int r = atoll_set_string(record, "home_from", sandbox->daemon->places.home, error);

	return r == 0 ? atoll_set_string(record, "user_name", USER_NAME, error) : r;
}

static int start_from(struct sandbox *sandbox, const struct origin *origin, const struct policy_found *found,
		      const atoll_record *record, atoll_sandbox **ret, struct atoll_error *error)
{
	atoll_sandbox *from = NULL;
	int r;

	if (!origin->session)
		return atoll_create(sandbox->daemon->context, found->policy, record, ret, error);
	r = atoll_find(sandbox->daemon->context, origin->session, &from, error);
	if (r == 0)
		r = atoll_fork(from, found->policy, record, ret, error);
	atoll_sandbox_free(from);
	return r;
}

static int start(struct sandbox *sandbox, const struct origin *origin, const struct policy_found *found,
		 uint64_t timeout_ms, struct atoll_error *error)
{
	atoll_record *record = atoll_record_new(ATOLL_SANDBOX);
	atoll_sandbox *handle = NULL;
	int r = record ? set_start(sandbox, record, found->project, timeout_ms, error) : ATOLL_E_NO_MEMORY;

	if (r == 0 && sandbox->beginning.is_warm)
		handle = warm_take(sandbox->daemon, sandbox);
	sandbox->beginning.is_warm = handle != NULL;
	if (r == 0 && !handle && !origin->session && !origin->root && !sandbox->beginning.is_given_up)
		handle = pool_take(sandbox->daemon, found, record);
	sandbox->beginning.is_pooled = handle && !sandbox->beginning.is_warm;
	if (r == 0 && !handle)
		r = set_walls(sandbox, record, error);
	if (r == 0 && origin->snapshot)
		r = atoll_set_string(record, "snapshot", origin->snapshot, error);
	if (r == 0 && origin->root)
		r = atoll_set_string(record, "root", origin->root, error);
	if (r == 0 && !handle)
		r = start_from(sandbox, origin, found, record, &handle, error);
	atoll_record_free(record);
	if (r == 0 && lifecycle_adopt(sandbox, handle) < 0)
		r = ATOLL_E_LIMIT;
	return r;
}

static void note_start(const struct sandbox *sandbox, struct call *call)
{
	call->steps.from = sandbox->beginning.is_warm ? "warm" : sandbox->beginning.is_pooled ? "pool" : "cold";
	call->steps.started_ns = clock_monotonic_ns();
}

void lifecycle_start_anew(struct sandbox *sandbox)
{
	const struct origin nothing = { 0 };
	uint64_t now_ms = lifecycle_now_ms();
	struct atoll_error error = no_error;
	struct call *call = sandbox->creator;
	struct policy_found found;
	struct err err = { 0 };
	int r = lifecycle_policy(sandbox, NULL, &found, &err);

	if (r == 0)
		r = start(sandbox, &nothing, &found, !sandbox->end_ms ? 0 : sandbox->end_ms > now_ms ?
			  sandbox->end_ms - now_ms : 1, &error);
	if (r == 0 && call && call->steps.from)
		note_start(sandbox, call);
	if (r == 0)
		return;
	sandbox->creator = NULL;
	if (call)
		lifecycle_not_started(call, ATOLL_E_STATE, error.errnum,
				      error.what[0] ? error.what : err.message, error.hint);
	lifecycle_forget(sandbox);
}

/* Whether one that is ready already is what is asked for: its id. What is set for all its commands it does not have. */
static bool find_warm(struct call *call, const struct kept *made, const struct origin *origin, uint64_t timeout_ms,
		      char ret_id[CREDENTIAL_ID_SIZE])
{
	const struct service_message *asked = made->message;
	const char *const *env = service_strings(asked, "env");
	struct policy_found found;

	if (origin->session || origin->root || !timeout_ms || (env && env[0]) ||
	    service_number(asked, "auto_pause", 0) ||
	    !str_equal(service_string(asked, "template"), LIFECYCLE_INTERPRETER))
		return false;
	return policies_find(&call->daemon->policies, call->caller.key.policy, asked, &found, NULL) == 0 &&
	       warm_find(call->daemon, found.id, ret_id);
}

/* NULL: the call was answered. */
static struct sandbox *begin(struct call *call, struct kept *made, const struct origin *origin, uint64_t timeout_ms)
{
	struct daemon *daemon = call->daemon;
	char id[CREDENTIAL_ID_SIZE];
	bool is_warm = find_warm(call, made, origin, timeout_ms, id);
	struct sandbox *sandbox =
		!is_warm && credential_new_id(id) < 0 ? NULL : registry_add(&daemon->registry, daemon, id);

	if (!sandbox) {
		kept_done(made);
		lifecycle_failed(call, ATOLL_E_NO_MEMORY, "out of memory", "");
		return NULL;
	}
	sandbox->made = *made;
	sandbox->beginning.is_warm = is_warm;
	/* A fork reaches what its parent reaches by now. */
	if (call->message->operation == SERVICE_FORK && call->sandbox->network.bytes &&
	    kept_read(&sandbox->network, call->sandbox->network.bytes, call->sandbox->network.size) < 0) {
		registry_remove(&daemon->registry, sandbox);
		lifecycle_failed(call, ATOLL_E_NO_MEMORY, "out of memory", "");
		return NULL;
	}
	sandbox->key = call->caller.key.number;
	(void)!str_copy(sandbox->owner, sizeof sandbox->owner, call->caller.key.owner);
	sandbox->created_ms = lifecycle_now_ms();
	sandbox->end_ms = timeout_ms ? sandbox->created_ms + timeout_ms : 0;
	return sandbox;
}

void lifecycle_create(struct call *call, struct kept *made, const struct origin *origin, uint64_t timeout_ms)
{
	struct sandbox *sandbox = begin(call, made, origin, timeout_ms);
	struct atoll_error error = no_error;
	struct policy_found found;
	struct err err = { 0 };
	int r;

	if (!sandbox)
		return;
	r = lifecycle_policy(sandbox, NULL, &found, &err);
	if (r < 0) {
		lifecycle_failed(call, r == -EINVAL ? ATOLL_E_INVALID : ATOLL_E_STATE, err.message, err.hint);
		lifecycle_forget(sandbox);
		return;
	}
	/* From here on the next start of the daemon knows that there may be one. */
	r = lifecycle_store(sandbox);
	if (r < 0) {
		fail_unwritten(call, r);
		lifecycle_forget(sandbox);
		return;
	}
	r = start(sandbox, origin, &found, timeout_ms, &error);
	if (r < 0) {
		lifecycle_not_started(call, r, error.errnum, error.what, error.hint);
		lifecycle_forget(sandbox);
		return;
	}
	if (call->message->operation == SERVICE_CREATE) {
		call->sandbox = sandbox;
		note_start(sandbox, call);
	}
	sandbox->creator = call;
	if (!sandbox->beginning.is_warm)
		return;
	/* So far it had the time of one that waits. */
	lifecycle_set_time(sandbox, NULL, timeout_ms, await_reply);
	call->daemon->hooks.begun(sandbox);
}

void lifecycle_begin_again(struct sandbox *sandbox, struct call *call, uint64_t timeout_ms)
{
	const struct origin origin = { .session = sandbox->session, .snapshot = LIFECYCLE_STORED };
	struct atoll_error error = no_error;
	char before[SESSION_ID_SIZE];
	struct policy_found found;
	struct err err = { 0 };
	int r = lifecycle_policy(sandbox, NULL, &found, &err);

	if (r < 0) {
		call_fail_err(call, 500, &err);
		return;
	}
	(void)!str_copy(before, sizeof before, sandbox->session);
	(void)!str_copy(sandbox->beginning.stored, sizeof sandbox->beginning.stored, before);
	sandbox->state = SANDBOX_CREATING;
	sandbox->end_ms = timeout_ms ? lifecycle_now_ms() + timeout_ms : 0;
	r = start(sandbox, &origin, &found, timeout_ms, &error);
	if (r < 0) {
		sandbox->state = SANDBOX_STORED;
		(void)!str_copy(sandbox->session, sizeof sandbox->session, before);
		sandbox->beginning.stored[0] = 0;
		call_fail_atoll(call, r, error.what, error.hint);
		return;
	}
	sandbox->creator = call;
}

/* ---- time and end ---- */

void lifecycle_set_time(struct sandbox *sandbox, struct call *call, uint64_t timeout_ms, await_done *done)
{
	struct atoll_error error = no_error;
	const struct outcome kept = { .code = 0, .what = "", .hint = "" };
	uint64_t ticket = 0;
	int r;

	sandbox->end_ms = timeout_ms ? lifecycle_now_ms() + timeout_ms : 0;
	if (lifecycle_store(sandbox) < 0) {
		const struct outcome failed = { .code = ATOLL_E_STATE, .what = "the database cannot be written",
						.hint = "" };

		done(sandbox, call, &failed);
		return;
	}
	if (lifecycle_is_auto_pause(sandbox)) {
		if (timeout_ms)
			lifecycle_wake(sandbox);
		done(sandbox, call, &kept);
		return;
	}
	r = atoll_deadline(sandbox->handle, timeout_ms ? timeout_ms : 1, &ticket, NULL, &error);
	await_answer(sandbox, call, r, ticket, &error, done);
}

static void killed(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (!call)
		return;
	/* That it has ended meanwhile is what was wanted. */
	if (outcome->code && outcome->code != ATOLL_E_GONE)
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
	else
		call_reply(call, 204);
}

/* What it staged is nobody's any more. It goes on by itself, whatever becomes of the cursor. */
static void drop_stored(struct sandbox *sandbox)
{
	atoll_sandbox *handle = NULL;
	atoll_cursor *cursor = NULL;

	if (atoll_find(sandbox->daemon->context, sandbox->session, &handle, NULL) < 0)
		return;
	if (atoll_discard(handle, NULL, &cursor, NULL) == 0)
		atoll_cursor_free(cursor);
	atoll_sandbox_free(handle);
	tidy_forget(sandbox->daemon, sandbox->session, LIFECYCLE_STORED);
}

void lifecycle_kill(struct sandbox *sandbox, struct call *call)
{
	const struct outcome gone = { .code = 0, .what = "", .hint = "" };
	struct atoll_error error = no_error;
	bool was_running = sandbox->state != SANDBOX_STORED;
	uint64_t ticket = 0;
	int r;

	sandbox->state = SANDBOX_KILLING;
	(void)!lifecycle_store(sandbox);
	lifecycle_tell(sandbox, SERVICE_GONE, "killed");
	if (!was_running)
		drop_stored(sandbox);
	if (!sandbox->handle || !was_running) {
		struct daemon *daemon = sandbox->daemon;

		killed(sandbox, call, &gone);
		lifecycle_forget(sandbox);
		if (!was_running)
			(void)!tidy_hold(daemon);
		return;
	}
	r = atoll_stop(sandbox->handle, 0, &ticket, NULL, &error);
	await_answer(sandbox, call, r, ticket, &error, killed);
}
