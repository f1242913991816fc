/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/layer/remove.h"
#include "stage/layer/walk.h"
#include "stage/record/use.h"
#include "stage/snapshot/flatten.h"
#include "stage/snapshot/gc.h"
#include "stage/snapshot/merge.h"
#include "stage/snapshot/snapshot.h"

/* Snapshots, restores, flattening and gc on sessions that are made by hand: no overlay is mounted. */

#define FIRST "aaaaaaaaaaa1"
#define SECOND "bbbbbbbbbbb2"

static char directory[64];
static struct err err;

static void path_in(char *out, const char *format, const char *session, const char *rest)
{
	assert_int_equal(str_format(out, PATH_MAX, format, directory, session, rest), 0);
}

static void make_session(const char *session)
{
	struct stage_record record = { 0 };
	struct stage_tree ids = { .owner_uid = getuid(), .owner_gid = getgid(), .jail_uid = getuid(),
				  .jail_gid = getgid() };
	cleanup_fd int stage_fd = FD_NONE, host_fd = FD_NONE;
	char path[PATH_MAX], host[PATH_MAX];

	path_in(path, "%s/sessions/%s/stage%s", session, "");
	path_in(host, "%s/host%s%s", "", "");
	assert_int_equal(path_make_directories(AT_FDCWD, path, 0700), 0);
	assert_int_equal(path_make_directories(AT_FDCWD, host, 0755), 0);
	stage_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	host_fd = fd_open_at(AT_FDCWD, host, O_RDONLY | O_DIRECTORY, 0);
	assert_true(stage_fd >= 0 && host_fd >= 0);
	assert_int_equal(str_copy(record.session, sizeof record.session, session), 0);
	assert_int_equal(str_copy(record.origin, sizeof record.origin, session), 0);
	assert_int_equal(stage_record_set_start(&record, stage_fd), 0);
	assert_int_equal(stage_record_add_tree(&record, host_fd, host, &ids), 0);
	assert_int_equal(stage_record_store(stage_fd, &record), 0);
	assert_int_equal(stage_live_make(stage_fd, 0, &record.trees[0], host_fd, &err), 0);
	stage_record_done(&record);
}


static int setup(void **state)
{
	(void)state;
	err = (struct err){ 0 };
	if (str_format(directory, sizeof directory, "/tmp/atoll-unit-layers-XXXXXX") < 0 || !mkdtemp(directory))
		return -1;
	make_session(FIRST);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return stage_remove_tree(AT_FDCWD, directory, NULL);
}

static int open_live(const char *session)
{
	char path[PATH_MAX];

	path_in(path, "%s/sessions/%s/stage/live/0/upper%s", session, "");
	return fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
}

static void put(int dir_fd, const char *name, const char *text)
{
	cleanup_fd int fd = fd_open_at(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static void write_live(const char *name, const char *text)
{
	cleanup_fd int fd = open_live(FIRST);

	put(fd, name, text);
}

static struct stage_lock hold_of(const char *session)
{
	struct stage_lock lock;

	assert_int_equal(stage_lock_open(directory, session, &lock, &err), 0);
	return lock;
}

/* What the whole stack shows, as one text: order, kinds, bytes, modes, marks, and what of the host shows through. */
static int describe(void *context, const struct stage_entry *entry)
{
	struct buf *out = context;
	static const char *const kinds[] = { "file", "dir", "gone", "host" };

	buf_printf(out, "%s %s", entry->path, kinds[entry->kind]);
	/* The root's own time is that of the last seal. */
	if (*entry->path && (entry->kind == STAGE_ENTRY_FILE || entry->kind == STAGE_ENTRY_DIRECTORY))
		buf_printf(out, " %o %ld.%ld", entry->staged.st_mode, (long)entry->staged.st_mtim.tv_sec,
			   entry->staged.st_mtim.tv_nsec);
	if (entry->kind == STAGE_ENTRY_FILE && S_ISREG(entry->staged.st_mode)) {
		cleanup_free char *bytes = NULL;
		size_t size;

		assert_int_equal(fd_read_file_at(entry->layer_dir_fd, entry->name, 1 << 16, &bytes, &size), 0);
		buf_printf(out, " %s", bytes);
	}
	buf_put_text(out, entry->host_exists ? " over\n" : "\n");
	return 0;
}

static int describe_end(void *context, const struct stage_entry *entry)
{
	buf_printf(context, "%s end %s\n", entry->path, entry->is_opaque ? "opaque" : "");
	return 0;
}

static char *show(const struct stage_lock *lock)
{
	struct stage_visitor visitor = { describe, describe_end, NULL };
	struct stage_stack stack = STAGE_STACK_NONE;
	struct buf out;
	char *text;

	buf_init(&out, 16 << 20);
	visitor.context = &out;
	assert_int_equal(stage_stack_open(lock->sessions_fd, lock->stage_fd, &lock->chain, 0, true, &stack), 0);
	assert_int_equal(stage_stack_open_host(&stack, &lock->record.trees[0], &err), 0);
	assert_int_equal(stage_walk(&stack, &visitor), 0);
	stage_stack_done(&stack);
	text = str_dup(buf_text(&out));
	buf_done(&out);
	assert_non_null(text);
	return text;
}

static void assert_shows(const struct stage_lock *lock, const char *before)
{
	cleanup_free char *now = show(lock);

	assert_string_equal(now, before);
}

static void snapshot_and_restore(void **state)
{
	char before[STAGE_SNAPSHOT_NAME_SIZE];
	cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
	cleanup_free char *first = NULL, *second = NULL;

	(void)state;
	write_live("a", "one");
	lock = hold_of(FIRST);
	assert_int_equal(stage_snapshot_seal(&lock, "s1", "a message", &err), 0);
	assert_int_equal(lock.chain.count, 1);
	first = show(&lock);
	write_live("a", "two");
	write_live("b", "new");
	second = show(&lock);
	assert_int_equal(stage_snapshot_restore(&lock, "s1", before, &err), 0);
	assert_string_equal(before, "before-restore-1");
	assert_shows(&lock, first);
	assert_int_equal(stage_snapshot_restore(&lock, "before-restore-1", before, &err), 0);
	assert_string_equal(before, "before-restore-2");
	assert_int_equal(stage_snapshot_restore(&lock, "before-restore-1", before, &err), 0);
	assert_string_equal(before, ""); /* it is that state already */
	assert_non_null(strstr(second, "b file"));
}

static void names_are_checked(void **state)
{
	cleanup_stage_lock struct stage_lock lock = hold_of(FIRST);
	char before[STAGE_SNAPSHOT_NAME_SIZE], name[STAGE_SNAPSHOT_NAME_SIZE];
	struct stage_snapshot *list;
	size_t count;

	(void)state;
	assert_int_equal(stage_snapshot_seal(&lock, "../x", NULL, &err), -EINVAL);
	assert_int_equal(stage_snapshot_seal(&lock, "x.tmp.y", NULL, &err), -EINVAL);
	assert_int_equal(stage_snapshot_seal(&lock, "x", NULL, &err), 0);
	assert_int_equal(stage_snapshot_seal(&lock, "x", NULL, &err), -EEXIST);
	assert_int_equal(stage_snapshot_restore(&lock, "y", before, &err), -ENOENT);
	assert_int_equal(stage_snapshot_restore(&lock, "../chain", before, &err), -ENOENT);
	for (int i = 1; i <= 5; i++) {
		assert_int_equal(stage_snapshot_next_name(&lock, STAGE_AUTO_PREFIX, name, &err), 0);
		assert_int_equal(stage_snapshot_seal(&lock, name, NULL, &err), 0);
	}
	assert_int_equal(stage_snapshot_thin(&lock, STAGE_AUTO_PREFIX, 2, &err), 3);
	assert_int_equal(stage_snapshot_list(&lock, &list, &count, &err), 0);
	assert_int_equal(count, 3);
	assert_string_equal(list[0].name, "x");
	assert_string_equal(list[1].name, "auto-4");
	assert_string_equal(list[2].name, "auto-5");
	assert_int_equal(list[0].chain.count, 0); /* nothing was written: nothing was sealed */
	free(list);
	assert_int_equal(stage_snapshot_next_name(&lock, STAGE_AUTO_PREFIX, name, &err), 0);
	assert_string_equal(name, "auto-6");
}

/* A layer by chance: the operations that an overlay would leave behind, on a small set of names. */
static unsigned seed;

static unsigned chance(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % n;
}

static void clear(int dir_fd, const char *name)
{
	if (unlinkat(dir_fd, name, 0) < 0 && (errno == EISDIR || errno == EPERM))
		assert_int_equal(stage_remove_tree(dir_fd, name, NULL), 0);
}

static void random_entries(int dir_fd, int depth, bool is_host)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	char text[32];

	for (unsigned i = 0; i < 3; i++) {
		const char *name = names[chance(ARRAY_SIZE(names))];
		unsigned what = chance(is_host ? 5 : 8);
		struct timespec times[2] = { { 1000, 0 }, { 1000 + chance(1000), chance(1000) } };

		if (what == 0)
			continue;
		if (what <= 2) {
			clear(dir_fd, name);
			snprintf(text, sizeof text, "%u", chance(1000));
			put(dir_fd, name, text);
			assert_int_equal(fchmodat(dir_fd, name, 0600 | chance(0200), 0), 0);
		} else if (what <= 4 && depth < 3) {
			cleanup_fd int fd = FD_NONE;

			if (mkdirat(dir_fd, name, 0755) < 0 && errno == EEXIST) {
				clear(dir_fd, name);
				assert_int_equal(mkdirat(dir_fd, name, 0755), 0);
			}
			fd = fd_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
			random_entries(fd, depth + 1, is_host);
			/* What the overlay does for a directory that is made where something was. */
			if (!is_host && chance(3) == 0)
				assert_int_equal(fsetxattr(fd, "user.overlay.opaque", "y", 1, 0), 0);
			assert_int_equal(fchmod(fd, 0700 | chance(0100)), 0);
		} else if (what == 5) {
			clear(dir_fd, name);
			assert_int_equal(symlinkat("a/b", dir_fd, name), 0);
		} else if (what >= 6) {
			clear(dir_fd, name);
			assert_int_equal(mknodat(dir_fd, name, S_IFCHR | 0600, 0), 0);
			continue;
		}
		utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW);
	}
}

static void flatten_shows_the_same(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 150; round++) {
		cleanup_stage_lock struct stage_lock lock = STAGE_LOCK_NONE;
		cleanup_free char *before = NULL;
		char path[PATH_MAX];
		cleanup_fd int host_fd = FD_NONE;
		unsigned layers = 2 + round % 6;

		seed = round + 1;
		teardown(NULL);
		setup(NULL);
		path_in(path, "%s/host%s%s", "", "");
		host_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
		random_entries(host_fd, 0, true);
		lock = hold_of(FIRST);
		for (unsigned i = 0; i < layers; i++) {
			cleanup_fd int live_fd = open_live(FIRST);

			random_entries(live_fd, 0, false);
			assert_true(stage_seal(lock.stage_fd, &lock.record, &lock.chain, &err) > 0);
		}
		before = show(&lock);
		assert_int_equal(stage_flatten(&lock, &err), 0);
		assert_int_equal(lock.chain.count, 1);
		assert_shows(&lock, before);
	}
}

static uint64_t collect(const char *session)
{
	cleanup_stage_references struct stage_references references = { 0 };
	cleanup_stage_lock struct stage_lock lock = hold_of(session);
	uint64_t layers = 0;

	assert_int_equal(stage_references_load(lock.sessions_fd, &references, &err), 0);
	assert_int_equal(stage_gc_layers(lock.sessions_fd, session, &references, false, &layers, NULL), 0);
	return layers;
}

static void fork_from(struct stage_lock *origin)
{
	struct stage_lock fork;

	make_session(SECOND);
	fork = hold_of(SECOND);
	assert_int_equal(stage_chain_store(fork.stage_fd, STAGE_FILE_CHAIN, &origin->chain), 0);
	stage_lock_done(&fork);
}

static void gc_keeps_what_is_named(void **state)
{
	struct stage_lock lock = hold_of(FIRST);
	cleanup_free char *forked = NULL, *now = NULL;

	(void)state;
	write_live("a", "one");
	assert_int_equal(stage_snapshot_seal(&lock, "s1", NULL, &err), 0);
	write_live("b", "two");
	assert_true(stage_seal(lock.stage_fd, &lock.record, &lock.chain, &err) > 0);
	fork_from(&lock);
	assert_int_equal(stage_discard_all(&lock, &err), 0);
	stage_lock_done(&lock);
	/* Layer 1 is the snapshot's, layer 2 the fork's. */
	assert_int_equal(collect(FIRST), 0);
	lock = hold_of(SECOND);
	forked = show(&lock);
	assert_non_null(strstr(forked, "b file"));
	assert_int_equal(stage_flatten(&lock, &err), 0);
	stage_lock_done(&lock);
	assert_int_equal(collect(FIRST), 1);
	lock = hold_of(SECOND);
	now = show(&lock);
	assert_string_equal(now, forked);
	stage_lock_done(&lock);
}

static void gc_removes_nothing_while_something_is_unreadable(void **state)
{
	struct stage_lock lock = hold_of(FIRST);
	char path[PATH_MAX];

	(void)state;
	write_live("a", "one");
	assert_true(stage_seal(lock.stage_fd, &lock.record, &lock.chain, &err) > 0);
	assert_int_equal(stage_discard_all(&lock, &err), 0);
	stage_lock_done(&lock);
	make_session(SECOND);
	path_in(path, "%s/sessions/%s/stage/%s", SECOND, "chain");
	put(AT_FDCWD, path, "nonsense");
	assert_int_equal(collect(FIRST), 0);
	unlink(path);
	assert_int_equal(collect(FIRST), 1);
}

static void gc_spares_what_is_about_to_be_used(void **state)
{
	struct stage_lock lock = hold_of(FIRST);

	(void)state;
	write_live("a", "one");
	assert_true(stage_seal(lock.stage_fd, &lock.record, &lock.chain, &err) > 0);
	assert_int_equal(stage_discard_all(&lock, &err), 0);
	assert_int_equal(stage_lock_touch(&lock), 0);
	stage_lock_done(&lock);
	assert_int_equal(collect(FIRST), 0);
}

/* A layer that was sealed, or named, after gc had read all chains and before it had the session to itself. */
static void gc_looks_again_under_the_lock(void **state)
{
	cleanup_stage_references struct stage_references references = { 0 };
	cleanup_stage_lock struct stage_lock lock = hold_of(FIRST);
	uint64_t layers = 0;

	(void)state;
	assert_int_equal(stage_references_load(lock.sessions_fd, &references, &err), 0);
	write_live("a", "one");
	assert_true(stage_seal(lock.stage_fd, &lock.record, &lock.chain, &err) > 0);
	assert_int_equal(stage_gc_layers(lock.sessions_fd, FIRST, &references, false, &layers, NULL), 0);
	assert_int_equal(layers, 0);
	assert_int_equal(stage_discard_all(&lock, &err), 0);
	assert_int_equal(stage_gc_layers(lock.sessions_fd, FIRST, &references, false, &layers, NULL), 0);
	assert_int_equal(layers, 1);
}

/* The end of a run, and gc, take a stage directory only from nobody. */
static void what_is_in_use_cannot_be_claimed(void **state)
{
	cleanup_stage_lock struct stage_lock lock = hold_of(FIRST);
	char path[PATH_MAX], moved[PATH_MAX];
	cleanup_fd int fd = FD_NONE, late_fd = FD_NONE;

	(void)state;
	path_in(path, "%s/sessions/%s/stage%s", FIRST, "");
	path_in(moved, "%s/sessions/%s/stage.gone%s", FIRST, "");
	fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	late_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	assert_int_equal(stage_claim(fd, 0), -EBUSY);
	stage_lock_done(&lock);
	lock = STAGE_LOCK_NONE;
	assert_int_equal(stage_claim(fd, 0), 0);
	assert_int_equal(rename(path, moved), 0);
	stage_release(fd);
	/* Opened before, and locked when it was thrown away already. */
	assert_int_equal(stage_use(late_fd, FIRST), -ENOENT);
}

static void discard_takes_paths(void **state)
{
	cleanup_stage_lock struct stage_lock lock = hold_of(FIRST);
	cleanup_fd int live_fd = open_live(FIRST), dir_fd = FD_NONE, host_fd = FD_NONE;
	cleanup_free char *text = NULL;
	struct stage_drop drop = { 0, "d" }, part = { 0, "gone/x" };
	char path[PATH_MAX];
	uint64_t dropped;

	(void)state;
	put(live_fd, "a", "one");
	assert_int_equal(mkdirat(live_fd, "d", 0755), 0);
	dir_fd = fd_open_at(live_fd, "d", O_RDONLY | O_DIRECTORY, 0);
	put(dir_fd, "x", "two");
	assert_int_equal(mknodat(live_fd, "gone", S_IFCHR, 0), 0);
	path_in(path, "%s/host/gone%s%s", "", "");
	assert_int_equal(path_make_directories(AT_FDCWD, path, 0755), 0);
	host_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	put(host_fd, "x", "host");
	assert_int_equal(stage_discard_paths(&lock, &part, 1, &dropped, &err), -EINVAL);
	assert_int_equal(stage_discard_paths(&lock, &drop, 1, &dropped, &err), 0);
	assert_int_equal(dropped, 1);
	text = show(&lock);
	assert_non_null(strstr(text, "\na file"));
	assert_null(strstr(text, "\nd "));
	assert_non_null(strstr(text, "\ngone gone"));
}

/* As deep as no path can be named, with directories that nobody may enter: it goes, with few descriptors. */
static void remove_takes_hostile_trees(void **state)
{
	char path[PATH_MAX];
	cleanup_fd int fd = FD_NONE;
	struct stat st;

	(void)state;
	path_in(path, "%s/deep%s%s", "", "");
	assert_int_equal(mkdir(path, 0755), 0);
	fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	for (int i = 0; i < 5000; i++) {
		int next;

		put(fd, "\n\033[31mfile\xff", "x");
		assert_int_equal(mkdirat(fd, "directory", 0755), 0);
		next = fd_open_at(fd, "directory", O_RDONLY | O_DIRECTORY, 0);
		assert_true(next >= 0);
		assert_int_equal(fchmod(fd, i % 3 ? 0755 : 0), 0);
		close(fd);
		fd = next;
	}
	assert_int_equal(stage_remove_tree(AT_FDCWD, path, NULL), 0);
	assert_int_equal(lstat(path, &st), -1);
}

static void copy_keeps_links_and_nodes(void **state)
{
	cleanup_stage_lock struct stage_lock lock = hold_of(FIRST);
	cleanup_fd int live_fd = open_live(FIRST), copy_fd = FD_NONE;
	struct stat a, b, fifo;
	uint32_t layer;

	(void)state;
	put(live_fd, "a", "one");
	assert_int_equal(linkat(live_fd, "a", live_fd, "b", 0), 0);
	assert_int_equal(mkfifoat(live_fd, "fifo", 0640), 0);
	assert_int_equal(mknodat(live_fd, "gone", S_IFCHR, 0), 0);
	assert_int_equal(mkdirat(live_fd, "closed", 0700), 0);
	assert_int_equal(fchmodat(live_fd, "closed", 0500, 0), 0);
	assert_int_equal(stage_snapshot_copy(&lock, &layer, &err), 0);
	assert_int_equal(stage_snapshot_name_copy(&lock, layer, "live", "while it ran", &err), 0);
	assert_int_equal(lock.chain.count, 0);
	copy_fd = stage_layer_open(lock.sessions_fd, &(struct stage_layer){ FIRST, layer }, 0);
	assert_true(copy_fd >= 0);
	assert_int_equal(fstatat(copy_fd, "a", &a, 0), 0);
	assert_int_equal(fstatat(copy_fd, "b", &b, 0), 0);
	assert_int_equal(fstatat(copy_fd, "fifo", &fifo, 0), 0);
	assert_true(a.st_ino == b.st_ino && S_ISFIFO(fifo.st_mode) && (fifo.st_mode & 07777) == 0640);
	assert_int_equal(fstatat(copy_fd, "gone", &fifo, 0), 0);
	assert_true(stage_is_whiteout(&fifo));
	assert_int_equal(fstatat(copy_fd, "closed", &fifo, 0), 0);
	assert_int_equal(fifo.st_mode & 07777, 0500);
	/* The original goes on changing; the copy does not. */
	put(live_fd, "a", "changed");
	assert_int_equal(fstatat(copy_fd, "a", &a, 0), 0);
	assert_int_equal(a.st_size, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(snapshot_and_restore),
		TEST(names_are_checked),
		TEST(flatten_shows_the_same),
		TEST(gc_keeps_what_is_named),
		TEST(gc_removes_nothing_while_something_is_unreadable),
		TEST(gc_spares_what_is_about_to_be_used),
		TEST(gc_looks_again_under_the_lock),
		TEST(what_is_in_use_cannot_be_claimed),
		TEST(discard_takes_paths),
		TEST(remove_takes_hostile_trees),
		TEST(copy_keeps_links_and_nodes),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
