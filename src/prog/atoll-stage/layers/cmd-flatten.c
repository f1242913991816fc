/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/verb/layer-gc.h"
#include "prog/atoll-stage/verb/verb.h"
#include "stage/snapshot/flatten.h"

/* Joins the layers of a chain that grew long. Started by atoll in the background; nobody reads what it says. */

struct flatten_options {
	struct verb_session session;
};

static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct flatten_options),
};

int cmd_flatten(int argc, char **argv, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	struct flatten_options given = { 0 };
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r == 0 && (!given.session.state || !given.session.id))
		r = err_set(err, ERR_USAGE, EINVAL, "flatten", "atoll-stage flatten is run by atoll");
	if (r == 0)
		r = stage_lock_open(given.session.state, given.session.id, &lock, err);
	if (r == 0)
		r = layer_gc_confine(lock.sessions_fd, NULL, err);
	/* Another one may have been here first. */
	if (r == 0 && lock.chain.count <= STAGE_CHAIN_FLATTEN)
		return 0;
	if (r == 0)
		r = stage_flatten(&lock, err);
	return r < 0 ? r : layer_gc_layers(&lock, err);
}
