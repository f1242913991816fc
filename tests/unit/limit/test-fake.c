/* SPDX-License-Identifier: Apache-2.0 */

/* Which groups limit_group_new() makes in which layouts, and that nothing is left of them, in fake trees. */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/num.h"
#include "base/str.h"
#include "fake-tree.h"
#include "limit/limit.h"

#define SESSION "abc123def456"
#define GROUP "atoll-" SESSION

static const struct limit_request all_limits = {
	.session = SESSION, .memory_bytes = 1 << 26, .millicpus = 500, .processes = 9, .cgroup_root = fake_root,
};

/* The top has a directory of its own, so that the two files of the hook do not stand in a group. */
static const char v2_mountinfo[] = "30 23 0:26 / /sys/fs/cgroup/top rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

/* A desktop login: the user's manager is delegated from user@1000.service down. */
static void begin_desktop(const char *controllers)
{
	fake_begin("0::/user.slice/user@1000.service/app.slice/term.scope\n", v2_mountinfo);
	fake_group("top", controllers, "");
	fake_group("top/user.slice", controllers, "");
	fake_group("top/user.slice/user@1000.service", controllers, "");
	fake_group("top/user.slice/user@1000.service/app.slice", "", "");
	fake_group("top/user.slice/user@1000.service/app.slice/term.scope", "", "4711\n");
	fake_delegate("top/user.slice/user@1000.service");
}

#define APP "top/user.slice/user@1000.service/app.slice"

static void begin_hybrid(void)
{
	fake_begin("6:name=systemd:/\n5:pids:/user\n4:memory:/process_api/1f\n3:cpu,cpuacct:/\n2:freezer:/\n0::/x\n",
		   "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
		   "32 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
		   "33 31 0:33 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
		   "34 31 0:34 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
		   "36 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
		   "38 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	fake_group("cpu", NULL, "");
	fake_group("memory", NULL, "");
	fake_group("memory/process_api", NULL, "");
	fake_group("memory/process_api/1f", NULL, "77\n");
	fake_group("freezer", NULL, "");
	fake_group("pids", NULL, "");
	fake_group("pids/user", NULL, "77\n");
	fake_group("unified", "", "");
	fake_group("unified/x", "", "77\n");
}

/* Takes the listing from before. */
static void assert_unchanged(char *before)
{
	char *now = fake_listing();

	assert_string_equal(now, before);
	free(now);
	free(before);
}

static struct limit_group *make(const struct limit_request *request)
{
	struct limit_request here = *request;
	struct limit_group *group = NULL;
	struct err err = { 0 };
	int r;

	here.runtime_dir = getenv("XDG_RUNTIME_DIR");
	r = limit_group_new(&group, &here, &err);
	if (r < 0)
		fail_msg("limit_group_new: %d %s", r, err.message);
	return group;
}

static void assert_holders(const struct limit_group *group, enum limit_holder memory, enum limit_holder processes,
			   enum limit_holder cpus)
{
	assert_int_equal(limit_group_holder_memory(group), memory);
	assert_int_equal(limit_group_holder_processes(group), processes);
	assert_int_equal(limit_group_holder_cpus(group), cpus);
}

static void v2_group_stands_beside_our_own(void **state)
{
	struct limit_group *group;
	const char *const *paths;
	char *before;

	begin_desktop("cpu memory pids");
	fake_as_user();
	before = fake_listing();
	group = make(&all_limits);
	assert_int_equal(limit_group_backend(group), LIMIT_CGROUP_V2);
	assert_holders(group, LIMIT_BY_CGROUP, LIMIT_BY_CGROUP, LIMIT_BY_CGROUP);
	/* app.slice handed nothing down; term.scope has a process and so cannot. */
	assert_string_equal(fake_read(APP "/" GROUP "/memory.max"), "67108864");
	/* Whether or not there is swap space now. */
	assert_string_equal(fake_read(APP "/" GROUP "/memory.swap.max"), "0");
	assert_string_equal(fake_read(APP "/" GROUP "/memory.oom.group"), "1");
	assert_string_equal(fake_read(APP "/" GROUP "/pids.max"), "10");
	assert_string_equal(fake_read(APP "/" GROUP "/cpu.max"), "50000 100000");
	assert_int_equal(limit_group_directories(group, &paths), 1);
	assert_true(str_has_suffix(paths[0], APP "/" GROUP));
	assert_true(fcntl(limit_group_clone_fd(group), F_GETFD) & FD_CLOEXEC);
	limit_group_free(group);
	assert_unchanged(before);
	fake_end();
}

/* The pids controller alone may be turned on above processes, but then nothing can be started below. */
static void no_group_with_processes_becomes_a_threaded_domain(void **state)
{
	struct limit_request request = all_limits;
	struct limit_group *group;

	request.memory_bytes = request.millicpus = NUM_UNLIMITED;
	begin_desktop("cpu memory pids");
	fake_write(APP "/term.scope/cgroup.controllers", "pids");
	fake_as_user();
	group = make(&request);
	assert_int_equal(limit_group_holder_processes(group), LIMIT_BY_CGROUP);
	assert_true(fake_exists(APP "/" GROUP));
	assert_string_equal(fake_read(APP "/term.scope/cgroup.type"), "domain\n");
	limit_group_free(group);
	fake_end();
}

/* Someone else has made that mistake already: its group is no place for us. */
static void a_threaded_domain_is_no_place(void **state)
{
	struct limit_group *group;

	begin_desktop("cpu memory pids");
	fake_write(APP "/cgroup.type", "domain threaded\n");
	fake_as_user();
	group = make(&all_limits);
	assert_true(fake_exists("top/user.slice/user@1000.service/" GROUP));
	limit_group_free(group);
	fake_end();
}

static void v2_without_cpu_holds_the_rest(void **state)
{
	struct limit_group *group;

	begin_desktop("memory pids");
	fake_as_user();
	group = make(&all_limits);
	assert_holders(group, LIMIT_BY_CGROUP, LIMIT_BY_CGROUP, LIMIT_BY_NOTHING);
	limit_group_free(group);
	fake_end();
}

/* A kernel that swaps but cannot limit swap would let the memory limit leak; one without the controller file, too. */
static void v2_limit_that_cannot_be_set_is_not_claimed(void **state)
{
	struct limit_request request = all_limits;
	struct limit_group *group;
	struct err err = { 0 };

	begin_desktop("pids");
	fake_as_user();
	group = make(&request);
	assert_holders(group, LIMIT_SUPERVISED, LIMIT_BY_CGROUP, LIMIT_BY_NOTHING);
	limit_group_free(group);
	request.forced_backend = "v1";
	assert_int_equal(limit_group_new(&group, &request, &err), -EOPNOTSUPP);
	assert_int_equal(err.code, ERR_WALL);
	fake_end();
}

static void v2_without_delegation_falls_back(void **state)
{
	struct limit_request request = all_limits;
	struct limit_group *group;
	struct err err = { 0 };
	char *before;

	unsetenv("XDG_RUNTIME_DIR");
	begin_desktop("cpu memory pids");
	fake_delegate("");
	fake_as_user();
	before = fake_listing();
	group = make(&request);
	assert_int_equal(limit_group_backend(group), LIMIT_RLIMIT);
	assert_holders(group, LIMIT_SUPERVISED, LIMIT_BY_RLIMIT, LIMIT_BY_NOTHING);
	assert_int_equal(limit_group_clone_fd(group), -1);
	assert_int_equal(limit_group_event_fd(group), -1);
	limit_group_free(group);
	request.forced_backend = "v2";
	assert_int_equal(limit_group_new(&group, &request, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "EACCES"));
	assert_unchanged(before);
	fake_end();
}

static void hybrid_uses_each_own_path(void **state)
{
	static const char *const expected[] = {
		"unified/x/" GROUP, "memory/process_api/1f/" GROUP, "pids/user/" GROUP, "cpu/" GROUP,
	};
	struct limit_group *group;
	const char *const *paths;
	struct err err;
	char *before;

	begin_hybrid();
	before = fake_listing();
	group = make(&all_limits);
	assert_int_equal(limit_group_backend(group), LIMIT_CGROUP_V1);
	assert_holders(group, LIMIT_BY_CGROUP, LIMIT_BY_CGROUP, LIMIT_BY_CGROUP);
	assert_int_equal(limit_group_directories(group, &paths), ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_true(str_has_suffix(paths[i], expected[i]));
	assert_string_equal(fake_read("memory/process_api/1f/" GROUP "/memory.limit_in_bytes"), "67108864");
	assert_string_equal(fake_read("memory/process_api/1f/" GROUP "/memory.memsw.limit_in_bytes"), "67108864");
	assert_int_equal(limit_group_prepare(group, &err), 0);
	assert_int_equal(limit_group_enter(group), 0);
	assert_string_equal(fake_read("pids/user/" GROUP "/tasks"), "0");
	assert_string_equal(fake_read("cpu/" GROUP "/tasks"), "0");
	assert_string_equal(fake_read("unified/x/" GROUP "/cgroup.procs"), ""); /* clone does that */
	limit_group_free(group);
	assert_unchanged(before);
	fake_end();
}

static void v1_alone_counts_cpu_in_the_comounted_group(void **state)
{
	struct limit_usage usage;
	struct limit_group *group;
	const char *const *paths;

	begin_hybrid();
	fake_write("self-cgroup", "5:pids:/user\n4:memory:/process_api/1f\n3:cpu,cpuacct:/\n");
	fake_write("mountinfo", "32 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
				"36 31 0:36 /user /sys/fs/cgroup/pids/user rw - cgroup cgroup rw,pids\n");
	group = make(&all_limits);
	assert_int_equal(limit_group_directories(group, &paths), 2);
	assert_holders(group, LIMIT_SUPERVISED, LIMIT_BY_CGROUP, LIMIT_BY_CGROUP);
	/* A mount of a part of the tree: the path below it is what is left of our own. */
	assert_true(fake_exists("pids/user/" GROUP));
	fake_write("cpu/" GROUP "/cpuacct.usage", "123456\n");
	assert_int_equal(limit_group_usage(group, 0, &usage), 0);
	assert_int_equal(usage.cpu_ns, 123456);
	limit_group_free(group);
	fake_end();
}

static void only_what_is_asked_for_is_made(void **state)
{
	struct limit_request request = {
		.session = SESSION, .memory_bytes = NUM_UNLIMITED, .millicpus = 1000 * 100000,
		.processes = NUM_UNLIMITED, .cgroup_root = fake_root,
	};
	struct limit_group *group;
	const char *const *paths;

	begin_hybrid();
	group = make(&request);
	assert_int_equal(limit_group_directories(group, &paths), 1);
	assert_true(str_has_suffix(paths[0], "unified/x/" GROUP));
	assert_holders(group, LIMIT_NONE, LIMIT_NONE, LIMIT_BY_MACHINE);
	limit_group_free(group);
	fake_end();
}

static void usage_is_read_from_the_files(void **state)
{
	struct limit_usage usage;
	struct limit_group *group;

	begin_desktop("cpu memory pids");
	fake_as_user();
	group = make(&all_limits);
	fake_write(APP "/" GROUP "/memory.current", "5000\n");
	fake_write(APP "/" GROUP "/memory.peak", "9000\n");
	fake_write(APP "/" GROUP "/memory.events", "low 0\noom 4\noom_kill 3\noom_group_kill 1\n");
	fake_write(APP "/" GROUP "/pids.current", "4\n");
	fake_remove(APP "/" GROUP "/pids.peak"); /* an older kernel */
	fake_write(APP "/" GROUP "/pids.events", "max 7\n");
	fake_write(APP "/" GROUP "/cpu.stat", "usage_usec 2500\nuser_usec 2000\n");
	assert_int_equal(limit_group_usage(group, getpid(), &usage), 0);
	fake_write(APP "/" GROUP "/pids.current", "2\n");
	assert_int_equal(limit_group_usage(group, getpid(), &usage), 0);
	assert_int_equal(usage.memory_bytes, 5000);
	assert_int_equal(usage.memory_peak_bytes, 9000);
	assert_int_equal(usage.oom_kills, 3);
	assert_int_equal(usage.processes, 1);
	assert_int_equal(usage.processes_peak, 3);
	assert_int_equal(usage.fork_refusals, 7);
	assert_int_equal(usage.cpu_ns, 2500000);
	/* A manager that takes the controller away takes the limit away: never unnoticed. */
	fake_remove(APP "/" GROUP "/memory.max");
	fake_remove(APP "/" GROUP "/memory.current");
	assert_int_equal(limit_group_usage(group, getpid(), &usage), -EIO);
	limit_group_free(group);
	fake_end();
}

static void a_taken_session_name_is_left_alone(void **state)
{
	struct limit_group *group = NULL;
	struct err err = { 0 };

	begin_hybrid();
	fake_group("pids/user/" GROUP, NULL, "");
	assert_int_equal(limit_group_new(&group, &all_limits, &err), -EEXIST);
	assert_null(group);
	assert_true(fake_exists("pids/user/" GROUP));
	assert_false(fake_exists("unified/x/" GROUP));
	assert_false(fake_exists("memory/process_api/1f/" GROUP));
	fake_end();
}

static void names_that_are_no_session_are_refused(void **state)
{
	static const char *const names[] = { "", "../x", "a/b", "A", "a b", "abcdefghijklmnopqrstuvwxyz0123456" };

	begin_hybrid();
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct limit_request request = all_limits;
		struct limit_group *group;
		struct err err;

		request.session = names[i];
		assert_int_equal(limit_group_new(&group, &request, &err), -EINVAL);
	}
	fake_end();
}

static void nothing_is_left_whichever_step_fails(void (*begin)(void))
{
	size_t fds = count_open_fds();
	unsigned failures = 0;

	for (unsigned n = 1;; n++) {
		struct limit_group *group = NULL;
		struct err err = { 0 };
		bool has_failed;
		char *before;
		int r;

		begin();
		before = fake_listing();
		fake_fail_at(n);
		r = limit_group_new(&group, &all_limits, &err);
		has_failed = fake_has_failed();
		fake_fail_at(0);
		if (r == 0)
			limit_group_free(group);
		else
			assert_true(err.message[0]);
		assert_unchanged(before);
		fake_end();
		if (!has_failed)
			break;
		failures++;
	}
	assert_true(failures > 10);
	assert_int_equal(count_open_fds(), fds);
}

static void begin_user_desktop(void)
{
	begin_desktop("cpu memory pids");
	fake_as_user();
}

static void no_step_of_v2_leaves_anything(void **state)
{
	nothing_is_left_whichever_step_fails(begin_user_desktop);
}

static void no_step_of_v1_leaves_anything(void **state)
{
	nothing_is_left_whichever_step_fails(begin_hybrid);
}

static bool is_alive(const char *session, const void *context)
{
	return str_equal(session, context);
}

static void sweep_removes_only_the_dead(void **state)
{
	begin_hybrid();
	fake_group("pids/user/atoll-dead00000000", NULL, "");
	fake_group("pids/atoll-dead00000000", NULL, "");
	fake_group("memory/process_api/atoll-dead11111111", NULL, "");
	fake_group("unified/x/atoll-live00000000", "", "");
	fake_group("unified/x/atoll-Dead.scope", "", "");
	fake_group("unified/x/other-dead00000000", "", "");
	fake_group("memory/process_api/1f/atoll-own000000000", NULL, "");
	fake_write("self-cgroup", "5:pids:/user\n4:memory:/process_api/1f/atoll-own000000000\n0::/x\n");
	assert_int_equal(limit_sweep(fake_root, is_alive, "live00000000"), 3);
	assert_false(fake_exists("pids/user/atoll-dead00000000"));
	assert_false(fake_exists("pids/atoll-dead00000000"));
	assert_false(fake_exists("memory/process_api/atoll-dead11111111"));
	assert_true(fake_exists("unified/x/atoll-live00000000"));
	assert_true(fake_exists("unified/x/atoll-Dead.scope"));
	assert_true(fake_exists("unified/x/other-dead00000000"));
	assert_true(fake_exists("memory/process_api/1f/atoll-own000000000"));
	fake_end();
}

/* Started from another login, the dead session has its groups beside ours, not above. */
static void sweep_finds_the_dead_of_other_logins(void **state)
{
	begin_hybrid();
	fake_group("memory/process_api/1f/atoll-own000000000", NULL, "");
	fake_group("memory/process_api/2e", NULL, "");
	fake_group("memory/process_api/2e/atoll-dead00000000", NULL, "");
	fake_group("memory/process_api/2e/deep", NULL, "");
	fake_group("memory/process_api/2e/deep/er", NULL, "");
	fake_group("memory/process_api/2e/deep/er/atoll-dead00000000", NULL, "");
	fake_group("memory/process_api/2e/atoll-live00000000", NULL, "");
	fake_group("unified/y", "", "");
	fake_group("unified/y/atoll-dead00000000", "", "");
	fake_write("self-cgroup", "5:pids:/user\n4:memory:/process_api/1f/atoll-own000000000\n0::/x\n");
	assert_int_equal(limit_sweep(fake_root, is_alive, "live00000000"), 0);
	assert_true(fake_exists("memory/process_api/2e/atoll-dead00000000"));
	assert_int_equal(limit_sweep_everywhere(fake_root, is_alive, "live00000000"), 3);
	assert_false(fake_exists("memory/process_api/2e/atoll-dead00000000"));
	assert_false(fake_exists("memory/process_api/2e/deep/er/atoll-dead00000000"));
	assert_false(fake_exists("unified/y/atoll-dead00000000"));
	assert_true(fake_exists("memory/process_api/2e/atoll-live00000000"));
	assert_true(fake_exists("memory/process_api/1f/atoll-own000000000"));
	fake_end();
}

static void freezing_v1_makes_its_group_when_needed(void **state)
{
	struct limit_group *group;
	const char *const *paths;

	begin_hybrid();
	fake_write("self-cgroup", "5:pids:/user\n2:freezer:/\n");
	group = make(&all_limits);
	assert_int_equal(limit_group_freeze(group, false), 0);
	assert_false(fake_exists("freezer/" GROUP));
	assert_int_equal(limit_group_freeze(group, true), 0);
	assert_true(fake_exists("freezer/" GROUP));
	assert_int_equal(limit_group_directories(group, &paths), 2);
	limit_group_free(group);
	assert_false(fake_exists("freezer/" GROUP));
	fake_end();
}

/* A program that does what the user's service manager would: a delegated scope appears and holds us. */
static const char scope_program[] =
	"#!/bin/sh\n"
	"root=$(dirname \"$0\")\n"
	"env > \"$root/seen-env\"\n"
	"echo \"$@\" > \"$root/seen-argv\"\n"
	"[ -e \"$root/fails\" ] && exit 1\n"
	"dir=$root/top/user.slice/user@1000.service/app.slice/${10}\n"
	"mkdir \"$dir\"\n"
	"echo 'cpu memory pids' > \"$dir/cgroup.controllers\"\n"
	"echo domain > \"$dir/cgroup.type\"\n"
	": > \"$dir/cgroup.subtree_control\"\n"
	": > \"$dir/cgroup.procs\"\n"
	"echo \"0::/user.slice/user@1000.service/app.slice/${10}\" > \"$root/self-cgroup\"\n";

static void begin_ssh(char program[128])
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char path[96];

	fake_begin("0::/user.slice/session-3.scope\n", v2_mountinfo);
	fake_group("top", "cpu memory pids", "");
	fake_group("top/user.slice", "cpu memory pids", "");
	fake_group("top/user.slice/session-3.scope", "", "4711\n");
	fake_group("top/user.slice/user@1000.service", "cpu memory pids", "");
	fake_group("top/user.slice/user@1000.service/app.slice", "cpu memory pids", "");
	fake_write("busctl", scope_program);
	fake_delegate("top/user.slice/user@1000.service");
	snprintf(program, 128, "%s/busctl", fake_root);
	assert_int_equal(chmod(program, 0755), 0);
	snprintf(path, sizeof path, "%s/self-cgroup", fake_root);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(chmod(fake_root, 0755), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(fake_root, 65534, 65534), 0);
	snprintf(path, sizeof path, "%s/run", fake_root);
	fake_as_user();
	assert_int_equal(mkdir(path, 0700), 0);
	setenv("XDG_RUNTIME_DIR", path, 1);
	setenv("PATH", "/nonexistent", 1);
	snprintf(address.sun_path, sizeof address.sun_path, "%s/bus", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	close(fd);
}

static void a_login_session_gets_a_scope(void **state)
{
	struct limit_request request = all_limits;
	char program[128], argv[512];
	struct limit_group *group;

	begin_ssh(program);
	request.scope_program = program;
	group = make(&request);
	assert_int_equal(limit_group_backend(group), LIMIT_CGROUP_V2);
	assert_holders(group, LIMIT_BY_CGROUP, LIMIT_BY_CGROUP, LIMIT_BY_CGROUP);
	assert_true(fake_exists(APP "/" GROUP ".scope/" GROUP));
	assert_string_equal(fake_read(APP "/" GROUP ".scope/box/cgroup.procs"), "0");
	snprintf(argv, sizeof argv, " PIDs au 1 %d 0\n", (int)getpid());
	assert_non_null(strstr(fake_read("seen-argv"), " StartTransientUnit ssa(sv)a(sa(sv)) " GROUP ".scope fail 4 "));
	assert_true(str_has_suffix(fake_read("seen-argv"), argv));
	assert_null(strstr(fake_read("seen-env"), "/nonexistent"));
	assert_non_null(strstr(fake_read("seen-env"), "DBUS_SESSION_BUS_ADDRESS=unix:path=/tmp/atoll-fake-"));
	limit_group_free(group);
	assert_false(fake_exists(APP "/" GROUP ".scope/" GROUP));
	fake_end();
}

/* What is written last stands in a fake file. */
static void a_scope_takes_the_companion_along(void **state)
{
	struct limit_request request = all_limits;
	char program[128], argv[64], pid[16];
	struct limit_group *group;

	begin_ssh(program);
	request.scope_program = program;
	request.companion = 4242;
	group = make(&request);
	snprintf(argv, sizeof argv, " PIDs au 2 %d 4242 0\n", (int)getpid());
	assert_true(str_has_suffix(fake_read("seen-argv"), argv));
	snprintf(pid, sizeof pid, "%d", (int)request.companion);
	assert_string_equal(fake_read(APP "/" GROUP ".scope/box/cgroup.procs"), pid);
	limit_group_free(group);
	fake_end();
}

static void a_refused_scope_is_told(void **state)
{
	struct limit_request request = all_limits;
	struct limit_group *group;
	struct err err = { 0 };
	char program[128];

	begin_ssh(program);
	fake_write("fails", "");
	request.scope_program = program;
	request.runtime_dir = getenv("XDG_RUNTIME_DIR");
	request.forced_backend = "v2";
	assert_int_equal(limit_group_new(&group, &request, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.message, "gave no scope"));
	request.forced_backend = NULL;
	group = make(&request);
	assert_int_equal(limit_group_backend(group), LIMIT_RLIMIT);
	limit_group_free(group);
	fake_end();
}

static void probe_tells_what_is_missing(void **state)
{
	struct limit_capability capability;
	char *before;

	unsetenv("XDG_RUNTIME_DIR");
	begin_desktop("memory pids");
	fake_as_user();
	before = fake_listing();
	limit_probe(fake_root, NULL, getenv("XDG_RUNTIME_DIR"), &capability);
	assert_int_equal(capability.backend, LIMIT_CGROUP_V2);
	assert_int_equal(capability.cpus, LIMIT_BY_NOTHING);
	assert_non_null(strstr(capability.detail, "cannot hand down"));
	assert_non_null(strstr(capability.fix, "Delegate=cpu memory pids"));
	assert_unchanged(before);
	fake_end();

	begin_hybrid();
	fake_delegate("");
	fake_as_user();
	limit_probe(fake_root, NULL, getenv("XDG_RUNTIME_DIR"), &capability);
	assert_int_equal(capability.backend, LIMIT_RLIMIT);
	assert_int_equal(capability.memory, LIMIT_SUPERVISED);
	assert_non_null(strstr(capability.detail, "EACCES"));
	assert_non_null(strstr(capability.fix, "unified_cgroup_hierarchy=1"));
	fake_end();
}

static void probe_tells_of_a_scope_that_it_got(void **state)
{
	struct limit_capability capability;
	char program[128];

	begin_ssh(program);
	limit_probe(fake_root, program, getenv("XDG_RUNTIME_DIR"), &capability);
	assert_int_equal(capability.backend, LIMIT_CGROUP_V2);
	assert_int_equal(capability.memory, LIMIT_BY_CGROUP);
	assert_int_equal(capability.processes, LIMIT_BY_CGROUP);
	assert_int_equal(capability.cpus, LIMIT_BY_CGROUP);
	assert_true(capability.systemd_user_scope);
	assert_string_equal(capability.fix, "");
	fake_end();

	begin_ssh(program);
	fake_write("fails", "");
	limit_probe(fake_root, program, getenv("XDG_RUNTIME_DIR"), &capability);
	assert_int_equal(capability.backend, LIMIT_RLIMIT);
	assert_int_equal(capability.memory, LIMIT_SUPERVISED);
	assert_false(capability.systemd_user_scope);
	assert_non_null(strstr(capability.detail, "gave no scope"));
	fake_end();
}

static int end(void **state)
{
	fake_end();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(v2_group_stands_beside_our_own, end),
		cmocka_unit_test_teardown(no_group_with_processes_becomes_a_threaded_domain, end),
		cmocka_unit_test_teardown(a_threaded_domain_is_no_place, end),
		cmocka_unit_test_teardown(v2_without_cpu_holds_the_rest, end),
		cmocka_unit_test_teardown(v2_limit_that_cannot_be_set_is_not_claimed, end),
		cmocka_unit_test_teardown(v2_without_delegation_falls_back, end),
		cmocka_unit_test_teardown(hybrid_uses_each_own_path, end),
		cmocka_unit_test_teardown(v1_alone_counts_cpu_in_the_comounted_group, end),
		cmocka_unit_test_teardown(only_what_is_asked_for_is_made, end),
		cmocka_unit_test_teardown(usage_is_read_from_the_files, end),
		cmocka_unit_test_teardown(a_taken_session_name_is_left_alone, end),
		cmocka_unit_test_teardown(names_that_are_no_session_are_refused, end),
		cmocka_unit_test_teardown(no_step_of_v2_leaves_anything, end),
		cmocka_unit_test_teardown(no_step_of_v1_leaves_anything, end),
		cmocka_unit_test_teardown(sweep_removes_only_the_dead, end),
		cmocka_unit_test_teardown(sweep_finds_the_dead_of_other_logins, end),
		cmocka_unit_test_teardown(freezing_v1_makes_its_group_when_needed, end),
		cmocka_unit_test_teardown(a_login_session_gets_a_scope, end),
		cmocka_unit_test_teardown(a_scope_takes_the_companion_along, end),
		cmocka_unit_test_teardown(a_refused_scope_is_told, end),
		cmocka_unit_test_teardown(probe_tells_what_is_missing, end),
		cmocka_unit_test_teardown(probe_tells_of_a_scope_that_it_got, end),
	};

	return cmocka_run_group_tests_name("limit-fake", tests, NULL, NULL);
}
