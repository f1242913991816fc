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

#include "os/fd.h"
#include "os/path.h"
#include "stage/transaction/journal.h"

static char directory[] = "/tmp/atoll-unit-journal-XXXXXX";
static int dir_fd;

static int setup(void **state)
{
	(void)state;
	dir_fd = mkdtemp(directory) ? fd_open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0) : -1;
	return dir_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	close(dir_fd);
	return path_remove_tree(AT_FDCWD, directory);
}

static void clear_files(void)
{
	unlinkat(dir_fd, JOURNAL_FILE, 0);
	unlinkat(dir_fd, JOURNAL_FILE_DRAFT, 0);
}

static struct identity identity(uint32_t mode, uint64_t inode)
{
	return (struct identity){ .mode = mode, .uid = 1, .gid = 2, .links = 1, .inode = inode, .size = 77,
				  .mtime = { -5, 999999999 }, .ctime = { 1LL << 40, 3 }, .atime = { 9, 1 } };
}

static void add_op(struct journal *journal, uint32_t action, const char *path, uint32_t host, uint32_t content)
{
	struct journal_op *op = journal_add_op(journal);

	assert_non_null(op);
	*op = (struct journal_op){ .action = action, .tree = 1, .area = 7, .slot = 3, .path = path };
	if (host)
		op->host = identity(host, 10);
	if (content)
		op->content = identity(content, 11);
}

static void make_plan(struct journal *plan)
{
	struct journal_directory *parent;

	journal_init(plan);
	plan->number = 7;
	plan->kind = JOURNAL_APPLY;
	plan->time_ns = 123456789;
	memcpy(plan->session, "abcdefghijkl", SESSION_ID_SIZE);
	plan->areas[0] = (struct journal_area){ .is_used = true };
	plan->areas[1] = (struct journal_area){ .is_used = true, .name = ".atoll-abcdefghijkl-7" };
	add_op(plan, JOURNAL_ADD, "new\nname/\xff\xfe", 0, S_IFREG | 0644);
	add_op(plan, JOURNAL_REPLACE, "b", S_IFREG | 0600, S_IFLNK | 0777);
	add_op(plan, JOURNAL_REMOVE, "c/d", S_IFDIR | 0755, 0);
	add_op(plan, JOURNAL_SET, "", S_IFDIR | 0755, S_IFDIR | 0700);
	parent = journal_add_directory(plan);
	*parent = (struct journal_directory){ .tree = 1, .path = "", .before = identity(S_IFDIR | 0755, 2),
					      .has_wanted = true, .wanted_mtime = { 3, 4 } };
}

static void write_whole(struct journal *plan, struct journal_writer *writer)
{
	assert_int_equal(journal_create(dir_fd, writer), 0);
	journal_put_begin(writer, plan);
	journal_put_plan(writer, plan);
	assert_int_equal(journal_flush(writer), 0);
	assert_int_equal(journal_publish(dir_fd), 0);
}

static void write_end(struct journal *plan, struct journal_writer *writer)
{
	for (uint32_t i = 0; i < plan->op_count; i++) {
		plan->ops[i].outcome = i == 1 ? JOURNAL_FAILED : JOURNAL_APPLIED;
		plan->ops[i].errnum = i == 1 ? EACCES : 0;
		plan->ops[i].left = identity(S_IFREG | 0644, 100 + i);
		journal_put_outcome(writer, i, &plan->ops[i]);
	}
	journal_put_directory_left(writer, 0, &plan->directories[0].before);
	journal_put_done(writer);
	journal_put_clean(writer);
	assert_int_equal(journal_flush(writer), 0);
}

static void assert_identity(const struct identity *a, const struct identity *b)
{
	/* Not as bytes: between the fields there is what nobody wrote. */
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->uid, b->uid);
	assert_int_equal(a->gid, b->gid);
	assert_int_equal(a->links, b->links);
	assert_int_equal(a->inode, b->inode);
	assert_int_equal(a->size, b->size);
	assert_true(stamp_equal(a->mtime, b->mtime));
	assert_true(stamp_equal(a->ctime, b->ctime));
	assert_true(stamp_equal(a->atime, b->atime));
}

static void test_what_is_written_comes_back(void **state)
{
	cleanup_journal struct journal plan, read;
	cleanup_journal_writer struct journal_writer writer = JOURNAL_WRITER_NONE;

	clear_files();
	make_plan(&plan);
	write_whole(&plan, &writer);
	write_end(&plan, &writer);
	assert_int_equal(journal_load(dir_fd, &read), 0);
	assert_true(read.source.is_published && read.is_committed && read.is_done && read.is_clean);
	assert_int_equal(read.source.valid_size, read.source.size);
	assert_int_equal(read.number, 7);
	assert_string_equal(read.session, "abcdefghijkl");
	assert_string_equal(read.areas[1].name, ".atoll-abcdefghijkl-7");
	assert_true(read.areas[0].is_used && !*read.areas[0].name && !read.areas[2].is_used);
	assert_int_equal(read.op_count, plan.op_count);
	for (size_t i = 0; i < read.op_count; i++) {
		assert_string_equal(read.ops[i].path, plan.ops[i].path);
		assert_identity(&read.ops[i].host, &plan.ops[i].host);
		assert_identity(&read.ops[i].content, &plan.ops[i].content);
		assert_identity(&read.ops[i].left, &plan.ops[i].left);
		assert_int_equal(read.ops[i].outcome, plan.ops[i].outcome);
		assert_int_equal(read.ops[i].errnum, plan.ops[i].errnum);
	}
	assert_int_equal(read.directory_count, 1);
	assert_true(read.directories[0].has_wanted && read.directories[0].wanted_mtime.seconds == 3);
}

/* The bytes of a whole journal, owned by the caller. */
static char *whole_bytes(size_t *ret_size)
{
	cleanup_journal struct journal plan;
	cleanup_journal_writer struct journal_writer writer = JOURNAL_WRITER_NONE;
	char *bytes;

	clear_files();
	make_plan(&plan);
	write_whole(&plan, &writer);
	write_end(&plan, &writer);
	assert_int_equal(fd_read_file_at(dir_fd, JOURNAL_FILE, 1 << 20, &bytes, ret_size), 0);
	return bytes;
}

static void parse_copy(const char *bytes, size_t size, struct journal *ret_journal)
{
	/* Exactly as long as it says, so that the sanitizer sees a read behind it. */
	uint8_t *copy = malloc(size ? size : 1);

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	assert_int_equal(journal_parse(copy, size, ret_journal), 0);
}

static void test_cut_at_every_byte_the_rest_counts(void **state)
{
	size_t size, ops = 0, valid = 0;
	cleanup_free char *bytes = whole_bytes(&size);
	bool was_committed = false;

	for (size_t cut = 0; cut <= size; cut++) {
		cleanup_journal struct journal read;

		parse_copy(bytes, cut, &read);
		assert_true(read.source.valid_size <= cut && read.source.valid_size >= valid);
		assert_true(read.op_count >= ops);
		assert_true(read.is_committed || !was_committed);
		assert_true(read.is_committed || !read.is_done);
		valid = read.source.valid_size;
		ops = read.op_count;
		was_committed = read.is_committed;
	}
	assert_int_equal(valid, size);
}

static void test_each_damaged_byte_ends_it(void **state)
{
	size_t size;
	cleanup_free char *bytes = whole_bytes(&size);

	for (size_t at = 0; at < size; at++) {
		cleanup_journal struct journal read;

		bytes[at] ^= 0x10;
		parse_copy(bytes, size, &read);
		assert_true(read.source.valid_size <= at);
		assert_false(read.is_clean);
		bytes[at] ^= 0x10;
	}
}

static void test_damage_before_the_commit_of_a_published_one_is_an_error(void **state)
{
	size_t size;
	cleanup_free char *bytes = whole_bytes(&size);
	cleanup_fd int fd = FD_NONE;
	struct journal read;

	bytes[200] ^= 1;
	fd = fd_open_at(dir_fd, JOURNAL_FILE, O_WRONLY | O_TRUNC, 0);
	assert_int_equal(fd_write_full(fd, bytes, size), 0);
	assert_int_equal(journal_load(dir_fd, &read), -EBADMSG);
}

static void test_resumed_behind_a_torn_record(void **state)
{
	cleanup_journal struct journal plan, read, again;
	cleanup_journal_writer struct journal_writer writer = JOURNAL_WRITER_NONE, resumed = JOURNAL_WRITER_NONE;
	cleanup_fd int fd = FD_NONE;

	clear_files();
	make_plan(&plan);
	write_whole(&plan, &writer);
	fd = fd_open_at(dir_fd, JOURNAL_FILE, O_WRONLY | O_APPEND, 0);
	assert_int_equal(fd_write_full(fd, "torn record", 11), 0);
	assert_int_equal(journal_load(dir_fd, &read), 0);
	assert_true(read.is_committed && !read.is_done && read.source.valid_size + 11 == read.source.size);
	assert_int_equal(journal_resume(dir_fd, &read, &resumed), 0);
	write_end(&plan, &resumed);
	assert_int_equal(journal_load(dir_fd, &again), 0);
	assert_true(again.is_clean && again.source.valid_size == again.source.size);
}

static void refuse_path(const char *path, uint32_t action)
{
	cleanup_journal struct journal plan, read;
	cleanup_journal_writer struct journal_writer writer = JOURNAL_WRITER_NONE;

	clear_files();
	make_plan(&plan);
	plan.ops[0].path = path;
	plan.ops[0].action = action;
	assert_int_equal(journal_create(dir_fd, &writer), 0);
	journal_put_begin(&writer, &plan);
	journal_put_plan(&writer, &plan);
	assert_int_equal(journal_flush(&writer), 0);
	assert_int_equal(journal_load(dir_fd, &read), 0);
	assert_false(read.is_committed);
	assert_int_equal(read.op_count, 0);
}

static void test_paths_that_leave_the_tree_do_not_count(void **state)
{
	static const char *const paths[] = { "../x", "/etc/passwd", "a/../../b", "a//b", "a/", "./a", ".", "..", "" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		refuse_path(paths[i], JOURNAL_ADD);
	refuse_path("fine", 99);
}

static void test_an_area_elsewhere_does_not_count(void **state)
{
	cleanup_journal struct journal plan, read;
	cleanup_journal_writer struct journal_writer writer = JOURNAL_WRITER_NONE;

	clear_files();
	make_plan(&plan);
	memcpy(plan.areas[1].name, ".atoll-/../../x", 16);
	assert_int_equal(journal_create(dir_fd, &writer), 0);
	journal_put_begin(&writer, &plan);
	assert_int_equal(journal_flush(&writer), 0);
	assert_int_equal(journal_load(dir_fd, &read), 0);
	assert_false(read.areas[1].is_used);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_comes_back),
		cmocka_unit_test(test_cut_at_every_byte_the_rest_counts),
		cmocka_unit_test(test_each_damaged_byte_ends_it),
		cmocka_unit_test(test_damage_before_the_commit_of_a_published_one_is_an_error),
		cmocka_unit_test(test_resumed_behind_a_torn_record),
		cmocka_unit_test(test_paths_that_leave_the_tree_do_not_count),
		cmocka_unit_test(test_an_area_elsewhere_does_not_count),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
