/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/build/builds.h"

#include <string.h>

#include "base/str.h"
#include "service/launcher/build/run.h"
#include "service/launcher/build/template-name.h"
#include "session/directories.h"

enum { BUILDS_RUNNING_MAX = 4, BUILDS_KEPT_MAX = 200, STEPS_KEPT_MAX = 500 };

/* ---- bounds of what is kept on disk ---- */

struct trim {
	struct daemon *daemon;
	const char *session, *snapshot;  /* is_needed: of which */
	char id[DATABASE_NAME_SIZE];     /* the oldest build that no tag leads to; "": none */
	struct build_cached oldest;      /* owner "": none */
	size_t builds, steps;
	bool is_found;
};

static int look_for_tag(void *context, const struct build_tag *tag)
{
	struct trim *trim = context;

	trim->is_found |= str_equal(trim->id, tag->build);
	return 0;
}

static int look_at_build(void *context, const struct build_row *row)
{
	struct trim *trim = context;

	trim->builds++;
	if (trim->id[0] || row->state == BUILD_BUILDING)
		return 0;
	(void)!str_copy(trim->id, sizeof trim->id, row->id);
	trim->is_found = false;
	if (builds_each_tag(trim->daemon->store, row->template, look_for_tag, trim) < 0 || trim->is_found)
		trim->id[0] = 0;
	return 0;
}

static int look_for_state(void *context, const struct build_row *row)
{
	struct trim *trim = context;

	trim->is_found |= str_equal(row->session, trim->session) && str_equal(row->snapshot, trim->snapshot);
	return 0;
}

static int look_at_step(void *context, const struct build_cached *cached)
{
	struct trim *trim = context;

	if (!trim->steps++)
		trim->oldest = *cached;
	return 0;
}

static int look_for_step(void *context, const struct build_cached *cached)
{
	struct trim *trim = context;

	trim->is_found |= str_equal(cached->session, trim->session) && str_equal(cached->snapshot, trim->snapshot);
	return 0;
}

/* A state that neither a build nor a step has any more is forgotten. */
static void forget_state(struct daemon *daemon, const char *session, const char *snapshot)
{
	struct trim trim = { .daemon = daemon, .session = session, .snapshot = snapshot };

	if (!session[0] || builds_each(daemon->store, look_for_state, &trim) < 0 ||
	    builds_each_cached(daemon->store, look_for_step, &trim) < 0 || trim.is_found)
		return;
	daemon->hooks.verbs->forget(daemon, session, snapshot);
}

static void remove_build(struct daemon *daemon, const char *id)
{
	struct build_row row;

	if (builds_get(daemon->store, id, &row) == 1 && builds_remove(daemon->store, id) == 0)
		forget_state(daemon, row.session, row.snapshot);
}

/* True: one step more than may be was forgotten, and there may be others. */
static bool trim_step(struct daemon *daemon)
{
	struct trim steps = { .daemon = daemon };

	if (builds_each_cached(daemon->store, look_at_step, &steps) < 0 || steps.steps <= STEPS_KEPT_MAX ||
	    builds_remove_cached(daemon->store, steps.oldest.owner, steps.oldest.hash) < 0)
		return false;
	forget_state(daemon, steps.oldest.session, steps.oldest.snapshot);
	return true;
}

static void trim_kept(struct daemon *daemon)
{
	struct trim builds = { .daemon = daemon };

	if (builds_each(daemon->store, look_at_build, &builds) == 0 && builds.builds > BUILDS_KEPT_MAX && builds.id[0])
		remove_build(daemon, builds.id);
	/* A build leaves one for each of its steps. */
	for (int i = 0; i < PLAN_STEPS_MAX && trim_step(daemon); i++)
		;
}

/* ---- start ---- */

/* What a build stands on. */
struct base {
	struct build_row build;          /* what origin may point into */
	struct template_row snapshot;
	struct origin origin;
	struct kept settings;
	char text[3 * DATABASE_NAME_SIZE + PATH_MAX];
};

static int name_base(struct base *base, const struct call *call, const char *kind, const char *what)
{
	return str_format(base->text, sizeof base->text, "%s\n%s\n%s", kind, what, call->caller.key.policy);
}

/* A system that was imported here, known by its tree: a name may lead to another one later. */
static int find_root(struct call *call, const char *name, struct base *base)
{
	char path[PATH_MAX];

	if (!session_root_name_is_valid(name) ||
	    session_root_path(call->daemon->places.state, name, path, sizeof path) < 0)
		return 0;
	base->origin.root = name;
	if (settings_of_root(call->daemon->places.state, name, &base->settings) < 0)
		return -EIO;
	return name_base(base, call, "root", path) < 0 ? -ENAMETOOLONG : 1;
}

static int find_from_template(struct call *call, const char *name, struct base *base)
{
	int r = template_name_find_build(call, name, &base->build);

	if (str_equal(name, "base") || str_equal(name, LIFECYCLE_INTERPRETER))
		return name_base(base, call, "base", "") < 0 ? -ENAMETOOLONG : 1;
	if (r == 1 && base->build.settings.size)
		r = kept_read(&base->settings, base->build.settings.bytes, base->build.settings.size) < 0 ? -EIO : 1;
	if (r == 1)
		base->origin = (struct origin){ .session = base->build.session, .snapshot = base->build.snapshot };
	if (r == 1)
		return name_base(base, call, "build", base->build.id) < 0 ? -ENAMETOOLONG : 1;
	if (r == 0)
		r = call->daemon->hooks.verbs->find_snapshot(call, name, &base->snapshot, &base->origin);
	if (r == 1)
		return name_base(base, call, "snapshot", base->snapshot.id) < 0 ? -ENAMETOOLONG : 1;
	return r < 0 ? r : find_root(call, name, base);
}

/* False: the call was answered. */
static bool find_base(struct call *call, struct base *base)
{
	const char *image = call_string(call, "from_image"), *template = call_string(call, "from_template");
	int r;

	if (template)
		r = find_from_template(call, template, base);
	else if (!image || str_equal(image, "e2bdev/base"))
		r = name_base(base, call, "base", "") < 0 ? -ENAMETOOLONG : 1;
	else
		r = find_root(call, image, base);
	if (r == 1)
		return true;
	if (r < 0)
		call_fail(call, 500, NULL, "what the template stands on cannot be looked up");
	else if (template)
		call_fail(call, 400, NULL, "template '%s' not found", template);
	else
		call_fail(call, 400, NULL, "image '%s' is not on this machine, and none is fetched from a registry: "
			  "save it elsewhere, and `atoll template import FILE %s` here", image, image);
	return false;
}

/* Whether a state is still there. */
static bool is_there(struct daemon *daemon, const struct build_cached *state)
{
	atoll_sandbox *handle = NULL;
	bool is_found = atoll_find(daemon->context, state->session, &handle, NULL) == 0;

	atoll_sandbox_free(handle);
	return is_found;
}

static bool find_state(struct build *build, const char *hash, struct build_cached *ret_state)
{
	struct database *store = build->daemon->store;

	if (builds_get_cached(store, build->owner, hash, ret_state) != 1)
		return false;
	if (!is_there(build->daemon, ret_state)) {
		(void)!builds_remove_cached(store, build->owner, hash);
		return false;
	}
	ret_state->used_ms = build_now_ms();
	(void)!builds_put_cached(store, ret_state);
	return true;
}

/* How many steps the newest state that is there stands behind; *whole: all is done, the start too. */
static size_t find_done(struct build *build, bool is_forced, bool *whole)
{
	struct plan *plan = &build->plan;
	size_t most = 0;

	*whole = false;
	while (!is_forced && most < plan->count && !plan->steps[most].is_forced)
		most++;
	if (!is_forced && most == plan->count && find_state(build, plan->end, &build->last)) {
		*whole = true;
		return plan->count;
	}
	for (; most; most--)
		if (plan_step_is_done(&plan->steps[most - 1]) &&
		    find_state(build, plan->steps[most - 1].hash, &build->last))
			return most;
	build->last = (struct build_cached){ .owner = "" };
	return 0;
}

/* All steps are tried on the settings, so that what is wrong is said before anything is made. NULL: answered. */
static struct build *make_build(struct call *call, const struct base *base, const char *owner)
{
	struct build *build = calloc(1, sizeof *build);
	struct err err = { 0 };
	int r = build ? kept_copy(&build->request, call->message, SERVICE_BUILD_START) : -ENOMEM;

	if (r == 0) {
		static const char *const none[] = { NULL };
		const struct service_message *asked = build->request.message;
		const char *const *steps = service_strings(asked, "steps");
		const char *const commands[2] = { service_string(asked, "start"), service_string(asked, "ready") };

		build->daemon = call->daemon;
		build_log_init(&build->log);
		(void)!str_copy(build->id, sizeof build->id, call_string(call, "build"));
		(void)!str_copy(build->owner, sizeof build->owner, owner);
		r = settings_begin(&build->settings, base->settings.message);
		if (r == 0)
			r = plan_read(&build->plan, steps ? steps : none, base->text, commands, &err);
	}
	if (r == 0)
		return build;
	call_fail(call, r == -EINVAL ? 400 : 503, NULL, "%s", err.message[0] ? err.message : "out of memory");
	if (build)
		build_free(build);
	return NULL;
}

static bool set_state(struct call *call, struct build_row *row, enum build_state state)
{
	row->state = state;
	return builds_put(call->daemon->store, row) == 0;
}

/* Nothing has to be done: the tags lead to what is there. */
static void answer_done(struct call *call, struct build *build)
{
	struct build_cached state = build->last;
	struct err err = { 0 };

	if (build_skip(build, build->plan.count, &err) < 0)
		build_fail(build, build->log.step, err.message);
	else
		build_publish(build, &state);
	call_reply(call, 202);
}

/* Whatever of its sandbox could not be made: the client hears of it by this call, others by the build's state. */
static void not_begun(struct call *call, const char *message)
{
	struct build *build = build_find(call->daemon, call_string(call, "build"));

	if (build)
		build_fail(build, "base", message);
}

static void begin(struct call *call, struct build *build, struct base *base, size_t skipped)
{
	struct kept made = { 0 };
	struct err err = { 0 };

	if (skipped)
		base->origin = (struct origin){ .session = build->last.session, .snapshot = build->last.snapshot };
	if (build_skip(build, skipped, &err) < 0)
		call_fail_err(call, 400, &err);
	else if (kept_copy(&made, call->message, SERVICE_CREATE) < 0)
		call_fail(call, 503, NULL, "out of memory");
	else
		call->daemon->hooks.verbs->create(call, &made, &base->origin, BUILD_TIME_MS);
}

static void start_build(struct call *call, struct build_row *row, struct base *base)
{
	struct build *build = make_build(call, base, row->owner);
	size_t skipped;
	bool is_whole;

	if (!build)
		return;
	build_trim_logs(call->daemon, build->id);
	build->next = call->daemon->registry.builds;
	call->daemon->registry.builds = build;
	skipped = find_done(build, call_number(call, "force", 0) != 0, &is_whole);
	if (is_whole) {
		answer_done(call, build);
		return;
	}
	call->failed = not_begun;
	if (!set_state(call, row, BUILD_BUILDING))
		template_name_fail_database(call, -EIO);
	else
		begin(call, build, base, skipped);
}

void builds_start(struct call *call)
{
	struct build_row row;
	struct base base = { .text = "" };

	if (!build_get(call, &row))
		return;
	if (row.state != BUILD_WAITING) {
		call_fail(call, 409, NULL, "the build '%s' was started before", row.id);
		return;
	}
	if (build_count_running(call->daemon, row.owner) >= BUILDS_RUNNING_MAX) {
		call_fail(call, 429, NULL, "%s builds as many templates at once as it may (%d)", row.owner,
			  BUILDS_RUNNING_MAX);
		return;
	}
	if (!call->daemon->hooks.verbs->check(call, builds_start))
		return;
	trim_kept(call->daemon);
	if (find_base(call, &base))
		start_build(call, &row, &base);
	kept_done(&base.settings);
}

void builds_begun(struct sandbox *sandbox, struct call *call)
{
	struct build *build = build_find(call->daemon, call_string(call, "build"));

	if (!build) {
		call_fail(call, 500, NULL, "the build is not known any more");
		sandbox->daemon->hooks.verbs->kill(sandbox, NULL);
		return;
	}
	call_reply(call, 202);
	build_begin(build, sandbox);
}

/* ---- the end ---- */

struct listing {
	struct daemon *daemon;
	const char *template;
	char id[DATABASE_NAME_SIZE];
	char tag[DATABASE_NAME_SIZE];
};

static int take_first(void *context, const struct build_row *row)
{
	struct listing *listing = context;

	if (str_equal(row->template, listing->template))
		(void)!str_copy(listing->id, sizeof listing->id, row->id);
	return 0;
}

static int take_tag(void *context, const struct build_tag *tag)
{
	struct listing *listing = context;

	return str_copy(listing->tag, sizeof listing->tag, tag->tag);
}

static int forget(struct call *call, const char *template_id)
{
	struct listing listing = { .daemon = call->daemon, .template = template_id };
	struct database *store = call->daemon->store;
	int r;

	do {
		listing.tag[0] = 0;
		r = builds_each_tag(store, template_id, take_tag, &listing);
		if (r == 0 && listing.tag[0])
			r = builds_remove_tag(store, template_id, listing.tag);
	} while (r >= 0 && listing.tag[0]);
	while (r >= 0) {
		listing.id[0] = 0;
		r = builds_each(store, take_first, &listing);
		if (r < 0 || !listing.id[0])
			break;
		r = builds_get(store, listing.id, &(struct build_row){ .id = "" });
		if (r == 1)
			remove_build(call->daemon, listing.id);
	}
	return r < 0 ? r : 0;
}

void builds_delete(struct call *call)
{
	struct template_row row;
	int r = template_name_find(call, call_string(call, "template"), false, &row);

	if (r == 0) {
		call->daemon->hooks.verbs->delete_snapshot(call);
		return;
	}
	if (r == 1)
		r = forget(call, row.id);
	if (r == 0)
		r = database_remove_template(call->daemon->store, row.id);
	if (r == 0)
		r = call->daemon->hooks.verbs->hold(call->daemon);
	if (r < 0)
		call_fail(call, call_unwritten_status(r), NULL, "the database cannot be written");
	else
		call_reply(call, 204);
}

void builds_stop(struct daemon *daemon)
{
	for (struct build *build = daemon->registry.builds; build; build = build->next) {
		uint64_t ticket = 0;

		if (!build->sandbox)
			continue;
		build->sandbox->beginning.build = NULL;
		if (build->sandbox->handle)
			(void)!atoll_stop(build->sandbox->handle, 0, &ticket, NULL, NULL);
	}
	build_free_all(daemon);
}
