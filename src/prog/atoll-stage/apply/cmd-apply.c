/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "prog/atoll-stage/verb/audit-step.h"
#include "prog/atoll-stage/apply/conflict-choice.h"
#include "prog/atoll-stage/git/git-branch.h"
#include "prog/atoll-stage/git/git-commit.h"
#include "prog/atoll-stage/apply/merge-texts.h"
#include "prog/atoll-stage/apply/pick.h"
#include "prog/atoll-stage/apply/report-apply.h"
#include "prog/atoll-stage/review/selection.h"
#include "prog/atoll-stage/show/show.h"
#include "stage/change/review-options.h"

struct request {
	struct verb_session session;
	struct apply_options given;
};

#define AT(member) offsetof(struct request, given.member)
static const struct option options[] = {
	VERB_SESSION_OPTIONS(struct request),
	APPLY_OPTIONS(AT),
};

static void say_recovered(const struct transaction_recovered *recovered)
{
	if (recovered->finished)
		fprintf(stderr, "atoll: finished %zu interrupted appl%s first\n", recovered->finished,
			recovered->finished == 1 ? "y" : "ies");
	if (recovered->taken_back)
		fprintf(stderr, "atoll: took back %zu appl%s that had only begun\n", recovered->taken_back,
			recovered->taken_back == 1 ? "y" : "ies");
}

static int path_filter_load(struct path_filter *ret_wanting, const struct opened *opened,
			    const struct apply_options *given, char **words, int count, struct err *err)
{
	int r = path_filter_init(ret_wanting, opened, words, count, err);

	if (r == 0)
		r = path_filter_exclude(ret_wanting, &given->excluded, err);
	if (r == 0)
		r = path_filter_allow(ret_wanting, &given->allowed, err);
	return r;
}

struct job {
	const struct verb_session *session;  /* borrowed, as given */
	const struct apply_options *given;
	enum settlement settlement;
	struct opened opened;
	struct text_merge merge;
	struct text_worker worker;
	struct made_files files;
	struct git_branch branch;
	struct git_commit commit;
	size_t own_left;                     /* paths of git's own directory, which stay staged with --commit */
	struct transaction_place place;
	struct transaction_recovered recovered;
	struct audit_step step;
};

static int report_outcome(const struct job *job, const struct apply *apply, struct err *err)
{
	struct apply_report report = {
		.opened = &job->opened, .apply = apply, .dry_run = job->given->dry_run, .quiet = job->given->quiet,
		.settlement = job->settlement, .text_merge_results = job->merge.results,
		.recovered = job->recovered.finished + job->recovered.taken_back,
	};
	int r;

	outcome_end_progress();
	r = job->given->json ? report_apply_json(&report, err) : report_apply_text(&report, err);
	return r < 0 ? r : tell_apply_left(apply) || tell_apply_marked(apply) ? EXIT_LEFT : 0;
}

static void note_settled(struct job *job, const struct apply_item *item)
{
	const struct stage_change *change = item->change;

	if (item->verdict == APPLY_KEPT)
		audit_step_add_path(&job->step, REVIEW_KEPT, &job->opened, change->tree, change->path);
	else if (item->verdict == APPLY_TAKEN && change->state == STAGE_CONFLICT)
		audit_step_add_path(&job->step, item->merged ? REVIEW_MERGED : REVIEW_TAKEN, &job->opened, change->tree,
			      change->path);
}

/* What the log shall say of the choice. */
static void note_choice(struct job *job, const struct path_filter *filter, const struct apply *apply)
{
	const struct option_list *excluded = &job->given->excluded;

	audit_step_add_words(&job->step, REVIEW_ASKED, (const char *const *)filter->paths);
	for (size_t i = 0; i < excluded->count; i++)
		review_list_add(&job->step.entry, REVIEW_EXCLUDED, excluded->values[i]);
	for (size_t i = 0; i < apply->count; i++) {
		const struct apply_item *item = &apply->items[i];

		if (item->verdict == APPLY_TAKEN && item->change->is_flagged)
			audit_step_add_path(&job->step, REVIEW_FLAGGED, &job->opened, item->change->tree,
				      item->change->path);
		if (item->verdict == APPLY_CONFLICT)
			audit_step_add_path(&job->step, REVIEW_CONFLICTS, &job->opened, item->change->tree,
				      item->change->path);
		note_settled(job, item);
	}
	job->step.entry.counts[REVIEW_LEFT] = tell_apply_left(apply);
}

static int run_apply(struct job *job, const struct path_filter *filter, struct apply *apply, struct err *err)
{
	int r;

	note_choice(job, filter, apply);
	audit_step_attach(&job->step, &job->place);
	r = apply_run(&job->place, apply, err);
	job->step.entry.counts[REVIEW_LEFT] = tell_apply_left(apply);
	return audit_step_end(&job->step, r, err);
}

/* What a merge or a person makes of the choice. */
static int choose(struct job *job, struct apply *apply, struct err *err)
{
	const struct apply_options *given = job->given;
	const struct pick_options pick = { .opened = &job->opened, .worker = &job->worker, .files = &job->files,
					   .dry_run = given->dry_run };

	if (!given->merge && !given->interactive)
		return 0;
	if (made_files_begin(&job->files, apply->count) < 0)
		return err_set(err, ERR_INTERNAL, ENOMEM, "apply", "out of memory");
	if (given->interactive)
		return pick_run(&pick, apply, err);
	job->merge.files = &job->files;
	return text_merge_run(&job->merge, &job->opened, apply, given->markers, given->dry_run, err);
}

/* What was left, and the exit status. */
static int tell_aside(const struct job *job, const struct apply *apply, struct err *err)
{
	const struct apply_report report = { .opened = &job->opened, .apply = apply, .quiet = true, .is_aside = true,
					     .settlement = job->settlement,
					     .text_merge_results = job->merge.results };
	int r = report_apply_text(&report, err);

	return r < 0 ? r : tell_apply_left(apply) ? EXIT_LEFT : 0;
}

static int say_branch(const struct job *job, const struct git_branch_result *result)
{
	const char *name = job->given->branch;

	if (!*result->commit)
		printf("nothing to commit: what was chosen is as in HEAD\n");
	else
		printf("branch %s: commit %.12s with %zu file%s\nlook at it:  git show %s\nmerge it:    git merge %s\n",
		       name, result->commit, result->files, result->files == 1 ? "" : "s", name, name);
	if (result->ignored)
		printf("left, since a .gitignore names them: %zu new file%s\n", result->ignored,
		       result->ignored == 1 ? "" : "s");
	if (result->outside)
		printf("left, since they are outside of the repository or git's own: %zu file%s\n", result->outside,
		       result->outside == 1 ? "" : "s");
	return fflush(stdout) != 0 ? -EIO : 0;
}

/* Of `apply --json` the commit is told there. */
static void say_commit(const struct job *job, const struct git_commit_result *result)
{
	cleanup_buf struct buf text;

	buf_init(&text, 4096);
	if (!*result->commit)
		buf_put_text(&text, "nothing to commit: what was applied is as in HEAD\n");
	else
		buf_printf(&text, "commit %.12s on %s with %zu file%s\n", result->commit,
			   *result->branch ? result->branch : "the detached HEAD", result->files,
			   result->files == 1 ? "" : "s");
	if (result->ignored)
		buf_printf(&text, "applied and not committed, since a .gitignore names them: %zu new file%s\n",
			   result->ignored, result->ignored == 1 ? "" : "s");
	if (result->outside)
		buf_printf(&text, "applied and not committed, since they belong to another repository: %zu file%s\n",
			   result->outside, result->outside == 1 ? "" : "s");
	if (job->own_left)
		buf_printf(&text, "still staged, since --commit leaves .git to git: %zu path%s\n", job->own_left,
			   job->own_left == 1 ? "" : "s");
	if (!job->given->quiet)
		fputs(buf_text(&text), job->given->json ? stderr : stdout);
}

/* What was applied: 0, or negative, and then it is not committed. */
static int commit_applied(struct job *job, const struct apply *apply, struct err *err)
{
	struct git_commit_result result = { 0 };
	const char *message = job->given->message;
	int r = apply->number ? git_commit_run(&job->commit, &job->opened, apply, message, &result, err) : 0;

	if (r == 0)
		say_commit(job, &result);
	return r;
}

static int make_branch(struct job *job, const struct path_filter *filter, const struct apply *apply, struct err *err)
{
	const char *words[] = { "--branch", job->given->branch, NULL };
	struct git_branch_result result;
	int r;

	note_choice(job, filter, apply);
	audit_step_add_words(&job->step, REVIEW_ASKED, words);
	r = audit_step_begin(&job->step, err);
	if (r == 0)
		r = git_branch_run(&job->branch, &job->opened, apply, job->given->message, &result, err);
	r = audit_step_end(&job->step, r, err);
	if (r < 0)
		return r;
	r = say_branch(job, &result);
	return r < 0 ? r : tell_aside(job, apply, err);
}

/* stdout is the patch itself. */
static void say_patch(const struct job *job, size_t files)
{
	const char *path = job->given->patch;
	cleanup_buf struct buf text = { 0 };

	if (str_equal(path, "-"))
		return;
	buf_init(&text, 4 * PATH_MAX);
	buf_printf(&text, "a patch of %zu file%s; take it with: git apply ", files, files == 1 ? "" : "s");
	if (!buf_put_shell_word(&text, path))
		buf_put_text(&text, "FILE");
	fprintf(stderr, "%s\n", buf_text(&text));
}

/* What is taken, as `atoll diff -p` shows it. */
static int write_patch(struct job *job, const struct selection *selection, const struct apply *apply, struct err *err)
{
	struct listing listing = { .opened = &job->opened, .changes = selection->changes };
	struct show show = { .listing = &listing, .worker = &job->worker };
	int r;

	listing.items = calloc(apply->count + 1, sizeof *listing.items);
	if (!listing.items)
		return err_set(err, ERR_INTERNAL, ENOMEM, "apply", "out of memory");
	for (size_t i = 0; i < apply->count; i++)
		if (apply->items[i].verdict == APPLY_TAKEN && !stage_change_is_directory(apply->items[i].change))
			listing.items[listing.count++] = (struct listed){ .change = apply->items[i].change };
	r = show_patch(&show, err);
	free(listing.items);
	if (r == 0)
		say_patch(job, listing.count);
	return r < 0 ? r : tell_aside(job, apply, err);
}

/* The session is locked, confined and recovered. */
static int apply_wanted(struct job *job, struct path_filter *filter, struct err *err)
{
	const struct apply_options *given = job->given;
	struct selection selection = { 0 };
	struct apply apply = { .stacks = job->opened.stacks, .merged_fd = job->files.dir_fd };
	int r = selection_load(&selection, &job->opened, filter, err);

	if (r < 0)
		return r;
	apply.items = selection.items;
	apply.count = selection.changes.count;
	settling_run(&apply, filter, job->settlement);
	r = choose(job, &apply, err);
	if (r == 0 && given->commit)
		job->own_left = git_commit_leave_own(&job->commit, &job->opened, &apply);
	if (r == 0 && apply_complete(&apply) < 0)
		r = err_set(err, ERR_INTERNAL, ENOMEM, "apply", "out of memory");
	if (r == 0 && given->commit)
		r = git_commit_check(&job->commit, &job->opened, &apply, err);
	if (r == 0 && (given->branch || given->patch)) {
		r = given->branch ? make_branch(job, filter, &apply, err) : write_patch(job, &selection, &apply, err);
		selection_done(&selection);
		return r;
	}
	if (r == 0 && !given->dry_run)
		r = run_apply(job, filter, &apply, err);
	else if (r == 0)
		for (size_t i = 0; i < apply.count; i++) {
			apply.applied += apply.items[i].verdict == APPLY_TAKEN;
			apply.kept += apply.items[i].verdict == APPLY_KEPT;
		}
	if (r == 0)
		r = report_outcome(job, &apply, err);
	if (r >= 0 && given->commit && !given->dry_run) {
		int committed = commit_applied(job, &apply, err);

		r = committed < 0 ? committed : r;
	}
	selection_done(&selection);
	return r;
}

/* Everything that has to be open before the program gives up the rest. */
static int open_job(struct job *job, struct err *err)
{
	int r = opened_open(&job->opened, job->session, err);

	if (r == 0)
		r = opened_need_host(&job->opened, "apply", err);
	if (r == 0)
		r = opened_stacks(&job->opened, err);
	if (r == 0 && job->given->merge)
		r = text_merge_start(&job->merge, &job->opened, err);
	if (r == 0 && job->given->branch)
		r = git_branch_start(&job->branch, &job->opened, job->given->branch, err);
	if (r == 0 && job->given->commit)
		r = git_commit_start(&job->commit, &job->opened, err);
	if (r == 0 && (job->given->interactive || job->given->patch))
		r = text_worker_start(&job->worker, err);
	if (r == 0 && (job->given->merge || job->given->interactive))
		r = made_files_open(&job->files, &job->opened, err);
	if (r == 0)
		r = audit_step_open(&job->step, job->opened.sessions_fd, job->session->id,
				    AUDIT_STAGE_APPLY, err);
	return r == 0 ? opened_confine(&job->opened, CONFINE_STAGE_WRITING, err) : r;
}

static int recover(struct job *job, struct err *err)
{
	int r = transaction_place_open(job->opened.stage_fd, &job->opened.record, &job->place, err);

	if (r < 0)
		return r;
	if (isatty(STDERR_FILENO) && !job->given->quiet)
		job->place.progress = outcome_progress;
	r = transaction_recover(&job->place, &job->recovered, err);
	outcome_end_progress();
	if (r == 0)
		say_recovered(&job->recovered);
	return r == 0 ? audit_step_recovered(&job->step, &job->recovered, err) : r;
}

static int check_options(const struct apply_options *given, struct err *err)
{
	if (given->interactive && (given->ours || given->theirs || given->merge || given->json || given->resume))
		return err_set(err, ERR_USAGE, EINVAL, "apply",
			       "-i cannot be used with --ours, --theirs, --merge, --json or --resume");
	if (given->message && !given->branch && !given->commit)
		return err_set(err, ERR_USAGE, EINVAL, "apply", "-m is for the commit of --commit or --branch");
	if (given->commit && (given->branch || given->patch || given->resume || given->markers))
		return err_set(err, ERR_USAGE, EINVAL, "apply",
			       "--commit cannot be used with --branch, --patch, --resume or --markers");
	if ((given->branch || given->patch) && (given->json || given->resume || given->dry_run))
		return err_set(err, ERR_USAGE, EINVAL, "apply",
			       "--branch and --patch cannot be used with --json, --resume or --dry-run");
	if (given->patch && (given->branch || given->interactive || given->merge || given->ours))
		return err_set(err, ERR_USAGE, EINVAL, "apply",
			       "--patch cannot be used with --branch, -i, --ours or --merge");
	return 0;
}

static int apply(const struct request *request, char **words, int count, struct err *err)
{
	const struct apply_options *given = &request->given;
	struct job job = { .session = &request->session, .given = given, .opened = OPENED_NONE,
			   .merge = TEXT_MERGE_NONE, .worker = TEXT_WORKER_NONE, .files = MADE_FILES_NONE,
			   .branch = GIT_BRANCH_NONE, .commit = GIT_COMMIT_NONE, .step = AUDIT_STEP_INIT };
	struct path_filter filter = { 0 };
	int r = settlement_choose(given->ours, given->theirs, given->merge, given->markers, &job.settlement, err);

	if (r == 0)
		r = check_options(given, err);
	if (r == 0)
		r = open_job(&job, err);
	if (r == 0)
		r = path_filter_load(&filter, &job.opened, given, words, count, err);
	if (r == 0)
		r = recover(&job, err);
	if (r == 0 && !given->resume)
		r = apply_wanted(&job, &filter, err);
	path_filter_done(&filter);
	transaction_place_done(&job.place);
	audit_step_done(&job.step);
	text_merge_done(&job.merge);
	text_worker_stop(&job.worker);
	made_files_done(&job.files);
	git_branch_done(&job.branch);
	git_commit_done(&job.commit);
	opened_done(&job.opened);
	return r;
}

int cmd_apply(int argc, char **argv, struct err *err)
{
	struct request request = { 0 };
	int rest, r = options_parse(options, ARRAY_SIZE(options), &request, argc, argv, true, &rest, err);

	if (r != 0)
		return r < 0 ? r : options_print(options, ARRAY_SIZE(options), STDOUT_FILENO);
	return apply(&request, argv + rest, argc - rest, err);
}
