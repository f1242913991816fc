/* SPDX-License-Identifier: Apache-2.0 */

/* The file system's own limit of a session, on one that this file plays: which project, who is alone in it, the end. */
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

#include "os/fd.h"
#include "os/path.h"
#include "stage/quota.h"

enum { PROJECTS = 16, DIRECTORIES = 16 };

/* A file system with project quotas. */
static struct {
	bool is_enforced;
	struct project {
		uint32_t number;
		struct quota_state state;
	} projects[PROJECTS];
	struct directory {
		dev_t device;
		ino_t inode;
		uint32_t project;
	} directories[DIRECTORIES];
	uint32_t picks[8]; /* what comes next, from the first on */
	size_t picked;
	uint32_t rival;    /* somebody else takes this one, once it is ours; 0: nobody */
	int limit_error;
} fs;

static char place[64];
static int stage_fd = FD_NONE;

static struct project *project_of(uint32_t number)
{
	for (size_t i = 0; i < PROJECTS; i++)
		if (fs.projects[i].number == number || !fs.projects[i].number) {
			fs.projects[i].number = number;
			return &fs.projects[i];
		}
	abort();
}

static struct directory *directory_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	for (size_t i = 0; i < DIRECTORIES; i++)
		if (!fs.directories[i].inode ||
		    (fs.directories[i].device == st.st_dev && fs.directories[i].inode == st.st_ino)) {
			fs.directories[i].device = st.st_dev;
			fs.directories[i].inode = st.st_ino;
			return &fs.directories[i];
		}
	abort();
}

static int fake_is_enforced(int fd)
{
	return fs.is_enforced;
}

static int fake_read(int fd, uint32_t number, struct quota_state *ret_state)
{
	*ret_state = project_of(number)->state;
	return 0;
}

static int fake_limit(int fd, uint32_t number, const struct quota_limit *limit)
{
	if (fs.limit_error)
		return fs.limit_error;
	project_of(number)->state.limit = *limit;
	return 0;
}

static int fake_next(int fd, uint32_t from, uint32_t *ret_number, struct quota_state *ret_state)
{
	const struct project *best = NULL;

	for (size_t i = 0; i < PROJECTS; i++)
		if (fs.projects[i].number >= from && (!best || fs.projects[i].number < best->number))
			best = &fs.projects[i];
	if (!best || !best->number)
		return -ENOENT;
	*ret_number = best->number;
	*ret_state = best->state;
	return 0;
}

static int fake_project_of(int fd, uint32_t *ret_number)
{
	*ret_number = directory_of(fd)->project;
	return 0;
}

static int fake_assign(int fd, uint32_t number)
{
	struct directory *directory = directory_of(fd);

	if (directory->project)
		project_of(directory->project)->state.used.inodes--;
	directory->project = number;
	project_of(number)->state.used.inodes++;
	if (number == fs.rival) {
		project_of(number)->state.used.inodes++;
		fs.rival = 0;
	}
	return 0;
}

static int fake_pick(uint32_t *ret_number)
{
	*ret_number = fs.picks[fs.picked++ % 8];
	return 0;
}

static const struct stage_quota_calls fake = {
	fake_is_enforced, fake_read, fake_limit, fake_next, fake_project_of, fake_assign, fake_pick,
};

static int make(void **state)
{
	memset(&fs, 0, sizeof fs);
	fs.is_enforced = true;
	for (uint32_t i = 0; i < 8; i++)
		fs.picks[i] = i + 1;
	snprintf(place, sizeof place, "/tmp/atoll-quota-XXXXXX");
	if (!mkdtemp(place))
		return -1;
	stage_fd = fd_open_at(AT_FDCWD, place, O_RDONLY | O_DIRECTORY, 0);
	return path_make_directories(stage_fd, "live/0/upper", 0700) || mkdirat(stage_fd, "live/0/work", 0700) ||
	       path_make_directories(stage_fd, "live/1/upper", 0700) || mkdirat(stage_fd, "live/1/work", 0700);
}

static int clean(void **state)
{
	close_fd(&stage_fd);
	return path_remove_tree(AT_FDCWD, place);
}

static uint32_t assigned(const char *name)
{
	cleanup_fd int fd = fd_open_at(stage_fd, name, O_RDONLY | O_DIRECTORY, 0);

	return directory_of(fd)->project;
}

static const struct quota_limit wanted = { 1 << 20, 100 };

static void all_trees_share_one_limit_and_it_goes_again(void **state)
{
	uint32_t number = 0;
	const struct project *project;

	assert_int_equal(stage_quota_begin(&fake, stage_fd, 2, &wanted, &number), 1);
	assert_true(number == STAGE_QUOTA_FIRST + 1);
	project = project_of(number);
	assert_true(assigned("live/0/upper") == number && assigned("live/0/work") == number &&
		    assigned("live/1/upper") == number && assigned("live/1/work") == number);
	assert_int_equal(project->state.used.inodes, 4);
	/* What the overlay itself needs is not the sandbox's. */
	assert_true(project->state.limit.bytes >= 1 << 20 && project->state.limit.bytes <= (1 << 20) + (1 << 17));
	assert_true(project->state.limit.inodes >= 104 && project->state.limit.inodes <= 132);
	/* Nothing above them has it: files of other projects are renamed there. */
	assert_true(!assigned("live/0") && !assigned("live") && !assigned("."));
	assert_int_equal(stage_quota_end(&fake, stage_fd), 0);
	assert_true(!project->state.limit.bytes && !project->state.limit.inodes);
	assert_int_equal(stage_quota_end(&fake, stage_fd), 0);
}

static void what_has_no_limit_gets_none(void **state)
{
	const struct quota_limit bytes = { 4096, 0 };
	uint32_t number;

	assert_int_equal(stage_quota_begin(&fake, stage_fd, 1, &bytes, &number), 1);
	assert_true(project_of(number)->state.limit.bytes && !project_of(number)->state.limit.inodes);
}

static void a_file_system_without_quotas(void **state)
{
	uint32_t number = 7;

	fs.is_enforced = false;
	assert_int_equal(stage_quota_begin(&fake, stage_fd, 2, &wanted, &number), 0);
	assert_true(number == 7 && !assigned("live/0/upper"));
	assert_int_equal(stage_quota_end(&fake, stage_fd), 0);
	assert_int_equal(stage_quota_sweep(&fake, stage_fd), 0);
}

/* Whoever has a limit or a file in it already, and who comes at the same moment, is never joined. */
static void nobody_shares_a_project(void **state)
{
	uint32_t number = 0;

	project_of(STAGE_QUOTA_FIRST + 1)->state.used.inodes = 1;
	project_of(STAGE_QUOTA_FIRST + 2)->state.limit.bytes = 4096;
	fs.rival = STAGE_QUOTA_FIRST + 3;
	assert_int_equal(stage_quota_begin(&fake, stage_fd, 2, &wanted, &number), 1);
	assert_true(number == STAGE_QUOTA_FIRST + 4 && assigned("live/1/work") == number);
	assert_true(!project_of(STAGE_QUOTA_FIRST + 3)->state.limit.bytes);
	assert_true(project_of(STAGE_QUOTA_FIRST + 2)->state.limit.bytes == 4096);
}

static void all_that_are_tried_are_taken(void **state)
{
	uint32_t number = 0;

	for (uint32_t i = 1; i <= 8; i++)
		project_of(STAGE_QUOTA_FIRST + i)->state.used.inodes = 1;
	assert_int_equal(stage_quota_begin(&fake, stage_fd, 2, &wanted, &number), -EAGAIN);
	assert_int_equal(number, 0);
}

static void who_may_not_set_limits_has_none(void **state)
{
	uint32_t number = 0;

	fs.limit_error = -EPERM;
	assert_int_equal(stage_quota_begin(&fake, stage_fd, 2, &wanted, &number), -EPERM);
	assert_int_equal(number, 0);
}

/* A project of somebody else's, which the administrator gave the directory, keeps its limit. */
static void other_projects_are_left_alone(void **state)
{
	cleanup_fd int fd = fd_open_at(stage_fd, "live/0/work", O_RDONLY | O_DIRECTORY, 0);

	directory_of(fd)->project = 1000;
	project_of(1000)->state.limit.bytes = 4096;
	assert_int_equal(stage_quota_end(&fake, stage_fd), 0);
	assert_int_equal(stage_quota_sweep(&fake, stage_fd), 0);
	assert_true(project_of(1000)->state.limit.bytes == 4096);
}

static void a_sweep_takes_what_nobody_is_in(void **state)
{
	uint32_t dead = STAGE_QUOTA_FIRST + 100, alive = STAGE_QUOTA_FIRST + 50, last = STAGE_QUOTA_FIRST + 200;

	project_of(alive)->state = (struct quota_state){ wanted, { 0, 4 } };
	project_of(dead)->state = (struct quota_state){ wanted, { 0, 0 } };
	project_of(last)->state = (struct quota_state){ wanted, { 0, 0 } };
	project_of(STAGE_QUOTA_FIRST + STAGE_QUOTA_COUNT)->state = (struct quota_state){ wanted, { 0, 0 } };
	assert_int_equal(stage_quota_sweep(&fake, stage_fd), 0);
	assert_true(project_of(alive)->state.limit.bytes && !project_of(dead)->state.limit.bytes &&
		    !project_of(last)->state.limit.inodes);
	assert_true(project_of(STAGE_QUOTA_FIRST + STAGE_QUOTA_COUNT)->state.limit.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_trees_share_one_limit_and_it_goes_again, make, clean),
		cmocka_unit_test_setup_teardown(what_has_no_limit_gets_none, make, clean),
		cmocka_unit_test_setup_teardown(a_file_system_without_quotas, make, clean),
		cmocka_unit_test_setup_teardown(nobody_shares_a_project, make, clean),
		cmocka_unit_test_setup_teardown(all_that_are_tried_are_taken, make, clean),
		cmocka_unit_test_setup_teardown(who_may_not_set_limits_has_none, make, clean),
		cmocka_unit_test_setup_teardown(other_projects_are_left_alone, make, clean),
		cmocka_unit_test_setup_teardown(a_sweep_takes_what_nobody_is_in, make, clean),
	};

	return cmocka_run_group_tests_name("quota", tests, NULL, NULL);
}
