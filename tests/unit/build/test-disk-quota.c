/* SPDX-License-Identifier: Apache-2.0 */

/* The budget of staged changes: what is counted, when, and what ends a run. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/num.h"
#include "build/disk-quota.h"
#include "os/fd.h"
#include "os/path.h"

enum { SECOND = 1000000000 };

static char directory[64];
static int stage_fd = FD_NONE;
static struct stage_tree tree = { .path = (char *)"/nowhere" };
static const struct stage_record record = { .trees = &tree, .tree_count = 1 };

static int make(void **state)
{
	snprintf(directory, sizeof directory, "/tmp/atoll-disk-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	stage_fd = fd_open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
	return path_make_directories(stage_fd, "live/0/upper/sub", 0700) || mkdirat(stage_fd, "live/0/work", 0700);
}

static int clean(void **state)
{
	close_fd(&stage_fd);
	return path_remove_tree(AT_FDCWD, directory);
}

static void fill(const char *name, size_t kib)
{
	static char block[1024];
	int fd = fd_open_at(stage_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	memset(block, 'x', sizeof block);
	assert_true(fd >= 0);
	for (size_t i = 0; i < kib; i++)
		assert_int_equal(fd_write_full(fd, block, sizeof block), 0);
	assert_int_equal(fsync(fd), 0); /* so that its blocks are counted */
	close(fd);
}

/* A look at a time when it must count, whatever the file system says. */
static int look(struct disk_watch *watch)
{
	watch->look_ns = watch->count_ns = 0;
	return disk_watch_check(watch, stage_fd, &record, getpid(), SECOND);
}

static struct disk_watch begin(uint64_t bytes, uint64_t inodes)
{
	struct disk_watch watch;

	assert_int_equal(disk_watch_init(&watch, bytes, inodes, stage_fd, 0), 0);
	return watch;
}

static void nothing_is_watched_without_a_limit(void **state)
{
	struct disk_watch watch = begin(NUM_UNLIMITED, NUM_UNLIMITED);

	assert_true(watch.look_ns == UINT64_MAX);
	assert_int_equal(disk_watch_check(&watch, stage_fd, &record, getpid(), 3600ULL * SECOND), DISK_FINE);
	assert_int_equal(disk_watch_init(&watch, 1, 1, FD_NONE, 0), 0);
	assert_true(watch.look_ns == UINT64_MAX);
}

static void bytes_are_counted_once(void **state)
{
	struct disk_watch watch = begin(1 << 20, NUM_UNLIMITED);

	assert_int_equal(look(&watch), DISK_FINE);
	fill("live/0/upper/sub/a", 600);
	assert_int_equal(linkat(stage_fd, "live/0/upper/sub/a", stage_fd, "live/0/upper/b", 0), 0);
	assert_int_equal(look(&watch), DISK_FINE);
	assert_true(watch.counted_bytes >= 600 << 10 && watch.counted_bytes < 700 << 10);
	fill("live/0/upper/c", 600);
	assert_int_equal(look(&watch), DISK_FULL);
	assert_int_equal(unlinkat(stage_fd, "live/0/upper/c", 0), 0);
	assert_int_equal(look(&watch), DISK_AGAIN);
	assert_int_equal(look(&watch), DISK_FINE);
}

/* Full is no end: what was too much may go again, and only what grows all the same ends the run. */
static void what_grows_although_it_is_full_ends_the_run(void **state)
{
	struct disk_watch watch = begin(1 << 20, NUM_UNLIMITED);
	uint64_t small = disk_full_size(1 << 20);

	assert_true(small == 256 << 10 && disk_full_size(1ULL << 40) == 16 << 20);
	fill("live/0/upper/a", 3000);
	assert_int_equal(look(&watch), DISK_FULL);
	assert_true(watch.is_full && watch.end_bytes == UINT64_MAX);
	/* Written before anybody could be held up: from here on it counts. */
	fill("live/0/upper/b", 3000);
	assert_int_equal(look(&watch), DISK_FINE);
	assert_true(watch.is_full && watch.end_bytes >= (6000 << 10) + 16 * small);
	fill("live/0/upper/c", 3000);
	assert_int_equal(look(&watch), DISK_FINE);
	fill("live/0/upper/d", 3000);
	assert_int_equal(look(&watch), DISK_BYTES);
}

/* Room for one more byte is none: it would be full again with the next write. */
static void there_is_room_again_when_enough_is_gone(void **state)
{
	struct disk_watch watch = begin(1 << 20, NUM_UNLIMITED);

	fill("live/0/upper/a", 1000);
	fill("live/0/upper/b", 100);
	assert_int_equal(look(&watch), DISK_FULL);
	fill("live/0/upper/b", 8);
	assert_int_equal(look(&watch), DISK_FINE);
	assert_true(watch.is_full);
	fill("live/0/upper/a", 800);
	assert_int_equal(look(&watch), DISK_AGAIN);
	assert_true(!watch.is_full && watch.look_ns > SECOND);
	/* And it can be full once more, with the same room beyond. */
	fill("live/0/upper/b", 600);
	assert_int_equal(look(&watch), DISK_FULL);
	assert_true(watch.end_bytes == UINT64_MAX);
}

/* Too many files are an end also while it is full: nothing holds them up. */
static void too_many_files_end_the_run_while_it_is_full(void **state)
{
	struct disk_watch watch = begin(1 << 20, 12);

	fill("live/0/upper/a", 2000);
	assert_int_equal(look(&watch), DISK_FULL);
	for (int i = 0; i < 12; i++) {
		char name[64];

		snprintf(name, sizeof name, "live/0/upper/sub/f%d", i);
		fill(name, 0);
	}
	assert_int_equal(look(&watch), DISK_INODES);
}

static void inodes_are_counted(void **state)
{
	struct disk_watch watch = begin(NUM_UNLIMITED, 12);

	for (int i = 0; i < 20; i++) {
		char name[64];

		assert_int_equal(look(&watch), i < 11 ? DISK_FINE : DISK_INODES);
		snprintf(name, sizeof name, "live/0/upper/sub/f%d", i);
		fill(name, 0);
	}
}

/* A file that was unlinked while it is open is on no list, and takes the disk all the same. */
static void what_has_no_name_counts(void **state)
{
	struct disk_watch watch = begin(1 << 20, NUM_UNLIMITED);
	int fd;

	fill("live/0/upper/a", 2048);
	fd = fd_open_at(stage_fd, "live/0/upper/a", O_RDONLY, 0);
	assert_int_equal(unlinkat(stage_fd, "live/0/upper/a", 0), 0);
	assert_int_equal(look(&watch), DISK_FULL);
	assert_int_equal(look(&watch), DISK_FINE);
	close(fd);
	assert_int_equal(look(&watch), DISK_AGAIN);
}

/* Far from the limit nobody is woken often, near it often; never a busy loop. */
static void looks_come_closer_together(void **state)
{
	struct disk_watch far = begin(100ULL << 30, NUM_UNLIMITED), near = begin(100 << 20, NUM_UNLIMITED);

	assert_true(far.look_ns == SECOND);
	assert_true(near.look_ns < SECOND / 20 && near.look_ns >= SECOND / 50);
	assert_int_equal(disk_watch_check(&near, stage_fd, &record, getpid(), near.look_ns - 1), DISK_FINE);
}

/* While nothing runs looks are rare; what follows looks and counts as before. */
static void rest_ends_with_the_first_event(void **state)
{
	struct disk_watch watch = begin(100 << 20, NUM_UNLIMITED), full = begin(1 << 20, NUM_UNLIMITED);
	struct disk_watch unlimited = begin(NUM_UNLIMITED, NUM_UNLIMITED);
	uint64_t look_ns = watch.look_ns;

	disk_watch_wake(&watch, 0);
	assert_true(watch.look_ns == look_ns);
	disk_watch_rest(&watch, 0);
	assert_true(watch.look_ns == (uint64_t)DISK_REST_MS * (SECOND / 1000));
	assert_int_equal(disk_watch_check(&watch, stage_fd, &record, getpid(), watch.look_ns), DISK_FINE);
	disk_watch_rest(&watch, SECOND);
	disk_watch_wake(&watch, 2ULL * SECOND);
	assert_true(watch.look_ns < 3ULL * SECOND && watch.count_ns <= 30ULL * SECOND);
	disk_watch_rest(&unlimited, 0);
	disk_watch_wake(&unlimited, 0);
	assert_true(unlimited.look_ns == UINT64_MAX);
	/* Who is over the limit is watched as closely as ever. */
	fill("live/0/upper/big", 2000);
	assert_int_equal(look(&full), DISK_FULL);
	look_ns = full.look_ns;
	disk_watch_rest(&full, SECOND);
	assert_true(full.look_ns == look_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nothing_is_watched_without_a_limit, make, clean),
		cmocka_unit_test_setup_teardown(bytes_are_counted_once, make, clean),
		cmocka_unit_test_setup_teardown(what_grows_although_it_is_full_ends_the_run, make, clean),
		cmocka_unit_test_setup_teardown(there_is_room_again_when_enough_is_gone, make, clean),
		cmocka_unit_test_setup_teardown(too_many_files_end_the_run_while_it_is_full, make, clean),
		cmocka_unit_test_setup_teardown(inodes_are_counted, make, clean),
		cmocka_unit_test_setup_teardown(what_has_no_name_counts, make, clean),
		cmocka_unit_test_setup_teardown(looks_come_closer_together, make, clean),
		cmocka_unit_test_setup_teardown(rest_ends_with_the_first_event, make, clean),
	};

	return cmocka_run_group_tests_name("disk", tests, NULL, NULL);
}
