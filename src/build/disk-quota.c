/* SPDX-License-Identifier: Apache-2.0 */
#include "build/disk-quota.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/num.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/proc.h"
#include "stage/layer/layer.h"
#include "stage/layer/walk.h"

enum { MS_NS = 1000000, LOOK_MIN_MS = 20, LOOK_MAX_MS = 1000, COUNT_MS = 15000, COUNT_SHARE = 50 };

/* While it is full; and how many of the small files that are let through then end the run. */
enum { FULL_LOOK_MS = 100, FULL_SHARE = 10, FULL_FILES = 16 };

enum { FULL_SIZE_MIN = 256 << 10, FULL_SIZE_MAX = 16 << 20, FULL_PART = 32 };

/* Faster than page cache takes them on any machine so far: what can be written until the next look. */
enum { BYTES_PER_MS = 4 << 20, INODES_PER_MS = 500 };

/* Of the file system that the layers lie on; what a file system does not count is "all". */
static int read_free(int stage_fd, uint64_t *ret_bytes, uint64_t *ret_inodes)
{
	struct statvfs fs;

	if (fstatvfs(stage_fd, &fs) < 0)
		return -errno;
	*ret_bytes = (uint64_t)fs.f_bfree * fs.f_frsize;
	*ret_inodes = fs.f_files ? fs.f_ffree : UINT64_MAX;
	return 0;
}

/* How much may still be used before it must be counted again, if nobody else used any of it. */
static uint64_t left_of(uint64_t limit, uint64_t counted, uint64_t free_then, uint64_t free_now)
{
	uint64_t used = counted + (free_then > free_now ? free_then - free_now : 0);

	if (limit == NUM_UNLIMITED)
		return UINT64_MAX;
	return used < limit ? limit - used : 0;
}

static void plan_look(struct disk_watch *watch, uint64_t bytes_left, uint64_t inodes_left, uint64_t now_ns)
{
	uint64_t by_bytes = bytes_left / BYTES_PER_MS, by_inodes = inodes_left / INODES_PER_MS;
	uint64_t ms = by_bytes < by_inodes ? by_bytes : by_inodes;

	ms = ms < LOOK_MIN_MS ? LOOK_MIN_MS : ms > LOOK_MAX_MS ? LOOK_MAX_MS : ms;
	watch->look_ns = now_ns + ms * MS_NS;
}

int disk_watch_init(struct disk_watch *watch, uint64_t limit_bytes, uint64_t limit_inodes, int stage_fd,
		    uint64_t now_ns)
{
	int r;

	*watch = (struct disk_watch){
		.limit_bytes = limit_bytes,
		.limit_inodes = limit_inodes,
		.look_ns = UINT64_MAX,
		.count_ns = now_ns + COUNT_MS * (uint64_t)MS_NS,
		.end_bytes = UINT64_MAX,
	};
	if (stage_fd < 0 || (limit_bytes == NUM_UNLIMITED && limit_inodes == NUM_UNLIMITED))
		return 0;
	r = read_free(stage_fd, &watch->free_bytes, &watch->free_inodes);
	if (r == 0)
		plan_look(watch, limit_bytes, limit_inodes, now_ns);
	return r;
}

struct tally {
	uint64_t bytes_max, inodes_max; /* more need not be counted */
	uint64_t bytes, inodes;
};

enum { ENOUGH = -ECANCELED };

static int add_entry(void *context, const struct stage_entry *entry)
{
	struct tally *tally = context;

	if (entry->kind != STAGE_ENTRY_FILE && entry->kind != STAGE_ENTRY_DIRECTORY)
		return 0;
	/* All names of a file are in the layer, since links do not cross it: each counts for its share. */
	tally->bytes += (uint64_t)entry->staged.st_blocks * 512 /
			(S_ISREG(entry->staged.st_mode) && entry->staged.st_nlink ? entry->staged.st_nlink : 1);
	tally->inodes++;
	return tally->bytes > tally->bytes_max || tally->inodes > tally->inodes_max ? ENOUGH : 0;
}

static int count_layers(struct tally *tally, int stage_fd, const struct stage_record *record)
{
	static const struct stage_chain none;
	struct stage_visitor visitor = { .enter = add_entry, .context = tally };

	for (size_t i = 0; i < record->tree_count; i++) {
		cleanup_stage_stack struct stage_stack stack = STAGE_STACK_NONE;
		int r = stage_stack_open(FD_NONE, stage_fd, &none, i, true, &stack);

		stack.form = record->form;
		if (r == 0)
			r = stage_walk(&stack, &visitor);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What the count means where the bytes are within what was counted up to. */
static int judge_bytes(struct disk_watch *watch, uint64_t bytes)
{
	uint64_t limit = watch->limit_bytes;

	if (!watch->is_full)
		return DISK_FINE;
	/* Not at the very limit, where the next write would close it again. */
	if (bytes <= limit - limit / FULL_PART) {
		watch->is_full = false;
		watch->end_bytes = UINT64_MAX;
		return DISK_AGAIN;
	}
	/* The first whole count since nothing is to grow: what was written until then is nobody's fault any more. */
	if (watch->end_bytes == UINT64_MAX)
		watch->end_bytes = (bytes > limit ? bytes : limit) + disk_full_size(limit) * FULL_FILES;
	return DISK_FINE;
}

static int judge(struct disk_watch *watch, const struct tally *tally)
{
	if (tally->inodes > watch->limit_inodes)
		return DISK_INODES;
	if (tally->bytes <= tally->bytes_max)
		return judge_bytes(watch, tally->bytes);
	if (watch->is_full)
		return DISK_BYTES;
	watch->is_full = true;
	return DISK_FULL;
}

static int count(struct disk_watch *watch, int stage_fd, const struct stage_record *record, pid_t init_pid,
		 uint64_t now_ns)
{
	struct tally tally = {
		.bytes_max = watch->is_full ? watch->end_bytes : watch->limit_bytes,
		.inodes_max = watch->limit_inodes,
	};
	uint64_t bytes = 0, inodes = 0, took_ns;
	/* First what is free: what is written while we count is then seen by the next look. */
	int r = read_free(stage_fd, &bytes, &inodes);

	if (r == 0)
		r = count_layers(&tally, stage_fd, record);
	/* A walk that a hostile tree has broken has counted enough to be told from an honest one. */
	if (r < 0 && r != ENOUGH)
		return r == -E2BIG ? DISK_INODES : r;
	if (r == 0)
		tally.bytes += proc_unlinked_bytes(init_pid);
	watch->free_bytes = bytes;
	watch->free_inodes = inodes;
	watch->counted_bytes = tally.bytes;
	watch->counted_inodes = tally.inodes;
	took_ns = clock_monotonic_ns() - now_ns;
	watch->count_ns = now_ns + (took_ns * COUNT_SHARE > COUNT_MS * (uint64_t)MS_NS ? took_ns * COUNT_SHARE :
										      COUNT_MS * (uint64_t)MS_NS);
	watch->look_ns = now_ns + (took_ns * FULL_SHARE > FULL_LOOK_MS * (uint64_t)MS_NS ? took_ns * FULL_SHARE :
										      FULL_LOOK_MS * (uint64_t)MS_NS);
	return judge(watch, &tally);
}

void disk_watch_rest(struct disk_watch *watch, uint64_t now_ns)
{
	if (watch->look_ns == UINT64_MAX || watch->is_full)
		return;
	watch->is_resting = true;
	watch->look_ns = now_ns + DISK_REST_MS * (uint64_t)MS_NS;
	watch->count_ns = UINT64_MAX;
}

void disk_watch_wake(struct disk_watch *watch, uint64_t now_ns)
{
	if (!watch->is_resting)
		return;
	watch->is_resting = false;
	watch->look_ns = now_ns + LOOK_MIN_MS * (uint64_t)MS_NS;
	watch->count_ns = now_ns + COUNT_MS * (uint64_t)MS_NS;
}

uint64_t disk_full_size(uint64_t limit_bytes)
{
	uint64_t size = limit_bytes / FULL_PART;

	return size < FULL_SIZE_MIN ? FULL_SIZE_MIN : size > FULL_SIZE_MAX ? FULL_SIZE_MAX : size;
}

int disk_watch_check(struct disk_watch *watch, int stage_fd, const struct stage_record *record, pid_t init_pid,
		     uint64_t now_ns)
{
	uint64_t bytes = 0, inodes = 0, bytes_left, inodes_left;
	bool is_again = false;
	int r;

	if (now_ns < watch->look_ns)
		return DISK_FINE;
	r = read_free(stage_fd, &bytes, &inodes);
	if (r < 0)
		return r;
	bytes_left = left_of(watch->limit_bytes, watch->counted_bytes, watch->free_bytes, bytes);
	inodes_left = left_of(watch->limit_inodes, watch->counted_inodes, watch->free_inodes, inodes);
	if (watch->is_full || !bytes_left || !inodes_left || now_ns >= watch->count_ns) {
		r = count(watch, stage_fd, record, init_pid, now_ns);
		if (r < 0 || watch->is_full || r > DISK_AGAIN)
			return r;
		is_again = r == DISK_AGAIN;
		bytes_left = left_of(watch->limit_bytes, watch->counted_bytes, 0, 0);
		inodes_left = left_of(watch->limit_inodes, watch->counted_inodes, 0, 0);
	}
	plan_look(watch, bytes_left, inodes_left, now_ns);
	return is_again ? DISK_AGAIN : DISK_FINE;
}
