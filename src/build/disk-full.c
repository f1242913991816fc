/* SPDX-License-Identifier: Apache-2.0 */
#include "build/disk-full.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>

#include "base/num.h"
#include "base/str.h"
#include "build/staging.h"
#include "os/remote/file-size.h"
#include "session/directories.h"
#include "session/run-request.h"
#include "supervise/refusals.h"
#include "supervise/run.h"
#include "watch/watch.h"

static const struct {
	enum resource resource;
	const char *key;
} limits[] = {
	[DISK_FULL] = { RESOURCE_DISK, "resources.disk" },
	[DISK_BYTES] = { RESOURCE_DISK, "resources.disk" },
	[DISK_INODES] = { RESOURCE_INODES, "resources.inodes" },
};

static uint64_t limit_of(const struct disk_full *disk, enum resource resource)
{
	return disk->run->policy->policy->limits[resource].value;
}

/* Where a staged tree is inside. */
static const char *tree_inside(const struct disk_full *disk, size_t at)
{
	return session_root_inside(disk->root, disk->staging->record.trees[at].path);
}

/* The first tree that is none of the system of its own, if there is one: what changes there is meant to be kept. */
static const char *first_tree(const struct disk_full *disk)
{
	const struct stage_record *record = &disk->staging->record;

	for (size_t i = 0; i < record->tree_count; i++)
		if (tree_inside(disk, i) == record->trees[i].path)
			return record->trees[i].path;
	return tree_inside(disk, 0);
}

/* One record and one line for the agent each time: it may clear up and come back here often. */
static int record_refusal(struct disk_full *disk)
{
	enum { TEXT_SIZE = 160 };
	struct action action = { .kind = ACTION_FILE_WRITE, .subject = first_tree(disk) };
	struct decision decision = {
		.verdict = VERDICT_DENY,
		.rule = { limits[DISK_FULL].key, "", 0 },
		.hint = "remove what is not needed and try again; the run ends if much more is written",
	};
	char reason[TEXT_SIZE], limit[32], size[32];
	int r;

	num_format_size(limit_of(disk, RESOURCE_DISK), limit);
	num_format_size(disk_full_size(limit_of(disk, RESOURCE_DISK)), size);
	if (str_format(reason, sizeof reason, "%s of changes are staged: files cannot grow beyond %s", limit, size) < 0)
		reason[0] = 0;
	decision.reason = reason;
	r = run_limit_episode(disk->run, limits[DISK_FULL].key, limit_of(disk, RESOURCE_DISK));
	return r < 0 ? r : denials_add(&disk->run->refusals->denials, &action, &decision, ++disk->episodes);
}

static int end(struct disk_full *disk, enum disk_hit hit)
{
	run_end(disk->run, ENDED_DISK);
	return run_limit_hit(disk->run, limits[hit].key, limit_of(disk, limits[hit].resource));
}

/* Also who was made since, and who has raised its own limit. */
static int hold(struct disk_full *disk)
{
	int r = file_size_lower(disk->run->init.pid, disk_full_size(limit_of(disk, RESOURCE_DISK)));

	/* Whoever forks faster than we look, or cannot be limited, is not one to clear up. */
	return r < 0 && r != -ESRCH ? end(disk, DISK_BYTES) : 0;
}

/* As each command started. */
static uint64_t file_size_before(const struct disk_full *disk)
{
	uint64_t size = limit_of(disk, RESOURCE_FILE_SIZE);
	struct rlimit own;

	if (size != NUM_UNLIMITED)
		return size;
	return getrlimit(RLIMIT_FSIZE, &own) < 0 || own.rlim_cur == RLIM_INFINITY ? UINT64_MAX : own.rlim_cur;
}

static int let_go(struct disk_full *disk)
{
	int r = file_size_restore(disk->run->init.pid, disk_full_size(limit_of(disk, RESOURCE_DISK)),
				  file_size_before(disk));

	/* Who is missed here can write less than it might, and nothing more: that ends no run. */
	return r == -ENOMEM ? r : 0;
}

int disk_full_init(struct disk_full *disk, struct run *run, const struct staging *staging, uint64_t now_ns)
{
	*disk = (struct disk_full){ .run = run, .staging = staging };
	if (session_root_of(run->request->state_dir, run->request->session, disk->root, sizeof disk->root) < 0)
		*disk->root = 0;
	return disk_watch_init(&disk->watch, limit_of(disk, RESOURCE_DISK), limit_of(disk, RESOURCE_INODES),
			       staging->stage_fd, now_ns);
}

int disk_supervise(struct disk_full *disk, uint64_t now_ns)
{
	uint64_t before_ns = disk->watch.look_ns;
	bool was_full = disk->watch.is_full;
	int r, hit = disk_watch_check(&disk->watch, disk->staging->stage_fd, &disk->staging->record,
				      disk->run->init.pid, now_ns);

	if (hit < 0) {
		run_end(disk->run, ENDED_POLICY);
		return err_set(disk->run->err, ERR_INTERNAL, EPROTO, "init",
			       "the sandbox was ended: its staged files cannot be counted any more");
	}
	switch (hit) {
	case DISK_FULL:
		r = hold(disk);
		return r < 0 || disk->run->ended != ENDED_NOT ? r : record_refusal(disk);
	case DISK_AGAIN:
		return let_go(disk);
	case DISK_BYTES:
	case DISK_INODES:
		return end(disk, (enum disk_hit)hit);
	default:
		return was_full && disk->watch.look_ns != before_ns ? hold(disk) : 0;
	}
}

static bool makes(const struct watch_file *event)
{
	static const char *const calls[] = { "creat", "mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat" };

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (str_equal(event->call, calls[i]))
			return true;
	return str_has_prefix(event->call, "open") && event->flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY));
}

bool disk_refuses(const struct disk_full *disk, const struct watch_file *event)
{
	const struct stage_record *record = &disk->staging->record;

	if (!disk->watch.is_full || event->access != WATCH_FILE_WRITE || !makes(event))
		return false;
	for (size_t i = 0; i < record->tree_count; i++)
		if (path_is_below(event->path, tree_inside(disk, i)))
			return true;
	return false;
}
