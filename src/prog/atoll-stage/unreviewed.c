/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/unreviewed.h"

#include <sys/wait.h>

#include "prog/atoll-stage/confine.h"
#include "prog/atoll-stage/opened.h"
#include "stage/change.h"

enum { CHILD_NONE, CHILD_SOME, CHILD_UNKNOWN };

static int count(const struct opened *opened, struct stage_counts *counts)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < opened->record.tree_count; i++) {
		struct stage_change_options options = {
			.tree = i,
			.start_ns = stage_record_start_ns(&opened->record),
		};

		r = stage_changes_count(&opened->stacks[i], &options, 1, counts);
	}
	return r;
}

static int look(const char *state, const char *id)
{
	struct verb_session session = { .state = state, .id = id };
	struct stage_counts counts = { 0 };
	struct opened opened;
	struct err err = { 0 };

	if (opened_open(&opened, &session, &err) < 0)
		return err.errnum == ENOENT ? CHILD_NONE : CHILD_UNKNOWN;
	/* The process ends here: what is open goes with it. */
	if (opened_stacks(&opened, &err) < 0 || confine_reading(&opened, &err) < 0 || count(&opened, &counts) < 0)
		return CHILD_UNKNOWN;
	return counts.added || counts.modified || counts.deleted ? CHILD_SOME : CHILD_NONE;
}

bool unreviewed_has_changes(const char *state, const char *id)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(look(state, id));
	if (pid < 0)
		return true;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return true;
	return !WIFEXITED(status) || WEXITSTATUS(status) != CHILD_NONE;
}
