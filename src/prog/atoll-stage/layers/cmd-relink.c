/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Run by the box before a session that begins on layers is mounted, where whoever made them made hard links, too: keeps
 * files of several names together. Writes struct stage_linked to stdout, and nothing else.
 */

#include <unistd.h>

#include "os/fd.h"
#include "prog/atoll-stage/verb/layer-gc.h"
#include "prog/atoll-stage/verb/verb.h"
#include "stage/snapshot/relink.h"

struct relink_options {
	struct verb_session session;
};

static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct relink_options),
};

int cmd_relink(int argc, char **argv, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	struct relink_options given = { 0 };
	struct stage_linked linked;
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r == 0 && (!given.session.state || !given.session.id))
		r = err_set(err, ERR_USAGE, EINVAL, "relink", "atoll-stage relink is run by atoll");
	if (r == 0)
		r = stage_lock_open(given.session.state, given.session.id, &lock, err);
	if (r == 0)
		r = layer_gc_confine(lock.sessions_fd, NULL, err);
	if (r == 0)
		r = stage_relink(&lock, &linked, err);
	if (r < 0)
		return r;
	r = fd_write_full(STDOUT_FILENO, &linked, sizeof linked);
	return r < 0 ? err_set(err, ERR_STATE, -r, "relink", "stdout cannot be written") : 0;
}
