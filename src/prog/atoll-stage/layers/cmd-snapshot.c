/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The snapshot of a running session. Descriptor 3 is a connection to its box, which freezes the sandbox until we say
 * so or are gone; meanwhile the live uppers are copied. The copy gets its name only when the box has said that nothing
 * moved until the end. (A session in which nothing runs is sealed by atoll itself.)
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "prog/atoll-stage/layers/standstill.h"
#include "prog/atoll-stage/layers/turns.h"
#include "prog/atoll-stage/verb/layer-gc.h"
#include "prog/atoll-stage/verb/verb.h"
#include "stage/snapshot/snapshot.h"

struct snapshot_options {
	struct verb_session session;
	const char *name, *prefix, *message;
};

static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct snapshot_options),
	{ 0, "name", "NAME", "the snapshot's name", OPTION_TEXT, offsetof(struct snapshot_options, name) },
	{ 0, "prefix", "PREFIX", "name it PREFIXn", OPTION_TEXT, offsetof(struct snapshot_options, prefix) },
	{ 0, "message", "TEXT", "what it is for", OPTION_TEXT, offsetof(struct snapshot_options, message) },
};

static int copy_frozen(const struct stage_lock *lock, const char *name, uint32_t *ret_layer, struct err *err)
{
	int r = standstill_begin(name, err);

	if (r == 0)
		r = stage_snapshot_copy(lock, ret_layer, err);
	if (r < 0)
		return r;
	r = standstill_end(err);
	if (r > 0) {
		err_set(err, ERR_STATE, EAGAIN, "snapshot", "the session went on before its copy was finished");
		err_hint(err, "try again, or stop the session first");
		r = -EAGAIN;
	}
	if (r < 0 && stage_snapshot_drop_copy(lock, *ret_layer) < 0)
		return r; /* nothing names it: gc takes it */
	return r;
}

static int choose_name(const struct snapshot_options *given, const struct stage_lock *lock,
		       char out[STAGE_SNAPSHOT_NAME_SIZE], struct err *err)
{
	int r;

	if (!given->name)
		return stage_snapshot_next_name(lock, given->prefix, out, err);
	r = stage_snapshot_check_name(lock, given->name, err);
	return r < 0 ? r : str_copy(out, STAGE_SNAPSHOT_NAME_SIZE, given->name);
}

static int take_snapshot(const struct snapshot_options *given, struct stage_lock *lock,
			 char name[STAGE_SNAPSHOT_NAME_SIZE], struct err *err)
{
	bool is_auto = given->prefix && str_equal(given->prefix, STAGE_AUTO_PREFIX);
	bool is_turn = given->prefix && str_equal(given->prefix, STAGE_TURN_PREFIX);
	uint32_t layer = 0;
	int r = choose_name(given, lock, name, err);

	if (r == 0)
		r = layer_gc_confine(lock->sessions_fd, NULL, err);
	if (r == 0 && is_turn)
		r = turns_check(lock, err);
	if (r == 0)
		r = copy_frozen(lock, name, &layer, err);
	if (r == 0)
		r = stage_snapshot_name_copy(lock, layer, name, given->message, err);
	if (r == 0 && is_turn)
		r = turns_thin(lock, err);
	if (r == 0 && is_auto) {
		r = stage_snapshot_thin(lock, STAGE_AUTO_PREFIX, STAGE_AUTO_KEPT, err);
		if (r > 0)
			r = layer_gc_layers(lock, err);
	}
	return r;
}

int cmd_snapshot(int argc, char **argv, struct err *err)
{
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	struct snapshot_options given = { 0 };
	char name[STAGE_SNAPSHOT_NAME_SIZE];
	int rest, r = options_parse(options, ARRAY_SIZE(options), &given, argc, argv, true, &rest, err);

	if (r == 0 && (!given.session.state || !given.session.id || !given.name == !given.prefix))
		r = err_set(err, ERR_USAGE, EINVAL, "snapshot", "atoll-stage snapshot is run by atoll");
	if (r == 0)
		r = stage_lock_open(given.session.state, given.session.id, &lock, err);
	if (r == 0)
		r = stage_lock_need_layers(&lock, "a snapshot", err);
	if (r == 0)
		r = take_snapshot(&given, &lock, name, err);
	if (r < 0)
		return r;
	return printf("%s\n", name) < 0 || fflush(stdout) != 0
		       ? err_set(err, ERR_STATE, EIO, "snapshot", "stdout cannot be written")
		       : 0;
}
