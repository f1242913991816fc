/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/layer/chain.h"
#include "stage/layer/layer.h"
#include "stage/record/record.h"

#define SESSION "k3v9q2m4x7dt"

static char directory[64];
static int stage_fd;
static struct err err;

static int setup(void **state)
{
	if (str_format(directory, sizeof directory, "/tmp/atoll-unit-record-XXXXXX") < 0 || !mkdtemp(directory))
		return -1;
	stage_fd = fd_open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
	return stage_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	close(stage_fd);
	return path_remove_tree(AT_FDCWD, directory);
}

static struct stage_record make_record(void)
{
	struct stage_record record = { .session = SESSION, .origin = "aaaaaaaaaaaa" };
	const struct stage_tree ids = { .owner_uid = 1, .owner_gid = 2, .jail_uid = 3, .jail_gid = 4 };

	assert_int_equal(stage_record_set_start(&record, stage_fd), 0);
	assert_int_equal(stage_record_add_tree(&record, stage_fd, directory, &ids), 0);
	assert_int_equal(stage_record_add_tree(&record, stage_fd, "/", &ids), 1);
	return record;
}

static char *read_whole(const char *name, size_t *ret_size)
{
	char *bytes;

	assert_int_equal(fd_read_file_at(stage_fd, name, 1 << 20, &bytes, ret_size), 0);
	return bytes;
}

static void record_comes_back(void **state)
{
	struct stage_record record = make_record(), back;
	struct stat st;

	assert_int_equal(stage_record_store(stage_fd, &record), 0);
	assert_int_equal(fstatat(stage_fd, STAGE_FILE_TREES, &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(stage_record_load(stage_fd, &back), 0);
	assert_string_equal(back.session, SESSION);
	assert_string_equal(back.origin, "aaaaaaaaaaaa");
	assert_string_equal(back.boot_id, record.boot_id);
	assert_true(back.started_realtime_ns == record.started_realtime_ns);
	assert_true(back.started_boottime_ns == record.started_boottime_ns);
	assert_int_equal(back.tree_count, 2);
	assert_string_equal(back.trees[0].path, directory);
	assert_string_equal(back.trees[1].path, "/");
	assert_true(back.trees[0].inode == record.trees[0].inode);
	assert_int_equal(back.trees[0].jail_gid, 4);
	stage_record_done(&back);
	stage_record_done(&record);
}

/* Each shorter and each damaged file: refused, or something whole. The address sanitizer sees reads beyond the end. */
static void damaged_records_do_no_harm(void **state)
{
	struct stage_record record = make_record(), back;
	size_t size;
	char *bytes;

	assert_int_equal(stage_record_store(stage_fd, &record), 0);
	bytes = read_whole(STAGE_FILE_TREES, &size);
	for (size_t at = 0; at < size; at++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			char *copy = malloc(size);

			memcpy(copy, bytes, size);
			copy[at] = (char)(copy[at] ^ 1 << bit);
			if (stage_record_parse(copy, size, &back) == 0) {
				assert_true(back.tree_count >= 1 && back.tree_count <= STAGE_TREES_MAX);
				assert_true(back.trees[0].path[0] == '/');
				stage_record_done(&back);
			}
			memcpy(copy, bytes, size);
			assert_true(stage_record_parse(copy, at, &back) < 0);
			free(copy);
		}
	}
	free(bytes);
	stage_record_done(&record);
}

static void only_real_paths_are_trees(void **state)
{
	static const char *const paths[] = { "", "a", "/a/", "/a//b", "/a/../b", "/./a" };
	struct stage_record record = { .session = SESSION, .origin = SESSION };
	const struct stage_tree ids = { 0 };
	cleanup_fd int null = fd_open_at(AT_FDCWD, "/dev/null", O_RDONLY, 0);

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_int_equal(stage_record_add_tree(&record, stage_fd, paths[i], &ids), -EINVAL);
	assert_int_equal(stage_record_add_tree(&record, null, "/a", &ids), -ENOTDIR);
	for (int i = 0; i < STAGE_TREES_MAX; i++)
		assert_int_equal(stage_record_add_tree(&record, stage_fd, "/a", &ids), i);
	assert_int_equal(stage_record_add_tree(&record, stage_fd, "/a", &ids), -E2BIG);
	stage_record_done(&record);
}

static void a_clock_that_is_set_lowers_the_start(void **state)
{
	const uint64_t hour = 3600ULL * 1000000000;
	struct stage_record record = make_record();
	uint64_t now = record.started_realtime_ns, start = stage_record_start_ns(&record);

	/* Within what it takes to read two clocks. */
	assert_true(start <= now && start > now - 50 * 1000000ULL);
	/* The clock stood an hour ahead then, and was set back: the start counts as it is called now. */
	record.started_realtime_ns = now + hour;
	start = stage_record_start_ns(&record);
	assert_true(start >= now - 50 * 1000000ULL && start <= now + 1000 * 1000000ULL);
	/* Set forward: nothing to do. */
	record.started_realtime_ns = now - hour;
	assert_true(stage_record_start_ns(&record) == now - hour);
	/* Another boot: CLOCK_BOOTTIME means nothing. */
	record.started_realtime_ns = now + hour;
	record.boot_id[0] = 'x';
	assert_true(stage_record_is_other_boot(&record));
	assert_true(stage_record_start_ns(&record) == now + hour);
	stage_record_done(&record);
}

static void another_directory_is_not_the_tree(void **state)
{
	struct stage_record record = make_record();
	cleanup_fd int fd = stage_tree_open(&record.trees[0], &err);

	assert_true(fd >= 0);
	record.trees[0].inode++;
	assert_int_equal(stage_tree_open(&record.trees[0], &err), -ESTALE);
	assert_non_null(strstr(err.message, "another directory"));
	stage_record_done(&record);
}

static void chains_come_back(void **state)
{
	struct stage_chain chain = { .taken_ns = 7, .message = "a \xff\n message" }, back;

	assert_int_equal(stage_chain_load(stage_fd, STAGE_FILE_CHAIN, false, &back), -ENOENT);
	assert_int_equal(stage_chain_load(stage_fd, STAGE_FILE_CHAIN, true, &back), 0);
	assert_int_equal(back.count, 0);
	for (uint32_t i = 1; i <= STAGE_CHAIN_MAX; i++)
		assert_int_equal(stage_chain_push(&chain, SESSION, i), 0);
	assert_int_equal(stage_chain_push(&chain, SESSION, 1), -E2BIG);
	assert_int_equal(stage_chain_store(stage_fd, STAGE_FILE_CHAIN, &chain), 0);
	assert_int_equal(stage_chain_load(stage_fd, STAGE_FILE_CHAIN, false, &back), 0);
	assert_int_equal(back.count, STAGE_CHAIN_MAX);
	assert_int_equal(back.layers[63].number, 64);
	assert_string_equal(back.layers[63].session, SESSION);
	assert_string_equal(back.message, chain.message);
	assert_true(back.taken_ns == 7);
}

static void what_is_no_layer_is_in_no_chain(void **state)
{
	static const char *const sessions[] = {
		"", "short", "../../../etc", "ABCDEFGHIJKL", "k3v9q2m4x7dtt", "k3v9q2m4x7d/",
	};
	struct stage_chain chain = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(sessions); i++)
		assert_int_equal(stage_chain_push(&chain, sessions[i], 1), -EINVAL);
	assert_int_equal(stage_chain_push(&chain, SESSION, 0), -EINVAL);
	assert_int_equal(stage_chain_push(&chain, SESSION, UINT32_MAX), -EINVAL);
	assert_int_equal(chain.count, 0);
}

static void damaged_chains_do_no_harm(void **state)
{
	struct stage_chain chain = { .message = "m" }, back;
	size_t size;
	char *bytes;

	assert_int_equal(stage_chain_push(&chain, SESSION, 1), 0);
	assert_int_equal(stage_chain_store(stage_fd, "damaged", &chain), 0);
	bytes = read_whole("damaged", &size);
	for (size_t at = 0; at < size; at++) {
		char *copy = malloc(size);

		memcpy(copy, bytes, size);
		copy[at] = (char)(copy[at] ^ 0xff);
		if (stage_chain_parse(copy, size, &back) == 0)
			assert_true(back.count == 1 && strlen(back.layers[0].session) == 12);
		memcpy(copy, bytes, size);
		assert_true(stage_chain_parse(copy, at, &back) < 0);
		free(copy);
	}
	free(bytes);
	/* A link in the file's place leads nowhere. */
	assert_int_equal(symlinkat("/etc/passwd", stage_fd, "link"), 0);
	assert_int_equal(stage_chain_load(stage_fd, "link", true, &back), -EBADMSG);
}

static void snapshot_names(void **state)
{
	char longest[STAGE_SNAPSHOT_NAME_MAX + 2];

	memset(longest, 'a', sizeof longest);
	longest[STAGE_SNAPSHOT_NAME_MAX] = 0;
	assert_true(stage_snapshot_name_is_valid("before-refactor"));
	assert_true(stage_snapshot_name_is_valid("v1.2_3"));
	assert_true(stage_snapshot_name_is_valid(longest));
	longest[STAGE_SNAPSHOT_NAME_MAX] = 'a';
	longest[STAGE_SNAPSHOT_NAME_MAX + 1] = 0;
	assert_false(stage_snapshot_name_is_valid(longest));
	assert_false(stage_snapshot_name_is_valid(""));
	assert_false(stage_snapshot_name_is_valid("."));
	assert_false(stage_snapshot_name_is_valid(".."));
	assert_false(stage_snapshot_name_is_valid("-x"));
	assert_false(stage_snapshot_name_is_valid("a/b"));
	assert_false(stage_snapshot_name_is_valid("a\nb"));
}

/* Wherever a seal stops, the stack shows the same: here the parts are looked at one by one. */
static void sealing_moves_what_was_written(void **state)
{
	struct stage_record record = make_record();
	struct stage_chain chain = { 0 }, stored;
	cleanup_fd int upper = FD_NONE, sealed = FD_NONE;
	struct stat before, after;

	record.trees[0].jail_uid = record.trees[1].jail_uid = getuid();
	record.trees[0].jail_gid = record.trees[1].jail_gid = getgid();
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(stage_live_make(stage_fd, i, &record.trees[i], stage_fd, &err), 0);
	assert_int_equal(stage_live_is_used(stage_fd, &record), 0);
	upper = stage_open_beneath(stage_fd, "live/1/upper", O_RDONLY | O_DIRECTORY, 0);
	close(fd_open_at(upper, "file", O_WRONLY | O_CREAT, 0600));
	assert_int_equal(stage_live_is_used(stage_fd, &record), 1);
	assert_int_equal(fstat(upper, &before), 0);
	assert_int_equal(stage_seal(stage_fd, &record, &chain, &err), 1);
	assert_int_equal(stage_live_is_used(stage_fd, &record), 0);
	sealed = stage_open_beneath(stage_fd, "layers/1/1", O_RDONLY | O_DIRECTORY, 0);
	assert_int_equal(fstat(sealed, &after), 0);
	assert_true(before.st_ino == after.st_ino);
	assert_int_equal(fstatat(stage_fd, "live/1/upper", &after, 0), 0);
	assert_int_equal(after.st_mode, before.st_mode);
	assert_int_equal(stage_chain_load(stage_fd, STAGE_FILE_CHAIN, false, &stored), 0);
	assert_int_equal(stored.count, 1);
	assert_int_equal(stored.layers[0].number, 1);
	assert_int_equal(stage_seal(stage_fd, &record, &chain, &err), 2);
	stage_record_done(&record);
}

static void what_a_volatile_mount_left_is_gone(void **state)
{
	struct stage_record record = make_record();
	struct stat st;

	record.trees[0].jail_uid = getuid();
	record.trees[0].jail_gid = getgid();
	assert_int_equal(stage_live_make(stage_fd, 0, &record.trees[0], stage_fd, &err), 0);
	assert_int_equal(path_make_directories(stage_fd, "live/0/work/work/incompat/volatile", 0700), 0);
	assert_int_equal(fchmodat(stage_fd, "live/0/work/work", 0, 0), 0);
	assert_int_equal(path_make_directories(stage_fd, "live/0/upper/kept", 0700), 0);
	assert_int_equal(stage_live_make(stage_fd, 0, &record.trees[0], stage_fd, &err), 0);
	assert_int_equal(fstatat(stage_fd, "live/0/work/work", &st, 0), -1);
	assert_int_equal(fstatat(stage_fd, "live/0/upper/kept", &st, 0), 0);
	stage_record_done(&record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(record_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_records_do_no_harm, setup, teardown),
		cmocka_unit_test_setup_teardown(only_real_paths_are_trees, setup, teardown),
		cmocka_unit_test_setup_teardown(a_clock_that_is_set_lowers_the_start, setup, teardown),
		cmocka_unit_test_setup_teardown(another_directory_is_not_the_tree, setup, teardown),
		cmocka_unit_test_setup_teardown(chains_come_back, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_layer_is_in_no_chain, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_chains_do_no_harm, setup, teardown),
		cmocka_unit_test_setup_teardown(snapshot_names, setup, teardown),
		cmocka_unit_test_setup_teardown(sealing_moves_what_was_written, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_volatile_mount_left_is_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
