/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What the limits of this machine hold, seen as effects: hogs die, bombs stop, figures are right, nothing stays.
 * ATOLL_LIMIT_BACKEND=v1|v2|rlimit asks for one; without it the best is tested, then rlimits as an ordinary user.
 */

#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/num.h"
#include "base/str.h"
#include "guest.h"
#include "limit/limit.h"
#include "os/clock.h"

#define MIB (UINT64_C(1) << 20)

/* A sanitizer's shadow of every page is private memory too: figures and RLIMIT_DATA would be its own. */
#ifdef __has_feature
#define HAS_SHADOW_MEMORY __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_SHADOW_MEMORY 1
#else
#define HAS_SHADOW_MEMORY 0
#endif

static const char *wanted_backend;
static struct limit_group *group;
static pid_t guest;
static char made_paths[8][PATH_MAX];
static size_t made_count;

static void skip_because(const char *why)
{
	fprintf(stderr, "skipped: %s\n", why);
	if (getenv("ATOLL_TESTS_MUST_RUN"))
		fail_msg("must run, but: %s", why);
	skip();
}

static void make(uint64_t memory_bytes, uint64_t millicpus, uint64_t processes)
{
	char session[SESSION_ID_SIZE];
	struct limit_request request = {
		.session = session, .memory_bytes = memory_bytes, .millicpus = millicpus, .processes = processes,
		.forced_backend = wanted_backend,
	};
	struct err err = { 0 };
	const char *const *paths;

	board_reset();
	assert_int_equal(random_session_id(session), 0);
	if (limit_group_new(&group, &request, &err) < 0)
		fail_msg("%s", err.message);
	made_count = limit_group_directories(group, &paths);
	for (size_t i = 0; i < made_count; i++)
		assert_int_equal(str_copy(made_paths[i], sizeof made_paths[i], paths[i]), 0);
}

/* Frees the group and looks whether its directories are gone. */
static void done(void)
{
	if (guest)
		guest_end(guest);
	guest = 0;
	limit_group_free(group);
	group = NULL;
	for (size_t i = 0; i < made_count; i++)
		if (access(made_paths[i], F_OK) == 0)
			fail_msg("%s was left behind", made_paths[i]);
	made_count = 0;
}

static int teardown(void **state)
{
	if (guest)
		guest_end(guest);
	guest = 0;
	if (group) {
		int r = limit_group_kill(group);

		(void)r;
		limit_group_free(group);
	}
	group = NULL;
	made_count = 0;
	return 0;
}

static struct limit_usage usage_now(void)
{
	struct limit_usage usage;

	assert_int_equal(limit_group_usage(group, guest, &usage), 0);
	return usage;
}

static void need_cgroup(enum limit_holder holder)
{
	if (holder == LIMIT_BY_CGROUP)
		return;
	done();
	skip_because("no cgroup holds this limit here");
}

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1 && p.revents & POLLIN;
}

static void hog_is_killed(void (*act)(size_t))
{
	struct limit_usage usage;
	int status, event_fd;

	make(48 * MIB, NUM_UNLIMITED, 64);
	need_cgroup(limit_group_holder_memory(group));
	event_fd = limit_group_event_fd(group);
	assert_true(event_fd >= 0);
	assert_false(is_readable(event_fd, 0));
	guest = guest_start(group, GUEST_NO_NAMESPACES, act, 400 * MIB);
	status = guest_wait(guest);
	guest = 0;
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_true(is_readable(event_fd, 2000));
	assert_int_equal(limit_group_usage(group, 1, &usage), 0);
	assert_true(usage.oom_kills >= 1);
	assert_true(usage.memory_peak_bytes >= 40 * MIB && usage.memory_peak_bytes <= 49 * MIB);
	/* The kernel tells of a burst of changes again some ms later; then it is quiet. */
	for (int i = 0; i < 50 && is_readable(event_fd, 20); i++)
		assert_int_equal(limit_group_usage(group, 1, &usage), 0);
	assert_false(is_readable(event_fd, 0));
	assert_false(board->ready);
	done();
}

static void anonymous_memory_is_limited(void **state)
{
	hog_is_killed(act_anonymous);
}

static void shared_memory_is_limited(void **state)
{
	hog_is_killed(act_shared);
}

static void memfd_is_limited(void **state)
{
	hog_is_killed(act_memfd);
}

static void page_tables_are_limited(void **state)
{
	hog_is_killed(act_page_tables);
}

/* The positive control of the hogs: below the limit they live, and the figures say what they use. */
static void memory_below_the_limit_is_fine(void **state)
{
	static void (*const acts[])(size_t) = { act_anonymous, act_shared, act_memfd };

	for (size_t i = 0; i < ARRAY_SIZE(acts); i++) {
		struct limit_usage usage;

		make(96 * MIB, NUM_UNLIMITED, 64);
		need_cgroup(limit_group_holder_memory(group));
		guest = guest_start(group, GUEST_NO_NAMESPACES, acts[i], 32 * MIB);
		for (int wait = 0; wait < 1000 && !board->ready; wait++)
			poll(NULL, 0, 10);
		assert_true(board->ready);
		usage = usage_now();
		assert_true(usage.memory_bytes >= 31 * MIB && usage.memory_bytes <= 40 * MIB);
		assert_true(usage.memory_peak_bytes >= usage.memory_bytes);
		assert_int_equal(usage.oom_kills, 0);
		done();
	}
}

static void forks_are_limited(void **state)
{
	struct limit_usage usage;

	make(NUM_UNLIMITED, NUM_UNLIMITED, 10);
	need_cgroup(limit_group_holder_processes(group));
	guest = guest_start(group, GUEST_NO_NAMESPACES, act_fork, 50);
	assert_true(board_wait(&board->refused, 40));
	assert_int_equal(board->started, 10); /* beside the first process */
	usage = usage_now();
	assert_int_equal(usage.processes, 10);
	assert_int_equal(usage.processes_peak, 10);
	assert_true(usage.fork_refusals >= 40);
	assert_int_equal(limit_group_kill(group), 0);
	guest_wait(guest);
	guest = 0;
	done();
}

static void fork_bomb_ends_by_kill(void **state)
{
	make(64 * MIB, NUM_UNLIMITED, 30);
	need_cgroup(limit_group_holder_processes(group));
	guest = guest_start(group, GUEST_NO_NAMESPACES, act_fork_bomb, 20);
	assert_true(board_wait(&board->refused, 50));
	assert_int_equal(limit_group_kill(group), 0);
	guest_wait(guest);
	guest = 0;
	done();
}

static void daemons_end_by_kill(void **state)
{
	char path[PATH_MAX], line[64];
	FILE *procs;

	make(NUM_UNLIMITED, NUM_UNLIMITED, 30);
	need_cgroup(limit_group_holder_processes(group));
	guest = guest_start(group, GUEST_NO_NAMESPACES, act_daemons, 5);
	guest_wait(guest); /* the first process is gone, its daemons are not */
	assert_true(board_wait(&board->started, 5));
	assert_int_equal(usage_now().processes + 1, 5);
	assert_int_equal(limit_group_kill(group), 0);
	for (size_t i = 0; i < made_count; i++) {
		int left = 1;

		for (int wait = 0; left && wait < 200; wait++) {
			assert_int_equal(str_format(path, sizeof path, "%s/cgroup.procs", made_paths[i]), 0);
			procs = fopen(path, "re");
			assert_non_null(procs);
			left = fgets(line, sizeof line, procs) != NULL;
			fclose(procs);
			if (left)
				poll(NULL, 0, 10);
		}
		assert_false(left);
	}
	guest = 0;
	done();
}

static void cpu_quota_holds(void **state)
{
	uint64_t start_ns, wall_ns;
	struct limit_usage usage;

	make(NUM_UNLIMITED, 200, 30);
	need_cgroup(limit_group_holder_cpus(group));
	start_ns = clock_monotonic_ns();
	guest = guest_start(group, GUEST_NO_NAMESPACES, act_spin, 1500);
	guest_wait(guest);
	wall_ns = clock_monotonic_ns() - start_ns;
	guest = 0;
	assert_int_equal(limit_group_usage(group, 0, &usage), 0);
	assert_true(usage.cpu_ns >= wall_ns / 20);
	assert_true(usage.cpu_ns <= wall_ns / 5 + 60000000); /* 0.2 CPUs, and what one period may run over */
	done();
}

static void cpu_time_is_complete(void (*act)(size_t))
{
	uint64_t start_ns, wall_ns;
	struct limit_usage usage;

	make(NUM_UNLIMITED, NUM_UNLIMITED, 30);
	if (limit_group_backend(group) == LIMIT_RLIMIT) {
		done();
		skip_because("no cgroup counts CPU time here");
	}
	start_ns = clock_monotonic_ns();
	guest = guest_start(group, GUEST_NO_NAMESPACES, act, 500);
	guest_wait(guest);
	wall_ns = clock_monotonic_ns() - start_ns;
	guest = 0;
	assert_true(board->ready);
	assert_int_equal(limit_group_usage(group, 0, &usage), 0);
	assert_true(usage.cpu_ns >= 490000000);
	assert_true(usage.cpu_ns <= wall_ns * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	done();
}

static void cpu_time_of_daemons_is_counted(void **state)
{
	cpu_time_is_complete(act_burn);
}

static void cpu_time_of_ignored_children_is_counted(void **state)
{
	cpu_time_is_complete(act_burn_ignored);
}

static void freezing_stops_everything(void **state)
{
	uint64_t seen;
	int r;

	make(NUM_UNLIMITED, NUM_UNLIMITED, 30);
	need_cgroup(limit_group_holder_processes(group));
	guest = guest_start(group, GUEST_NO_NAMESPACES, act_count, 0);
	assert_true(board_wait(&board->counter, 5));
	r = limit_group_freeze(group, true);
	if (r == -EOPNOTSUPP) {
		done();
		skip_because("nothing can freeze here");
	}
	assert_int_equal(r, 0);
	assert_int_equal(limit_group_wait_frozen(group), 0);
	seen = board->counter;
	poll(NULL, 0, 100);
	assert_int_equal(board->counter, seen);
	assert_int_equal(limit_group_freeze(group, false), 0);
	assert_true(board_wait(&board->counter, seen + 5));
	/* Frozen ones die, too. */
	assert_int_equal(limit_group_freeze(group, true), 0);
	assert_int_equal(limit_group_wait_frozen(group), 0);
	assert_int_equal(limit_group_kill(group), 0);
	guest_wait(guest);
	guest = 0;
	done();
}

static bool nobody_is_alive(const char *session, const void *context)
{
	/* Other sandboxes may run on this machine: only ours counts as dead. */
	return !strstr(context, session);
}

/* Box and guardian were killed: the group stays with a process in it, until the next sweep. */
static void sweep_ends_what_was_left(void **state)
{
	const char *name;

	make(64 * MIB, NUM_UNLIMITED, 30);
	need_cgroup(limit_group_holder_processes(group));
	guest = guest_start(group, GUEST_NO_NAMESPACES, act_count, 0);
	assert_true(board_wait(&board->counter, 1));
	name = path_basename(made_paths[0]);
	assert_true(limit_sweep(NULL, nobody_is_alive, "none") == 0);
	assert_int_equal(access(made_paths[0], F_OK), 0);
	signal(SIGCHLD, SIG_IGN); /* the process is no child of who sweeps: it is reaped at once */
	assert_int_equal(limit_sweep(NULL, nobody_is_alive, name), made_count);
	signal(SIGCHLD, SIG_DFL);
	guest = 0;
	done();
}

/* A service manager turns a controller off in the shared parent: the limit must come back. */
static void a_controller_taken_away_comes_back(void **state)
{
	char path[PATH_MAX], text[64] = "";
	FILE *file;

	make(48 * MIB, NUM_UNLIMITED, 30);
	assert_int_equal(limit_group_backend(group), LIMIT_CGROUP_V2);
	guest = guest_start(group, GUEST_NO_NAMESPACES, act_count, 0);
	assert_int_equal(str_format(path, sizeof path, "%s/../cgroup.subtree_control", made_paths[0]), 0);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs("-memory", file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(str_format(path, sizeof path, "%s/memory.max", made_paths[0]), 0);
	assert_int_not_equal(access(path, F_OK), 0);
	usage_now();
	file = fopen(path, "re");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof text, file));
	fclose(file);
	assert_string_equal(text, "50331648\n");
	done();
}

/* What follows is the fallback: an ordinary user with a user and a PID namespace, and no cgroup. */

static void need_user_namespace(void)
{
	pid_t pid;

	prctl(PR_SET_DUMPABLE, 1); /* changing uid made /proc/self root's */
	pid = guest_start(group, GUEST_USER_PID_PROC, act_spin, 0);
	if (WEXITSTATUS(guest_wait(pid)) == 0)
		return;
	done();
	skip_because("user namespaces are not allowed here");
}

static void rlimit_bounds_forks(void **state)
{
	struct limit_usage usage;

	make(64 * MIB, NUM_UNLIMITED, 10);
	assert_int_equal(limit_group_holder_processes(group), LIMIT_BY_RLIMIT);
	assert_int_equal(limit_group_holder_memory(group), LIMIT_SUPERVISED);
	need_user_namespace();
	guest = guest_start(group, GUEST_USER_PID, act_fork, 50);
	assert_true(board_wait(&board->refused, 40));
	assert_int_equal(board->started, 10);
	usage = usage_now();
	assert_int_equal(usage.processes, 10);
	assert_true(usage.fork_refusals >= 1);
	done();
}

static void rlimit_bounds_a_fork_bomb(void **state)
{
	make(64 * MIB, NUM_UNLIMITED, 20);
	need_user_namespace();
	guest = guest_start(group, GUEST_USER_PID_PROC, act_fork_bomb, 2);
	assert_true(board_wait(&board->refused, 200));
	assert_true(usage_now().processes <= 20);
	done();
}

#if !HAS_SHADOW_MEMORY
static void supervision_sees(enum guest_namespaces namespaces, void (*act)(size_t))
{
	struct limit_usage usage;

	make(256 * MIB, NUM_UNLIMITED, 20);
	need_user_namespace();
	guest = guest_start(group, namespaces, act, 40 * MIB);
	for (int wait = 0; wait < 1000 && !board->ready; wait++)
		poll(NULL, 0, 10);
	assert_true(board->ready);
	usage = usage_now();
	assert_true(usage.memory_bytes >= 40 * MIB);
	assert_true(usage.memory_bytes <= 48 * MIB);
	done();
}

static void supervision_sees_memory(void **state)
{
	supervision_sees(GUEST_USER_PID, act_anonymous);
	supervision_sees(GUEST_USER_PID_PROC, act_anonymous);
	supervision_sees(GUEST_USER_PID, act_shared);
	supervision_sees(GUEST_USER_PID_PROC, act_memfd);
	supervision_sees(GUEST_USER_PID, act_memfd);
	supervision_sees(GUEST_USER_PID_PROC, act_tmpfs);
}
#endif

static void act_hidden_daemons(size_t count)
{
	act_daemons(count);
	act_count(0);
}

static void supervision_sees_daemons(void **state)
{
	static const enum guest_namespaces kinds[] = { GUEST_USER_PID, GUEST_USER_PID_PROC };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		make(256 * MIB, NUM_UNLIMITED, 20);
		need_user_namespace();
		guest = guest_start(group, kinds[i], act_hidden_daemons, 7);
		assert_true(board_wait(&board->counter, 1));
		assert_int_equal(usage_now().processes, 7);
		done();
	}
}

#if !HAS_SHADOW_MEMORY
/* Copies of one large process share its pages: they are no reason to kill anyone. */
static void act_share(size_t bytes)
{
	char *memory = malloc(bytes);

	memset(memory, 1, bytes);
	for (int i = 0; i < 9; i++)
		if (fork() == 0)
			for (;;)
				pause();
	act_count(0);
}

static void shared_pages_count_once(void **state)
{
	struct limit_usage usage;

	make(64 * MIB, NUM_UNLIMITED, 20);
	need_user_namespace();
	guest = guest_start(group, GUEST_USER_PID_PROC, act_share, 40 * MIB);
	assert_true(board_wait(&board->counter, 1));
	usage = usage_now();
	assert_true(usage.memory_bytes >= 40 * MIB);
	assert_true(usage.memory_bytes <= 48 * MIB);
	done();
}
#endif

static void supervision_counts_cpu_time(void **state)
{
	make(256 * MIB, NUM_UNLIMITED, 20);
	need_user_namespace();
	guest = guest_start(group, GUEST_USER_PID_PROC, act_spin, 60000);
	for (int i = 0; i < 200 && usage_now().cpu_ns < 200000000; i++)
		poll(NULL, 0, 50);
	assert_true(usage_now().cpu_ns >= 200000000);
	assert_int_equal(limit_group_freeze(group, true), -EOPNOTSUPP);
	assert_int_equal(limit_group_kill(group), -EOPNOTSUPP);
	done();
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

static int run_cgroup_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(anonymous_memory_is_limited), TEST(shared_memory_is_limited), TEST(memfd_is_limited),
		TEST(page_tables_are_limited), TEST(memory_below_the_limit_is_fine), TEST(forks_are_limited),
		TEST(fork_bomb_ends_by_kill), TEST(daemons_end_by_kill), TEST(cpu_quota_holds),
		TEST(cpu_time_of_daemons_is_counted), TEST(cpu_time_of_ignored_children_is_counted),
		TEST(freezing_stops_everything), TEST(sweep_ends_what_was_left),
	};
	/* Only v2 parents can take a controller away. */
	const struct CMUnitTest v2_tests[] = { TEST(a_controller_taken_away_comes_back) };
	struct limit_capability capability;
	int failed = cmocka_run_group_tests_name("limit-cgroup", tests, NULL, NULL);

	limit_probe(NULL, NULL, getenv("XDG_RUNTIME_DIR"), &capability);
	printf("backend %s: %s\n", limit_backend_names[capability.backend], capability.detail);
	if (capability.backend == LIMIT_CGROUP_V2)
		failed += cmocka_run_group_tests_name("limit-v2", v2_tests, NULL, NULL);
	return failed;
}

static int run_rlimit_tests(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rlimit_bounds_forks), TEST(rlimit_bounds_a_fork_bomb), TEST(supervision_sees_daemons),
		TEST(supervision_counts_cpu_time),
#if !HAS_SHADOW_MEMORY
		TEST(supervision_sees_memory), TEST(shared_pages_count_once),
#endif
	};

	wanted_backend = "rlimit";
	if (getuid() == 0 && setresuid(65534, 65534, 65534) < 0)
		return 1;
	return cmocka_run_group_tests_name("limit-rlimit", tests, NULL, NULL);
}

int main(void)
{
	int failed = 0;

	alarm(300); /* emulated machines are slow */
	wanted_backend = getenv("ATOLL_LIMIT_BACKEND");
	if (!wanted_backend || !str_equal(wanted_backend, "rlimit"))
		failed += run_cgroup_tests();
	if (!wanted_backend || str_equal(wanted_backend, "rlimit"))
		failed += run_rlimit_tests();
	return failed != 0;
}
