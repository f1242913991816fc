/* SPDX-License-Identifier: Apache-2.0 */
#include "box/disk-full.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"
#include "box/state.h"
#include "os/file-size.h"

enum { REASON_SIZE = 160, QUOTA_LOOK_NS = 1000000000, WRITE_SIZE = 64 << 10, ROOM_PART = 32, MEMORY_PART = 64 };

static const struct {
	enum resource resource;
	const char *key;
} limits[] = {
	[DISK_FULL] = { RESOURCE_DISK, "resources.disk" },
	[DISK_BYTES] = { RESOURCE_DISK, "resources.disk" },
	[DISK_INODES] = { RESOURCE_INODES, "resources.inodes" },
};

static uint64_t limit_of(const struct box *box, enum resource resource)
{
	return box->policy->policy->limits[resource].value;
}

/* One record and one line for the agent each time: it may clear up and come back here often. */
static int tell(struct box *box, enum disk_hit hit, const char *reason, const char *hint)
{
	struct action action = { .kind = ACTION_FILE_WRITE, .subject = box->staging.record.trees[0].path };
	struct decision decision = { VERDICT_DENY, { limits[hit].key, "", 0 }, reason, hint, NULL, false };
	int r = box_limit_episode(box, limits[hit].key, limit_of(box, limits[hit].resource));

	return r < 0 ? r : denials_add(&box->denials, &action, &decision, ++box->disk_episodes);
}

static int tell_full(struct box *box)
{
	char reason[REASON_SIZE], limit[32], size[32];

	num_format_size(limit_of(box, RESOURCE_DISK), limit);
	num_format_size(disk_full_size(limit_of(box, RESOURCE_DISK)), size);
	if (str_format(reason, sizeof reason, "%s of changes are staged: files cannot grow beyond %s", limit, size) < 0)
		reason[0] = 0;
	return tell(box, DISK_FULL, reason,
		    "remove what is not needed and try again; the run ends if much more is written");
}

/* ---- a quota: the kernel refuses, we only tell ---- */

/* Of bytes less than one write is left, of inodes none. What was told is told again once there was room. */
static bool is_up(uint64_t limit, uint64_t used, uint64_t margin, bool was_up)
{
	if (!limit)
		return false;
	return used + margin >= limit - (was_up ? limit / ROOM_PART : 0);
}

static int tell_quota(struct box *box, enum disk_hit hit)
{
	char reason[REASON_SIZE], limit[32];

	if (hit == DISK_BYTES)
		num_format_size(limit_of(box, RESOURCE_DISK), limit);
	else
		num_format_count(limit_of(box, RESOURCE_INODES), limit);
	if (str_format(reason, sizeof reason, "%s %s staged: no more fits", limit,
		       hit == DISK_BYTES ? "of changes are" : "files and directories are") < 0)
		reason[0] = 0;
	return tell(box, hit, reason, "remove what is not needed and try again");
}

static int look_at_quota(struct box *box)
{
	struct quota_state state;
	bool was_up[2] = { box->quota_is_up[0], box->quota_is_up[1] };
	int r = quota_read(box->staging.stage_fd, box->staging.quota_project, &state);

	/* It holds whether it can be read or not. */
	if (r < 0)
		return 0;
	box->quota_is_up[0] = is_up(state.limit.bytes, state.used.bytes, WRITE_SIZE, was_up[0]);
	box->quota_is_up[1] = is_up(state.limit.inodes, state.used.inodes, 0, was_up[1]);
	if (box->quota_is_up[0] && !was_up[0])
		r = tell_quota(box, DISK_BYTES);
	if (r == 0 && box->quota_is_up[1] && !was_up[1])
		r = tell_quota(box, DISK_INODES);
	return r;
}

/*
 * A file system in user space gets what programs wrote when the kernel writes back, which holds at most a hundredth of
 * the memory for it (its max_ratio; Documentation/ABI/testing/sysfs-class-bdi).
 */
static uint64_t late_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size / MEMORY_PART : 0;
}

int disk_begin(struct box *box, uint64_t now_ns)
{
	bool has_quota = box->staging.quota_project;
	int r = disk_watch_init(&box->disk, has_quota ? NUM_UNLIMITED : limit_of(box, RESOURCE_DISK),
				has_quota ? NUM_UNLIMITED : limit_of(box, RESOURCE_INODES), box->staging.stage_fd,
				now_ns);

	box->disk.late_bytes = box->staging.record.form == STAGE_FORM_FUSE ? late_bytes() : 0;
	if (has_quota)
		box->disk.look_ns = now_ns + QUOTA_LOOK_NS;
	return r;
}

void disk_end(struct box *box)
{
	if (!box->staging.quota_project)
		return;
	/* A log that fails here fails again at the end of the session, which says so. */
	if (box->audit.fd >= 0)
		(void)!look_at_quota(box);
	staging_unlimit(&box->staging);
}

static int end(struct box *box, enum disk_hit hit)
{
	box_end(box, ENDED_DISK);
	return box_limit_hit(box, limits[hit].key, limit_of(box, limits[hit].resource));
}

/* Also who was made since, and who has raised its own limit. */
static int hold(struct box *box)
{
	int r = file_size_lower(box->init.pid, disk_full_size(limit_of(box, RESOURCE_DISK)));

	/* Whoever forks faster than we look, or cannot be limited, is not one to clear up. */
	return r < 0 && r != -ESRCH ? end(box, DISK_BYTES) : 0;
}

/* As each command started. */
static uint64_t file_size_before(const struct box *box)
{
	uint64_t size = limit_of(box, RESOURCE_FILE_SIZE);
	struct rlimit own;

	if (size != NUM_UNLIMITED)
		return size;
	return getrlimit(RLIMIT_FSIZE, &own) < 0 || own.rlim_cur == RLIM_INFINITY ? UINT64_MAX : own.rlim_cur;
}

static int let_go(struct box *box)
{
	int r = file_size_restore(box->init.pid, disk_full_size(limit_of(box, RESOURCE_DISK)), file_size_before(box));

	/* Who is missed here can write less than it might, and nothing more: that ends no run. */
	return r == -ENOMEM ? r : 0;
}

int disk_supervise(struct box *box, uint64_t now_ns)
{
	uint64_t before_ns = box->disk.look_ns;
	bool was_full = box->disk.is_full;
	int r, hit;

	if (box->staging.quota_project) {
		if (now_ns < before_ns)
			return 0;
		box->disk.look_ns = now_ns + QUOTA_LOOK_NS;
		return look_at_quota(box);
	}
	hit = disk_watch_check(&box->disk, box->staging.stage_fd, &box->staging.record, box->init.pid, now_ns);
	if (hit < 0) {
		box_end(box, ENDED_POLICY);
		return err_set(box->err, ERR_INTERNAL, EPROTO, "init",
			       "the sandbox was ended: what it stages cannot be counted any more");
	}
	switch (hit) {
	case DISK_FULL:
		r = hold(box);
		return r < 0 || box->ended != ENDED_NOT ? r : tell_full(box);
	case DISK_AGAIN:
		return let_go(box);
	case DISK_BYTES:
	case DISK_INODES:
		return end(box, (enum disk_hit)hit);
	default:
		return was_full && box->disk.look_ns != before_ns ? hold(box) : 0;
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

bool disk_refuses(const struct box *box, const struct watch_file *event)
{
	const struct stage_record *record = &box->staging.record;

	if (!box->disk.is_full || event->access != WATCH_FILE_WRITE || !makes(event))
		return false;
	for (size_t i = 0; i < record->tree_count; i++)
		if (path_is_below(event->path, record->trees[i].path))
			return true;
	return false;
}
