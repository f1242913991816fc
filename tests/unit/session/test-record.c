/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "session/directories.h"
#include "session/record.h"

/* A directory of its own for each test, real, with HOME and XDG_* inside. */
struct world {
	char root[PATH_MAX], home[PATH_MAX], state[PATH_MAX];
	struct err err;
};

static const char *below(const struct world *world, const char *path, char out[PATH_MAX])
{
	assert_int_equal(path_join(out, PATH_MAX, world->root, path), 0);
	return out;
}

static void make_dir(const struct world *world, const char *path)
{
	char full[PATH_MAX];

	assert_int_equal(path_make_directories(AT_FDCWD, below(world, path, full), 0700), 0);
}

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof *world);
	char name[] = "/tmp/atoll-test-session-XXXXXX";

	assert_non_null(world);
	assert_non_null(mkdtemp(name));
	assert_int_equal(path_real(name, world->root, sizeof world->root), 0);
	below(world, "home", world->home);
	below(world, "state/atoll", world->state);
	make_dir(world, "home");
	make_dir(world, "state");
	setenv("HOME", world->home, 1);
	unsetenv("XDG_RUNTIME_DIR");
	unsetenv("XDG_STATE_HOME");
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	int r = path_remove_tree(AT_FDCWD, world->root);

	free(world);
	return r;
}

static void use_state(struct world *world)
{
	char path[PATH_MAX];

	setenv("XDG_STATE_HOME", below(world, "state", path), 1);
}

static struct session_record sample(const char *id, const char *name, const char *project,
				    uint64_t started_ns)
{
	struct session_record record = {
		.name = str_dup(name),
		.project = str_dup(project),
		.policy = str_dup("medium"),
		.level = str_dup("medium"),
		.command = str_dup("make -j2"),
		.cgroups = str_dup("/sys/fs/cgroup/a/b\n/sys/fs/cgroup/a"),
		.box_pid = 4711,
		.started_ns = started_ns,
		.ended_ns = 17,
		.exit = -1,
		.ended = str_dup("time"),
		.audit_head = str_dup("sha256:00"),
		.audit_records = 9,
		.is_kept_at_exec = true,
	};

	assert_int_equal(str_copy(record.id, sizeof record.id, id), 0);
	return record;
}

/* The fd of the session's directory, with its record; a log to lock too. */
static int make_session(struct world *world, const char *id, const char *name, const char *project,
			uint64_t started_ns)
{
	cleanup_session_record struct session_record record = sample(id, name, project, started_ns);
	char path[PATH_MAX];
	int fd, lock;

	assert_int_equal(session_path(world->state, id, "", path, sizeof path), 0);
	assert_int_equal(path_make_directories(AT_FDCWD, path, 0700), 0);
	fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	assert_true(fd >= 0);
	lock = fd_open_at(fd, "audit.jsonl", O_WRONLY | O_CREAT, 0600);
	assert_true(lock >= 0);
	close(lock);
	record.ended_ns = 0;
	assert_int_equal(session_store(fd, &record), 0);
	record.ended_ns = 17;
	assert_int_equal(session_store(fd, &record), 0);
	return fd;
}

static int lock_session(int dir_fd)
{
	int fd = fd_open_at(dir_fd, "audit.jsonl", O_RDONLY, 0);

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	return fd;
}

static void a_record_comes_back_as_it_was(void **state)
{
	cleanup_session_record struct session_record record = { 0 };
	cleanup_fd int fd = make_session(*state, "abcdefghij01", "nm", "/p/\n\xff x", 5);

	assert_int_equal(session_load(fd, &record), 0);
	assert_string_equal(record.id, "abcdefghij01");
	assert_string_equal(record.name, "nm");
	assert_string_equal(record.project, "/p/\n\xff x");
	assert_string_equal(record.cgroups, "/sys/fs/cgroup/a/b\n/sys/fs/cgroup/a");
	assert_string_equal(record.ended, "time");
	assert_string_equal(record.audit_head, "sha256:00");
	assert_int_equal(record.box_pid, 4711);
	assert_int_equal(record.started_ns, 5);
	assert_int_equal(record.ended_ns, 17);
	assert_int_equal(record.exit, -1);
	assert_int_equal(record.audit_records, 9);
	assert_true(record.is_kept_at_exec && !record.is_staged);
	assert_false(record.is_live);
}

static void a_damaged_record_is_refused_at_every_length(void **state)
{
	static const char *const names[] = { "ended.bin", "session.bin" };
	cleanup_session_record struct session_record record = { 0 };
	cleanup_fd int fd = make_session(*state, "abcdefghij01", "nm", "/p", 5);

	/* The end is damaged first and stays so, then the start. */
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_free char *bytes = NULL;
		size_t size;

		assert_int_equal(fd_read_file_at(fd, names[i], 1 << 20, &bytes, &size), 0);
		for (size_t cut = size; cut-- > 0;) {
			assert_int_equal(fd_replace_file_at(fd, names[i], bytes, cut, 0600), 0);
			if (i == 0) {
				assert_int_equal(session_load(fd, &record), 0);
				assert_int_equal(record.ended_ns, 0);
				session_record_done(&record);
			} else {
				assert_true(session_load(fd, &record) < 0);
			}
		}
	}
}

/* What a box that died in the middle left of its end is replaced by whoever finds it. */
static void the_end_is_written_over_half_an_end(void **state)
{
	cleanup_session_record struct session_record record = { 0 }, again = { 0 };
	cleanup_fd int fd = make_session(*state, "abcdefghij01", "nm", "/p", 5);

	assert_int_equal(session_load(fd, &record), 0);
	assert_int_equal(fd_replace_file_at(fd, "ended.bin", "atol", 4, 0600), 0);
	record.ended_ns = 77;
	assert_int_equal(session_store(fd, &record), 0);
	assert_int_equal(session_load(fd, &again), 0);
	assert_int_equal(again.ended_ns, 77);
}

/* A box makes the file long before the end: nobody takes it for one, whoever finds it so writes over it. */
static void an_end_that_is_expected_is_none(void **state)
{
	cleanup_session_record struct session_record record = { 0 }, expected = { 0 }, ended = { 0 }, lost = { 0 };
	cleanup_fd int fd = make_session(*state, "abcdefghij01", "nm", "/p", 5);

	assert_int_equal(unlinkat(fd, "ended.bin", 0), 0);
	assert_int_equal(session_make(fd, true), 0);
	assert_int_equal(session_make(fd, true), -EEXIST);
	assert_int_equal(session_load(fd, &record), 0);
	assert_int_equal(record.ended_ns, 0);
	record.ended_ns = 77;
	assert_int_equal(session_store_made(fd, &record), 0);
	assert_int_equal(session_load(fd, &ended), 0);
	assert_int_equal(ended.ended_ns, 77);
	assert_int_equal(fd_replace_file_at(fd, "ended.bin", "", 0, 0600), 0);
	assert_int_equal(session_load(fd, &expected), 0);
	assert_int_equal(expected.ended_ns, 0);
	expected.ended_ns = 78;
	assert_int_equal(session_store(fd, &expected), 0);
	assert_int_equal(session_load(fd, &lost), 0);
	assert_int_equal(lost.ended_ns, 78);
}

static void liveness_is_the_lock(void **state)
{
	cleanup_session_record struct session_record live = { 0 }, dead = { 0 };
	cleanup_fd int fd = make_session(*state, "abcdefghij01", "", "/p", 5);
	int lock = lock_session(fd);

	assert_int_equal(session_load(fd, &live), 0);
	assert_true(live.is_live);
	close(lock);
	assert_int_equal(session_load(fd, &dead), 0);
	assert_false(dead.is_live);
}

/* A box between a reader's look at the lock and its look at the records: it takes the one, writes the others. */
static void come_to_life(int dir_fd, const struct session_record *record)
{
	/* Opening the pipe waits for the reader, who waits for its end. */
	int pipe_fd = fd_open_at(dir_fd, "ended.bin", O_WRONLY, 0);
	int lock = fd_open_at(dir_fd, "audit.jsonl", O_WRONLY | O_CREAT, 0600);

	if (pipe_fd < 0 || lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0 || session_store(dir_fd, record) < 0 ||
	    unlinkat(dir_fd, "ended.bin", 0) < 0)
		_exit(1);
	close(pipe_fd);
	alarm(10); /* where the test fails before it kills us */
	for (;;)
		pause();
}

static void a_session_that_comes_to_life_meanwhile_is_not_lost(void **state)
{
	cleanup_session_record struct session_record written = sample("abcdefghij01", "", "/p", 5), record = { 0 };
	struct world *world = *state;
	char path[PATH_MAX];
	cleanup_fd int fd = FD_NONE;
	pid_t box;

	written.ended_ns = 0;
	make_dir(world, "session");
	fd = fd_open_at(AT_FDCWD, below(world, "session", path), O_RDONLY | O_DIRECTORY, 0);
	assert_true(fd >= 0);
	assert_int_equal(mkfifoat(fd, "ended.bin", 0600), 0);
	box = fork();
	if (box == 0)
		come_to_life(fd, &written);
	assert_true(box > 0);
	assert_int_equal(session_load(fd, &record), 0);
	assert_true(record.is_live);
	assert_int_equal(kill(box, SIGKILL), 0);
	assert_int_equal(waitpid(box, NULL, 0), box);
}

static void the_list_is_newest_first_and_passes_over_what_is_no_session(void **state)
{
	struct world *world = *state;
	struct session_record *records;
	char path[PATH_MAX];
	size_t count;
	int bad;

	close(make_session(world, "aaaaaaaaaaa1", "", "/p", 10));
	close(make_session(world, "aaaaaaaaaaa2", "", "/p", 30));
	bad = make_session(world, "aaaaaaaaaaa3", "", "/p", 20);
	assert_int_equal(fd_replace_file_at(bad, "session.bin", "x", 1, 0600), 0);
	assert_int_equal(fd_replace_file_at(bad, "ended.bin", "x", 1, 0600), 0);
	close(bad);
	assert_int_equal(session_path(world->state, "not-a-session", "", path, sizeof path), 0);
	assert_int_equal(path_make_directories(AT_FDCWD, path, 0700), 0);
	assert_int_equal(session_list(world->state, &records, &count, &world->err), 0);
	assert_int_equal(count, 2);
	assert_string_equal(records[0].id, "aaaaaaaaaaa2");
	assert_string_equal(records[1].id, "aaaaaaaaaaa1");
	for (size_t i = 0; i < count; i++)
		session_record_done(&records[i]);
	free(records);
}

static void a_record_under_a_foreign_id_is_passed_over(void **state)
{
	struct world *world = *state;
	struct session_record *records;
	char from[PATH_MAX], to[PATH_MAX];
	size_t count;

	close(make_session(world, "aaaaaaaaaaa1", "", "/p", 10));
	assert_int_equal(session_path(world->state, "aaaaaaaaaaa1", "", from, sizeof from), 0);
	assert_int_equal(session_path(world->state, "aaaaaaaaaaa2", "", to, sizeof to), 0);
	from[strlen(from) - 1] = to[strlen(to) - 1] = 0;
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(session_list(world->state, &records, &count, &world->err), 0);
	assert_int_equal(count, 0);
	free(records);
}

static void no_state_directory_means_no_sessions(void **state)
{
	struct world *world = *state;
	struct session_record *records;
	size_t count = 1;

	assert_int_equal(session_list(world->state, &records, &count, &world->err), 0);
	assert_int_equal(count, 0);
	free(records);
}

static int find(struct world *world, const char *project, const char *text, bool is_live,
		char out[SESSION_ID_SIZE])
{
	struct session_record record = { 0 };
	int r = session_find(world->state, project, text, is_live ? "" : NULL, &record, &world->err);

	memcpy(out, record.id, SESSION_ID_SIZE);
	session_record_done(&record);
	return r;
}

static void sessions_are_found_by_id_prefix_name_and_project(void **state)
{
	struct world *world = *state;
	char id[SESSION_ID_SIZE];

	close(make_session(world, "abcd11111111", "web", "/p", 10));
	close(make_session(world, "abcd22222222", "web", "/p", 20));
	close(make_session(world, "efgh33333333", "", "/q", 30));
	assert_int_equal(find(world, NULL, "abcd11111111", false, id), 0);
	assert_string_equal(id, "abcd11111111");
	assert_int_equal(find(world, NULL, "abcd1", false, id), 0);
	assert_string_equal(id, "abcd11111111");
	assert_int_equal(find(world, NULL, "web", false, id), 0);
	assert_string_equal(id, "abcd22222222");
	assert_int_equal(find(world, "/p", NULL, false, id), 0);
	assert_string_equal(id, "abcd22222222");
	assert_int_equal(find(world, NULL, "abcd", false, id), -ENOENT);
	assert_non_null(strstr(world->err.message, "more than one"));
	assert_int_equal(find(world, NULL, "efg", false, id), -ENOENT);
	assert_int_equal(find(world, "/r", NULL, false, id), -ENOENT);
	assert_int_equal(world->err.code, ERR_NOT_FOUND);
	assert_true(world->err.hint[0] != 0);
	assert_int_equal(find(world, NULL, "", false, id), -ENOENT);
}

static void live_only_leaves_the_ended_out(void **state)
{
	struct world *world = *state;
	cleanup_fd int fd = make_session(world, "abcd11111111", "web", "/p", 10);
	char id[SESSION_ID_SIZE];
	int lock;

	close(make_session(world, "abcd22222222", "web", "/p", 20));
	assert_int_equal(find(world, NULL, "web", true, id), -ENOENT);
	lock = lock_session(fd);
	assert_int_equal(find(world, NULL, "web", true, id), 0);
	assert_string_equal(id, "abcd11111111");
	assert_int_equal(find(world, NULL, "abcd", true, id), 0);
	assert_int_equal(find(world, "/p", NULL, true, id), 0);
	assert_string_equal(id, "abcd11111111");
	close(lock);
}

static void only_twelve_plain_characters_are_an_id(void **state)
{
	assert_true(session_id_is_valid("abcdef012345"));
	assert_false(session_id_is_valid("abcdef01234"));
	assert_false(session_id_is_valid("abcdef0123456"));
	assert_false(session_id_is_valid("ABCDEF012345"));
	assert_false(session_id_is_valid("../../etc/pa"));
	assert_false(session_id_is_valid(""));
}

static void the_project_is_the_nearest_marked_directory(void **state)
{
	struct world *world = *state;
	char cwd[PATH_MAX], want[PATH_MAX], got[PATH_MAX];

	make_dir(world, "home/work/proj/src/deep");
	assert_int_equal(session_project_of(below(world, "home/work/proj/src/deep", cwd), got, sizeof got,
					    &world->err),
			 0);
	assert_string_equal(got, cwd);
	make_dir(world, "home/work/proj/.git");
	assert_int_equal(session_project_of(cwd, got, sizeof got, &world->err), 0);
	assert_string_equal(got, below(world, "home/work/proj", want));
	make_dir(world, "home/work/proj/src/.atoll.yaml");
	assert_int_equal(session_project_of(cwd, got, sizeof got, &world->err), 0);
	assert_string_equal(got, below(world, "home/work/proj/src", want));
}

static void the_home_is_never_found_as_a_project(void **state)
{
	struct world *world = *state;
	char cwd[PATH_MAX], got[PATH_MAX];

	make_dir(world, "home/.git");
	make_dir(world, "home/notes");
	assert_int_equal(session_project_of(below(world, "home/notes", cwd), got, sizeof got, &world->err),
			 0);
	assert_string_equal(got, cwd);
	assert_true(session_project_is_refused(world->home));
	assert_true(session_project_is_refused(world->root));
	assert_true(session_project_is_refused("/"));
	assert_false(session_project_is_refused(cwd));
}

static void a_home_behind_a_link_is_refused_under_both_names(void **state)
{
	struct world *world = *state;
	char link[PATH_MAX];

	assert_int_equal(symlink(world->home, below(world, "link", link)), 0);
	setenv("HOME", link, 1);
	assert_true(session_project_is_refused(world->home));
	assert_true(session_project_is_refused(link));
}

static void someone_elses_marker_makes_no_project(void **state)
{
	struct world *world = *state;
	char cwd[PATH_MAX], marker[PATH_MAX], got[PATH_MAX], want[PATH_MAX];

	if (geteuid() != 0)
		skip(); /* only root can make a file of another user */
	make_dir(world, "shared/.git");
	make_dir(world, "shared/mine");
	below(world, "shared/mine", cwd);
	assert_int_equal(session_project_of(cwd, got, sizeof got, &world->err), 0);
	assert_string_equal(got, below(world, "shared", want));
	assert_int_equal(chown(below(world, "shared/.git", marker), 12345, 12345), 0);
	assert_int_equal(session_project_of(cwd, got, sizeof got, &world->err), 0);
	assert_string_equal(got, cwd);
}

static void a_missing_working_directory_is_an_error(void **state)
{
	struct world *world = *state;
	char cwd[PATH_MAX], got[PATH_MAX];

	assert_int_equal(session_project_of(below(world, "nowhere", cwd), got, sizeof got, &world->err),
			 -ENOENT);
	assert_int_equal(world->err.code, ERR_USAGE);
}

static void the_state_directory_is_made_private(void **state)
{
	struct world *world = *state;
	char path[PATH_MAX];
	struct stat st;

	use_state(world);
	assert_int_equal(session_state_dir(path, sizeof path, false, &world->err), 0);
	assert_string_equal(path, world->state);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(session_state_dir(path, sizeof path, true, &world->err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(session_runtime_dir(path, sizeof path, true, &world->err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void a_state_directory_that_others_can_write_is_refused(void **state)
{
	struct world *world = *state;
	char path[PATH_MAX];

	use_state(world);
	assert_int_equal(session_state_dir(path, sizeof path, true, &world->err), 0);
	assert_int_equal(chmod(path, 0770), 0);
	assert_int_equal(session_state_dir(path, sizeof path, true, &world->err), -EPERM);
	assert_int_equal(world->err.code, ERR_STATE);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(session_state_dir(path, sizeof path, true, &world->err), 0);
}

static void root_follows_no_variable_into_a_users_directory(void **state)
{
	struct world *world = *state;
	char path[PATH_MAX], given[PATH_MAX];

	if (geteuid() != 0)
		skip(); /* the rule is about root */
	use_state(world);
	assert_int_equal(chown(below(world, "state", given), 12345, 12345), 0);
	assert_int_equal(session_state_dir(path, sizeof path, false, &world->err), 0);
	assert_string_equal(path, "/var/lib/atoll");
	assert_int_equal(session_runtime_dir(path, sizeof path, false, &world->err), 0);
	assert_string_equal(path, "/run/atoll");
}

static void a_relative_home_is_not_believed(void **state)
{
	char home[PATH_MAX];

	setenv("HOME", "relative", 1);
	assert_int_equal(session_home_dir(home, sizeof home), 0);
	assert_true(home[0] == '/' || home[0] == 0);
	unsetenv("HOME");
	assert_int_equal(session_home_dir(home, sizeof home), 0);
	assert_true(home[0] == '/' || home[0] == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_record_comes_back_as_it_was),
		TEST(a_damaged_record_is_refused_at_every_length),
		TEST(the_end_is_written_over_half_an_end),
		TEST(an_end_that_is_expected_is_none),
		TEST(liveness_is_the_lock),
		TEST(a_session_that_comes_to_life_meanwhile_is_not_lost),
		TEST(the_list_is_newest_first_and_passes_over_what_is_no_session),
		TEST(a_record_under_a_foreign_id_is_passed_over),
		TEST(no_state_directory_means_no_sessions),
		TEST(sessions_are_found_by_id_prefix_name_and_project),
		TEST(live_only_leaves_the_ended_out),
		TEST(only_twelve_plain_characters_are_an_id),
		TEST(the_project_is_the_nearest_marked_directory),
		TEST(the_home_is_never_found_as_a_project),
		TEST(a_home_behind_a_link_is_refused_under_both_names),
		TEST(someone_elses_marker_makes_no_project),
		TEST(a_missing_working_directory_is_an_error),
		TEST(the_state_directory_is_made_private),
		TEST(a_state_directory_that_others_can_write_is_refused),
		TEST(root_follows_no_variable_into_a_users_directory),
		TEST(a_relative_home_is_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
