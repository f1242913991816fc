/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/str.h"
#include "service/launcher/store/database.h"
#include "service/launcher/store/kept.h"

static char directory[] = "/tmp/atolltest-database-XXXXXX", path[64];
static struct database *database;
static struct err err;

static int setup(void **state)
{
	memcpy(directory + sizeof directory - 7, "XXXXXX", 6);
	assert_non_null(mkdtemp(directory));
	assert_int_equal(str_format(path, sizeof path, "%s/db", directory), 0);
	assert_int_equal(database_open(path, &database, &err), 0);
	return 0;
}

static int teardown(void **state)
{
	static const char *const ends[] = { "", "-wal", "-shm" };
	char name[80];

	database_close(database);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (str_format(name, sizeof name, "%s%s", path, ends[i]) == 0)
			unlink(name);
	return rmdir(directory);
}

/* In the place of SQLite's own pwrite(2). */
static ssize_t write_to_full(int fd, const void *bytes, size_t size, off_t at)
{
	errno = ENOSPC;
	return -1;
}

static void a_full_disk_is_told_from_other_errors(void **state)
{
	static const char *const calls[] = { "pwrite", "pwrite64" };
	const struct sandbox_row sandbox = { .id = "s", .session = "abcdefghijkl", .owner = "o" };
	sqlite3_vfs *vfs = sqlite3_vfs_find(NULL);
	sqlite3_syscall_ptr own[ARRAY_SIZE(calls)];

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		own[i] = vfs->xGetSystemCall(vfs, calls[i]);
		(void)vfs->xSetSystemCall(vfs, calls[i], (sqlite3_syscall_ptr)(void *)write_to_full);
	}
	assert_int_equal(database_put_sandbox(database, &sandbox), -ENOSPC);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		(void)vfs->xSetSystemCall(vfs, calls[i], own[i]);
	/* It goes on by itself when there is space. */
	assert_int_equal(database_put_sandbox(database, &sandbox), 0);
}

static void reopen(void)
{
	database_close(database);
	assert_int_equal(database_open(path, &database, &err), 0);
}

static void a_key_is_found_by_its_hash_alone(void **state)
{
	struct key_row key = { .name = "a", .owner = "o", .shown = "e2b_1234", .role = KEY_USER, .policy = "p",
			       .sandboxes_max = UINT64_MAX, .creates_per_minute = 5, .memory_mb_max = 0 }, read;
	struct hash hash, other;
	struct stat st;

	credential_hash("one", &hash);
	credential_hash("two", &other);
	assert_int_equal(database_add_key(database, &key, &hash), 0);
	assert_int_equal(database_add_key(database, &key, &other), -EEXIST);
	reopen();
	assert_int_equal(database_find_key(database, &hash, &read), 1);
	assert_true(str_equal(read.name, "a") && str_equal(read.owner, "o") && str_equal(read.policy, "p"));
	assert_true(read.role == KEY_USER && read.sandboxes_max == UINT64_MAX && read.creates_per_minute == 5);
	assert_int_equal(database_find_key(database, &other, &read), 0);
	assert_int_equal(database_key_by_number(database, read.number, &read), 1);
	assert_int_equal(database_revoke_key(database, "a"), 1);
	assert_int_equal(database_revoke_key(database, "a"), 0);
	assert_int_equal(database_find_key(database, &hash, &read), 0);
	/* The name is free again, and the number still known: sandboxes have it. */
	assert_int_equal(database_add_key(database, &key, &other), 0);
	assert_int_equal(database_key_by_number(database, read.number, &read), 1);
	assert_true(read.is_revoked);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static struct sandbox_row seen[4];
static struct kept seen_made;
static size_t seen_count;

static int see(void *context, const struct sandbox_row *row)
{
	assert_true(seen_count < ARRAY_SIZE(seen));
	kept_done(&seen_made);
	assert_int_equal(kept_read(&seen_made, row->made.bytes, row->made.size), 0);
	seen[seen_count++] = *row;
	return 0;
}

static struct kept make_kept(const char *key)
{
	const char *const metadata[] = { "a", "b", NULL };
	struct service_message *message = malloc(sizeof *message);
	const char *problem;
	struct kept kept;
	struct frame frame;
	struct buf out;

	buf_init(&out, FRAME_MESSAGE_MAX);
	service_begin_request(&out, 9, SERVICE_CREATE);
	field_put_string(&out, "key", key);
	field_put_strings(&out, "metadata", metadata);
	field_put_u64(&out, "timeout_ms", 7);
	assert_int_equal(frame_end(&out), 0);
	assert_int_equal(frame_open(&frame, out.bytes, out.size), 0);
	assert_int_equal(service_read(&frame, NULL, 0, message, &problem), 0);
	assert_int_equal(kept_copy(&kept, message, SERVICE_CREATE), 0);
	service_message_done(message);
	free(message);
	buf_done(&out);
	return kept;
}

static void a_sandbox_comes_back_without_the_key_of_who_made_it(void **state)
{
	struct kept made = make_kept("e2b_secret");
	struct sandbox_row row = { .id = "ia", .session = "abcdefghijkl", .owner = "o", .key = 3,
				   .state = SANDBOX_CREATING, .created_ms = 5, .end_ms = 6,
				   .made = { made.bytes, made.size } };

	assert_int_equal(database_put_sandbox(database, &row), 0);
	row.state = SANDBOX_RUNNING;
	assert_int_equal(database_put_sandbox(database, &row), 0);
	reopen();
	seen_count = 0;
	assert_int_equal(database_each_sandbox(database, see, NULL), 0);
	assert_int_equal(seen_count, 1);
	assert_true(str_equal(seen[0].id, "ia") && seen[0].state == SANDBOX_RUNNING && seen[0].key == 3 &&
		    seen[0].created_ms == 5 && seen[0].end_ms == 6 && !seen[0].network.size);
	assert_null(service_string(seen_made.message, "key"));
	assert_int_equal(service_number(seen_made.message, "timeout_ms", 0), 7);
	assert_string_equal(service_strings(seen_made.message, "metadata")[1], "b");
	assert_null(memmem(made.bytes, made.size, "e2b_secret", 10));
	assert_int_equal(database_remove_sandbox(database, "ia"), 0);
	assert_int_equal(database_remove_sandbox(database, "ia"), 0);
	seen_count = 0;
	assert_int_equal(database_each_sandbox(database, see, NULL), 0);
	assert_int_equal(seen_count, 0);
	kept_done(&seen_made);
	kept_done(&made);
}

static void what_was_kept_is_checked_again(void **state)
{
	struct kept made = make_kept("e2b_secret"), read = { 0 };
	uint8_t bytes[FRAME_HEADER_SIZE] = { 0 };

	assert_int_equal(kept_read(&read, made.bytes, made.size - 1), -EBADMSG);
	assert_int_equal(kept_read(&read, bytes, sizeof bytes), -EBADMSG);
	assert_int_equal(kept_read(&read, bytes, 0), -EBADMSG);
	assert_null(read.message);
	kept_done(&made);
}

/* It is left alone: what is in it may mean something that this program does not know. */
static void one_of_a_later_atoll_is_refused(void **state)
{
	sqlite3 *later;

	database_close(database);
	assert_int_equal(sqlite3_open(path, &later), SQLITE_OK);
	assert_int_equal(sqlite3_exec(later, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(later), SQLITE_OK);
	assert_int_equal(database_open(path, &database, &err), -EPROTO);
	database = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_key_is_found_by_its_hash_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(a_sandbox_comes_back_without_the_key_of_who_made_it, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_kept_is_checked_again, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_disk_is_told_from_other_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(one_of_a_later_atoll_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
