/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/apply/applied-state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stage/apply/applied-entries.h"
#include "stage/transaction/transaction.h"

void applied_free(struct applied_state *left)
{
	if (!left)
		return;
	for (size_t i = 0; i < left->journal_count; i++)
		journal_done(&left->journals[i]);
	free(left->journals);
	free(left->entries);
	free(left->heads);
	free(left->decisions);
	paths_done(&left->index);
	known_done(&left->known);
	paths_done(&left->decided);
	free(left);
}

/* Of a directory the ctime must agree too: it changes with every entry that comes or goes. */
static bool is_same(const struct applied_state *left, uint32_t tree, const struct identity *then,
		    const struct identity *now)
{
	if (S_ISDIR(now->mode))
		return then->inode == now->inode && then->mode == now->mode && stamp_equal(then->ctime, now->ctime);
	return identity_equal(then, now) && (stamp_equal(then->ctime, now->ctime) ||
					     (then->links > 1 && known_has(&left->known, tree, now)));
}

const struct applied_entry *applied_find(const struct applied_state *left, uint32_t tree, const char *path,
				   const struct identity *now)
{
	uint32_t head = paths_find(&left->index, tree, path, strlen(path));
	uint32_t at = head == PATHS_NONE ? PATHS_NONE : left->heads[head];

	while (at != PATHS_NONE && !is_same(left, tree, &left->entries[at].identity, now))
		at = left->entries[at].next;
	return at == PATHS_NONE ? NULL : &left->entries[at];
}

/* Whether the transaction whose entries begin at `first` has put this very directory there itself. */
static bool was_made(const struct applied_state *left, size_t first, uint32_t tree, const char *path, uint64_t inode)
{
	uint32_t head = paths_find(&left->index, tree, path, strlen(path));
	uint32_t at = head == PATHS_NONE ? PATHS_NONE : left->heads[head];

	while (at != PATHS_NONE && at >= first && left->entries[at].identity.inode != inode)
		at = left->entries[at].next;
	return at != PATHS_NONE && at >= first;
}

/*
 * What we left of a directory tells something only if it was as at the start when we came, or as we had left it before:
 * else somebody may have deleted something in it meanwhile. One that the same transaction has made was empty; what was
 * noted of it then is out of date, since what came into it afterwards moved its ctime.
 */
static bool was_untouched(const struct applied_state *left, size_t first, uint32_t tree, const char *path,
			  const struct identity *before)
{
	if (before->ctime.seconds >= 0 &&
	    (uint64_t)before->ctime.seconds * 1000000000ULL + before->ctime.ns < left->start_ns)
		return true;
	return applied_find(left, tree, path, before) || was_made(left, first, tree, path, before->inode);
}

static bool vouches(const struct applied_state *left, size_t first, bool is_undo, const struct journal_op *op)
{
	if (op->outcome != JOURNAL_APPLIED || op->action == JOURNAL_REMOVE || op->action == JOURNAL_KEEP ||
	    !op->left.mode || op->flags & JOURNAL_MERGED || (is_undo && op->flags & JOURNAL_SETTLED))
		return false;
	return op->action != JOURNAL_SET || was_untouched(left, first, op->tree, op->path, &op->host);
}

int applied_reserve(struct applied_state *left, size_t more)
{
	size_t wanted = left->count + more;
	struct applied_entry *entries = realloc(left->entries, (wanted + 1) * sizeof *entries);
	uint32_t *heads = realloc(left->heads, (wanted + 1) * sizeof *heads);

	left->entries = entries ? entries : left->entries;
	left->heads = heads ? heads : left->heads;
	return entries && heads ? 0 : -ENOMEM;
}

int applied_add(struct applied_state *left, uint32_t tree, const char *path, const struct identity *identity)
{
	size_t length = strlen(path);
	uint32_t head = paths_find(&left->index, tree, path, length);
	int r = 0;

	if (head == PATHS_NONE) {
		head = (uint32_t)left->head_count++;
		left->heads[head] = PATHS_NONE;
		r = paths_put(&left->index, tree, path, length, head);
	}
	if (r < 0)
		return r;
	left->entries[left->count] = (struct applied_entry){ .identity = *identity, .next = left->heads[head] };
	left->heads[head] = (uint32_t)left->count++;
	return 0;
}

static int add_journal(struct applied_state *left, const struct journal *journal)
{
	size_t first = left->count;
	int r = applied_reserve(left, journal->op_count + journal->directory_count + STAGE_TREES_MAX);

	if (r == 0)
		r = known_put_journal(&left->known, journal);

	for (size_t i = 0; i < journal->op_count && r == 0; i++) {
		const struct journal_op *op = &journal->ops[i];

		if (vouches(left, first, journal->kind == JOURNAL_UNDO, op))
			r = applied_add(left, op->tree, op->path, &op->left);
	}
	for (size_t i = 0; i < journal->directory_count && r == 0; i++) {
		const struct journal_directory *directory = &journal->directories[i];

		if (directory->left.mode &&
		    was_untouched(left, first, directory->tree, directory->path, &directory->before))
			r = applied_add(left, directory->tree, directory->path, &directory->left);
	}
	for (uint32_t tree = 0; tree < STAGE_TREES_MAX && r == 0; tree++) {
		const struct journal_area *area = &journal->areas[tree];

		if (area->left.mode && was_untouched(left, first, tree, "", &area->root))
			r = applied_add(left, tree, "", &area->left);
	}
	return r;
}

static int add_decision(struct applied_state *left, const struct journal *journal, const struct journal_op *op)
{
	size_t length = strlen(op->path);
	uint32_t at = paths_find(&left->decided, op->tree, op->path, length);
	int r = 0;

	if (journal->kind == JOURNAL_UNDO) {
		struct applied_decision *known = at == PATHS_NONE ? NULL : &left->decisions[at];

		if (known && known->op && known->number == journal->undoes && known->op->slot == op->slot)
			known->op = NULL;
		return 0;
	}
	if (at == PATHS_NONE) {
		at = (uint32_t)left->decision_count++;
		r = paths_put(&left->decided, op->tree, op->path, length, at);
	}
	left->decisions[at] = (struct applied_decision){ .number = journal->number, .op = op };
	return r;
}

static int add_decisions(struct applied_state *left, const struct journal *journal)
{
	struct applied_decision *grown;
	size_t more = 0;
	int r = 0;

	for (size_t i = 0; i < journal->op_count; i++)
		more += journal->ops[i].action == JOURNAL_KEEP;
	if (!more)
		return 0;
	grown = realloc(left->decisions, (left->decision_count + more) * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	left->decisions = grown;
	for (size_t i = 0; i < journal->op_count && r == 0; i++)
		if (journal->ops[i].action == JOURNAL_KEEP && journal->ops[i].outcome == JOURNAL_APPLIED)
			r = add_decision(left, journal, &journal->ops[i]);
	return r;
}

int applied_load_journals(struct applied_state *left, int stage_fd)
{
	cleanup_free uint32_t *numbers = NULL;
	struct journal *journals;
	size_t count;
	int r = transaction_list(stage_fd, &numbers, &count);

	if (r < 0 || count == 0)
		return r;
	journals = reallocarray(left->journals, left->journal_count + count, sizeof *journals);
	if (!journals)
		return -ENOMEM;
	left->journals = journals;
	for (size_t i = 0; i < count; i++) {
		struct journal *journal = &journals[left->journal_count];

		*journal = (struct journal){ 0 };
		r = transaction_load(stage_fd, numbers[i], journal);
		if (r == -ENOMEM)
			return r;
		if (r == 0 && journal->is_done)
			left->journal_count++;
		else if (r == 0)
			journal_done(journal);
	}
	return 0;
}

int applied_load(int stage_fd, uint64_t start_ns, struct applied_state **ret_left)
{
	struct applied_state *left = calloc(1, sizeof *left);
	int r = left ? applied_load_journals(left, stage_fd) : -ENOMEM;

	if (r == 0)
		left->start_ns = start_ns;
	for (size_t i = 0; r == 0 && i < left->journal_count; i++) {
		r = add_journal(left, &left->journals[i]);
		if (r == 0)
			r = add_decisions(left, &left->journals[i]);
	}
	if (r < 0) {
		applied_free(left);
		left = NULL;
	}
	*ret_left = left;
	return r;
}

bool applied_is_own(const struct applied_state *left, size_t tree, const char *path, const struct stat *host)
{
	struct identity now;

	if (!left)
		return false;
	identity_of_stat(host, &now);
	return applied_find(left, (uint32_t)tree, path, &now) != NULL;
}

static bool is_side(const struct identity *decided, const struct stat *now)
{
	struct identity side = { 0 };

	if (now)
		identity_of_stat(now, &side);
	return identity_equal(decided, &side) &&
	       (!side.mode || S_ISDIR(side.mode) || stamp_equal(decided->ctime, side.ctime));
}

bool applied_is_settled(const struct applied_state *left, size_t tree, const char *path, const struct stat *host,
		     const struct stat *staged)
{
	uint32_t at = left ? paths_find(&left->decided, (uint32_t)tree, path, strlen(path)) : PATHS_NONE;
	const struct journal_op *op = at == PATHS_NONE ? NULL : left->decisions[at].op;

	return op && is_side(&op->left, host) && is_side(&op->content, staged);
}
