/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/layers/unreviewed.h"

#include <sys/wait.h>

#include "prog/atoll-stage/verb/opened.h"
#include "stage/change/change.h"
#include "stage/transaction/transaction.h"

/* What the child ends with; anything else says nothing. */
enum {
	SAYS_CHANGES = 1 << 0,
	SAYS_UNFINISHED = 1 << 1,
	SAYS_UNREADABLE = 1 << 2,
	SAYS_ALL = SAYS_CHANGES | SAYS_UNFINISHED,
};

/*
 * As the end of a run judges them (build/staging.c). The count stops at the first, which may be a directory,
 * or something that nobody can apply: what comes behind it was not looked at.
 */
static int count(const struct opened *opened, struct stage_counts *counts)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < opened->record.tree_count; i++) {
		struct stage_change_options options = {
			.tree = i,
			.start_ns = opened->start_ns,
		};

		r = stage_changes_count(&opened->stacks[i], &options, 1, counts);
	}
	return r;
}

/* Whether a journal says that something of its transaction is left to be done, also only to be tidied up: SAYS_…. */
static int look_at_journals(int stage_fd)
{
	cleanup_free uint32_t *numbers = NULL;
	size_t count = 0;

	if (transaction_list(stage_fd, &numbers, &count) < 0)
		return SAYS_UNREADABLE;
	for (size_t i = 0; i < count; i++) {
		cleanup_journal struct journal journal;
		int r;

		journal_init(&journal);
		r = transaction_load(stage_fd, numbers[i], &journal);
		if (r == -EBADMSG)
			return SAYS_UNREADABLE;
		if (r != -ENOENT && (r < 0 || !journal.is_clean))
			return SAYS_UNFINISHED;
	}
	return 0;
}

static int look(const char *state, const char *id)
{
	struct verb_session session = { .state = state, .id = id };
	struct stage_counts counts = { 0 };
	struct opened opened;
	struct err err = { 0 };
	int says;

	/* A file that is missing is damage, and says nothing about changes. */
	if (opened_open(&opened, &session, &err) < 0)
		return err.code == ERR_NOT_FOUND ? 0 : SAYS_CHANGES | SAYS_UNREADABLE;
	says = look_at_journals(opened.stage_fd);
	/* The process ends here: what is open goes with it. */
	if (opened_stacks(&opened, &err) < 0 || opened_confine(&opened, CONFINE_STAGE_READING, &err) < 0 ||
	    count(&opened, &counts) < 0)
		return says | SAYS_CHANGES;
	return says | (stage_counts_any(&counts) ? SAYS_CHANGES : 0);
}

struct unreviewed unreviewed_look(const char *state, const char *id)
{
	pid_t pid = fork();
	int status = 0, says = SAYS_ALL;

	if (pid == 0)
		_exit(look(state, id));
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return (struct unreviewed){ true, true, false };
	if (pid > 0 && WIFEXITED(status))
		says = WEXITSTATUS(status);
	return (struct unreviewed){ says & SAYS_CHANGES, says & SAYS_UNFINISHED, says & SAYS_UNREADABLE };
}
