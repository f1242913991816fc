/* SPDX-License-Identifier: Apache-2.0 */
#include "client/run-setup.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/names.h"
#include "base/str.h"
#include "client/agent-trust.h"
#include "client/compiled.h"
#include "client/dirs.h"
#include "client/fork-origin.h"
#include "client/launch.h"
#include "client/narrow.h"
#include "client/recording.h"
#include "client/secrets.h"
#include "client/tokens.h"
#include "os/fd.h"
#include "policy/decide.h"
#include "policy/trial.h"
#include "session/agent-start.h"
#include "session/env-additions.h"
#include "session/run-ports.h"

extern char **environ;

/* A valid section that this build cannot enforce is refused by name: running without it would be a lie. */
static int refuse_unenforced(const struct policy *policy, struct err *err)
{
	enum { SHOWN_MAX = 3 };
	char memory[400], shown[ERR_QUOTE_SIZE];
	struct buf list;

	if (!policy->unenforced_count)
		return 0;
	buf_init_fixed(&list, memory, sizeof memory);
	for (size_t i = 0; i < policy->unenforced_count && i < SHOWN_MAX; i++) {
		const struct unenforced *item = &policy->unenforced[i];

		buf_put_text(&list, i ? ", " : "");
		buf_put_text(&list, item->what);
		if (item->origin.line) {
			buf_put_text(&list, " (");
			buf_put_text(&list, err_quote(shown, item->origin.file));
			buf_put_char(&list, ':');
			buf_put_u64_decimal(&list, item->origin.line);
			buf_put_char(&list, ')');
		}
	}
	if (policy->unenforced_count > SHOWN_MAX) {
		buf_put_text(&list, " and ");
		buf_put_u64_decimal(&list, policy->unenforced_count - SHOWN_MAX);
		buf_put_text(&list, " more");
	}
	err_set(err, ERR_POLICY, EOPNOTSUPP, "policy", "this atoll cannot enforce yet: %s",
		buf_error(&list) ? policy->unenforced[0].what : buf_text(&list));
	err_hint(err, "remove it from the policy (with `drop:` if it is inherited), or choose another policy");
	return -EOPNOTSUPP;
}

/* Whoever rewrites atoll or atoll-init decides what the next run is worth. */
static int refuse_replaceable(const struct policy *policy, const struct dirs *dirs, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	if (policy_classify(policy, dirs->programs, &(size_t){ 0 }) != FILE_WRITE)
		return 0;
	err_set(err, ERR_POLICY, EPERM, "policy", "the sandbox could replace atoll's own programs, which lie in %s",
		err_quote(shown, dirs->programs));
	err_hint(err, "install atoll elsewhere (`make install`), or take a level that stages this tree (`-t medium`)");
	return -EPERM;
}

/* What a fork stands on was staged under that policy: the same trees, and no wall less. */
static bool has_policy_of_origin(const struct run_setup *given)
{
	return given->origin && !given->policy && !given->trust;
}

/* The starter had it compiled, for this project: another would have other paths. */
static bool has_own_snapshot(const struct run_setup *given)
{
	return given->starter && given->policy_fd >= 0;
}

static int load_snapshot(const struct run_setup *given, const struct dirs *dirs,
			 struct compiled *ret_compiled, struct err *err)
{
	char path[32];
	int r = str_format(path, sizeof path, "/proc/self/fd/%d", given->policy_fd);

	if (r == 0)
		r = compiled_load(path, ret_compiled, err);
	if (r < 0 || str_equal(snapshot_policy(ret_compiled->snapshot)->project, dirs->project))
		return r;
	compiled_done(ret_compiled);
	err_set(err, ERR_POLICY, EINVAL, "policy", "the policy was loaded for another project");
	err_hint(err, "load it for the project of the sandbox");
	return -EINVAL;
}

/* A policy may have all of its sections and still be none that this atoll runs under here. */
static int refuse_policy(const struct policy *policy, const struct dirs *dirs, struct err *err)
{
	int r = refuse_unenforced(policy, err);

	return r != 0 ? r : refuse_replaceable(policy, dirs, err);
}

/* The policy names paths from the root on. *ret_paths: NULL-terminated, static. */
static int resolve_unmask(const struct option_list *unmask, const char *const **ret_paths, struct err *err)
{
	static char paths[COMPILED_UNMASK_MAX][PATH_MAX];
	static const char *list[COMPILED_UNMASK_MAX + 1];
	int r = 0;

	if (unmask->count > COMPILED_UNMASK_MAX)
		return err_set(err, ERR_USAGE, EINVAL, "run", "--unmask is for at most %d files", COMPILED_UNMASK_MAX);
	for (size_t i = 0; i < unmask->count && r == 0; i++) {
		r = dirs_absolute(unmask->values[i], "--unmask", paths[i], err);
		list[i] = paths[i];
	}
	*ret_paths = list;
	return r;
}

/* What the policy is made of; lowered as in find_policy(). policy: memory for what *ret_request borrows. */
static int describe_policy(const struct run_setup *given, const struct dirs *dirs, const char *lowered,
			   char policy[PATH_MAX], struct compiled_request *ret_request, struct err *err)
{
	struct compiled_request request = {
		.level = lowered ? lowered : given->trust,
		.is_lowered = lowered != NULL,
		.policy = given->policy,
		.project = dirs->project,
		.home = dirs->home,
		.config_home = dirs->config_home,
		.programs_dir = dirs->programs,
		.state_dir = dirs->state,
		.runtime_dir = dirs->runtime,
	};
	int r = resolve_unmask(&given->amendments.unmask, &request.unmask, err);

	if (r < 0)
		return r;

	if (given->policy && strchr(given->policy, '/')) {
		r = dirs_absolute(given->policy, "policy", policy, err);
		if (r < 0)
			return r;
		request.policy = policy;
	}
	/* `-t high` alone is the policy of that name, which another level stands for then. */
	if (lowered && !given->policy)
		request.policy = given->trust;
	*ret_request = request;
	return 0;
}

/* 1 when atoll-policy has told the user what is wrong. lowered: the level that stands for the policy's; NULL: none. */
static int find_policy(const struct run_setup *given, const struct dirs *dirs, const char *lowered,
		       struct compiled *ret_compiled, struct err *err)
{
	struct compiled_request request;
	char policy[PATH_MAX];
	int r = describe_policy(given, dirs, lowered, policy, &request, err);

	if (r == 0 && has_own_snapshot(given))
		r = load_snapshot(given, dirs, ret_compiled, err);
	else if (r == 0 && has_policy_of_origin(given))
		r = compiled_load(given->origin->policy, ret_compiled, err);
	else if (r == 0)
		r = compiled_get(&request, ret_compiled, err);
	return r != 0 ? r : refuse_policy(snapshot_policy(ret_compiled->snapshot), dirs, err);
}

/* Nothing that was inherited by accident reaches the sandbox. */
static int secure_fds(struct err *err)
{
	int r = fd_secure_standard();

	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "run",
			       "/dev/null cannot replace a closed stdin, stdout or stderr: %s",
			       strerror(-r));
	if (syscall(SYS_close_range, 3u, ~0u, 0u) < 0)
		return err_set(err, ERR_WALL, errno, "fds", "inherited descriptors cannot be closed: %s",
			       strerror(errno));
	return 0;
}

/* What a run is made with beside its request. */
struct run_inputs {
	struct compiled compiled;
	struct secrets secrets;
	struct buf held;             /* what a token allows */
	bool has_presented;          /* and it was asked already */
	struct run_agent standing;
	char agent[TRUST_AGENT_MAX + 1], lent_by[64];
	bool has_standing;
	const char *lowered;         /* the level that the policy was compiled for instead of its own; NULL: its own */
	struct narrowed narrowed;
	bool was_narrowing;
};

static void run_inputs_done(struct run_inputs *inputs)
{
	compiled_done(&inputs->compiled);
	secrets_done(&inputs->secrets);
	buf_done(&inputs->held);
	narrowed_done(&inputs->narrowed);
}

static int narrow_by_token(struct run_inputs *inputs, struct err *err)
{
	struct policy narrowed = *snapshot_policy(inputs->compiled.snapshot);
	int r = token_narrow_limits(&inputs->held, &narrowed);

	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "token", "the token's limits cannot be read")
		     : compiled_change(&inputs->compiled, &narrowed, err);
}

/* The last step before the box, so that a run that comes to nothing uses up nothing. 1: atoll-token said why not. */
static int present_token(const struct run_setup *given, const struct dirs *dirs, struct run_inputs *inputs,
			 struct err *err)
{
	const struct policy *policy = snapshot_policy(inputs->compiled.snapshot);
	struct token_presented presented = {
		.file = given->token, .project = dirs->project, .policy = policy->name, .session = given->name,
		.agent = given->agent ? given->agent : policy->trust.agent,
	};
	int r = token_present(&presented, &inputs->held, err);

	inputs->has_presented = r == 0;
	return r != 0 ? r : narrow_by_token(inputs, err);
}

/* ---- how far the agent is trusted ---- */

static int refuse_fork(const struct run_agent *standing, struct err *err)
{
	err_set(err, ERR_POLICY, EPERM, "trust", "the session that it continues ran at level %s, and now the highest "
						 "level is %s",
		trust_level_names[standing->bounds.policy], trust_level_names[standing->level]);
	err_hint(err, "name the policy (-p), so that it is compiled for that level");
	return -EPERM;
}

/* What outlives the policy that is compiled again. */
static int keep_names(struct run_inputs *inputs)
{
	struct run_agent *standing = &inputs->standing;
	int r = 0;

	if (standing->agent)
		r = str_copy(inputs->agent, sizeof inputs->agent, standing->agent);
	if (r == 0 && standing->lent_by && standing->lent_by != inputs->lent_by)
		r = str_format(inputs->lent_by, sizeof inputs->lent_by, "policy %.50s", standing->lent_by);
	standing->agent = standing->agent ? inputs->agent : NULL;
	standing->lent_by = standing->lent_by ? inputs->lent_by : NULL;
	return r;
}

/* Compiles the policy again, for the level that its agent has, where that is lower than the policy's. */
static int lower_policy(const struct run_setup *given, const struct dirs *dirs, struct run_inputs *inputs,
			struct err *err)
{
	struct agent_trust_request request = { .agent = given->agent, .confidence = given->confidence };
	const struct policy *policy = snapshot_policy(inputs->compiled.snapshot);
	struct compiled lowered = { 0 };
	char note[AGENT_TRUST_NOTE_SIZE];
	int r = agent_trust_find(&request, policy, dirs, &inputs->standing, note, err);

	if (r != 0)
		return r < 0 ? r : 0;
	if (inputs->standing.level < policy->level && given->token) {
		r = present_token(given, dirs, inputs, err);
		if (r == 0)
			r = token_lends(&inputs->held, &request.lent, inputs->lent_by, sizeof inputs->lent_by);
		if (r != 0)
			return r < 0 ? err_set(err, ERR_INTERNAL, -r, "token", "the token's level cannot be read") : r;
		policy = snapshot_policy(inputs->compiled.snapshot);
		request.lent_by = request.lent != TRUST_NONE ? inputs->lent_by : NULL;
		r = agent_trust_find(&request, policy, dirs, &inputs->standing, note, err);
		if (r < 0)
			return r;
	}
	inputs->has_standing = true;
	if (*note && given->notice && !(given->flags & REQUEST_QUIET))
		given->notice(note);
	r = keep_names(inputs);
	if (r < 0 || inputs->standing.level >= policy->level)
		return r;
	if (has_own_snapshot(given) || has_policy_of_origin(given))
		return refuse_fork(&inputs->standing, err);
	inputs->lowered = trust_level_names[inputs->standing.level];
	r = find_policy(given, dirs, inputs->lowered, &lowered, err);
	if (r != 0)
		return r;
	compiled_done(&inputs->compiled);
	inputs->compiled = lowered;
	return inputs->has_presented ? narrow_by_token(inputs, err) : 0;
}

/* ---- what the task does not need ---- */

static enum narrow_mode narrow_mode(const struct run_setup *given, const struct policy *policy)
{
	int named = given->narrow ? names_find(narrow_names, NARROW_COUNT, given->narrow) : -1;

	if (given->narrow)
		return named < 0 ? NARROW_ASK : (enum narrow_mode)named;
	return given->task ? policy->external.narrow : NARROW_OFF;
}

static int refuse_narrowing(const struct run_setup *given, const struct policy *policy, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	if (!external_is_given(&policy->external)) {
		err_set(err, ERR_POLICY, ENOENT, "narrow", "the policy %s names no verifier",
			err_quote(shown, policy->name));
		err_hint(err, "name a command or a model in verify.external");
		return -ENOENT;
	}
	if (!has_policy_of_origin(given))
		return 0;
	err_set(err, ERR_POLICY, EINVAL, "narrow", "a run that continues a session has the policy of that session");
	err_hint(err, "name the policy (-p), so that it is narrowed for this task; or say --narrow=off, or no --task");
	return -EINVAL;
}

/* After the level is known, and before anything is inputs for what the policy gives. */
static int narrow_policy(const struct run_setup *given, const struct dirs *dirs, struct run_inputs *inputs,
			 const struct run_request *run, struct err *err)
{
	const struct policy *policy = snapshot_policy(inputs->compiled.snapshot);
	const struct narrow_request request = {
		.mode = narrow_mode(given, policy), .task = given->task, .session = run->session,
		.init_path = run->init_path, .argv = run->command.argv, .dirs = dirs,
		.prompt = given->prompt, .notice = given->flags & REQUEST_QUIET ? NULL : given->notice,
	};
	struct compiled_request origin;
	char memory[PATH_MAX];
	int r;

	if (request.mode == NARROW_OFF)
		return 0;
	r = refuse_narrowing(given, policy, err);
	if (r == 0)
		r = describe_policy(given, dirs, inputs->lowered, memory, &origin, err);
	if (r == 0)
		r = narrow_run(&request, &origin, &inputs->compiled, &inputs->narrowed, err);
	inputs->was_narrowing = r == 0;
	if (r == 0)
		r = refuse_policy(snapshot_policy(inputs->compiled.snapshot), dirs, err);
	/* It was compiled anew. */
	return r == 0 && inputs->has_presented ? narrow_by_token(inputs, err) : r;
}

/* ---- trials ---- */

static enum policy_trial_place place_to_read(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? POLICY_TRIAL_NOTHING : POLICY_TRIAL_FILE;
	return S_ISDIR(st.st_mode) || S_ISREG(st.st_mode) ? POLICY_TRIAL_FILE : POLICY_TRIAL_DOOR;
}

static enum policy_trial_place place_to_stage(const char *path)
{
	struct stat st;
	bool is_root = str_equal(path, "/");

	return !is_root && stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? POLICY_TRIAL_DIRECTORY : place_to_read(path);
}

/* A fork has the trees of its origin and no others: what that one wrote to the host, its trial can only read. */
static int make_trial(const struct run_setup *given, struct run_inputs *inputs, struct run_request *request,
		      struct err *err)
{
	struct policy_trial_plan plan;
	int r = policy_trial_make(&plan, snapshot_policy(inputs->compiled.snapshot),
				  given->origin ? place_to_read : place_to_stage);

	if (r == 0)
		r = compiled_change(&inputs->compiled, &plan.policy, err);
	else
		err_set(err, ERR_INTERNAL, -r, "policy", "%s", strerror(-r));
	if (plan.is_changed)
		request->flags |= REQUEST_WRITES_HOST;
	policy_trial_done(&plan);
	return r;
}

/* What was recorded, or nothing: a trial has no network. */
static int open_recording(const struct run_setup *given, const struct policy *policy, struct run_request *request,
		     struct err *err)
{
	bool is_trial = given->flags & REQUEST_TRIAL && !given->replay;

	if (is_trial && policy->network.mode != NETWORK_GATE)
		return 0;
	request->recording.mode = given->record		      ? RECORDING_WRITE
				  : given->replay || is_trial ? RECORDING_REPLAY
							      : RECORDING_NONE;
	return is_trial ? recording_open_blank(&request->recording.fd, err)
			: recording_open(given->record, given->replay, policy, &request->recording.fd, err);
}

static bool is_lowered(const struct run_setup *given, const struct run_inputs *inputs)
{
	return inputs->lowered || (has_policy_of_origin(given) && given->origin->is_lowered);
}

/* What the options of the run change in its policy: ports of this machine, and walls that may be missing. */
static int change_by_options(const struct run_setup *given, struct run_inputs *inputs, struct err *err)
{
	struct policy policy = *snapshot_policy(inputs->compiled.snapshot);
	struct host_port ports[NET_HOST_PORTS_MAX];
	int r = run_ports_add(&given->amendments.host_ports, &policy, ports, err);

	if (r == 0)
		r = run_walls_accept(given->amendments.degrade, &policy, err);
	if (r < 0 || (!given->amendments.host_ports.count && !given->amendments.degrade))
		return r;
	return compiled_change(&inputs->compiled, &policy, err);
}

static const struct run_completion *completion(const struct run_setup *given)
{
	return given->starter ? given->starter->completion : NULL;
}

/* What the policy of the run is. 1: the user was told why there is none. */
static int collect_policy(const struct run_setup *given, const struct dirs *dirs, struct run_inputs *inputs,
			  struct run_request *request, struct err *err)
{
	const struct run_completion *waits = completion(given);
	int r = find_policy(given, dirs, NULL, &inputs->compiled, err);

	/* Whose it will be is not known yet: find_own() has the agent's standing then. */
	if (r == 0 && !waits)
		r = lower_policy(given, dirs, inputs, err);
	if (r == 0)
		r = given->flags & REQUEST_TRIAL ? make_trial(given, inputs, request, err)
						 : narrow_policy(given, dirs, inputs, request, err);
	if (r == 0 && waits)
		r = waits->check(waits->context, inputs->compiled.snapshot, dirs->project, dirs->programs, err);
	return r == 0 ? change_by_options(given, inputs, err) : r;
}

/* What belongs to this run alone. 1: the user was told why there is nothing to run. */
static int collect_own(const struct run_setup *given, const struct dirs *dirs, struct run_inputs *inputs,
		       struct run_request *request, struct err *err)
{
	const struct policy *policy = snapshot_policy(inputs->compiled.snapshot);
	bool is_trial = given->flags & REQUEST_TRIAL;
	int r;

	request->flags |= is_lowered(given, inputs) ? REQUEST_LOWERED : 0;
	request->narrowing = inputs->was_narrowing ? &inputs->narrowed.told : NULL;
	/* What goes wrong in a trial is held against nobody. */
	request->agent = inputs->has_standing && !is_trial ? &inputs->standing : NULL;
	r = secrets_bring(policy, dirs, &inputs->secrets, err);
	if (r == 0)
		r = secrets_bring_key(policy, dirs, &request->secrets.notify_fd, err);
	if (r == 0 && !is_trial)
		r = secrets_bring_verifier(policy, dirs, &request->secrets.judge_fd, err);
	if (r != 0)
		return r;
	request->secrets.placeholders = inputs->secrets.variables;
	request->secrets.gate_fd = take_fd(&inputs->secrets.values_fd);
	r = open_recording(given, policy, request, err);
	r = r == 0 ? agent_prepare(policy, request, err) : r;
	if (r == 0 && given->token && !inputs->has_presented)
		r = present_token(given, dirs, inputs, err);
	request->token.frame = inputs->held.bytes;
	request->token.size = inputs->held.size;
	return r;
}

/* Where a run's paths are found: large, and gone before the run waits for its command. */
struct finding {
	struct dirs dirs;
	struct token_directories token_dirs;
	char report[PATH_MAX], init[PATH_MAX], root[PATH_MAX];
};

enum { PATHS_KEPT = 10 };

/* For tokens that are presented from inside; where there are none, none is taken. A trial would use them up. */
static void find_token_places(struct token_directories *ret_dirs, struct run_request *request)
{
	struct err unheard;

	if (request->flags & REQUEST_TRIAL || token_directories(ret_dirs, &unheard) < 0)
		ret_dirs->keys[0] = ret_dirs->store[0] = 0;
	request->token.keys = ret_dirs->keys;
	request->token.store = ret_dirs->store;
}

static int find_paths(const struct run_setup *given, struct finding *finding, struct run_request *request,
		      struct err *err)
{
	struct dirs *dirs = &finding->dirs;
	int r = dirs_find(dirs, given->project, given->cwd, err);

	if (r == 0 && given->report) {
		r = dirs_absolute(given->report, "report", finding->report, err);
		request->report_path = finding->report;
	}
	if (r == 0 && given->amendments.root) {
		r = dirs_find_root(dirs, given->amendments.root, finding->root, err);
		request->fork.root = finding->root;
	}
	if (r < 0)
		return r;
	find_token_places(&finding->token_dirs, request);
	request->project = dirs->project;
	request->cwd = dirs->cwd;
	request->home = dirs->home;
	request->state_dir = dirs->state;
	request->runtime_dir = dirs->runtime;
	request->init_path = finding->init;
	r = path_join(finding->init, sizeof finding->init, dirs->programs, "atoll-init");
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "run", "atoll-init cannot be named: %s", strerror(-r)) : 0;
}

/* The request's own paths become those of kept[] (for free()), so that where they were found can go. */
static int keep_paths(struct run_request *request, char *kept[PATHS_KEPT + 1], struct err *err)
{
	const char **const paths[PATHS_KEPT] = {
		&request->project, &request->cwd, &request->home, &request->state_dir, &request->runtime_dir,
		&request->init_path, &request->token.keys, &request->token.store, &request->report_path,
		&request->fork.root,
	};
	size_t count = 0;

	for (size_t i = 0; i < PATHS_KEPT; i++) {
		if (!*paths[i])
			continue;
		kept[count] = str_dup(*paths[i]);
		if (!kept[count])
			return err_set(err, ERR_INTERNAL, ENOMEM, "run", "out of memory");
		*paths[i] = kept[count++];
	}
	return 0;
}

static int launch(struct run_request *request, const struct compiled *compiled)
{
	return launch_box(request, &(struct run_policy){ compiled->bytes, compiled->size, compiled->snapshot,
							 snapshot_policy(compiled->snapshot) });
}

static bool is_name_valid(const char *name)
{
	size_t length = strlen(name);

	return length >= 1 && length <= 64 && name[0] != '-' && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == length;
}

int run_setup_check(const struct run_setup *given, struct err *err)
{
	char shown[ERR_QUOTE_SIZE];

	if (given->name && !is_name_valid(given->name)) {
		err_set(err, ERR_USAGE, EINVAL, "run", "%s cannot be the name of a session",
			err_quote(shown, given->name));
		err_hint(err,
			 "1 to 64 letters, digits, '.', '_' and '-', beginning with none of '.' and '-'");
		return -EINVAL;
	}
	if (given->agent && !trust_agent_is_valid(given->agent)) {
		err_set(err, ERR_USAGE, EINVAL, "run", "%s cannot be the name of an agent",
			err_quote(shown, given->agent));
		err_hint(err, "1 to 64 letters, digits, '.', '_' and '-', beginning with none of '.' and '-'");
		return -EINVAL;
	}
	if (given->trust && names_find(trust_level_names, TRUST_COUNT, given->trust) < 0)
		return trust_level_set_unknown("run", given->trust, err);
	return 0;
}

/* A frame of its own, which is given back with the rest of the stack (memory_rest_stack()). */
__attribute__((noinline)) static int find_and_collect(const struct run_setup *given, struct run_inputs *inputs,
						    struct run_request *request, char *kept[PATHS_KEPT + 1],
						    struct err *err)
{
	struct finding finding;
	int r = find_paths(given, &finding, request, err);

	if (r == 0)
		r = collect_policy(given, &finding.dirs, inputs, request, err);
	if (r == 0 && !completion(given))
		r = collect_own(given, &finding.dirs, inputs, request, err);
	return r == 0 ? keep_paths(request, kept, err) : r;
}

/* A run as it is made from what was given. */
struct making {
	const struct run_setup *given;
	char **command;
	struct run_inputs inputs;
	struct run_request request;
	struct run_parking parking;
	char session[SESSION_ID_SIZE], group[SESSION_ID_SIZE];
	char *added[ENV_ADDITIONS_MAX], *kept[PATHS_KEPT + 1], *cwd, *report;
	struct publish_rule published[NET_PUBLISH_MAX];
};

static void making_done(struct making *making)
{
	run_inputs_done(&making->inputs);
	for (size_t i = 0; making->kept[i]; i++)
		free(making->kept[i]);
	free(making->cwd);
	free(making->report);
}
#define cleanup_making __attribute__((cleanup(making_done)))

/* What needs nothing to be looked up. */
static int fill_in(struct making *making, struct err *err)
{
	const struct run_setup *given = making->given;
	struct run_request *request = &making->request;
	int r = env_additions_make(&given->env, making->added, err);

	if (r == 0)
		r = run_ports_published(&given->publish, making->published, err);
	if (r < 0)
		return r;
	request->flags |= given->flags;
	request->task = given->task;
	request->name = given->name;
	request->command.argv = making->command;
	request->command.env = given->environment ? given->environment : environ;
	request->command.env_exact = given->exact_env;
	request->command.env_added = given->exact_env ? given->exact_env : making->added;
	request->publish = (struct run_publish){ making->published, given->publish.count };
	r = given->session ? str_copy(making->session, sizeof making->session, given->session)
			   : random_session_id(making->session);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "run", "no id for the session can be made: %s", strerror(-r)) : 0;
}

/* Of what waited the modules know all paths but these. */
static int keep_own_paths(struct making *making, const struct run_request *found, struct err *err)
{
	making->cwd = str_dup(found->cwd);
	making->report = found->report_path ? str_dup(found->report_path) : NULL;
	if (!making->cwd || !making->report != !found->report_path)
		return err_set(err, ERR_INTERNAL, ENOMEM, "run", "out of memory");
	making->request.cwd = making->cwd;
	making->request.report_path = making->report;
	return 0;
}

/* Whether anything of what waited has to be looked for: else it starts in the project, as nobody in particular. */
static bool has_places(const struct making *making)
{
	const struct run_setup *given = making->given;
	const struct policy *policy = snapshot_policy(making->inputs.compiled.snapshot);

	return given->cwd || given->report || given->agent || policy->trust.agent || policy->ask.webhook_key ||
	       policy->ask.webhook_key_file || policy->external.secret ||
	       (given->project && !str_equal(given->project, making->request.project));
}

/* Of what waited: where it runs, and what belongs to it alone. A frame of its own, as above. 1: as collect_own(). */
__attribute__((noinline)) static int find_own(struct making *making, struct err *err)
{
	const struct run_setup *given = making->given;
	struct run_request found = making->request;
	struct finding finding;
	int r = find_paths(given, &finding, &found, err);

	if (r == 0 && !str_equal(making->request.project, found.project))
		r = err_set(err, ERR_USAGE, EINVAL, "take", "it is parked for another project");
	if (r == 0)
		r = keep_own_paths(making, &found, err);
	if (r == 0)
		r = lower_policy(given, &finding.dirs, &making->inputs, err);
	return r == 0 ? collect_own(given, &finding.dirs, &making->inputs, &making->request, err) : r;
}

/* run_parking.take */
static int complete_request(void *context, struct frame *frame, int *fds, size_t fd_count, struct err *err)
{
	struct making *making = context;
	const struct run_completion *waited = completion(making->given);
	int r = waited->take(waited->context, frame, fds, fd_count, err);

	making->request.started_ns = waited->started_ns;
	making->command = waited->command;
	if (r == 0)
		r = fill_in(making, err);
	making->request.cwd = making->request.project;
	if (r == 0)
		r = has_places(making) ? find_own(making, err)
				       : collect_own(making->given, NULL, &making->inputs, &making->request, err);
	return r == 1 ? err_set(err, ERR_POLICY, EINVAL, "take", "the policy needs something that this machine does "
								 "not have") : r;
}

static void begin(struct making *making, const struct run_setup *given, char **command, uint64_t started_ns)
{
	static char *none[] = { NULL };

	*making = (struct making){ .given = given, .command = command };
	making->inputs.secrets.values_fd = FD_NONE;
	making->parking = (struct run_parking){ .take = complete_request, .context = making,
						.age_ms = completion(given) ? completion(given)->age_ms : 0 };
	making->request = (struct run_request){
		.session = making->session,
		.group = making->group,
		.secrets = { .gate_fd = FD_NONE, .judge_fd = FD_NONE, .notify_fd = FD_NONE },
		.recording.fd = FD_NONE,
		.tests = { getenv("ATOLL_TEST_BREAK"), getenv("ATOLL_TEST_LIMITS"), getenv("ATOLL_TEST_HOSTS") },
		.started_ns = started_ns,
		.starter = given->starter,
		.notice = given->notice,
		.parking = completion(given) ? &making->parking : NULL,
		.fork = { given->origin ? given->origin->session : NULL,
			  given->origin ? (char **)given->origin->layers : none },
	};
	buf_init(&making->inputs.held, TOKEN_HELD_MAX);
}

int run_setup_start(const struct run_setup *given, char **command, uint64_t started_ns, struct err *err)
{
	cleanup_making struct making making;
	int r = given->starter ? 0 : secure_fds(err);

	begin(&making, given, command, started_ns);
	if (r == 0)
		r = fill_in(&making, err);
	if (r < 0)
		return r;
	memcpy(making.group, making.session, sizeof making.group);
	r = find_and_collect(given, &making.inputs, &making.request, making.kept, err);
	if (r < 0 && making.inputs.lowered)
		agent_trust_blame(&making.inputs.standing, err);
	return r == 0 ? launch(&making.request, &making.inputs.compiled) : r == 1 ? 125 : r;
}
