/* SPDX-License-Identifier: Apache-2.0 */
#include "stage/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/str.h"
#include "os/fd.h"
#include "stage/record.h"

/*
 * Theory of operation. The directories themselves carry the number, so that no list has to be kept that could disagree
 * with them: whoever finds a dead session finds its project in live/0/work, which no review moves. Only `upper` and
 * `work` have it, and nothing above them: a directory that passes a project on takes no file of another one by rename
 * (EXDEV), and sealed layers, slots of an apply and the host's own files are renamed in and out beside them.
 *
 * A project belongs to who is alone in it. Two that pick the same number at the same moment each give it to their
 * directories first and count afterwards: both see more than their own, and both pick again.
 */

enum { PICKS_MAX = 8, NAME_SIZE = 48 };

/* The overlay's own: both directories of a tree, and what it makes in `work`. */
enum { OWN_INODES = 2, EXTRA_INODES = 8, EXTRA_BYTES = 32 << 10 };

static int pick_number(uint32_t *ret_number)
{
	return random_bytes(ret_number, sizeof *ret_number);
}

const struct stage_quota_calls stage_quota_kernel = {
	.is_enforced = quota_is_enforced,
	.read = quota_read,
	.limit = quota_limit,
	.next = quota_next,
	.project_of = quota_project_of,
	.assign = quota_assign,
	.pick = pick_number,
};

static int open_live(int stage_fd, size_t tree_index, const char *name)
{
	char path[NAME_SIZE];
	int r = str_format(path, sizeof path, STAGE_DIRECTORY_LIVE "/%zu/%s", tree_index, name);

	return r < 0 ? r : fd_open_at(stage_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

static int assign_all(const struct stage_quota_calls *calls, int stage_fd, size_t tree_count, uint32_t project)
{
	static const char *const names[] = { "upper", "work" };

	for (size_t i = 0; i < OWN_INODES * tree_count; i++) {
		cleanup_fd int fd = open_live(stage_fd, i / OWN_INODES, names[i % OWN_INODES]);
		int r = fd < 0 ? fd : calls->assign(fd, project);

		if (r < 0)
			return r;
	}
	return 0;
}

static bool is_blank(const struct quota_state *state)
{
	return !state->limit.bytes && !state->limit.inodes && !state->used.inodes && !state->used.bytes;
}

/* 1: the directories are in it and nothing else is; 0: it is somebody's. */
static int try_project(const struct stage_quota_calls *calls, int stage_fd, size_t tree_count, uint32_t project)
{
	struct quota_state state;
	int r = calls->read(stage_fd, project, &state);

	if (r < 0 || !is_blank(&state))
		return r;
	r = assign_all(calls, stage_fd, tree_count, project);
	if (r == 0)
		r = calls->read(stage_fd, project, &state);
	return r < 0 ? r : state.used.inodes == OWN_INODES * tree_count && !state.limit.bytes && !state.limit.inodes;
}

static int find_project(const struct stage_quota_calls *calls, int stage_fd, size_t tree_count, uint32_t *ret_project)
{
	for (int i = 0; i < PICKS_MAX; i++) {
		uint32_t number;
		int r = calls->pick(&number);

		number = STAGE_QUOTA_FIRST + number % STAGE_QUOTA_COUNT;
		if (r == 0)
			r = try_project(calls, stage_fd, tree_count, number);
		if (r != 0) {
			*ret_project = number;
			return r;
		}
	}
	return -EAGAIN;
}

int stage_quota_begin(const struct stage_quota_calls *calls, int stage_fd, size_t tree_count,
		      const struct quota_limit *limit, uint32_t *ret_project)
{
	struct quota_limit whole = *limit;
	uint32_t project;
	int r;

	if (!calls->is_enforced(stage_fd))
		return 0;
	r = find_project(calls, stage_fd, tree_count, &project);
	if (r < 0)
		return r;
	if (whole.bytes)
		whole.bytes += EXTRA_BYTES * tree_count;
	if (whole.inodes)
		whole.inodes += EXTRA_INODES * tree_count;
	r = calls->limit(stage_fd, project, &whole);
	if (r < 0)
		return r;
	*ret_project = project;
	return 1;
}

int stage_quota_end(const struct stage_quota_calls *calls, int stage_fd)
{
	const struct quota_limit none = { 0 };
	struct quota_state state;
	cleanup_fd int fd = FD_NONE;
	uint32_t project = 0;

	if (!calls->is_enforced(stage_fd))
		return 0;
	fd = open_live(stage_fd, 0, "work");
	if (fd < 0 || calls->project_of(fd, &project) < 0 || project - STAGE_QUOTA_FIRST >= STAGE_QUOTA_COUNT)
		return 0;
	if (calls->read(fd, project, &state) == 0 && !state.limit.bytes && !state.limit.inodes)
		return 0;
	return calls->limit(fd, project, &none);
}

int stage_quota_sweep(const struct stage_quota_calls *calls, int fd)
{
	const struct quota_limit none = { 0 };
	uint32_t project = STAGE_QUOTA_FIRST;
	struct quota_state state;

	if (!calls->is_enforced(fd))
		return 0;
	for (;; project++) {
		int r = calls->next(fd, project, &project, &state);

		if (r < 0 || project - STAGE_QUOTA_FIRST >= STAGE_QUOTA_COUNT)
			return r == -ENOENT ? 0 : r;
		/* Directories have it before a limit has: with nothing in it, it is nobody's who lives. */
		if (!state.used.inodes && (state.limit.bytes || state.limit.inodes))
			r = calls->limit(fd, project, &none);
		if (r < 0)
			return r;
	}
}
