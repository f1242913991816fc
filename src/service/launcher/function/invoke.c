/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/function/invoke.h"

#include <stdio.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "service/launcher/function/functions.h"
#include "service/launcher/function/operations.h"

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000, BACK_OFF_S = 5, UNUSED_S = 600, DEPLOY_S = 60, FILL_MS = 25 };

static const char *const stream_keys[] = { "stdin", "stdout", "stderr" };

static uint64_t now_ms(void)
{
	return clock_realtime_ns() / NS_PER_MS;
}

static struct function *first_of(const struct daemon *daemon)
{
	return daemon->registry.functions ? daemon->registry.functions->first : NULL;
}

/* ---- how many there are ---- */

static size_t count_waiting(const struct function *function)
{
	size_t count = 0;

	for (const struct call *call = function->waiting; call; call = call->next)
		count++;
	return count;
}

/* Instances that nobody wants yet. */
static size_t count_ahead(const struct daemon *daemon)
{
	size_t count = 0;

	for (const struct function *function = first_of(daemon); function; function = function->next)
		if (function->is_served)
			count += instance_count(function, INSTANCE_STARTING) + instance_count(function, INSTANCE_READY);
	return count;
}

/* A trial is somebody's, too; whoever waits has an instance, or gets one. */
size_t invoke_count(const struct daemon *daemon, const char *owner)
{
	size_t count = 0;

	for (const struct function *function = first_of(daemon); function; function = function->next) {
		if (owner && !str_equal(function->owner, owner))
			continue;
		count += count_waiting(function);
		for (const struct instance *at = function->instances; at; at = at->next)
			count += !function->is_served || at->state == INSTANCE_BUSY || at->state == INSTANCE_OVER;
	}
	return count;
}

/* One that waits for a function that was not used for longest makes room. */
static bool make_room(struct daemon *daemon, const struct function *needs)
{
	struct instance *oldest = NULL;

	for (struct function *function = first_of(daemon); function; function = function->next)
		for (struct instance *at = function->instances; at && function != needs; at = at->next)
			if (at->state == INSTANCE_READY && (!oldest || function->used_ns < oldest->function->used_ns))
				oldest = at;
	if (oldest)
		instance_free(oldest);
	return oldest;
}

void invoke_fill(struct function *function)
{
	struct daemon *daemon = function->daemon;
	uint64_t now_ns = clock_monotonic_ns(), pool_max = daemon->settings->pool_max;
	size_t wanted = function->wanted < pool_max ? function->wanted : (size_t)pool_max;

	function->fill_ns = 0;
	if (!function->is_served || now_ns < function->back_off_ns ||
	    quotas_are_pressed(&daemon->quotas, daemon->settings->pressure_max, now_ns))
		return;
	while (instance_count(function, INSTANCE_STARTING) + instance_count(function, INSTANCE_READY) <
	       wanted + count_waiting(function)) {
		struct err err = { 0 };

		if (count_ahead(daemon) >= pool_max && !make_room(daemon, function))
			return;
		if (!instance_start(function, &invoke_events, &err)) {
			function->back_off_ns = now_ns + BACK_OFF_S * (uint64_t)NS_PER_S;
			return;
		}
	}
}

/* ---- one invocation ---- */

/* The front's word follows it: an invocation whose client went away before never begins. False: it has died. */
static bool say_number(struct instance *instance)
{
	char text[24];
	int size = snprintf(text, sizeof text, "%llu ", (unsigned long long)instance->number);

	return write(instance->fds[0], text, (size_t)size) == size;
}

static void lease(struct instance *instance, struct call *call)
{
	struct function *function = instance->function;
	int fds[ARRAY_SIZE(stream_keys)];
	struct buf *out;

	instance->state = INSTANCE_BUSY;
	instance->began_ns = function->used_ns = clock_monotonic_ns();
	instance->began_ms = now_ms();
	instance->generation = call->generation;
	instance->until_ns = instance->began_ns + function_timeout_ms(function) * NS_PER_MS;
	daemon_wake_at(function->daemon, instance->until_ns);
	out = call_begin_reply(call, 200);
	field_put_u64(out, "invocation", instance->number);
	field_put_u64(out, "cold", instance->is_cold);
	field_put_u64(out, "json", function_is_json(function));
	for (size_t i = 0; i < ARRAY_SIZE(stream_keys); i++) {
		field_put_fd(out, stream_keys[i], i);
		fds[i] = take_fd(&instance->fds[i]);
	}
	call_end_reply(call, fds, ARRAY_SIZE(stream_keys));
}

/* An instance that is ready serves who waited longest. True: it was taken, or has died. */
static bool serve_first(struct instance *instance, bool is_cold)
{
	struct function *function = instance->function;
	struct call *call = function->waiting;

	if (!call)
		return false;
	instance->number = ++function->daemon->registry.functions->last_number;
	instance->is_cold = is_cold;
	if (!say_number(instance)) {
		instance_free(instance);
		return true;
	}
	function->waiting = call->next;
	call->next = NULL;
	lease(instance, call);
	/* A short invocation has the processors for itself: the next instance starts when it is over, or soon. */
	function->fill_ns = clock_monotonic_ns() + (uint64_t)FILL_MS * NS_PER_MS;
	daemon_wake_at(function->daemon, function->fill_ns);
	return true;
}

static void on_ready(struct instance *instance)
{
	(void)!serve_first(instance, true);
}

/* What was deployed could be loaded then: what is wrong now is said to who waits, and not tried again at once. */
static void on_failed(struct instance *instance, const char *why)
{
	struct function *function = instance->function;
	struct call *call = function->waiting;

	if (instance->state == INSTANCE_STARTING) {
		function->back_off_ns = clock_monotonic_ns() + BACK_OFF_S * (uint64_t)NS_PER_S;
		if (call) {
			function->waiting = call->next;
			call->next = NULL;
			call_fail(call, 502, NULL, "the function could not be started: %s", why);
		}
	}
	instance_free(instance);
}

static void finish(struct instance *instance)
{
	struct call *call = take_ptr(instance->ender);
	struct function *function = instance->function;
	struct function_log log = {
		.number = instance->number, .time_ms = instance->began_ms, .end = instance->end,
		.is_cold = instance->is_cold, .dropped = call ? call_number(call, "dropped", 0) : 0,
	};
	struct buf *out;

	if (call && call_number(call, "failed", 0) && str_equal(log.end.ended, "exit") && !log.end.exit)
		(void)!str_copy(log.end.ended, sizeof log.end.ended, "no result");
	function_note(function, &log, call ? call_string(call, "log") : NULL);
	instance_free(instance);
	if (call) {
		out = call_begin_reply(call, 200);
		if (str_equal(log.end.ended, "exit"))
			field_put_u64(out, "exit", log.end.exit & 0xff);
		if (str_equal(log.end.ended, "signal"))
			field_put_u64(out, "signal", log.end.signal);
		field_put_string(out, "ended", log.end.ended);
		field_put_u64(out, "us", log.end.us);
		call_end_reply(call, NULL, 0);
	}
	/* It has a successor, and this was the last that ran of it. */
	if (!function->is_served && !function->instances)
		functions_remove(function);
	else
		invoke_fill(function);
}

static void on_over(struct instance *instance)
{
	if (instance->ender)
		finish(instance);
}

const struct instance_events invoke_events = { .ready = on_ready, .failed = on_failed, .over = on_over };

/* ---- calls ---- */

/* False: the call was answered. */
static bool check_room(struct call *call, const struct function *function)
{
	size_t busy = instance_count(function, INSTANCE_BUSY) + count_waiting(function);

	call->retry_after_s = 1;
	if (busy >= function_concurrency(function))
		call_fail(call, 429, NULL, "%s runs as often as it may at once (%llu)", function->name,
			  (unsigned long long)function_concurrency(function));
	else if (!call->daemon->hooks.verbs->has_room(call, 1))
		call_fail(call, 429, NULL, "there are as many sandboxes and invocations as there may be");
	else
		return true;
	return false;
}

void invoke_begin(struct call *call)
{
	struct function *function = functions_find(call, true);
	struct instance *instance;
	struct call **at;
	struct err err = { 0 };
	size_t busy;

	if (!function) {
		call_fail(call, 404, NULL, "there is no function of this name");
		return;
	}
	if (!check_room(call, function))
		return;
	call->retry_after_s = 0;
	for (at = &function->waiting; *at; at = &(*at)->next)
		;
	*at = call;
	busy = instance_count(function, INSTANCE_BUSY) + count_waiting(function);
	function->wanted = function->wanted < busy ? busy : function->wanted;
	for (instance = function->instances; instance; instance = instance->next)
		if (instance->state == INSTANCE_READY)
			break;
	if (instance && serve_first(instance, false) && !function->waiting)
		return;
	if (instance_count(function, INSTANCE_STARTING) >= count_waiting(function))
		return;
	if (!instance_start(function, &invoke_events, &err)) {
		*at = NULL;
		call_fail_err(call, 500, &err);
	}
}

static struct instance *find_number(const struct daemon *daemon, uint64_t number)
{
	for (const struct function *function = first_of(daemon); function; function = function->next)
		for (struct instance *at = function->instances; at; at = at->next)
			if (at->number == number)
				return at;
	return NULL;
}

void invoke_end(struct call *call)
{
	struct instance *instance = find_number(call->daemon, call_number(call, "invocation", 0));

	if (!instance || !instance->number || instance->ender) {
		call_fail(call, 404, NULL, "there is no such invocation");
		return;
	}
	instance->ender = call;
	if (call_number(call, "cancelled", 0))
		instance_stop(instance, "cancelled");
	if (instance->state == INSTANCE_OVER)
		finish(instance);
}

/* ---- time ---- */

/* Whether its front is gone, or what it waited for did not come in time. May free it. */
static void tend(struct instance *instance, uint64_t now_ns)
{
	bool is_orphan = instance->number && instance->generation != instance->function->daemon->front.generation;

	if (!is_orphan && now_ns < instance->until_ns)
		return;
	if (instance->state == INSTANCE_STARTING) {
		instance->events->failed(instance, "it did not become ready in time");
	} else if (instance->state == INSTANCE_READY) {
		instance->function->wanted = 0;
		instance_free(instance);
	} else if (instance->state == INSTANCE_BUSY) {
		instance_stop(instance, is_orphan ? "cancelled" : "time");
		instance->events->over(instance);
	} else {
		finish(instance);
	}
}

/* One that was never written, or whose client went away. */
static bool is_forgotten(const struct function *function, uint64_t now_ns)
{
	return !function->is_served && !function->deployer && !function->instances &&
	       now_ns > function->began_ns + DEPLOY_S * (uint64_t)NS_PER_S;
}

uint64_t invoke_tend(struct daemon *daemon)
{
	uint64_t now_ns = clock_monotonic_ns(), next_ns = UINT64_MAX;
	struct function *next;

	for (struct function *function = first_of(daemon); function; function = next) {
		next = function->next;
		if (is_forgotten(function, now_ns)) {
			functions_remove(function);
			continue;
		}
		for (struct instance *at = function->instances, *after; at; at = after) {
			after = at->next;
			tend(at, now_ns);
		}
		if (function->fill_ns && now_ns >= function->fill_ns)
			invoke_fill(function);
	}
	for (const struct function *function = first_of(daemon); function; function = function->next) {
		if (!function->is_served && function->began_ns + DEPLOY_S * (uint64_t)NS_PER_S > now_ns)
			next_ns = function->began_ns + DEPLOY_S * (uint64_t)NS_PER_S + 1;
		if (function->fill_ns && function->fill_ns < next_ns)
			next_ns = function->fill_ns;
		for (const struct instance *at = function->instances; at; at = at->next)
			next_ns = at->until_ns < next_ns ? at->until_ns : next_ns;
	}
	return next_ns;
}
