/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "box/building.h"
#include "box/steps.h"
#include "os/clock.h"
#include "os/path.h"
#include "policy/describe/describe.h"
#include "session/directories.h"
#include "session/record.h"

/* The view of a sandbox: what its policy mounts, what detection and the gates add, and what is taken away. */

int building_find_root(struct building *building, struct err *err)
{
	const struct run_request *request = building->box->run.request;
	struct plan_texts *texts = building->texts;
	int r = 0;

	texts->root[0] = 0;
	if (request->fork.root)
		r = str_copy(texts->root, sizeof texts->root, request->fork.root);
	else if (request->fork.origin)
		r = session_root_of(request->state_dir, request->fork.origin, texts->root, sizeof texts->root);
	return r < 0 && r != -ENOENT ? err_set(err, ERR_STATE, -r, "root", "the root of session %s cannot be found: %s",
					       request->fork.origin, err_errno_name(-r)) : 0;
}

static int add_canaries(void *context, const struct policy *policy, struct plan *plan)
{
	return canaries_plan(context, policy, plan);
}

static int add_certificates(void *context, const struct policy *policy, struct plan *plan)
{
	return certificates_plan(context, plan);
}

/* The mounts of the policy; building->texts must live as long as the plan. */
static int make_plan(struct building *building, bool has_mounts_below, struct err *err)
{
	struct box *box = building->box;
	struct plan_texts *texts = building->texts;
	const struct run_starter *starter = box->run.request->starter;
	bool is_fork = box->build.staging.origin.tree_count;
	struct plan_input input = {
		.policy = box->run.policy->policy,
		.state_dir = box->run.request->state_dir,
		.session = box->run.request->session,
		.chain = is_fork ? &box->build.staging.chain : NULL,
		.origin = is_fork ? &box->build.staging.origin : NULL,
		.by_fuse = building->by_fuse,
		.has_mounts_below = has_mounts_below,
		.denials_path = texts->denials_path,
		.client_path = texts->client_path,
		.behind_masks = { add_canaries, &box->detection.canaries },
		.last = { add_certificates, &box->gates.net.certificates },
		.home_from = starter ? starter->home_from : NULL,
		.user_name = starter ? starter->user_name : NULL,
		.root_from = texts->root[0] ? texts->root : NULL,
		.run_as_root = building->spec.run_as_root,
		.uid = building->spec.uid,
		.gid = building->spec.gid,
	};
	struct policy_place place = { .is_there = path_is_there };
	struct buf limits_text;
	int r = session_path(box->run.request->state_dir, box->run.request->session, "denials.jsonl",
			     texts->denials_path, sizeof texts->denials_path);

	if (r == 0)
		r = path_beside(texts->client_path, sizeof texts->client_path, box->run.request->init_path,
				"atoll-request");
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "plan", "the path of the state directory is too long");
	buf_init_fixed(&limits_text, texts->limits_memory, sizeof texts->limits_memory);
	limits_held(box->run.limits, place.holds);
	place.open_files = limits_open_files(box->run.policy->policy);
	r = policy_describe(box->run.policy->policy, &place, &limits_text);
	input.limits_text = buf_text(&limits_text);
	input.limits_size = limits_text.size;
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "plan", "cannot describe the policy: %s", err_errno_name(-r)) :
		       plan_new(&building->plan, &input, &box->run.missing, err);
}

/* As root a staged tree has what the host has mounted below it; nearly no host has anything there. */
static int plan_mounts_below(struct building *building, struct err *err)
{
	int r = building->spec.run_as_root ? plan_has_mounts_below(building->plan) : 0;

	if (r < 0)
		return err_set(err, ERR_STATE, -r, "stage", "the list of mounts cannot be read: %s",
			       err_errno_name(-r));
	if (r == 0)
		return 0;
	plan_free(building->plan);
	building->plan = NULL;
	return make_plan(building, true, err);
}

/* While the child makes its namespaces: the mounts. */
int build_mounts(void *context, const struct jail_mount **ret_mounts, size_t *ret_count, struct err *err)
{
	struct building *building = context;
	struct box *box = building->box;
	uint64_t start_ns = clock_monotonic_ns();
	int r = gate_introduce(&box->gates.net, err);

	if (r == 0)
		r = make_plan(building, false, err);
	if (r == 0)
		r = plan_mounts_below(building, err);
	if (r == 0)
		*ret_mounts = plan_mounts(building->plan, ret_count);
	box->build.plan_ns = clock_monotonic_ns() - start_ns;
	return r;
}

/* While the child mounts: what of the mounts it may wait for longest. */
int build_masks(void *context, const struct jail_mount **ret_masks, size_t *ret_count, struct err *err)
{
	const struct building *building = context;
	int r = plan_refuse(building->plan, building->box->run.policy->policy, ret_masks, ret_count);

	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "plan", "the programs that the policy denies cannot be looked "
							      "up: %s",
			       err_errno_name(-r)) : 0;
}
