/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which changes go together: a new directory comes along with what is taken below it, and a directory goes only when
 * everything below it does.
 */

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "stage/apply/apply.h"
#include "stage/record/paths.h"

const char *const apply_verdict_names[APPLY_VERDICT_COUNT] = {
	[APPLY_UNWANTED] = "unwanted", [APPLY_TAKEN] = "applied", [APPLY_KEPT] = "kept",
	[APPLY_CONFLICT] = "conflict",
	[APPLY_FLAGGED] = "flagged", [APPLY_REFUSED] = "refused", [APPLY_SYSTEM] = "system", [APPLY_HELD] = "held",
	[APPLY_RACED] = "raced", [APPLY_FAILED] = "failed",
};

static bool is_staged_directory(const struct stage_change *change)
{
	return change->staged_exists && S_ISDIR(change->staged.st_mode);
}

static bool is_host_directory(const struct stage_change *change)
{
	return change->host_exists && S_ISDIR(change->host.st_mode);
}

/* Whether applying it makes a directory, without which nothing can be below it. */
static bool makes_directory(const struct stage_change *change)
{
	return is_staged_directory(change) && !is_host_directory(change);
}

/* Whether applying it takes a directory away, which must be empty by then. */
static bool takes_directory(const struct stage_change *change)
{
	return is_host_directory(change) && !is_staged_directory(change);
}

static int index_made(const struct apply *apply, struct paths *made)
{
	int r = 0;

	for (size_t i = 0; i < apply->count && r == 0; i++) {
		const struct stage_change *change = apply->items[i].change;

		if (makes_directory(change))
			r = paths_put(made, (uint32_t)change->tree, change->path, strlen(change->path), (uint32_t)i);
	}
	return r;
}

/* Whether a directory that is to be made may be taken for the sake of an item in it. */
static bool can_take(const struct apply_item *directory, const struct stage_change *change)
{
	/* What the host has in its place is not given up for the sake of something below that was named. */
	if (directory->change->state == STAGE_CONFLICT && directory->change->host_exists)
		return false;
	/* Naming a protected path allows the directory that it needs as well. */
	return directory->verdict == APPLY_UNWANTED || (directory->verdict == APPLY_FLAGGED && change->is_flagged);
}

/*
 * Takes the directories that must be made for an item; false where one of them is left, and then none is taken. A
 * directory comes before what is in it, so above one that is taken all is settled: a chain of a thousand levels is
 * climbed once and not by each that hangs on it.
 */
static bool take_above(struct apply *apply, const struct paths *made, const struct stage_change *change)
{
	size_t first = paths_parent(change->path, strlen(change->path)), length;
	uint32_t at = PATHS_NONE;

	for (length = first; length; length = paths_parent(change->path, length)) {
		at = paths_find(made, (uint32_t)change->tree, change->path, length);
		/* It is there on the host, and so is all above it. */
		if (at == PATHS_NONE || apply->items[at].verdict == APPLY_TAKEN)
			break;
		if (!can_take(&apply->items[at], change))
			return false;
	}
	for (size_t above = first; above > length; above = paths_parent(change->path, above)) {
		at = paths_find(made, (uint32_t)change->tree, change->path, above);
		apply->items[at].verdict = APPLY_TAKEN;
		apply->items[at].is_implied = true;
	}
	return true;
}

/* Notes all directories above a path; those above one that is noted are noted already. */
static int note_above(struct paths *staying, const struct stage_change *change)
{
	size_t length = strlen(change->path);

	while (length) {
		int r;

		length = paths_parent(change->path, length);
		if (paths_find(staying, (uint32_t)change->tree, change->path, length) != PATHS_NONE)
			return 0;
		r = paths_put(staying, (uint32_t)change->tree, change->path, length, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

static int hold_staying(struct apply *apply)
{
	cleanup_paths struct paths staying = { 0 };
	int r = 0;

	for (size_t i = 0; i < apply->count && r == 0; i++) {
		struct apply_item *item = &apply->items[i];
		const struct stage_change *change = item->change;
		size_t length = strlen(change->path);

		if (item->verdict == APPLY_TAKEN && takes_directory(change) &&
		    paths_find(&staying, (uint32_t)change->tree, change->path, length) != PATHS_NONE)
			item->verdict = APPLY_HELD;
		if (item->verdict != APPLY_TAKEN && change->host_exists)
			r = note_above(&staying, change);
	}
	return r;
}

int apply_complete(struct apply *apply)
{
	cleanup_paths struct paths made = { 0 };
	int r = index_made(apply, &made);

	for (size_t i = 0; i < apply->count && r == 0; i++)
		if (apply->items[i].verdict == APPLY_TAKEN && !take_above(apply, &made, apply->items[i].change))
			apply->items[i].verdict = APPLY_HELD;
	return r == 0 ? hold_staying(apply) : r;
}
