/* SPDX-License-Identifier: Apache-2.0 */
#include "learn/propose.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "learn/action-text.h"
#include "learn/propose-state.h"
#include "learn/propose-text.h"

enum { KEY_MAX = 16 << 10, GENERALISE_ROUNDS = 4 };

static int count_in(struct tally *tally, const char *key, const struct observed *observed, uint64_t value)
{
	const char *slash = strrchr(observed->exe, '/');
	struct tally_item *item;
	int r = tally_add(tally, key, observed->count, &item);

	if (r != 1)
		return r;
	item->value = value;
	return tally_tell(item, observed->record, slash ? slash + 1 : observed->exe);
}

static int count_refused(struct proposal *proposal, const struct observed *observed)
{
	cleanup_buf struct buf text;

	buf_init(&text, KEY_MAX);
	action_to_text(&observed->action, &text);
	return buf_error(&text) ? 0 : count_in(&proposal->refused, buf_text(&text), observed, 0);
}

/* A tree that can be written, as the rule says it; a file that is read, as it was read. */
static int count_file(struct proposal *proposal, const struct observed *observed)
{
	const struct policy *before = proposal->request->before;
	size_t rule = SIZE_MAX;
	enum file_class class = policy_classify(before, observed->action.subject, &rule);

	if (rule == SIZE_MAX || class == FILE_MASK || class == FILE_HIDDEN)
		return 0;
	if (class == FILE_READ)
		return count_in(observed->is_directory ? &proposal->listed : &proposal->reads,
				observed->action.subject, observed, 0);
	return count_in(&proposal->trees[class], before->files.rules[rule].pattern, observed, rule);
}

/* Where the sandbox can write: a program there needs more than its name in a list. */
static bool is_where_written(const struct policy *before, const char *program)
{
	size_t rule;
	enum file_class class = policy_classify(before, program, &rule);

	return class == FILE_STAGE || class == FILE_WRITE || class == FILE_SCRATCH;
}

/*
 * What the session made or changed, or may have (a path that nobody resolved leads anywhere, and what is private to it
 * had nothing before): no list can name it beforehand.
 */
static bool is_new_program(const struct policy *before, const struct observed *observed)
{
	size_t rule;

	return observed->is_relative || observed->is_new ||
	       policy_classify(before, observed->action.subject, &rule) == FILE_SCRATCH;
}

/*
 * By the path that people know it by, where that stays: /usr/bin/python3 and not the version that it leads to today.
 * A link where the sandbox can write may lead anywhere the next time.
 */
static const char *name_of_program(const struct policy *before, const struct observed *observed)
{
	const char *called = observed->called;

	return called && *called == '/' && !is_where_written(before, called) &&
	       !is_where_written(before, observed->action.subject) ? called : observed->action.subject;
}

static int count_program(struct proposal *proposal, const struct observed *observed, enum verdict verdict)
{
	const struct policy *before = proposal->request->before;
	uint64_t asked = verdict == VERDICT_ASK ? PROGRAM_ASKED : 0;
	struct observed by_itself = *observed;
	int r;

	by_itself.exe = "";
	if (is_new_program(before, observed))
		return count_in(&proposal->new_programs, observed->action.subject, &by_itself, 0);
	if (!is_where_written(before, observed->action.subject))
		return count_in(&proposal->programs, name_of_program(before, observed), &by_itself,
				asked);
	/* Level none has nothing executed where it reads the project. */
	r = count_file(proposal, observed);
	return r < 0 ? r : count_in(&proposal->programs, observed->action.subject, &by_itself,
				       asked | PROGRAM_WRITABLE);
}

/* The rule that let it through; SIZE_MAX: the default. */
static size_t rule_of(const struct policy *policy, const struct decision *decision)
{
	for (size_t i = 0; i < policy->network.count; i++)
		if (strcmp(policy->network.rules[i].origin.id, decision->rule.id) == 0 &&
		    strcmp(policy->network.rules[i].origin.file, decision->rule.file) == 0 &&
		    policy->network.rules[i].origin.line == decision->rule.line)
			return i;
	return SIZE_MAX;
}

static int count_host(struct proposal *proposal, const struct observed *observed, const struct decision *decision)
{
	const struct action *action = &observed->action;
	size_t rule = rule_of(proposal->request->before, decision);
	char key[512];

	if (action->kind == ACTION_NET_DNS)
		return count_in(&proposal->names, action->subject, observed, rule);
	if (str_format(key, sizeof key, "%s %u", action->subject, (unsigned)action->port) < 0)
		return 0;
	return count_in(&proposal->hosts, key, observed, rule);
}

static int visit(void *context, const struct observed *observed)
{
	struct proposal *proposal = context;
	const struct propose_request *request = proposal->request;
	struct decision before = observed_decide(request->before, observed);
	struct decision base = observed_decide(request->base, observed);
	bool was_refused = str_equal(observed->verdict, verdict_names[VERDICT_DENY]);

	/* A shell looks for a program at each place of PATH. */
	if (observed->is_missing && !was_refused)
		return 0;
	if (was_refused || (before.verdict == VERDICT_DENY && !observed->is_relative))
		return count_refused(proposal, observed);
	switch (observed->action.kind) {
	case ACTION_EXEC:
		return count_program(proposal, observed, before.verdict);
	case ACTION_FILE_READ:
	case ACTION_FILE_WRITE:
		return before.verdict == base.verdict ? 0 : count_file(proposal, observed);
	default:
		return count_host(proposal, observed, &before);
	}
}

/* The directory of a path, in out; false for one directly below the root, which is too much for any rule. */
static bool directory_of(const char *path, char out[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t size = slash ? (size_t)(slash - path) : 0;

	if (!size || size >= PATH_MAX || !memchr(path + 1, '/', size))
		return false;
	memcpy(out, path, size);
	out[size] = 0;
	return true;
}

/* Whether a rule for all of it is no more than the session had, and no home and nothing above the project. */
static bool may_be_whole(const struct policy *before, const char *directory)
{
	size_t rule;

	return policy_classify(before, directory, &rule) == FILE_READ && !str_equal(directory, before->home) &&
	       !path_is_below(before->home, directory) && !path_is_below(before->project, directory);
}

/* One round: directories with many files become one rule. Returns whether anything became one. */
static int generalise_once(struct proposal *proposal)
{
	struct tally directories, next;
	char directory[PATH_MAX];
	struct tally_item *item;
	int r = tally_init(&directories, PROPOSE_THINGS_MAX), found = 0;

	if (r < 0)
		return r;
	for (size_t i = 0; r >= 0 && i < proposal->reads.count; i++)
		if (directory_of(proposal->reads.items[i].key, directory))
			r = tally_add(&directories, directory, 1, &item);
	if (r >= 0)
		r = tally_init(&next, PROPOSE_THINGS_MAX);
	if (r < 0) {
		tally_done(&directories);
		return r;
	}
	for (size_t i = 0; r >= 0 && i < proposal->reads.count; i++) {
		struct tally_item *old = &proposal->reads.items[i];
		bool is_whole = false;

		if (directory_of(old->key, directory)) {
			r = tally_add(&directories, directory, 0, &item);
			is_whole = r == 0 && item && item->count >= PROPOSE_SIBLINGS &&
				   may_be_whole(proposal->request->before, directory);
		}
		if (r >= 0)
			r = tally_add(&next, is_whole ? directory : old->key, old->count, &item);
		if (r == 1)
			r = tally_tell(item, old->record, old->by);
		if (r >= 0 && item)
			item->value += is_whole ? 1 + old->value : old->value;
		found |= is_whole;
	}
	tally_done(&directories);
	if (r >= 0) {
		tally_done(&proposal->reads);
		proposal->reads = next;
		return found;
	}
	tally_done(&next);
	return r;
}

static int generalise(struct proposal *proposal)
{
	int r = 1;

	for (int round = 0; r == 1 && round < GENERALISE_ROUNDS; round++)
		r = generalise_once(proposal);
	return r < 0 ? r : 0;
}

static int init(struct proposal *proposal)
{
	struct tally *const all[] = { &proposal->reads, &proposal->listed, &proposal->programs,
				      &proposal->new_programs, &proposal->hosts, &proposal->names,
				      &proposal->refused };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(all); i++)
		r = tally_init(all[i], PROPOSE_THINGS_MAX);
	for (size_t i = 0; r == 0 && i < FILE_CLASS_COUNT; i++)
		r = tally_init(&proposal->trees[i], PROPOSE_THINGS_MAX / 16);
	return r;
}

static void done(struct proposal *proposal)
{
	struct tally *const all[] = { &proposal->reads, &proposal->listed, &proposal->programs,
				      &proposal->new_programs, &proposal->hosts, &proposal->names,
				      &proposal->refused };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		tally_done(all[i]);
	for (size_t i = 0; i < FILE_CLASS_COUNT; i++)
		tally_done(&proposal->trees[i]);
}

int propose(const struct propose_request *request, int log_fd, struct buf *out)
{
	struct proposal proposal = { .request = request };
	int r = request->before->network.mode == NETWORK_HOST ? -EOPNOTSUPP : init(&proposal);

	if (r == 0)
		r = observed_read(log_fd, visit, &proposal, &proposal.log);
	if (r == 0 && proposal.programs.count + proposal.new_programs.count <= proposal.log.failed)
		r = -ENODATA;
	if (r == 0)
		r = generalise(&proposal);
	if (r == 0)
		r = propose_put(&proposal, out);
	done(&proposal);
	return r;
}
