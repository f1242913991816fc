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
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/path.h"
#include "stage/apply/applied-state.h"
#include "stage/apply/apply.h"
#include "stage/apply/undo.h"

/*
 * A session made by hand: a tree, an upper, and the record. `far` puts the tree on another file system than the
 * session. What stands on both sides before and after is compared as text, one line a path: type, mode, size, mtime,
 * content.
 */
struct fixture {
	char base[64], tree_base[64];
	int base_fd, tree_fd, upper_fd, stage_fd, sessions_fd;
	struct stage_record record;
	struct stage_stack stack;
	struct stage_changes changes;
	struct applied_state *left;
	struct apply_item *items;
	struct apply apply;
	struct err err;
};

static const char session[] = "abcdefghijkl";

static void make_directories(int fd, const char *path)
{
	assert_int_equal(path_make_directories(fd, path, 0755), 0);
}

static void put(int fd, const char *path, const char *text, mode_t mode)
{
	struct timespec times[2] = { { 1000, 1 }, { 2000 + (time_t)strlen(text), 123456789 } };
	cleanup_fd int file = fd_open_at(fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(file >= 0);
	assert_int_equal(fd_write_full(file, text, strlen(text)), 0);
	assert_int_equal(fchmod(file, mode), 0);
	assert_int_equal(futimens(file, times), 0);
}

static void whiteout(const struct fixture *f, const char *path)
{
	assert_int_equal(mknodat(f->upper_fd, path, S_IFCHR, makedev(0, 0)), 0);
}

static void start(struct fixture *f, bool far)
{
	struct stage_tree ids;
	char path[128];

	memset(f, 0, sizeof *f);
	assert_int_equal(str_copy(f->base, sizeof f->base, "/tmp/atoll-unit-apply-XXXXXX"), 0);
	assert_non_null(mkdtemp(f->base));
	assert_int_equal(str_copy(f->tree_base, sizeof f->tree_base,
				  far ? "/dev/shm/atoll-unit-apply-XXXXXX" : "/tmp/atoll-unit-apply-XXXXXX"), 0);
	assert_non_null(mkdtemp(f->tree_base));
	f->base_fd = fd_open_at(AT_FDCWD, f->base, O_RDONLY | O_DIRECTORY, 0);
	make_directories(f->base_fd, "sessions/abcdefghijkl/stage/live/0/upper");
	f->sessions_fd = fd_open_at(f->base_fd, "sessions", O_RDONLY | O_DIRECTORY, 0);
	f->stage_fd = fd_open_at(f->sessions_fd, "abcdefghijkl/stage", O_RDONLY | O_DIRECTORY, 0);
	f->upper_fd = fd_open_at(f->stage_fd, "live/0/upper", O_RDONLY | O_DIRECTORY, 0);
	assert_int_equal(str_format(path, sizeof path, "%s/tree", f->tree_base), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	f->tree_fd = fd_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
	memcpy(f->record.session, session, sizeof session);
	memcpy(f->record.origin, session, sizeof session);
	ids = (struct stage_tree){ .owner_uid = geteuid(), .owner_gid = getegid(), .jail_uid = geteuid(),
				   .jail_gid = getegid() };
	assert_int_equal(stage_record_add_tree(&f->record, f->tree_fd, path, &ids), 0);
	f->stack = STAGE_STACK_NONE;
}

/* What was made on the host before this is the base. */
static void begin_run(struct fixture *f)
{
	struct timespec tick = { 0, 20 * 1000 * 1000 };

	nanosleep(&tick, NULL);
	assert_int_equal(stage_record_set_start(&f->record, f->stage_fd), 0);
	nanosleep(&tick, NULL);
}

static bool is_own(void *context, const char *path, const struct stat *host)
{
	const struct fixture *f = context;

	return applied_is_own(f->left, 0, path, host);
}

static void forget_changes(struct fixture *f)
{
	stage_changes_done(&f->changes);
	f->changes = (struct stage_changes){ 0 };
	stage_stack_done(&f->stack);
	f->stack = STAGE_STACK_NONE;
	applied_free(f->left);
	f->left = NULL;
	free(f->items);
	f->items = NULL;
}

static void find_changes(struct fixture *f)
{
	struct stage_change_options options = { .start_ns = stage_record_start_ns(&f->record), .is_own = is_own,
						.context = f };
	struct stage_chain chain = { 0 };

	forget_changes(f);
	assert_int_equal(applied_load(f->stage_fd, stage_record_start_ns(&f->record), &f->left), 0);
	assert_int_equal(stage_stack_open(f->sessions_fd, f->stage_fd, &chain, 0, true, &f->stack), 0);
	assert_int_equal(stage_stack_open_host(&f->stack, &f->record.trees[0], &f->err), 0);
	assert_int_equal(stage_changes_load(&f->changes, &f->stack, &options), 0);
	f->items = calloc(f->changes.count + 1, sizeof *f->items);
	for (size_t i = 0; i < f->changes.count; i++) {
		f->items[i].change = &f->changes.items[i];
		f->items[i].verdict = f->changes.items[i].state == STAGE_CLEAN ? APPLY_TAKEN : APPLY_CONFLICT;
	}
	f->apply = (struct apply){ .items = f->items, .count = f->changes.count, .stacks = &f->stack,
				   .merged_fd = FD_NONE };
}

static struct apply_item *item(struct fixture *f, const char *path)
{
	for (size_t i = 0; i < f->apply.count; i++)
		if (str_equal(f->items[i].change->path, path))
			return &f->items[i];
	fail_msg("%s is no change", path);
	return NULL;
}

static void open_place(struct fixture *f, struct transaction_place *place)
{
	struct transaction_recovered recovered;

	assert_int_equal(transaction_place_open(f->stage_fd, &f->record, place, &f->err), 0);
	if (transaction_recover(place, &recovered, &f->err) < 0)
		fail_msg("%s", f->err.message);
}

static void run_apply(struct fixture *f)
{
	cleanup_transaction_place struct transaction_place place = { 0 };

	open_place(f, &place);
	assert_int_equal(apply_complete(&f->apply), 0);
	if (apply_run(&place, &f->apply, &f->err) < 0)
		fail_msg("%s", f->err.message);
}

static size_t run_undo(struct fixture *f)
{
	cleanup_transaction_place struct transaction_place place = { 0 };
	cleanup_undo struct undo undo = { 0 };

	open_place(f, &place);
	if (undo_open(&place, 0, &undo, &f->err) < 0 || undo_complete(&place, &undo, &f->err) < 0 ||
	    undo_run(&place, &undo, &f->err) < 0)
		fail_msg("%s", f->err.message);
	return undo.undone;
}

static void stop(struct fixture *f)
{
	int r;

	forget_changes(f);
	stage_record_done(&f->record);
	close(f->tree_fd);
	close(f->upper_fd);
	close(f->stage_fd);
	close(f->sessions_fd);
	close(f->base_fd);
	r = path_remove_tree(AT_FDCWD, f->base);
	r |= path_remove_tree(AT_FDCWD, f->tree_base);
	assert_int_equal(r, 0);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void describe_below(struct buf *out, int dir_fd, const char *prefix);

static void describe_entry(struct buf *out, int dir_fd, const char *prefix, const char *name)
{
	cleanup_free char *path = str_printf("%s/%s", prefix, name), *bytes = NULL;
	char target[256] = "";
	struct stat st;
	size_t size;

	assert_int_equal(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	buf_printf(out, "%s %o %lld.%ld", path, st.st_mode, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	if (S_ISLNK(st.st_mode))
		assert_true(readlinkat(dir_fd, name, target, sizeof target - 1) > 0);
	if (S_ISREG(st.st_mode)) {
		assert_int_equal(fd_read_file_at(dir_fd, name, 1 << 16, &bytes, &size), 0);
		buf_printf(out, " %s", bytes);
	}
	buf_printf(out, " %s\n", target);
	if (S_ISDIR(st.st_mode))
		describe_below(out, fd_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY, 0), path);
}

/* Takes dir_fd. */
static void describe_below(struct buf *out, int dir_fd, const char *prefix)
{
	DIR *dir = fdopendir(dir_fd);
	struct dirent *entry;
	char *names[64];
	size_t count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, ".."))
			names[count++] = str_dup(entry->d_name);
	qsort(names, count, sizeof *names, compare_names);
	for (size_t i = 0; i < count; i++) {
		describe_entry(out, dirfd(dir), prefix, names[i]);
		free(names[i]);
	}
	closedir(dir);
}

/* The whole tree as text, owned by the caller. */
static char *describe(const struct fixture *f)
{
	cleanup_buf struct buf out;
	struct stat st;

	buf_init(&out, 1 << 20);
	assert_int_equal(fstat(f->tree_fd, &st), 0);
	buf_printf(&out, "%o %lld.%ld\n", st.st_mode, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	describe_below(&out, fd_open_at(f->tree_fd, ".", O_RDONLY | O_DIRECTORY, 0), "");
	return str_dup(buf_text(&out));
}

static void assert_text(const struct fixture *f, const char *path, const char *text)
{
	cleanup_free char *bytes = NULL;
	size_t size;

	assert_int_equal(fd_read_file_at(f->tree_fd, path, 1 << 16, &bytes, &size), 0);
	assert_string_equal(bytes, text);
}

static void assert_absent(const struct fixture *f, const char *path)
{
	struct stat st;

	assert_int_equal(fstatat(f->tree_fd, path, &st, AT_SYMLINK_NOFOLLOW), -1);
}

static void fill_tree(struct fixture *f)
{
	make_directories(f->tree_fd, "keep/sub");
	make_directories(f->tree_fd, "gone/deep/er");
	make_directories(f->tree_fd, "dir-to-file/x");
	put(f->tree_fd, "same", "same", 0644);
	put(f->tree_fd, "edited", "before", 0640);
	put(f->tree_fd, "deleted", "deleted", 0600);
	put(f->tree_fd, "keep/sub/inner", "inner before", 0644);
	put(f->tree_fd, "gone/a", "a", 0644);
	put(f->tree_fd, "gone/deep/b", "b", 0444);
	put(f->tree_fd, "gone/deep/er/c", "c", 0755);
	put(f->tree_fd, "dir-to-file/x/y", "y", 0644);
	put(f->tree_fd, "file-to-dir", "file", 0644);
	put(f->tree_fd, "file-to-link", "file", 0644);
	begin_run(f);
}

static void fill_upper(struct fixture *f)
{
	put(f->upper_fd, "edited", "after, longer", 0755);
	whiteout(f, "deleted");
	make_directories(f->upper_fd, "keep/sub");
	put(f->upper_fd, "keep/sub/inner", "inner after", 0644);
	put(f->upper_fd, "keep/sub/new", "new", 0644);
	whiteout(f, "gone");
	put(f->upper_fd, "dir-to-file", "now a file", 0644);
	make_directories(f->upper_fd, "file-to-dir/with");
	put(f->upper_fd, "file-to-dir/with/content", "content", 0644);
	assert_int_equal(symlinkat("/etc/passwd", f->upper_fd, "file-to-link"), 0);
	make_directories(f->upper_fd, "added/tree/of");
	put(f->upper_fd, "added/tree/of/files", "files", 0600);
	put(f->upper_fd, "added/new\nline\xff", "odd", 0644);
	put(f->upper_fd, "added/one", "linked", 0644);
	assert_int_equal(linkat(f->upper_fd, "added/one", f->upper_fd, "added/two", 0), 0);
	assert_int_equal(fchmodat(f->upper_fd, "added/tree", 0555, 0), 0);
}

static void check_applied(struct fixture *f)
{
	struct stat one, two;

	assert_text(f, "edited", "after, longer");
	assert_absent(f, "deleted");
	assert_absent(f, "gone");
	assert_text(f, "keep/sub/inner", "inner after");
	assert_text(f, "dir-to-file", "now a file");
	assert_text(f, "file-to-dir/with/content", "content");
	assert_text(f, "added/tree/of/files", "files");
	assert_text(f, "added/new\nline\xff", "odd");
	assert_int_equal(fstatat(f->tree_fd, "added/one", &one, 0), 0);
	assert_int_equal(fstatat(f->tree_fd, "added/two", &two, 0), 0);
	assert_int_equal(one.st_ino, two.st_ino);
	assert_int_equal(fstatat(f->tree_fd, "added/tree", &one, 0), 0);
	assert_int_equal(one.st_mode, S_IFDIR | 0555);
	assert_int_equal(fstatat(f->tree_fd, "file-to-link", &one, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(one.st_mode));
}

/* Everything at once, there and back and there again. */
static void go_round(bool far)
{
	struct fixture f;
	cleanup_free char *before = NULL, *after = NULL, *again = NULL, *back = NULL;

	start(&f, far);
	fill_tree(&f);
	before = describe(&f);
	fill_upper(&f);
	find_changes(&f);
	run_apply(&f);
	assert_int_equal(f.apply.applied, f.apply.count);
	check_applied(&f);
	after = describe(&f);
	find_changes(&f);
	if (f.changes.count)
		print_message("still a change: %s\n", f.changes.items[0].path);
	assert_int_equal(f.changes.count, 0);
	assert_true(run_undo(&f) > 0);
	back = describe(&f);
	assert_string_equal(back, before);
	find_changes(&f);
	run_apply(&f);
	assert_int_equal(f.apply.applied, f.apply.count);
	again = describe(&f);
	assert_string_equal(again, after);
	assert_int_equal(fchmodat(f.tree_fd, "added/tree", 0755, 0), 0);
	assert_int_equal(fchmodat(f.upper_fd, "added/tree", 0755, 0), 0);
	stop(&f);
}

static void test_there_and_back_near(void **state)
{
	(void)state;
	go_round(false);
}

static void test_there_and_back_on_another_file_system(void **state)
{
	(void)state;
	go_round(true);
}

/* The host changes between the judgement and the apply: what it has now stays, and the rest is applied. */
static void test_a_change_of_the_host_meanwhile_stays(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, false);
	fill_tree(&f);
	fill_upper(&f);
	find_changes(&f);
	put(f.tree_fd, "edited", "the host's own", 0644);
	assert_int_equal(fchmodat(f.tree_fd, "gone/deep/b", 0644, 0), 0);
	put(f.tree_fd, "gone/deep/b", "the host's too", 0644);
	put(f.tree_fd, "added", "in the way", 0644);
	run_apply(&f);
	assert_text(&f, "edited", "the host's own");
	assert_text(&f, "gone/deep/b", "the host's too");
	assert_absent(&f, "gone/a");
	assert_absent(&f, "gone/deep/er");
	assert_text(&f, "added", "in the way");
	assert_text(&f, "keep/sub/new", "new");
	assert_int_equal(item(&f, "edited")->verdict, APPLY_CONFLICT);
	assert_int_equal(item(&f, "gone/deep/b")->verdict, APPLY_CONFLICT);
	assert_int_equal(item(&f, "gone/deep")->verdict, APPLY_CONFLICT);
	assert_int_equal(item(&f, "gone")->verdict, APPLY_CONFLICT);
	assert_int_equal(item(&f, "added")->verdict, APPLY_CONFLICT);
	assert_int_equal(item(&f, "keep/sub/inner")->verdict, APPLY_TAKEN);
	run_undo(&f);
	assert_text(&f, "edited", "the host's own");
	assert_text(&f, "gone/a", "a");
	assert_text(&f, "keep/sub/inner", "inner before");
	assert_int_equal(fchmodat(f.upper_fd, "added/tree", 0755, 0), 0);
	stop(&f);
}

/* Other bytes of the same size and with the same times, once judged: of a file with two names as of any other. */
static void test_what_the_agent_changes_meanwhile_is_left(void **state)
{
	struct timespec tick = { 0, 20 * 1000 * 1000 };
	struct fixture f;

	(void)state;
	start(&f, false);
	fill_tree(&f);
	fill_upper(&f);
	find_changes(&f);
	nanosleep(&tick, NULL);
	put(f.upper_fd, "added/one", "LINKED", 0644);
	put(f.upper_fd, "keep/sub/new", "NEW", 0644);
	run_apply(&f);
	assert_int_equal(item(&f, "added/one")->verdict, APPLY_RACED);
	assert_int_equal(item(&f, "added/two")->verdict, APPLY_RACED);
	assert_int_equal(item(&f, "keep/sub/new")->verdict, APPLY_RACED);
	assert_absent(&f, "added/one");
	assert_absent(&f, "added/two");
	assert_text(&f, "added/tree/of/files", "files");
	assert_int_equal(fchmodat(f.tree_fd, "added/tree", 0755, 0), 0);
	assert_int_equal(fchmodat(f.upper_fd, "added/tree", 0755, 0), 0);
	stop(&f);
}

/* Of a new directory: its mode, and attributes that came after the judgement. One without any may go on being used. */
static void test_a_directory_is_applied_as_it_was_judged(void **state)
{
	struct timespec tick = { 0, 20 * 1000 * 1000 };
	cleanup_fd int fd = FD_NONE;
	struct fixture f;

	(void)state;
	start(&f, false);
	begin_run(&f);
	make_directories(f.upper_fd, "mode");
	make_directories(f.upper_fd, "marked");
	make_directories(f.upper_fd, "used");
	find_changes(&f);
	nanosleep(&tick, NULL);
	assert_int_equal(fchmodat(f.upper_fd, "mode", 0777, 0), 0);
	fd = fd_open_at(f.upper_fd, "marked", O_RDONLY | O_DIRECTORY, 0);
	assert_int_equal(fsetxattr(fd, "user.late", "x", 1, 0), 0);
	put(f.upper_fd, "used/later", "later", 0644);
	run_apply(&f);
	assert_int_equal(item(&f, "mode")->verdict, APPLY_RACED);
	assert_int_equal(item(&f, "marked")->verdict, APPLY_RACED);
	assert_int_equal(item(&f, "used")->verdict, APPLY_TAKEN);
	assert_absent(&f, "mode");
	assert_absent(&f, "marked");
	stop(&f);
}

static void test_what_the_host_changed_since_is_not_undone(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, false);
	fill_tree(&f);
	fill_upper(&f);
	find_changes(&f);
	run_apply(&f);
	put(f.tree_fd, "edited", "the host's own", 0644);
	put(f.tree_fd, "added/mine", "the host's own", 0644);
	put(f.tree_fd, "deleted", "again", 0644);
	run_undo(&f);
	assert_text(&f, "edited", "the host's own");
	assert_text(&f, "deleted", "again");
	assert_text(&f, "added/mine", "the host's own");
	assert_absent(&f, "added/one");
	assert_text(&f, "gone/deep/er/c", "c");
	assert_text(&f, "keep/sub/inner", "inner before");
	assert_int_equal(fchmodat(f.upper_fd, "added/tree", 0755, 0), 0);
	stop(&f);
}

static void want_only(struct fixture *f, const char *path)
{
	for (size_t i = 0; i < f->apply.count; i++)
		if (!str_equal(f->items[i].change->path, path))
			f->items[i].verdict = APPLY_UNWANTED;
	assert_int_equal(item(f, path)->verdict, APPLY_TAKEN);
}

static void test_one_path_brings_its_directories(void **state)
{
	struct fixture f;

	(void)state;
	start(&f, false);
	fill_tree(&f);
	fill_upper(&f);
	find_changes(&f);
	want_only(&f, "added/tree/of/files");
	run_apply(&f);
	assert_int_equal(f.apply.applied, 4);
	assert_text(&f, "added/tree/of/files", "files");
	assert_absent(&f, "added/one");
	assert_true(item(&f, "added")->is_implied);
	find_changes(&f);
	want_only(&f, "gone");
	run_apply(&f);
	assert_int_equal(item(&f, "gone")->verdict, APPLY_HELD);
	assert_text(&f, "gone/a", "a");
	assert_int_equal(fchmodat(f.tree_fd, "added/tree", 0755, 0), 0);
	assert_int_equal(fchmodat(f.upper_fd, "added/tree", 0755, 0), 0);
	stop(&f);
}

/* As rename leaves it that moved a file of the host and then wrote into it. */
static void put_copied_up(struct fixture *f, const char *path)
{
	char link[64];
	cleanup_fd int fd = FD_NONE;

	put(f->upper_fd, path, path, 0644);   /* sizes that differ: no other file is the one that was moved */
	fd = fd_open_at(f->upper_fd, path, O_RDONLY, 0);
	assert_int_equal(str_format(link, sizeof link, "/proc/self/fd/%d", fd), 0);
	assert_int_equal(setxattr(link, "user.overlay.origin", "", 0, 0), 0);
}

/* What came into a directory that an apply has made moved its times, and is no deletion by the host. */
static void check_parts_of_new_directories(bool far)
{
	static const char *const paths[] = { "new/below/a", "new/below/abc", "new/three", "closed/a", "closed/abc" };
	struct fixture f;

	start(&f, far);
	begin_run(&f);
	make_directories(f.upper_fd, "new/below");
	make_directories(f.upper_fd, "closed");
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		put_copied_up(&f, paths[i]);
	assert_int_equal(fchmodat(f.upper_fd, "closed", 0555, 0), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		find_changes(&f);
		want_only(&f, paths[i]);
		run_apply(&f);
	}
	find_changes(&f);
	assert_int_equal(f.changes.count, 0);
	/* One of the host's is one. */
	assert_int_equal(unlinkat(f.tree_fd, "new/below/abc", 0), 0);
	find_changes(&f);
	assert_int_equal(f.changes.items[0].reason, STAGE_HOST_DELETED);
	assert_int_equal(fchmodat(f.tree_fd, "closed", 0755, 0), 0);
	assert_int_equal(fchmodat(f.upper_fd, "closed", 0755, 0), 0);
	stop(&f);
}

static void test_new_directories_are_applied_in_parts(void **state)
{
	(void)state;
	check_parts_of_new_directories(false);
	check_parts_of_new_directories(true);
}

/* 255 bytes a level, so that neither side's path fits into PATH_MAX. */
static void test_a_thousand_levels(void **state)
{
#ifdef ATOLL_SANITIZED
	enum { LEVELS = 300 };
#else
	enum { LEVELS = 1000 };
#endif
	cleanup_fd int fd = FD_NONE;
	cleanup_free char *before = NULL;
	char name[256];
	struct fixture f;

	(void)state;
	start(&f, false);
	begin_run(&f);
	before = describe(&f);
	memset(name, 'n', 255);
	name[255] = 0;
	fd = fd_duplicate(f.upper_fd);
	for (int i = 0; i < LEVELS; i++) {
		int next;

		assert_int_equal(mkdirat(fd, i % 4 ? "d" : name, 0755), 0);
		next = fd_open_at(fd, i % 4 ? "d" : name, O_RDONLY | O_DIRECTORY, 0);
		assert_true(next >= 0);
		close_fd(&fd);
		fd = next;
	}
	put(fd, "bottom", "bottom", 0644);
	find_changes(&f);
	assert_int_equal(f.changes.count, LEVELS + 1);
	run_apply(&f);
	assert_int_equal(f.apply.applied, LEVELS + 1);
	find_changes(&f);
	assert_int_equal(f.changes.count, 0);
	assert_int_equal(run_undo(&f), LEVELS + 1);
	{
		cleanup_free char *after = describe(&f);

		assert_string_equal(after, before);
	}
	stop(&f);
}

static void test_two_at_once_are_refused(void **state)
{
	struct transaction_place place = { 0 }, second = { 0 };
	struct fixture f;

	(void)state;
	start(&f, false);
	begin_run(&f);
	open_place(&f, &place);
	assert_int_equal(transaction_place_open(f.stage_fd, &f.record, &second, &f.err), -EBUSY);
	transaction_place_done(&place);
	open_place(&f, &second);
	transaction_place_done(&second);
	stop(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there_and_back_near),
		cmocka_unit_test(test_there_and_back_on_another_file_system),
		cmocka_unit_test(test_a_change_of_the_host_meanwhile_stays),
		cmocka_unit_test(test_what_the_agent_changes_meanwhile_is_left),
		cmocka_unit_test(test_a_directory_is_applied_as_it_was_judged),
		cmocka_unit_test(test_what_the_host_changed_since_is_not_undone),
		cmocka_unit_test(test_one_path_brings_its_directories),
		cmocka_unit_test(test_new_directories_are_applied_in_parts),
		cmocka_unit_test(test_a_thousand_levels),
		cmocka_unit_test(test_two_at_once_are_refused),
	};

	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
