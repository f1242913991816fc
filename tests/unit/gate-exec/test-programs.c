/* SPDX-License-Identifier: Apache-2.0 */

/* Which program a file is: the same inode, or the same content; and what is neither, changed, or cannot be read. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "gate-exec/programs.h"
#include "os/fd.h"

enum { SIZE = 5000 };

static char directory[] = "/tmp/atolltest-programs-XXXXXX", named[64], missing[64];

struct fixture {
	struct exec_rule rules[2];
	struct policy policy;
	struct programs *programs;
	const char *names[PROGRAM_NAMES_MAX + 1];
};

static void write_file(const char *path, char fill)
{
	char bytes[SIZE];

	memset(bytes, fill, sizeof bytes);
	assert_int_equal(fd_replace_file_at(AT_FDCWD, path, bytes, sizeof bytes, 0755), 0);
}

static const char *beside(char out[64], const char *name)
{
	assert_int_equal(str_format(out, 64, "%s/%s", directory, name), 0);
	return out;
}

/* Once: the programs borrow it. */
static int root_fd(void)
{
	static int fd = FD_NONE;

	if (fd < 0)
		fd = fd_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	return fd;
}

static void begin(struct fixture *fixture)
{
	*fixture = (struct fixture){ 0 };
	write_file(beside(named, "named"), 'n');
	beside(missing, "missing");
	fixture->rules[0] = (struct exec_rule){ .verdict = VERDICT_ASK, .program = named };
	fixture->rules[1] = (struct exec_rule){ .verdict = VERDICT_ASK, .program = missing };
	fixture->policy.exec.rules = fixture->rules;
	fixture->policy.exec.count = fixture->policy.exec.exact_count = 2;
	assert_int_equal(programs_new(&fixture->programs, &fixture->policy, NULL, 0), 0);
	assert_int_equal(programs_enter(fixture->programs, &fixture->policy, root_fd()), 0);
}

static void end(struct fixture *fixture)
{
	programs_free(fixture->programs);
	unlink(named);
}

/* As a program that runs or is to run; the result of programs_identify(). */
static int identify(struct fixture *fixture, const char *path, bool is_held)
{
	cleanup_fd int fd = fd_open_at(AT_FDCWD, path, O_PATH, 0);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	return programs_identify(fixture->programs, fd, &st, is_held, fixture->names);
}

static void assert_is_named(struct fixture *fixture, const char *path, bool is_named)
{
	for (int is_held = 0; is_held < 2; is_held++) {
		assert_int_equal(identify(fixture, path, is_held), 0);
		if (is_named)
			assert_string_equal(fixture->names[0], named);
		else
			assert_null(fixture->names[0]);
	}
}

static void a_file_is_its_inode_and_its_content(void **state)
{
	struct fixture fixture;
	char copy[64], link_[64], other[64], shorter[64];

	begin(&fixture);
	assert_is_named(&fixture, named, true);
	write_file(beside(copy, "copy"), 'n');
	assert_is_named(&fixture, copy, true);
	assert_int_equal(link(named, beside(link_, "link")), 0);
	assert_is_named(&fixture, link_, true);
	write_file(beside(other, "other"), 'o');
	assert_is_named(&fixture, other, false);
	assert_int_equal(fd_replace_file_at(AT_FDCWD, beside(shorter, "shorter"), "n", 1, 0755), 0);
	assert_is_named(&fixture, shorter, false);
	unlink(copy);
	unlink(link_);
	unlink(other);
	unlink(shorter);
	end(&fixture);
}

/* An inode that has changed is not what it was, until what the rules name is looked up again: after an upgrade. */
static void a_changed_file_is_another_until_it_is_looked_up_again(void **state)
{
	struct fixture fixture;
	int fd;

	begin(&fixture);
	fd = fd_open_at(AT_FDCWD, named, O_WRONLY, 0);
	assert_int_equal(pwrite(fd, "changed", 7, 0), 7);
	close(fd);
	assert_is_named(&fixture, named, false);
	programs_refresh(fixture.programs);
	assert_is_named(&fixture, named, true);
	end(&fixture);
}

/* What the mounts take away is not there inside: a copy is told by what the host has. */
static void a_copy_of_what_was_taken_away_is_known(void **state)
{
	static const uint32_t taken[] = { 1 };
	struct exec_rule rules[] = { { .verdict = VERDICT_DENY, .program = missing },
				     { .verdict = VERDICT_DENY, .program = named } };
	struct fixture fixture = { .policy = { .exec.rules = rules, .exec.count = 2, .exec.exact_count = 2 } };
	char copy[64];

	write_file(beside(named, "named"), 'n');
	beside(missing, "missing");
	assert_int_equal(programs_new(&fixture.programs, &fixture.policy, taken, ARRAY_SIZE(taken)), 0);
	assert_int_equal(programs_enter(fixture.programs, &fixture.policy, root_fd()), 0);
	write_file(beside(copy, "copy"), 'n');
	assert_is_named(&fixture, copy, true);
	unlink(copy);
	end(&fixture);
}

/* Content that cannot be looked at is no answer: neither yes nor no, and nobody waits for it. */
static void what_cannot_be_read_is_told_from_what_is_another(void **state)
{
	struct fixture fixture;
	char copy[64];
	int lease;

	begin(&fixture);
	write_file(beside(copy, "copy"), 'n');
	signal(SIGIO, SIG_IGN);
	lease = fd_open_at(AT_FDCWD, copy, O_RDONLY, 0);
	assert_int_equal(fcntl(lease, F_SETLEASE, F_WRLCK), 0);
	assert_int_equal(identify(&fixture, copy, false), -EAGAIN);
	assert_int_equal(fcntl(lease, F_SETLEASE, F_UNLCK), 0);
	close(lease);
	assert_is_named(&fixture, copy, true);
	unlink(copy);
	end(&fixture);
}

/* It was of the right size when it was looked at, and whoever holds it lets it grow while it is read. */
static void what_grows_is_read_no_further_than_its_size(void **state)
{
	cleanup_fd int fd = FD_NONE;
	struct fixture fixture;
	struct stat st;
	char copy[64];

	begin(&fixture);
	write_file(beside(copy, "copy"), 'n');
	fd = fd_open_at(AT_FDCWD, copy, O_RDWR, 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(programs_identify(fixture.programs, fd, &st, false, fixture.names), 0);
	assert_string_equal(fixture.names[0], named);
	assert_int_equal(ftruncate(fd, 1LL << 40), 0);
	alarm(5);
	assert_int_equal(programs_identify(fixture.programs, fd, &st, false, fixture.names), -ESTALE);
	alarm(0);
	assert_int_equal(ftruncate(fd, SIZE - 1), 0);
	assert_int_equal(programs_identify(fixture.programs, fd, &st, false, fixture.names), -ESTALE);
	unlink(copy);
	end(&fixture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_its_inode_and_its_content),
		cmocka_unit_test(a_changed_file_is_another_until_it_is_looked_up_again),
		cmocka_unit_test(a_copy_of_what_was_taken_away_is_known),
		cmocka_unit_test(what_cannot_be_read_is_told_from_what_is_another),
		cmocka_unit_test(what_grows_is_read_no_further_than_its_size),
	};
	int failed;

	if (!mkdtemp(directory))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(directory);
	return failed;
}
