/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "client/fork-origin.h"
#include "client/staged.h"
#include "os/clock.h"
#include "prog/atoll/run/run.h"
#include "prog/atoll/verb/cmd.h"
#include "session/directories.h"
#include "stage/snapshot/snapshot.h"

/*
 * `atoll fork`: a new session that stands on the sealed layers of another one. What it stands on is a snapshot of that
 * session, so that gc keeps the layers until the new session names them itself, and its policy is the other's as
 * it was enforced, unless the user names one: the staged trees must be the same.
 */

static int choose_chain(const char *state, const struct session_record *record, const char *name,
			struct stage_chain *ret_chain, struct err *err)
{
	struct staged_snapshot wanted = { .prefix = STAGE_FORK_PREFIX };
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	char made[STAGE_SNAPSHOT_NAME_SIZE];
	int r = name ? 0 : staged_snapshot(state, record, &wanted, made, err);

	if (r != 0)
		return r;
	r = stage_lock_open(state, record->id, &lock, err);
	if (r == 0)
		r = stage_snapshot_load(&lock, name ? name : made, ret_chain, err);
	if (r == 0 && stage_lock_touch(&lock) < 0)
		r = err_set(err, ERR_STATE, errno, "fork", "the layers of session %s cannot be protected from "
							   "gc", record->id);
	return r;
}

static int keep_layers(struct fork_origin *origin, const struct stage_chain *chain, struct err *err)
{
	for (size_t i = 0; i < chain->count; i++)
		if (str_format(origin->texts[i], sizeof origin->texts[i], "%s/%u", chain->layers[i].session,
			       chain->layers[i].number) == 0)
			origin->layers[i] = origin->texts[i];
		else
			return err_set(err, ERR_INTERNAL, EINVAL, "fork", "the name of a layer is not valid");
	origin->layers[chain->count] = NULL;
	return 0;
}

int fork_find(const char *session, const char *name, struct fork_origin *ret_origin, struct err *err)
{
	cleanup_session_record struct session_record record = { 0 };
	struct stage_chain chain;
	int r = staged_find(session, ret_origin->state, &record, err);

	if (r == 0)
		r = choose_chain(ret_origin->state, &record, name, &chain, err);
	if (r == 0)
		r = keep_layers(ret_origin, &chain, err);
	ret_origin->is_lowered = r == 0 && record.is_lowered;
	if (r == 0)
		r = str_copy(ret_origin->session, sizeof ret_origin->session, record.id);
	if (r == 0)
		r = str_copy(ret_origin->project, sizeof ret_origin->project, record.project);
	if (r == 0)
		r = session_path(ret_origin->state, record.id, "policy.bin", ret_origin->policy,
				 sizeof ret_origin->policy);
	if (r == -ENAMETOOLONG)
		return err_set(err, ERR_STATE, ENAMETOOLONG, "fork", "the path of session %s is too long", record.id);
	return r;
}

/* Its home is one that only the service lays out. */
static int need_own(const struct fork_origin *origin, struct err *err)
{
	char service[PATH_MAX];

	if (path_join(service, sizeof service, origin->state, "service") < 0 ||
	    !path_is_below(origin->project, service))
		return 0;
	err_set(err, ERR_POLICY, EPERM, "fork", "session %s is a sandbox of `atoll serve`, which alone can fork it",
		origin->session);
	err_hint(err, "fork() of the client does it; for a look into it: atoll exec %s -- CMD", origin->session);
	return -EPERM;
}

/* Up to two words stand before the options of the run: the session, and the snapshot. */
static int find_origin(int count, char **words, struct fork_origin *ret_origin, struct err *err)
{
	const char *session = NULL, *name = NULL;
	char state[PATH_MAX];
	int r = session_state_dir(state, sizeof state, false, err);

	if (r < 0)
		return r;
	if (count == 2)
		session = words[0], name = words[1];
	else if (count && staged_is_session(state, words[0]))
		session = words[0];
	else if (count)
		name = words[0];
	return fork_find(session, name, ret_origin, err);
}

static bool has_separator(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (str_equal(argv[i], "--"))
			return true;
	return false;
}

static int run_verb(int argc, char **argv, struct err *err)
{
	uint64_t started_ns = clock_monotonic_ns();
	struct fork_origin origin = { 0 };
	int words = 0, r;

	while (words + 1 < argc && argv[words + 1][0] != '-')
		words++;
	if (words + 1 < argc && (str_equal(argv[words + 1], "--help") || str_equal(argv[words + 1], "-h")))
		return CMD_HELP;
	if (words > 2 || !has_separator(argc, argv)) {
		err_set(err, ERR_USAGE, EINVAL, "fork", words > 2 ? "which of these words is the command?"
								  : "there is no command to run");
		err_hint(err, "atoll fork [ID] [SNAPSHOT] [options of run] -- CMD ARG…");
		return -EINVAL;
	}
	r = find_origin(words, argv + 1, &origin, err);
	if (r == 0)
		r = need_own(&origin, err);
	if (r != 0)
		return r;
	argv[words] = argv[0];
	return run_start(argc - words, argv + words, &origin, started_ns, err);
}

const struct cmd cmd_fork = {
	"fork", "[ID] [SNAPSHOT] [options of run] -- CMD…", "run a command on what a session has staged",
	.run = run_verb,
};
