/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The record of an agent on disk: what is written is read again; whatever is damaged, cut, older, missing, somebody
 * else's or another agent's is noticed, at every byte; and two that write at once lose nothing.
 */

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "trust/store-format.h"

static char directory[] = "/tmp/atolltest-trust-XXXXXX";
static char state_dir[64], runtime_dir[64];
static const struct trust_home place = { state_dir, runtime_dir };
static const struct trust_settings usual = { .start = TRUST_LOW, .ceiling = TRUST_HIGH, .floor = TRUST_NONE,
					     .probation_sessions = 2, .probation_at = TRUST_LOW,
					     .half_life_ms = TRUST_HALF_LIFE_MS, .is_given = true, .has_level = true };

static uint64_t now_ns = 1000000ULL * 1000000000;

static int note(const char *agent, enum trust_event event, const char *session)
{
	cleanup_trust_book struct trust_book book;
	int r = trust_book_lock(&place, agent, TRUST_LOCK_MS, &book);

	if (r < 0)
		return r;
	book.settings = usual;
	if (!trust_book_add(&book, &(struct trust_news){ event, TRUST_HIGH, session, "a cause", now_ns++ }))
		return -EBADMSG;
	return trust_book_write(&place, &book, false);
}

static enum trust_fault fault(const char *agent)
{
	cleanup_trust_book struct trust_book book;

	assert_int_equal(trust_book_read(&place, agent, &book), 0);
	if (book.fault != TRUST_FINE) {
		struct trust_state state = trust_book_state(&book);

		/* Whatever it is, nothing is granted, and nothing is added to it. */
		assert_int_equal(trust_level_of(&state, &usual), TRUST_NONE);
		assert_null(trust_book_add(&book, &(struct trust_news){ TRUST_RAISED, TRUST_FULL }));
	}
	return book.fault;
}

static enum trust_level level(const char *agent)
{
	cleanup_trust_book struct trust_book book;
	struct trust_state state;

	assert_int_equal(trust_book_read(&place, agent, &book), 0);
	assert_int_equal(book.fault, TRUST_FINE);
	state = trust_book_state(&book);
	return trust_level_of(&state, &usual);
}

/* "trust/a.bin" and the like, below the state directory unless it begins with '/'. */
static const char *path_to(const char *name)
{
	static char path[4][160];
	static int next;

	next = (next + 1) % 4;
	assert_int_equal(path_join(path[next], sizeof path[0], state_dir, name), 0);
	return path[next];
}

static void copy(const char *from, const char *to)
{
	char *bytes;
	size_t size;

	assert_int_equal(fd_read_file_at(AT_FDCWD, path_to(from), 1 << 20, &bytes, &size), 0);
	assert_int_equal(fd_replace_file_at(AT_FDCWD, path_to(to), bytes, size, 0600), 0);
	free(bytes);
}

static void what_is_written_is_read(void **state)
{
	cleanup_trust_book struct trust_book book;
	char open[TRUST_OPEN_MAX][SESSION_ID_SIZE];

	assert_int_equal(fault("whole"), TRUST_FINE);
	assert_int_equal(level("whole"), TRUST_LOW);
	assert_int_equal(note("whole", TRUST_BEGUN, "aaaaaaaaaaaa"), 0);
	assert_int_equal(note("whole", TRUST_CLEAN, "aaaaaaaaaaaa"), 0);
	assert_int_equal(note("whole", TRUST_BEGUN, "bbbbbbbbbbbb"), 0);
	assert_int_equal(note("whole", TRUST_BEGUN, "cccccccccccc"), 0);
	assert_int_equal(note("whole", TRUST_CLEAN, "bbbbbbbbbbbb"), 0);
	assert_int_equal(level("whole"), TRUST_MEDIUM);
	assert_int_equal(trust_book_read(&place, "whole", &book), 0);
	assert_int_equal(book.count, 5);
	assert_string_equal(book.entries[1].cause, "a cause");
	assert_int_equal(book.settings.probation_sessions, 2);
	assert_int_equal(trust_book_open(&book, open), 1);
	assert_string_equal(open[0], "cccccccccccc");
}

static void names_are_names(void **state)
{
	static const char *const wrong[] = { "", ".", "..", "../x", "a/b", ".hidden", "-x", "a b", "a\n", "ä" };
	struct trust_book book;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(trust_book_read(&place, wrong[i], &book), -EINVAL);
		assert_int_equal(trust_book_lock(&place, wrong[i], TRUST_LOCK_MS, &book), -EINVAL);
	}
}

static void flip(const char *path, off_t at, uint8_t bits)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint8_t byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= bits;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void every_byte_counts(const char *agent, const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	for (off_t at = 0; at < st.st_size; at++) {
		flip(path, at, 1 << at % 8);
		if (fault(agent) == TRUST_FINE)
			fail_msg("%s: byte %lld", path, (long long)at);
		flip(path, at, 1 << at % 8);
	}
	assert_int_equal(fault(agent), TRUST_FINE);
}

static void every_length_counts(const char *agent, const char *path)
{
	char *bytes;
	size_t size;

	assert_int_equal(fd_read_file_at(AT_FDCWD, path, 1 << 20, &bytes, &size), 0);
	for (size_t length = 0; length < size; length++) {
		assert_int_equal(fd_replace_file_at(AT_FDCWD, path, bytes, length, 0600), 0);
		if (fault(agent) == TRUST_FINE)
			fail_msg("%s: %zu bytes", path, length);
	}
	assert_int_equal(fd_replace_file_at(AT_FDCWD, path, bytes, size, 0600), 0);
	assert_int_equal(fault(agent), TRUST_FINE);
	free(bytes);
}

static void damage_is_noticed_at_every_byte(void **state)
{
	for (int i = 0; i < 4; i++)
		assert_int_equal(note("damaged", i % 2 ? TRUST_CLEAN : TRUST_BEGUN, "aaaaaaaaaaaa"), 0);
	every_byte_counts("damaged", path_to("trust/damaged.bin"));
	every_byte_counts("damaged", path_to("trust.seen/damaged"));
	every_byte_counts("damaged", path_to("../run/trust.seen/damaged"));
	every_length_counts("damaged", path_to("trust/damaged.bin"));
	every_length_counts("damaged", path_to("trust.seen/damaged"));
}

static void an_older_record_is_noticed(void **state)
{
	assert_int_equal(note("older", TRUST_RAISED, NULL), 0);
	assert_int_equal(level("older"), TRUST_HIGH);
	copy("trust/older.bin", "older.bin");
	copy("trust.seen/older", "older.seen");
	assert_int_equal(note("older", TRUST_CANARY, NULL), 0);
	assert_int_equal(level("older"), TRUST_NONE);
	copy("trust/older.bin", "newer.bin");
	copy("trust.seen/older", "newer.seen");
	/* The record alone, with what is beside it, and what is beside it alone. */
	copy("older.bin", "trust/older.bin");
	assert_int_equal(fault("older"), TRUST_ROLLED_BACK);
	copy("older.seen", "trust.seen/older");
	assert_int_equal(fault("older"), TRUST_ROLLED_BACK);
	copy("newer.bin", "trust/older.bin");
	assert_int_equal(fault("older"), TRUST_FINE); /* as after a power cut between the two */
	copy("newer.seen", "trust.seen/older");
	assert_int_equal(level("older"), TRUST_NONE);
}

static void another_history_is_noticed(void **state)
{
	assert_int_equal(note("other", TRUST_BEGUN, "aaaaaaaaaaaa"), 0);
	copy("trust/other.bin", "other.bin");
	copy("trust.seen/other", "other.seen");
	copy("../run/trust.seen/other", "other.run");
	assert_int_equal(note("other", TRUST_CANARY, NULL), 0);
	copy("trust.seen/other", "canary.seen");
	/* A record of as many entries, that says something better. */
	copy("other.bin", "trust/other.bin");
	copy("other.seen", "trust.seen/other");
	copy("other.run", "../run/trust.seen/other");
	assert_int_equal(note("other", TRUST_RAISED, NULL), 0);
	assert_int_equal(level("other"), TRUST_HIGH);
	copy("canary.seen", "trust.seen/other");
	assert_int_equal(fault("other"), TRUST_DAMAGED);
}

static void what_is_gone_is_noticed(void **state)
{
	assert_int_equal(note("gone", TRUST_CANARY, NULL), 0);
	copy("trust/gone.bin", "gone.bin");
	assert_int_equal(unlink(path_to("trust/gone.bin")), 0);
	assert_int_equal(fault("gone"), TRUST_LOST);
	assert_int_equal(unlink(path_to("trust.seen/gone")), 0);
	assert_int_equal(fault("gone"), TRUST_LOST); /* until the machine starts again */
	copy("gone.bin", "trust/gone.bin");
	assert_int_equal(fault("gone"), TRUST_ROLLED_BACK);
}

/* The run-time directory does not outlive the machine's running. */
static void a_restart_of_the_machine_is_no_fault(void **state)
{
	assert_int_equal(note("restart", TRUST_CANARY, NULL), 0);
	assert_int_equal(unlink(path_to("../run/trust.seen/restart")), 0);
	assert_int_equal(level("restart"), TRUST_NONE);
	assert_int_equal(note("restart", TRUST_RAISED, NULL), 0);
	assert_int_equal(level("restart"), TRUST_HIGH);
}

static void who_else_could_write_it_is_noticed(void **state)
{
	assert_int_equal(note("open", TRUST_RAISED, NULL), 0);
	assert_int_equal(chmod(path_to("trust/open.bin"), 0644), 0);
	assert_int_equal(fault("open"), TRUST_FOREIGN);
	assert_int_equal(chmod(path_to("trust/open.bin"), 0600), 0);
	assert_int_equal(fault("open"), TRUST_FINE);
	assert_int_equal(link(path_to("trust/open.bin"), path_to("linked")), 0);
	assert_int_equal(fault("open"), TRUST_FOREIGN);
	assert_int_equal(rename(path_to("linked"), path_to("trust/open.bin")), 0);
	assert_int_equal(unlink(path_to("linked")), 0);
	assert_int_equal(fault("open"), TRUST_FINE);
	assert_int_equal(rename(path_to("trust/open.bin"), path_to("elsewhere")), 0);
	assert_int_equal(symlink(path_to("elsewhere"), path_to("trust/open.bin")), 0);
	assert_int_equal(fault("open"), TRUST_UNREADABLE);
	assert_int_equal(rename(path_to("elsewhere"), path_to("trust/open.bin")), 0);
	assert_int_equal(chmod(path_to("trust"), 0777), 0);
	assert_int_equal(fault("open"), TRUST_FOREIGN);
	assert_int_equal(note("open", TRUST_RAISED, NULL), -EPERM);
	assert_int_equal(chmod(path_to("trust"), 0700), 0);
	assert_int_equal(fault("open"), TRUST_FINE);
	if (geteuid() != 0)
		return;
	assert_int_equal(chown(path_to("trust/open.bin"), 12345, 12345), 0);
	assert_int_equal(fault("open"), TRUST_FOREIGN);
}

static void one_agent_is_not_another(void **state)
{
	assert_int_equal(note("good", TRUST_RAISED, NULL), 0);
	assert_int_equal(note("bad", TRUST_CANARY, NULL), 0);
	copy("trust/good.bin", "trust/bad.bin");
	assert_int_equal(fault("bad"), TRUST_DAMAGED);
	copy("trust.seen/good", "trust.seen/bad");
	copy("../run/trust.seen/good", "../run/trust.seen/bad");
	assert_int_equal(fault("bad"), TRUST_DAMAGED);
}

/* Nothing is keyed: who rewrites a record whole can, but not without the chain telling who looks at all of it. */
static void a_forged_entry_breaks_the_chain(void **state)
{
	cleanup_trust_book struct trust_book book, again;
	cleanup_buf struct buf out;

	for (int i = 0; i < 3; i++)
		assert_int_equal(note("forged", TRUST_LIMIT, NULL), 0);
	assert_int_equal(trust_book_read(&place, "forged", &book), 0);
	assert_true(trust_book_is_chained(&book));
	book.entries[1].event = TRUST_CLEAN;
	buf_init(&out, TRUST_FILE_MAX);
	trust_file_format(&book, &out);
	assert_int_equal(buf_error(&out), 0);
	assert_int_equal(fd_replace_file_at(AT_FDCWD, path_to("trust/forged.bin"), out.bytes, out.size, 0600), 0);
	assert_int_equal(trust_book_read(&place, "forged", &again), 0);
	assert_int_equal(again.fault, TRUST_FINE);
	assert_false(trust_book_is_chained(&again));
}

static void a_person_begins_again(void **state)
{
	cleanup_trust_book struct trust_book book;

	assert_int_equal(note("again", TRUST_RAISED, NULL), 0);
	copy("trust/again.bin", "again.bin");
	copy("trust.seen/again", "again.seen");
	assert_int_equal(note("again", TRUST_CANARY, NULL), 0);
	flip(path_to("trust/again.bin"), 200, 4);
	assert_int_equal(fault("again"), TRUST_DAMAGED);
	assert_int_equal(trust_book_lock(&place, "again", TRUST_LOCK_MS, &book), 0);
	trust_book_reset(&book);
	assert_non_null(trust_book_add(&book, &(struct trust_news){ TRUST_RESET, 0, NULL, "mended", now_ns }));
	assert_int_equal(trust_book_write(&place, &book, true), 0);
	assert_int_equal(level("again"), TRUST_LOW);
	/* What was before stays older. */
	copy("again.bin", "trust/again.bin");
	assert_int_equal(fault("again"), TRUST_ROLLED_BACK);
	copy("again.seen", "trust.seen/again");
	assert_int_equal(fault("again"), TRUST_ROLLED_BACK);
}

static void the_oldest_is_forgotten_and_who_runs_is_not(void **state)
{
	cleanup_trust_book struct trust_book book;
	char open[TRUST_OPEN_MAX][SESSION_ID_SIZE];

	assert_int_equal(note("long", TRUST_BEGUN, "longlonglong"), 0);
	for (int i = 0; i < 3 * TRUST_ENTRIES_MAX; i++) {
		assert_int_equal(note("long", i % 2 ? TRUST_ENDED : TRUST_BEGUN, "aaaaaaaaaaaa"), 0);
		assert_int_equal(fault("long"), TRUST_FINE);
	}
	assert_int_equal(trust_book_read(&place, "long", &book), 0);
	assert_true(book.count <= TRUST_ENTRIES_MAX && book.base_seq > 0);
	assert_int_equal(trust_book_open(&book, open), 1);
	assert_string_equal(open[0], "longlonglong");
	assert_true(book.entries[book.count - 1].seq > 3 * TRUST_ENTRIES_MAX);
}

static size_t count_causes(const char *agent, const char *text)
{
	cleanup_trust_book struct trust_book book;
	size_t count = 0;

	assert_int_equal(trust_book_read(&place, agent, &book), 0);
	assert_int_equal(book.fault, TRUST_FINE);
	assert_true(trust_book_is_chained(&book));
	for (size_t i = 0; i < book.count; i++)
		count += strstr(book.entries[i].cause, text) != NULL;
	return count;
}

/* One after the other, the two in turn, in one write. */
static void note_many(const char *agent, enum trust_event even, enum trust_event odd, const char *session, int count)
{
	cleanup_trust_book struct trust_book book;

	assert_int_equal(trust_book_lock(&place, agent, TRUST_LOCK_MS, &book), 0);
	book.settings = usual;
	for (int i = 0; i < count; i++)
		assert_non_null(trust_book_add(&book, &(struct trust_news){ i % 2 ? odd : even, TRUST_HIGH, session,
									    "a cause", now_ns++ }));
	assert_int_equal(trust_book_write(&place, &book, false), 0);
}

/* The sessions that came after a fall are forgotten, and not why it fell: or nobody knows why it has no more. */
static void what_lowered_it_is_forgotten_last(void **state)
{
	enum trust_level fallen;

	assert_int_equal(note("why", TRUST_LIMIT, "aaaaaaaaaaaa"), 0);
	assert_int_equal(note("why", TRUST_CANARY, "aaaaaaaaaaaa"), 0);
	fallen = level("why");
	note_many("why", TRUST_BEGUN, TRUST_CLEAN, "bbbbbbbbbbbb", 5 * TRUST_ENTRIES_MAX);
	assert_int_equal(level("why"), fallen);
	assert_int_equal(count_causes("why", "a canary was touched"), 1);
	/* Many causes leave room, and the newest stay; what a person forgives needs no explanation. */
	note_many("why", TRUST_CANARY, TRUST_CANARY, "cccccccccccc", 3 * TRUST_ENTRIES_MAX);
	note_many("why", TRUST_BEGUN, TRUST_CLEAN, "bbbbbbbbbbbb", TRUST_ENTRIES_MAX);
	assert_int_equal(count_causes("why", "a canary was touched"), TRUST_RECALLED_MAX);
	assert_int_equal(note("why", TRUST_RAISED, NULL), 0);
	note_many("why", TRUST_BEGUN, TRUST_CLEAN, "bbbbbbbbbbbb", TRUST_ENTRIES_MAX);
	assert_int_equal(count_causes("why", "a canary was touched"), 0);
	assert_int_equal(count_causes("why", "raised by a person"), 1);
}

static void two_at_once_lose_nothing(void **state)
{
	enum { WRITERS = 4, EACH = 30 };
	cleanup_trust_book struct trust_book book;
	int status;

	for (int i = 0; i < WRITERS; i++)
		if (fork() == 0) {
			for (int n = 0; n < EACH; n++)
				if (note("many", TRUST_LIMIT, NULL) < 0)
					_exit(1);
			_exit(0);
		}
	for (int i = 0; i < WRITERS; i++) {
		/* A reader without the lock never sees half of anything. */
		for (int n = 0; n < 50; n++)
			assert_int_equal(fault("many"), TRUST_FINE);
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(trust_book_read(&place, "many", &book), 0);
	assert_int_equal(book.count, WRITERS * EACH);
}

static void a_full_disk_leaves_what_was_there(void **state)
{
	struct rlimit before, none = { 100, RLIM_INFINITY };

	assert_int_equal(note("full", TRUST_LIMIT, NULL), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	none.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(note("full", TRUST_CANARY, NULL), -EFBIG);
	assert_int_equal(note("new", TRUST_CANARY, NULL), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(level("full"), TRUST_LOW);
	assert_int_equal(fault("new"), TRUST_FINE);
	assert_int_equal(note("full", TRUST_CANARY, NULL), 0);
	assert_int_equal(note("new", TRUST_CANARY, NULL), 0);
	assert_int_equal(level("full"), TRUST_NONE);
}

static bool is_there(const char *name)
{
	return access(path_to(name), F_OK) == 0;
}

/* Only of the locked record: of another one somebody may write now, and an agent may be called like a leftover. */
static void what_a_killed_writer_left_is_removed(void **state)
{
	static const char *const gone[] = { "trust/left.bin.tmp.abcdefghij01", "trust.seen/left.tmp.abcdefghij01",
					    "trust.seen/left.tmp.zzzzzzzzzzzz" };
	static const char *const kept[] = { "trust/other.bin.tmp.abcdefghij01", "trust.seen/other.tmp.abcdefghij01",
					    "trust/left.bin.tmp.abcdefghij0", "trust/left.bin.tmp.abcdefghij0A",
					    "trust.seen/left.tmp.abcdefghij012", "trust/left2.bin.tmp.abcdefghij01" };
	static const char like[] = "left.tmp.aaaaaaaaaaaa";

	assert_int_equal(note("left", TRUST_BEGUN, "aaaaaaaaaaaa"), 0);
	assert_int_equal(note(like, TRUST_CANARY, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		copy("trust/left.bin", gone[i]);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		copy("trust/left.bin", kept[i]);
	assert_int_equal(fault("left"), TRUST_FINE);
	assert_true(is_there(gone[0])); /* who only reads holds no lock, and removes nothing */
	assert_int_equal(note("left", TRUST_CLEAN, "aaaaaaaaaaaa"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		assert_false(is_there(gone[i]));
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		assert_true(is_there(kept[i]));
	assert_int_equal(fault(like), TRUST_FINE);
	assert_int_equal(level(like), TRUST_NONE);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		assert_int_equal(unlink(path_to(kept[i])), 0);
}

static void agents_are_listed(void **state)
{
	char **names;
	size_t count;

	assert_int_equal(trust_agents(&place, &names), 0);
	count = strv_count((const char *const *)names);
	assert_true(count >= 10);
	for (size_t i = 0; i + 1 < count; i++)
		assert_true(strcmp(names[i], names[i + 1]) < 0);
	strv_free(names);
}

static int make(void **state)
{
	assert_non_null(mkdtemp(directory));
	assert_int_equal(str_format(state_dir, sizeof state_dir, "%s/state", directory), 0);
	assert_int_equal(str_format(runtime_dir, sizeof runtime_dir, "%s/run", directory), 0);
	return mkdir(state_dir, 0700) || mkdir(runtime_dir, 0700);
}

static int clean(void **state)
{
	return path_remove_tree(AT_FDCWD, directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(names_are_names),
		cmocka_unit_test(damage_is_noticed_at_every_byte),
		cmocka_unit_test(an_older_record_is_noticed),
		cmocka_unit_test(another_history_is_noticed),
		cmocka_unit_test(what_is_gone_is_noticed),
		cmocka_unit_test(a_restart_of_the_machine_is_no_fault),
		cmocka_unit_test(who_else_could_write_it_is_noticed),
		cmocka_unit_test(one_agent_is_not_another),
		cmocka_unit_test(a_forged_entry_breaks_the_chain),
		cmocka_unit_test(a_person_begins_again),
		cmocka_unit_test(the_oldest_is_forgotten_and_who_runs_is_not),
		cmocka_unit_test(what_lowered_it_is_forgotten_last),
		cmocka_unit_test(two_at_once_lose_nothing),
		cmocka_unit_test(a_full_disk_leaves_what_was_there),
		cmocka_unit_test(what_a_killed_writer_left_is_removed),
		cmocka_unit_test(agents_are_listed),
	};

	return cmocka_run_group_tests(tests, make, clean);
}
