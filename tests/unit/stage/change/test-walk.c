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

#include "base/str.h"
#include "os/fd.h"
#include "stage/change/change.h"
#include "stage/layer/remove.h"

/* The walk and what is made of it; how each path is judged is tested on real overlays, in tests/integration. */

static char directory[64];
static int root_fd;

static int setup(void **state)
{
	if (str_format(directory, sizeof directory, "/var/tmp/atoll-unit-walk-XXXXXX") < 0 || !mkdtemp(directory))
		return -1;
	root_fd = fd_open_at(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
	return root_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	close(root_fd);
	return stage_remove_tree(AT_FDCWD, directory, NULL);
}

static int make_side(const char *name)
{
	int fd;

	assert_int_equal(mkdirat(root_fd, name, 0755), 0);
	fd = fd_open_at(root_fd, name, O_RDONLY | O_DIRECTORY, 0);
	assert_true(fd >= 0);
	return fd;
}

static void put_file(int dir_fd, const char *name)
{
	cleanup_fd int fd = fd_open_at(dir_fd, name, O_WRONLY | O_CREAT, 0644);

	assert_true(fd >= 0);
}

static void make_deep(int dir_fd, unsigned levels)
{
	cleanup_fd int fd = fd_duplicate(dir_fd);

	for (unsigned i = 0; i < levels; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		next = fd_open_at(fd, "d", O_RDONLY | O_DIRECTORY, 0);
		put_file(next, "e");
		close_fd(&fd);
		fd = next;
	}
}

struct seen {
	char last[1 << 16];
	uint64_t entered, left;
	size_t fds_most;
	enum stage_walk_trouble trouble;
	int stop_at;
};

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static int on_enter(void *context, const struct stage_entry *entry)
{
	struct seen *seen = context;
	size_t fds = count_fds();

	seen->entered++;
	seen->fds_most = fds > seen->fds_most ? fds : seen->fds_most;
	assert_true(entry->kind != STAGE_ENTRY_FILE || entry->layer_dir_fd >= 0);
	assert_true(seen->stop_at == 0 || seen->entered <= (uint64_t)seen->stop_at);
	return seen->stop_at && seen->entered == (uint64_t)seen->stop_at ? -EINTR : 0;
}

static int on_leave(void *context, const struct stage_entry *entry)
{
	struct seen *seen = context;
	struct stat st;

	seen->left++;
	if (entry->trouble)
		seen->trouble = entry->trouble;
	/* Whatever was parked meanwhile: the directories of the entry are there again. */
	if (*entry->path && !entry->trouble) {
		assert_int_equal(fstatat(entry->layer_dir_fd, entry->name, &st, AT_SYMLINK_NOFOLLOW), 0);
		assert_true(S_ISDIR(st.st_mode));
	}
	return 0;
}

static void deep_layers_need_few_fds(void **state)
{
	enum { LAYERS = 20, LEVELS = 200 };
	struct stage_stack stack = STAGE_STACK_NONE;
	struct seen seen = { .stop_at = 0 };
	const struct stage_visitor visitor = { .enter = on_enter, .leave = on_leave, .context = &seen };
	size_t before;
	char name[16];

	for (unsigned i = 0; i < LAYERS; i++) {
		assert_int_equal(str_format(name, sizeof name, "%u", i), 0);
		stack.layers[stack.count++] = make_side(name);
		make_deep(stack.layers[i], LEVELS);
	}
	stack.host_fd = make_side("host");
	make_deep(stack.host_fd, LEVELS);
	before = count_fds();
	assert_int_equal(stage_walk(&stack, &visitor), 0);
	assert_int_equal(seen.entered, 1 + 2 * LEVELS);
	assert_int_equal(seen.left, 1 + LEVELS);
	assert_int_equal(seen.trouble, STAGE_WALK_FINE);
	assert_true(seen.fds_most <= before + STAGE_WALK_FDS_MAX + LAYERS + 1);
	assert_int_equal(count_fds(), before);
	/* A visitor that ends the walk leaves no fd behind either. */
	seen = (struct seen){ .stop_at = 150 };
	assert_int_equal(stage_walk(&stack, &visitor), -EINTR);
	assert_int_equal(count_fds(), before);
	stage_stack_done(&stack);
}

/* The directory above is another one when the walk comes back to it. */
static int swap_below(void *context, const struct stage_entry *entry)
{
	int *live_fd = context;

	if (entry->depth == 190 && entry->kind == STAGE_ENTRY_DIRECTORY) {
		if (renameat(*live_fd, "d/d", *live_fd, "away") < 0 || mkdirat(*live_fd, "d/d", 0755) < 0)
			return -errno;
		put_file(*live_fd, "d/d/planted");
	}
	assert_true(strstr(entry->path, "planted") == NULL);
	return 0;
}

struct troubles {
	int live_fd;
	unsigned count;
};

static int enter_swapping(void *context, const struct stage_entry *entry)
{
	struct troubles *troubles = context;

	return swap_below(&troubles->live_fd, entry);
}

static int count_trouble(void *context, const struct stage_entry *entry)
{
	struct troubles *troubles = context;

	troubles->count += entry->trouble == STAGE_WALK_CHANGED;
	return 0;
}

static void a_directory_that_was_swapped_is_noticed(void **state)
{
	struct stage_stack stack = STAGE_STACK_NONE;
	struct troubles troubles = { 0 };
	const struct stage_visitor visitor = { .enter = enter_swapping, .leave = count_trouble, .context = &troubles };

	/* Many layers, so that levels are parked early. */
	for (char name[2] = "a"; name[0] <= 't'; name[0]++) {
		stack.layers[stack.count++] = make_side(name);
		make_deep(stack.layers[stack.count - 1], 200);
	}
	troubles.live_fd = stack.layers[0];
	assert_int_equal(stage_walk(&stack, &visitor), 0);
	assert_true(troubles.count > 0);
	stage_stack_done(&stack);
}

struct judged {
	const char *path;
	enum stage_entry_kind kind;
	bool is_opaque, is_forged, is_masked;
};

struct classifier {
	const struct judged *expected;
	size_t count, found;
};

static int on_judged(void *context, const struct stage_entry *entry)
{
	struct classifier *judging = context;

	for (size_t i = 0; i < judging->count; i++) {
		const struct judged *expected = &judging->expected[i];

		if (!str_equal(entry->path, expected->path))
			continue;
		judging->found++;
		if (entry->kind != expected->kind || entry->marks.is_opaque != expected->is_opaque ||
		    entry->marks.is_forged != expected->is_forged || entry->is_masked != expected->is_masked)
			fail_msg("%s was judged otherwise: %d %d %d %d", entry->path, (int)entry->kind,
				 entry->marks.is_opaque, entry->marks.is_forged, entry->is_masked);
		return entry->marks.is_forged ? STAGE_WALK_SKIP : 0;
	}
	fail_msg("%s was not expected", entry->path);
	return 0;
}

static void judge(enum stage_form form, const struct judged *expected, size_t count)
{
	struct classifier judging = { .expected = expected, .count = count };
	const struct stage_visitor visitor = { .enter = on_judged, .context = &judging };
	struct stage_stack stack = STAGE_STACK_NONE;

	stack.form = form;
	stack.layers[stack.count++] = fd_open_at(root_fd, "upper", O_RDONLY | O_DIRECTORY, 0);
	stack.host_fd = fd_open_at(root_fd, "host", O_RDONLY | O_DIRECTORY, 0);
	stack.mask_fd = fd_open_at(root_fd, "mask", O_RDONLY | O_DIRECTORY, 0);
	assert_int_equal(stage_walk(&stack, &visitor), 0);
	assert_int_equal(judging.found, count);
	stage_stack_done(&stack);
}

/* What fuse-overlayfs leaves is read as it means it in its layers, and as names in those of the kernel. */
static void whiteouts_can_be_files(void **state)
{
	static const struct judged by_fuse[] = {
		{ "", STAGE_ENTRY_DIRECTORY, false, false, false },
		{ "gone", STAGE_ENTRY_WHITEOUT, false, false, false },
		{ "both", STAGE_ENTRY_WHITEOUT, false, false, false },
		{ "opaque", STAGE_ENTRY_DIRECTORY, true, false, false },
		{ "opaque/new", STAGE_ENTRY_FILE, false, false, false },
		{ "opaque/old", STAGE_ENTRY_HIDDEN, false, false, false },
		{ "link", STAGE_ENTRY_FILE, false, true, false },
		{ "made", STAGE_ENTRY_FILE, false, true, false },
		{ "secret", STAGE_ENTRY_FILE, false, false, true },
	}, by_kernel[] = {
		{ "", STAGE_ENTRY_DIRECTORY, false, false, false },
		{ ".wh.gone", STAGE_ENTRY_FILE, false, false, false },
		{ ".wh.both", STAGE_ENTRY_FILE, false, false, false },
		{ "both", STAGE_ENTRY_FILE, false, false, false },
		{ "opaque", STAGE_ENTRY_DIRECTORY, false, false, false },
		{ "opaque/new", STAGE_ENTRY_FILE, false, false, false },
		{ "opaque/.wh..wh..opq", STAGE_ENTRY_FILE, false, false, false },
		{ ".wh.link", STAGE_ENTRY_FILE, false, false, false },
		{ ".wh.made", STAGE_ENTRY_DIRECTORY, false, false, false },
		{ "secret", STAGE_ENTRY_FILE, false, false, false },
	};
	cleanup_fd int upper = make_side("upper"), host = make_side("host"), mask = make_side("mask");

	put_file(upper, ".wh.gone");
	put_file(upper, ".wh.both");
	put_file(upper, "both");
	put_file(upper, "secret");
	assert_int_equal(symlinkat("/etc", upper, ".wh.link"), 0);
	assert_int_equal(mkdirat(upper, ".wh.made", 0755), 0);
	assert_int_equal(mkdirat(upper, "opaque", 0755), 0);
	assert_int_equal(mkdirat(host, "opaque", 0755), 0);
	put_file(upper, "opaque/.wh..wh..opq");
	put_file(upper, "opaque/new");
	put_file(host, "opaque/old");
	put_file(mask, ".wh.secret");
	judge(STAGE_FORM_FUSE, by_fuse, ARRAY_SIZE(by_fuse));
	judge(STAGE_FORM_OVERLAY, by_kernel, ARRAY_SIZE(by_kernel));
}

static struct stage_stack make_changes(unsigned added)
{
	struct stage_stack stack = STAGE_STACK_NONE;
	char name[16];

	stack.layers[stack.count++] = make_side("live");
	stack.host_fd = make_side("host");
	for (unsigned i = 0; i < added; i++) {
		assert_int_equal(str_format(name, sizeof name, "n%u", i), 0);
		put_file(stack.layers[0], name);
	}
	put_file(stack.host_fd, "gone");
	assert_int_equal(mknodat(stack.layers[0], "gone", S_IFCHR, makedev(0, 0)), 0);
	assert_int_equal(mkfifoat(stack.layers[0], "pipe", 0600), 0);
	assert_int_equal(mkdirat(stack.layers[0], "made", 0700), 0);
	return stack;
}

static bool is_flagged(void *context, const struct stage_change *change)
{
	return str_equal(change->path, "n1");
}

static void counting_is_bounded(void **state)
{
	struct stage_stack stack = make_changes(10);
	struct stage_change_options options = { .start_ns = UINT64_MAX, .is_flagged = is_flagged };
	struct stage_counts counts = { 0 };

	assert_int_equal(stage_changes_count(&stack, &options, 1000, &counts), 0);
	assert_int_equal(counts.added, 10);
	assert_int_equal(counts.deleted, 1);
	assert_int_equal(counts.modified, 0);
	assert_int_equal(counts.directories, 1);
	assert_int_equal(counts.refused, 1);
	assert_int_equal(counts.flagged, 1);
	assert_int_equal(counts.conflicts, 0);
	assert_false(counts.is_cut);
	counts = (struct stage_counts){ 0 };
	assert_int_equal(stage_changes_count(&stack, &options, 13, &counts), 0);
	assert_false(counts.is_cut);
	counts = (struct stage_counts){ 0 };
	assert_int_equal(stage_changes_count(&stack, &options, 4, &counts), 0);
	assert_true(counts.is_cut);
	assert_int_equal(counts.added + counts.deleted + counts.directories + counts.refused, 4);
	stage_stack_done(&stack);
}

/* What was opened is what was judged, or it is not opened. */
static void opened_is_what_was_judged(void **state)
{
	struct stage_stack stack = make_changes(1);
	const struct stage_change_options options = { .start_ns = UINT64_MAX };
	cleanup_stage_changes struct stage_changes changes = { 0 };
	const struct stage_change *file = NULL, *gone = NULL;
	cleanup_fd int fd = FD_NONE, host_fd = FD_NONE;

	assert_int_equal(stage_changes_load(&changes, &stack, &options), 0);
	for (size_t i = 0; i < changes.count; i++) {
		if (str_equal(changes.items[i].path, "n0"))
			file = &changes.items[i];
		if (str_equal(changes.items[i].path, "gone"))
			gone = &changes.items[i];
	}
	assert_true(file && gone && gone->kind == STAGE_DELETED);
	fd = stage_change_open(&stack, file);
	assert_true(fd >= 0);
	host_fd = stage_change_open_host(&stack, gone);
	assert_true(host_fd >= 0);
	assert_int_equal(stage_change_open_host(&stack, file), -EINVAL);
	assert_int_equal(stage_change_open(&stack, gone), -EINVAL);
	assert_int_equal(unlinkat(stack.layers[0], "n0", 0), 0);
	assert_int_equal(stage_change_open(&stack, file), -ESTALE);
	assert_int_equal(symlinkat("/etc/passwd", stack.layers[0], "n0"), 0);
	assert_int_equal(stage_change_open(&stack, file), -ESTALE);
	assert_int_equal(unlinkat(stack.layers[0], "n0", 0), 0);
	/* The inode and the tick of the clock may both be the same again; the size is not. */
	put_file(stack.layers[0], "n0");
	close_fd(&fd);
	fd = fd_open_at(stack.layers[0], "n0", O_WRONLY, 0);
	assert_int_equal(fd_write_full(fd, "x", 1), 0);
	assert_int_equal(stage_change_open(&stack, file), -ESTALE);
	stage_stack_done(&stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(deep_layers_need_few_fds, setup, teardown),
		cmocka_unit_test_setup_teardown(a_directory_that_was_swapped_is_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(whiteouts_can_be_files, setup, teardown),
		cmocka_unit_test_setup_teardown(counting_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(opened_is_what_was_judged, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
