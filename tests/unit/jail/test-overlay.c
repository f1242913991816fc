/* SPDX-License-Identifier: Apache-2.0 */

/* Staged trees: what is inside sees its own changes, and the host sees none. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/path.h"
#include "policy/policy.h"

static void own(struct cell *cell, const char *name, uid_t uid, gid_t gid)
{
	if (geteuid() == 0)
		assert_int_equal(chown(cell_host_path(cell, name), uid, gid), 0);
}

/* cell_host_path() that lasts. */
static const char *kept(struct cell *cell, const char *name)
{
	static char paths[2 * JAIL_LAYERS_MAX][PATH_MAX];
	static unsigned next;
	char *out = paths[next++ % ARRAY_SIZE(paths)];

	snprintf(out, PATH_MAX, "%s", cell_host_path(cell, name));
	return out;
}

/* HOST/tree with a file and a directory, HOST/live with upper and work of the sandbox's uid. */
static struct jail_layers *stage(struct cell *cell, const char *const *between, size_t count)
{
	static struct jail_layers layers;

	cell_host_make(cell, "tree", NULL);
	cell_host_make(cell, "tree/file", "of the host");
	cell_host_make(cell, "tree/sub", NULL);
	cell_host_make(cell, "tree/sub/deep", "deep");
	cell_host_make(cell, "live", NULL);
	cell_host_make(cell, "live/upper", NULL);
	cell_host_make(cell, "live/work", NULL);
	/* The tree belongs to somebody; as root its owner is not who the sandbox is on the host. */
	for (const char *const *name = (const char *const[]){ "tree", "tree/file", "tree/sub", "tree/sub/deep", NULL };
	     *name; name++)
		own(cell, *name, 4321, 4322);
	own(cell, "live/upper", CELL_HOST_UID, CELL_HOST_GID);
	own(cell, "live/work", CELL_HOST_UID, CELL_HOST_GID);
	layers = (struct jail_layers){ .live = kept(cell, "live"), .between = between, .count = count };
	cell_mount(cell, JAIL_OVERLAY, "/tree", kept(cell, "tree"), JAIL_OWNED)->layers = &layers;
	return &layers;
}

static void expect_host(struct cell *cell, const char *name, const char *content)
{
	cleanup_free char *bytes = NULL;
	size_t size;

	assert_int_equal(fd_read_file_at(AT_FDCWD, cell_host_path(cell, name), 1 << 20, &bytes, &size), 0);
	assert_string_equal(bytes, content);
}

static void test_the_host_is_untouched(void **state)
{
	struct cell *cell = *state;
	struct stat before, after, st;

	stage(cell, NULL, 0);
	assert_int_equal(stat(cell_host_path(cell, "tree"), &before), 0);
	cell_start(cell);
	cell_expect_ok(cell, "read /tree/file", "of the host");
	cell_expect_ok(cell, "write /tree/file changed it all", NULL);
	cell_expect_ok(cell, "read /tree/file", "changed it all");
	cell_expect_ok(cell, "create /tree/new", NULL);
	cell_expect_ok(cell, "mkdir /tree/sub/made", NULL);
	cell_expect_ok(cell, "rename /tree/sub/deep /tree/moved", NULL);
	cell_expect_ok(cell, "chmod /tree/sub 700", NULL);
	expect_host(cell, "tree/file", "of the host");
	expect_host(cell, "tree/sub/deep", "deep");
	assert_int_equal(access(cell_host_path(cell, "tree/new"), F_OK), -1);
	assert_int_equal(access(cell_host_path(cell, "tree/moved"), F_OK), -1);
	assert_int_equal(stat(cell_host_path(cell, "tree"), &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
	assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof before.st_ctim);
	/* What was written is in the live layer, as the sandbox's user, and nothing else is. */
	expect_host(cell, "live/upper/file", "changed it all");
	assert_int_equal(lstat(cell_host_path(cell, "live/upper/sub/deep"), &st), 0);
	assert_true(S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0));
	assert_int_equal(lstat(cell_host_path(cell, "live/upper/new"), &st), 0);
	assert_int_equal(st.st_uid, geteuid() ? geteuid() : CELL_HOST_UID);
}

static void test_owner_and_mount(void **state)
{
	struct cell *cell = *state;
	char expected[64];

	stage(cell, NULL, 0);
	cell_start(cell);
	snprintf(expected, sizeof expected, "ok 100644 %u %u", (unsigned)cell->spec.uid, (unsigned)cell->spec.gid);
	cell_expect_ok(cell, "stat /tree/file", expected);
	cell_expect_ok(cell, "create /tree/new", NULL);
	cell_expect_ok(cell, "stat /tree/new", expected + 9);
	cell_expect_ok(cell, "read /proc/self/mountinfo", "/tree rw,nosuid,nodev");
	assert_non_null(strstr(cell->answer, "overlay"));
	/* Nothing but the overlay is at the target, and its layers are nowhere else. */
	cell_expect_ok(cell, "list /tree", NULL);
	assert_null(strstr(cell->answer, "upper"));
	cell_expect_errno(cell, "stat /live", ENOENT);
}

static void test_layers_between(void **state)
{
	struct cell *cell = *state;
	const char *between[2];

	for (size_t i = 0; i < 2; i++) {
		const char *name = i ? "bottom" : "top";

		cell_host_make(cell, name, NULL);
		own(cell, name, CELL_HOST_UID, CELL_HOST_GID);
		between[i] = kept(cell, name);
	}
	cell_host_make(cell, "top/both", "top");
	cell_host_make(cell, "bottom/both", "bottom");
	cell_host_make(cell, "bottom/low", "low");
	own(cell, "bottom/low", CELL_HOST_UID, CELL_HOST_GID);
	/* A whiteout: the host's file looks absent. */
	assert_int_equal(mknod(cell_host_path(cell, "bottom/file"), S_IFCHR, makedev(0, 0)), 0);
	stage(cell, between, 2);
	cell_start(cell);
	cell_expect_ok(cell, "read /tree/both", "top");
	cell_expect_ok(cell, "read /tree/low", "low");
	cell_expect_errno(cell, "read /tree/file", ENOENT);
	cell_expect_ok(cell, "read /tree/sub/deep", "deep");
	cell_expect_ok(cell, "create /tree/file", NULL);
	cell_expect_ok(cell, "write /tree/low mine", NULL);
	expect_host(cell, "bottom/low", "low");
	expect_host(cell, "tree/file", "of the host");
}

/* A file that the host puts where a mask says that nothing is stays unseen. */
static void test_masked_names_stay_absent(void **state)
{
	struct cell *cell = *state;
	const char *mask[1];

	cell_host_make(cell, "mask", NULL);
	mask[0] = kept(cell, "mask");
	assert_int_equal(mknod(cell_host_path(cell, "mask/.env"), S_IFCHR, makedev(0, 0)), 0);
	stage(cell, mask, 1);
	cell_start(cell);
	cell_expect_errno(cell, "read /tree/.env", ENOENT);
	cell_host_make(cell, "tree/.env", "SECRET");
	cell_expect_errno(cell, "read /tree/.env", ENOENT);
	cell_host_make(cell, "tree/.new", "SECRET");
	assert_int_equal(rename(cell_host_path(cell, "tree/.new"), cell_host_path(cell, "tree/.env")), 0);
	cell_expect_errno(cell, "read /tree/.env", ENOENT);
	cell_expect_errno(cell, "rename /tree/.env /tree/env", ENOENT);
}

static void test_binds_inside(void **state)
{
	struct cell *cell = *state;

	cell_host_make(cell, "bound", NULL);
	cell_host_make(cell, "bound/x", "bound");
	stage(cell, NULL, 0);
	cell_mount(cell, JAIL_BIND, "/tree/sub", cell_host_path(cell, "bound"), JAIL_RDONLY);
	cell_start(cell);
	cell_expect_ok(cell, "read /tree/sub/x", "bound");
	cell_expect_errno(cell, "create /tree/sub/y", EROFS);
	cell_expect_ok(cell, "create /tree/y", NULL);
	/* The mount made no name in the layer. */
	assert_int_equal(access(cell_host_path(cell, "live/upper/sub"), F_OK), -1);
}

static void test_noexec(void **state)
{
	struct cell *cell = *state;

	stage(cell, NULL, 0);
	cell->mounts[cell->spec.mount_count - 1].flags |= JAIL_NOEXEC;
	cell_start(cell);
	cell_expect_ok(cell, "read /proc/self/mountinfo", "/tree rw,nosuid,nodev,noexec");
	cell_expect_ok(cell, "copy /proc/self/exe /tree/program", NULL);
	cell_expect_errno(cell, "exec /tree/program", EACCES);
}

static void test_many_layers(void **state)
{
	static const char *between[JAIL_LAYERS_MAX];
	struct cell *cell = *state;

	for (size_t i = 0; i < JAIL_LAYERS_MAX; i++) {
		char name[32];

		snprintf(name, sizeof name, "layer-%zu", i);
		cell_host_make(cell, name, NULL);
		between[i] = kept(cell, name);
		snprintf(name, sizeof name, "layer-%zu/f%zu", i, i);
		cell_host_make(cell, name, "x");
	}
	stage(cell, between, JAIL_LAYERS_MAX);
	cell_start(cell);
	cell_expect_ok(cell, "read /tree/f0", "x");
	cell_expect_ok(cell, "read /tree/f65", "x");
	cell_expect_ok(cell, "read /tree/file", "of the host");
}

/* The layers lie in the tree itself, as a state directory in a staged home does. */
static void test_layers_inside_the_tree(void **state)
{
	struct cell *cell = *state;
	static const char *const names[] = {
		"tree/own", "tree/own/state", "tree/own/state/mask",
		"tree/own/state/control", "tree/own/state/control/upper", "tree/own/state/control/work",
		"tree/own/state/live", "tree/own/state/live/upper", "tree/own/state/live/work", NULL,
	};
	static const char *between[1];
	struct jail_layers *layers = stage(cell, between, 1);

	/* The kernel leaves the mark of a `volatile` mount also where it refuses one: another for the control. */
	for (const char *const *name = names; *name; name++) {
		cell_host_make(cell, *name, NULL);
		own(cell, *name, CELL_HOST_UID, CELL_HOST_GID);
	}
	assert_int_equal(mknod(cell_host_path(cell, "tree/own/state/mask/file"), S_IFCHR, makedev(0, 0)), 0);
	between[0] = kept(cell, "tree/own/state/mask");
	layers->live = kept(cell, "tree/own/state/control");
	cell_refused(cell, "mounts");
	layers->live = kept(cell, "tree/own/state/live");
	layers->hidden = "own/state";
	cell_start(cell);
	cell_expect_errno(cell, "list /tree/own/state", ENOENT);
	cell_expect_errno(cell, "read /tree/file", ENOENT);
	cell_expect_ok(cell, "read /tree/sub/deep", "deep");
	cell_expect_ok(cell, "write /tree/sub/deep changed", NULL);
	expect_host(cell, "tree/sub/deep", "deep");
	expect_host(cell, "tree/own/state/live/upper/sub/deep", "changed");
}

static void test_what_is_hidden_must_be_a_path_below(void **state)
{
	static const char *const wrong[] = { "", "/own", "own/", "own//state", "../tree", ".", "own/.." };
	struct cell *cell = *state;
	struct jail_layers *layers = stage(cell, NULL, 0);

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		layers->hidden = wrong[i];
		cell_refused(cell, "spec");
	}
}

/* What cannot be staged is refused with both ways out, and leaves nothing. */
static void test_refusals(void **state)
{
	struct cell *cell = *state;
	struct jail_layers *layers = stage(cell, NULL, 0);

	layers->live = kept(cell, "absent");
	cell_refused(cell, "mounts");
	layers->live = kept(cell, "tree"); /* no upper in it */
	cell_refused(cell, "mounts");
	layers->live = "/proc/self";
	cell_refused(cell, "mounts");
	layers->live = "relative";
	cell_refused(cell, "spec");
	layers->live = kept(cell, "live");
	cell->mounts[cell->spec.mount_count - 1].flags |= JAIL_OPTIONAL;
	cell_refused(cell, "spec");
	cell->mounts[cell->spec.mount_count - 1].flags &= ~(uint32_t)JAIL_OPTIONAL;
	layers->count = JAIL_LAYERS_MAX + 1;
	cell_refused(cell, "spec");
	layers->count = 0;
	cell->mounts[cell->spec.mount_count - 1].layers = NULL;
	cell_refused(cell, "spec");
}

/* A file system that takes no user.* attributes cannot hold a live layer: opaque directories would show the host's. */
static void test_upper_without_attributes(void **state)
{
	struct cell *cell = *state;
	struct jail_layers *layers;

	if (geteuid() != 0)
		skip();
	layers = stage(cell, NULL, 0);
	cell_host_make(cell, "ram", NULL);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount("none", cell_host_path(cell, "ram"), "ramfs", 0, NULL), 0);
	cell_host_make(cell, "ram/upper", NULL);
	cell_host_make(cell, "ram/work", NULL);
	own(cell, "ram/upper", CELL_HOST_UID, CELL_HOST_GID);
	own(cell, "ram/work", CELL_HOST_UID, CELL_HOST_GID);
	layers->live = kept(cell, "ram");
	cell_refused(cell, "mounts");
	assert_non_null(strstr(cell->err.message, "cannot stage"));
	assert_non_null(strstr(cell->err.hint, "XDG_STATE_HOME"));
	assert_int_equal(umount(cell_host_path(cell, "ram")), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, cell_setup, cell_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_the_host_is_untouched),
		CASE(test_owner_and_mount),
		CASE(test_layers_between),
		CASE(test_masked_names_stay_absent),
		CASE(test_binds_inside),
		CASE(test_noexec),
		CASE(test_many_layers),
		CASE(test_layers_inside_the_tree),
		CASE(test_what_is_hidden_must_be_a_path_below),
		CASE(test_refusals),
		CASE(test_upper_without_attributes),
	};

	return cmocka_run_group_tests_name("overlay", tests, NULL, NULL);
}
