/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/control.h"

#include <string.h>

#include "base/str.h"
#include "os/clock.h"
#include "service/launcher/function/operations.h"
#include "service/launcher/inside/metrics.h"
#include "service/launcher/lifecycle.h"
#include "service/launcher/build/settings.h"
#include "service/launcher/build/template-name.h"
#include "service/launcher/rules.h"
#include "service/launcher/snapshots.h"
#include "session/directories.h"

enum { TIMEOUT_DEFAULT_MS = 300000, PRESSED_S = 5, FULL_S = 30 };

void control_whoami(struct call *call)
{
	struct buf *out = call_begin_reply(call, 200);

	field_put_string(out, "name", call->caller.key.name);
	field_put_string(out, "role", key_role_names[call->caller.key.role]);
	call_end_reply(call, NULL, 0);
}

/* ---- create ---- */

static bool is_full(const struct daemon *daemon, uint64_t count)
{
	return daemon->registry.count + invoke_count(daemon, NULL) + count > daemon->settings->sandboxes_max;
}

bool control_has_room(const struct call *call, uint64_t count)
{
	const struct key_row *key = &call->caller.key;
	size_t owned = registry_count_of(&call->daemon->registry, key->owner) + invoke_count(call->daemon, key->owner);

	return !is_full(call->daemon, count) && owned + count <= key->sandboxes_max;
}

/* What has ended goes then, as soon as it may. */
static bool is_disk_short(struct daemon *daemon)
{
	uint64_t now_ns = clock_monotonic_ns();
	bool is_short = quotas_is_disk_short(&daemon->quotas, daemon->places.state, daemon->settings->disk_min, now_ns);

	if (is_short)
		daemon_wake_at(daemon, now_ns);
	return is_short;
}

static bool check_counts(struct call *call, uint64_t count)
{
	const struct registry *registry = &call->daemon->registry;
	const struct key_row *key = &call->caller.key;

	if (quotas_are_pressed(&call->daemon->quotas, call->daemon->settings->pressure_max, clock_monotonic_ns())) {
		call->retry_after_s = PRESSED_S;
		call_fail(call, 503, NULL, "this machine is short of memory: try again in some seconds");
		return false;
	}
	if (is_disk_short(call->daemon)) {
		call->retry_after_s = FULL_S;
		call_fail(call, 507, NULL, "the disk of the service is nearly full: try again later");
		return false;
	}
	if (is_full(call->daemon, count)) {
		call_fail(call, 429, NULL, "this service has as many sandboxes as it takes (%llu)",
			  (unsigned long long)call->daemon->settings->sandboxes_max);
		return false;
	}
	if (!control_has_room(call, count)) {
		call_fail(call, 429, NULL, "%s has as many sandboxes as it may have (%llu); kill one", key->owner,
			  (unsigned long long)key->sandboxes_max);
		return false;
	}
	if (key->memory_mb_max != UINT64_MAX && metrics_memory_of(registry, key->owner) >= key->memory_mb_max) {
		call_fail(call, 429, NULL, "the sandboxes of %s use as much memory as they may together (%llu MiB)",
			  key->owner, (unsigned long long)key->memory_mb_max);
		return false;
	}
	return true;
}

static bool check_rate(struct call *call, uint64_t count, const char *what)
{
	const struct key_row *key = &call->caller.key;
	int wait_s = quotas_take(&call->daemon->quotas, key, count, clock_monotonic_ns());

	if (wait_s) {
		call->retry_after_s = wait_s < 0 ? 1 : (uint32_t)wait_s;
		call_fail(call, 429, NULL, "%s has made as many %s as it may in a minute (%llu)", key->owner, what,
			  (unsigned long long)key->creates_per_minute);
		return false;
	}
	return true;
}

bool control_check_quotas(struct call *call, uint64_t count)
{
	return check_counts(call, count) && check_rate(call, count, "sandboxes");
}

/* ---- policies, which take some milliseconds to compile ---- */

static void on_policy(void *context, bool is_lost)
{
	struct call *call = context;

	call->has_policy = true;
	if (is_lost)
		call_fail(call, 503, NULL, "the service ends");
	else
		call->then(call);
}

/* True: the call goes on by then, when its policy is there, or can only fail. */
static bool wait_for_policy(struct call *call, const char *policy, void (*then)(struct call *call))
{
	if (call->has_policy)
		return false;
	call->then = then;
	return policies_load(&call->daemon->policies, policy, call->message, on_policy, call) == 0;
}

bool control_check_build(struct call *call, void (*then)(struct call *call))
{
	if (call->has_policy ? !check_counts(call, 1) : !control_check_quotas(call, 1))
		return false;
	return policies_has(&call->daemon->policies, call->caller.key.policy, call->message) ||
	       !wait_for_policy(call, call->caller.key.policy, then);
}

static bool check_rules(struct call *call)
{
	struct err err = { 0 };
	const char *owner = call->sandbox ? call->sandbox->owner : call->caller.key.owner;
	uint32_t status = rules_check(call->daemon, owner, call->message, &err);

	if (status)
		call_fail_err(call, status, &err);
	return status == 0;
}

/* What is not served is refused by name, before anything is made. */
static bool check_asked(struct call *call)
{
	const char *const *volumes = service_strings(call->message, "volumes");

	if (volumes && volumes[0]) {
		call_fail(call, 501, NULL, "volumeMounts: this service has no volumes");
		return false;
	}
	return check_rules(call);
}

/* What a sandbox is made from. */
struct created {
	struct build_row build;
	struct template_row row;
	struct origin origin;            /* points into these */
};

static int find_origin(struct call *call, const char *template, struct created *created)
{
	char path[PATH_MAX];
	int r = template_name_find_build(call, template, &created->build);

	created->origin = (struct origin){ .session = created->build.session, .snapshot = created->build.snapshot };
	if (r)
		return r;
	*created = (struct created){ .origin = { 0 } };
	r = snapshots_find(call, template, &created->row, &created->origin);
	if (r == 0 && session_root_path(call->daemon->places.state, template, path, sizeof path) == 0) {
		created->origin.root = template;
		r = 1;
	}
	return r;
}

/* What the template says of commands, but for what the client says itself. */
static int put_environment(struct buf *out, const char *const *built, const char *const *asked)
{
	size_t count = 0, built_count = strv_count(built), asked_count = strv_count(asked);
	const char **all = calloc(built_count + asked_count + 1, sizeof *all);

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < built_count; i++)
		if (!strv_has_name(asked, built[i]))
			all[count++] = built[i];
	for (size_t i = 0; i < asked_count; i++)
		all[count++] = asked[i];
	field_put_strings(out, "env", all);
	free(all);
	return 0;
}

/* The request as it is kept, with what was built. */
static int make_kept(struct call *call, const struct created *created, struct kept *ret_made)
{
	static const char *const built[] = { "cwd", "start_command", "ready_command" };
	const struct service_field *field = service_rule(SERVICE_CREATE)->request;
	cleanup_buf struct buf out;
	const struct build_row *build = &created->build;
	struct kept settings = { 0 };
	int r;

	buf_init(&out, FRAME_MESSAGE_MAX);
	if (!created->origin.root && (!build->id[0] || !build->settings.size))
		return kept_copy(ret_made, call->message, SERVICE_CREATE);
	r = created->origin.root ? settings_of_root(call->daemon->places.state, created->origin.root, &settings) :
				   kept_read(&settings, build->settings.bytes, build->settings.size);
	if (r < 0)
		return r;
	service_begin_request(&out, 1, SERVICE_CREATE);
	for (; field->key; field++)
		if (!str_equal(field->key, "env"))
			kept_put(&out, call->message, field->key);
	for (size_t i = 0; i < ARRAY_SIZE(built); i++)
		kept_put(&out, settings.message, built[i]);
	r = put_environment(&out, service_strings(settings.message, "env"), service_strings(call->message, "env"));
	if (r == 0)
		r = frame_end(&out);
	if (r == 0)
		r = kept_read(ret_made, out.bytes, out.size);
	kept_done(&settings);
	return r;
}

void control_create(struct call *call)
{
	const char *template = call_string(call, "template");
	struct created created = { .origin = { 0 } };
	struct kept made;

	/* What was made while it waited counts, too. */
	if (!check_asked(call) || (call->has_policy ? !check_counts(call, 1) : !control_check_quotas(call, 1)))
		return;
	if (!policies_has(&call->daemon->policies, call->caller.key.policy, call->message) &&
	    wait_for_policy(call, call->caller.key.policy, control_create))
		return;
	if (template && !str_equal(template, "base") && !str_equal(template, LIFECYCLE_INTERPRETER)) {
		int r = find_origin(call, template, &created);

		if (r < 0)
			call_fail(call, 500, NULL, "the database cannot be read");
		else if (r == 0)
			call_fail(call, 404, NULL, "template '%s' not found", template);
		if (r <= 0)
			return;
	}
	if (make_kept(call, &created, &made) < 0) {
		call_fail(call, 503, NULL, "out of memory");
		return;
	}
	lifecycle_create(call, &made, &created.origin, call_number(call, "timeout_ms", TIMEOUT_DEFAULT_MS));
}

/* ---- one sandbox ---- */

void control_get(struct call *call)
{
	if (call->sandbox->state == SANDBOX_CREATING) {
		call_fail_unknown(call);
		return;
	}
	/* A token starts commands and writes files: a key that only looks gets none. */
	lifecycle_describe(call->sandbox, call_begin_reply(call, 200),
			   call->caller.key.role == KEY_READ_ONLY ? DETAIL_WHOLE : DETAIL_WITH_TOKENS);
	call_end_reply(call, NULL, 0);
}

void control_kill(struct call *call)
{
	if (call->sandbox->state == SANDBOX_CREATING)
		call_fail_unknown(call);
	else
		lifecycle_kill(call->sandbox, call);
}

void control_health(struct call *call)
{
	if (call->sandbox->state == SANDBOX_RUNNING)
		call_reply(call, 204);
	else
		call_fail(call, 502, NULL, "The sandbox is not running");
}

void control_timeout(struct call *call)
{
	struct sandbox *sandbox = call->sandbox;
	uint64_t timeout_ms = call_number(call, "timeout_ms", 0), now_ms = lifecycle_now_ms();

	if (sandbox->state != SANDBOX_RUNNING) {
		call_fail(call, 409, NULL, "the sandbox is paused");
		return;
	}
	if (call_number(call, "extend", 0) && sandbox->end_ms > now_ms + timeout_ms)
		timeout_ms = sandbox->end_ms - now_ms;
	lifecycle_set_time(sandbox, call, timeout_ms ? timeout_ms : 1, await_reply);
}

/* ---- its network ---- */

static void network_done(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	struct kept network;

	if (outcome->code) {
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
		return;
	}
	if (kept_copy(&network, call->message, SERVICE_NETWORK) < 0) {
		call_fail(call, 503, NULL, "out of memory");
		return;
	}
	kept_done(&sandbox->network);
	sandbox->network = network;
	(void)!lifecycle_store(sandbox);
	call_reply(call, 204);
}

/* True: the call is answered, or goes on when the policy is compiled, which counts like a creation. */
static bool waits_for_network(struct call *call)
{
	struct key_row key;

	if (call->has_policy || database_key_by_number(call->daemon->store, call->sandbox->key, &key) <= 0 ||
	    policies_has(&call->daemon->policies, key.policy, call->message))
		return false;
	return !check_rate(call, 1, "changes of a network and sandboxes") ||
	       wait_for_policy(call, key.policy, call->daemon->hooks.again);
}

/* False: the call was answered. */
static bool find_policy(struct call *call, struct policy_found *ret_found)
{
	struct err err = { 0 };
	int r = lifecycle_policy(call->sandbox, call->message, ret_found, &err);

	if (r < 0)
		call_fail_err(call, r == -EINVAL ? 400 : 500, &err);
	return r >= 0;
}

static void change_policy(struct sandbox *sandbox, struct call *call)
{
	struct atoll_error error = { .size = sizeof error };
	struct policy_found found;
	uint64_t ticket = 0;
	int r;

	if (!find_policy(call, &found))
		return;
	r = atoll_change(sandbox->handle, found.policy, &ticket, NULL, &error);
	await_answer(sandbox, call, r, ticket, &error, network_done);
}

static void rules_done(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (outcome->code)
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
	else
		change_policy(sandbox, call);
}

/* Headers first: what of them cannot be is refused before anything has changed. */
void control_network(struct call *call)
{
	struct sandbox *sandbox = call->sandbox;
	const struct service_message *before = sandbox->network.message ? sandbox->network.message :
									  sandbox->made.message;
	struct policy_found found;

	if (!check_rules(call) || waits_for_network(call) || !find_policy(call, &found))
		return;
	if (rules_are_there(before) || rules_are_there(call->message))
		rules_set(sandbox, call->message, call, rules_done);
	else
		change_policy(sandbox, call);
}
