/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-stage/apply/merge-texts.h"

#include <string.h>

#include "base/str.h"
#include "os/path.h"
#include "prog/atoll-stage/review/text.h"

/* Each that needs a base starts git twice. */
enum { MERGES_MAX = 1000 };

const char *const text_merge_texts[MERGING_RESULT_COUNT] = {
	[MERGING_NOT_TRIED] = "",
	[MERGING_DONE] = "",
	[MERGING_NO_TEXT] = "no text on both sides: --ours or --theirs settles it",
	[MERGING_NO_BASE] = "what both began from is not known (git's index has none from before the run): "
			    "--ours or --theirs settles it, --merge --markers shows both",
	[MERGING_CONTRADICTS] = "both changed the same lines: --ours or --theirs settles it, "
				"--merge --markers shows both",
	[MERGING_FAILED] = "it is too much to be merged: --ours or --theirs settles it",
};

struct job {
	struct text_merge *merge;
	const struct opened *opened;
	struct apply *apply;
	bool with_markers, dry_run;
};

void text_merge_done(struct text_merge *merge)
{
	text_worker_stop(&merge->worker);
	base_stop(&merge->base);
	free(merge->results);
	*merge = TEXT_MERGE_NONE;
}

int text_merge_start(struct text_merge *ret_merge, const struct opened *opened, struct err *err)
{
	int tree_fds[STAGE_TREES_MAX], r;

	for (size_t i = 0; i < opened->record.tree_count; i++)
		tree_fds[i] = opened->stacks[i].host_fd;
	r = base_start(tree_fds, opened->record.tree_count, &ret_merge->base, err);
	return r < 0 ? r : text_worker_start(&ret_merge->worker, err);
}

/*
 * What both began from is known of the text alone: of the rest the host's stays, so that a merge opens no file that was
 * closed meanwhile; but who may read it may execute it where the session made it a program.
 */
static mode_t merged_mode(mode_t host, mode_t staged)
{
	return (host & 0777) | (staged & 0100 ? (host & 0444) >> 2 : 0);
}

/* Takes the merge as what shall be applied. */
static int accept_merge(const struct job *job, size_t index, const struct text *host, const struct buf *merged)
{
	struct text_merge *merge = job->merge;
	struct apply_item *item = &job->apply->items[index];

	merge->results[index] = MERGING_DONE;
	/* The host has all of it already. */
	if (merged->size == host->size && memcmp(merged->bytes, host->bytes, host->size) == 0) {
		item->verdict = APPLY_KEPT;
		return 0;
	}
	item->merged = "";
	if (!job->dry_run) {
		const struct text_piece content = { merged->bytes, merged->size };
		const struct stage_change *change = item->change;

		item->merged = made_files_put(merge->files, index, &job->opened->stacks[change->tree], change, &content,
					      merged_mode(change->host.st_mode, change->staged.st_mode));
		if (!item->merged)
			return -EIO;
	}
	item->verdict = APPLY_TAKEN;
	return 0;
}

/* The host's file, what the session made of it, and what both began from. */
struct three {
	struct text host, session;
	char *base;
	size_t base_size;
};

static void three_done(struct three *three)
{
	text_done(&three->host);
	text_done(&three->session);
	free(three->base);
}

/* MERGING_DONE: all there; another: why it cannot be merged. -errno. */
static int load(const struct job *job, const struct stage_change *change, struct three *three)
{
	const char *tree = job->opened->record.trees[change->tree].path;
	cleanup_free char *path = str_printf("%s/%s", str_equal(tree, "/") ? "" : tree, change->path);
	int r = text_load(job->opened, change, SIDE_HOST, TEXT_SIZE_MAX, &three->host);

	if (!path)
		return -ENOMEM;
	if (r == 0)
		r = text_load(job->opened, change, SIDE_STAGED, TEXT_SIZE_MAX, &three->session);
	if (r < 0)
		return r;
	if (!change->staged_exists || !change->host_exists || !S_ISREG(change->staged.st_mode) ||
	    !S_ISREG(change->host.st_mode) || three->host.kind != TEXT_LINES || three->session.kind != TEXT_LINES)
		return MERGING_NO_TEXT;
	r = base_load(&job->merge->base, path, job->opened->start_ns, TEXT_SIZE_MAX, &three->base,
		      &three->base_size);
	if (r == -ENOENT || r == -EFBIG)
		return MERGING_NO_BASE;
	return r < 0 ? r : MERGING_DONE;
}

static int merge_texts(const struct job *job, size_t index, const struct three *three)
{
	const struct text_piece base = { three->base, three->base_size };
	const struct text_piece host = { three->host.bytes, three->host.size };
	const struct text_piece session = { three->session.bytes, three->session.size };
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, TEXT_RESULT_MAX + 1);
	r = text_worker_merge(&job->merge->worker, &base, &host, &session, &out);
	if (r == -EPIPE)
		return r;
	if (r < 0) {
		job->merge->results[index] = MERGING_FAILED;
		return 0;
	}
	/* From nothing: one of them is empty, and nobody knows whether it was emptied. */
	if (r == TEXT_MERGE_CLEAN && !three->base)
		return 0;
	if (r == TEXT_MERGE_MARKED && !job->with_markers) {
		job->merge->results[index] = MERGING_CONTRADICTS;
		return 0;
	}
	job->apply->items[index].has_markers = r == TEXT_MERGE_MARKED;
	return accept_merge(job, index, &three->host, &out);
}

static int merge_item(const struct job *job, size_t index)
{
	struct three three = { 0 };
	int r = load(job, job->apply->items[index].change, &three);

	if (r >= 0) {
		job->merge->results[index] = (enum text_merge_result)r;
		/* Without a base all that differs stands between markers. */
		r = r == MERGING_DONE || (r == MERGING_NO_BASE && job->with_markers) ?
			merge_texts(job, index, &three) : 0;
	}
	three_done(&three);
	return r;
}

int text_merge_run(struct text_merge *merge, const struct opened *opened, struct apply *apply, bool with_markers,
		   bool dry_run, struct err *err)
{
	const struct job job = { merge, opened, apply, with_markers, dry_run };
	size_t merges = 0;
	int r = 0;

	merge->results = calloc(apply->count + 1, sizeof *merge->results);
	if (!merge->results)
		return err_set(err, ERR_INTERNAL, ENOMEM, "apply", "out of memory");
	for (size_t i = 0; i < apply->count && r == 0; i++)
		/* Beyond the bound they stay conflicts, which is what they are without --merge. */
		if (apply->items[i].verdict == APPLY_CONFLICT && merges++ < MERGES_MAX)
			r = merge_item(&job, i);
	return r < 0 ? err_set(err, ERR_STATE, -r, "apply", "the merge failed: %s", strerror(-r)) : 0;
}
