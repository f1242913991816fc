/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/warm.h"

#include <sys/epoll.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "service/launcher/pool.h"
#include "service/launcher/store/user.h"
#include "service/runtime/runtime.h"

enum { NS_PER_MS = 1000000, BACK_OFF_MS = 5000 };

static const char *const stream_keys[] = { "stdin", "stdout", "stderr" };

struct waiting_one {
	struct waiting_one *next;
	struct daemon *daemon;
	atoll_sandbox *handle;       /* owned */
	struct loop_source source;
	char policy[32], id[CREDENTIAL_ID_SIZE];
	struct ahead driver;         /* owned */
	uint64_t born_ns;
	bool is_ready;               /* the driver runs, and has its text */
};

struct warm {
	struct waiting_one *first;   /* the oldest first */
	size_t count, target;
	char policy[32];             /* that was wanted last */
	uint64_t back_off_ns;        /* nothing is made before */
	uint64_t short_ns;           /* since when one is missing; 0: none is */
};

static struct warm *warm_of(struct daemon *daemon)
{
	if (!daemon->warm)
		daemon->warm = calloc(1, sizeof *daemon->warm);
	return daemon->warm;
}

static void take_out(struct warm *warm, struct waiting_one *one)
{
	struct waiting_one **at = &warm->first;

	while (*at != one)
		at = &(*at)->next;
	*at = one->next;
	warm->count--;
	loop_remove(&one->daemon->loop, &one->source);
}

/* It is nobody's, and ends; at its deadline where it cannot be told so. */
static void end(struct waiting_one *one)
{
	uint64_t ticket;

	take_out(one->daemon->warm, one);
	ahead_done(&one->driver);
	(void)!atoll_stop(one->handle, 0, &ticket, NULL, NULL);
	atoll_sandbox_free(one->handle);
	free(one);
}

static void give_up(struct waiting_one *one)
{
	one->daemon->warm->back_off_ns = clock_monotonic_ns() + (uint64_t)BACK_OFF_MS * NS_PER_MS;
	end(one);
}

/* ---- how one comes to be ---- */

static int start_driver(struct waiting_one *one)
{
	const struct runtime *runtime = runtime_find("python");
	atoll_record *record = atoll_record_new(ATOLL_COMMAND);
	const char *argv[RUNTIME_ARGV_MAX];
	char size[RUNTIME_SIZE_MAX];
	uint64_t ticket;
	int r = record && runtime && runtime_make_mark(one->driver.mark) == 0 ? 0 : ATOLL_E_NO_MEMORY;

	if (r == 0) {
		runtime_command(runtime, one->driver.mark, size, argv);
		r = atoll_set_strings(record, "argv", argv, NULL);
	}
	if (r == 0)
		r = atoll_set_string(record, "cwd", USER_HOME, NULL);
	if (r == 0)
		r = atoll_set_string(record, "streams", "pipe", NULL);
	if (r == 0)
		r = atoll_exec(one->handle, record, &ticket, NULL, NULL);
	atoll_record_free(record);
	return r;
}

/* Its text is smaller than a pipe. */
static bool take_driver(struct waiting_one *one, atoll_record *event)
{
	const struct runtime *runtime = runtime_find("python");
	uint64_t code = 0;

	atoll_get_u64(event, "code", &code);
	if (code || !atoll_get_u64(event, "command", &one->driver.command))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(stream_keys); i++)
		one->driver.fds[i] = atoll_take_fd(event, stream_keys[i]);
	return runtime && one->driver.fds[0] >= 0 &&
	       write(one->driver.fds[0], runtime->text, runtime->size) == (ssize_t)runtime->size;
}

/* False: it comes to nothing. */
static bool hear(struct waiting_one *one, atoll_record *event)
{
	uint64_t type = 0;

	atoll_get_u64(event, "event", &type);
	switch (type) {
	case ATOLL_EVENT_READY:
		return start_driver(one) == 0;
	case ATOLL_EVENT_DONE:
		return take_driver(one, event);
	case ATOLL_EVENT_STARTED:
		atoll_get_u64(event, "pid", &one->driver.pid);
		one->is_ready = true;
		return true;
	case ATOLL_EVENT_FAILED:
	case ATOLL_EVENT_EXIT:
	case ATOLL_EVENT_LOST:
	case ATOLL_EVENT_END:
		return false;
	default:
		return true;
	}
}

static int on_event(void *context, uint32_t events)
{
	struct waiting_one *one = context;
	bool goes_on = true;
	atoll_record *event;

	while (goes_on && atoll_next(one->handle, &event, NULL) == 1) {
		goes_on = hear(one, event);
		atoll_record_free(event);
	}
	if (!goes_on)
		give_up(one);
	return 0;
}

static int fill(const struct waiting_one *one, const struct policy_found *found, atoll_record *record)
{
	int r = atoll_set_string(record, "project", found->project, NULL);

	if (r == 0)
		r = atoll_set_string(record, "name", one->id, NULL);
	if (r == 0)
		r = atoll_set_u64(record, "deadline_ms", WARM_DEADLINE_MS, NULL);
	return r == 0 ? atoll_set_string(record, "at_end", "discard", NULL) : r;
}

static int start(struct waiting_one *one, const struct policy_found *found)
{
	atoll_record *record = atoll_record_new(ATOLL_SANDBOX);
	int r = record ? fill(one, found, record) : ATOLL_E_NO_MEMORY;

	if (r == 0)
		one->handle = pool_take(one->daemon, found, record);
	if (r == 0 && !one->handle)
		r = atoll_set_string(record, "home_from", one->daemon->places.home, NULL);
	if (r == 0 && !one->handle)
		r = atoll_set_string(record, "user_name", USER_NAME, NULL);
	if (r == 0 && !one->handle)
		r = atoll_create(one->daemon->context, found->policy, record, &one->handle, NULL);
	atoll_record_free(record);
	return r;
}

static int add(struct daemon *daemon, const struct policy_found *found)
{
	struct waiting_one *one = calloc(1, sizeof *one), **at = &daemon->warm->first;
	int r = one ? credential_new_id(one->id) : -ENOMEM;

	if (r == 0) {
		one->daemon = daemon;
		one->born_ns = clock_monotonic_ns();
		for (size_t i = 0; i < ARRAY_SIZE(one->driver.fds); i++)
			one->driver.fds[i] = FD_NONE;
		r = str_copy(one->policy, sizeof one->policy, found->id);
	}
	if (r == 0)
		r = start(one, found);
	if (r == 0) {
		one->source = (struct loop_source){ .fd = atoll_fd(one->handle), .events = EPOLLIN, .ready = on_event,
						    .context = one };
		r = loop_add(&daemon->loop, &one->source);
	}
	if (r < 0) {
		if (one)
			atoll_sandbox_free(one->handle);
		free(one);
		return r;
	}
	while (*at)
		at = &(*at)->next;
	*at = one;
	daemon->warm->count++;
	return 0;
}

/* ---- for whom they are ---- */

bool warm_find(struct daemon *daemon, const char *policy, char ret_id[CREDENTIAL_ID_SIZE])
{
	struct waiting_one *one = daemon->warm ? daemon->warm->first : NULL;

	while (one && !(one->is_ready && str_equal(one->policy, policy)))
		one = one->next;
	return one && str_copy(ret_id, CREDENTIAL_ID_SIZE, one->id) == 0;
}

atoll_sandbox *warm_take(struct daemon *daemon, struct sandbox *sandbox)
{
	struct waiting_one *one = daemon->warm ? daemon->warm->first : NULL;
	atoll_sandbox *handle;

	while (one && !str_equal(one->id, sandbox->id))
		one = one->next;
	if (!one)
		return NULL;
	take_out(daemon->warm, one);
	sandbox->commands.ahead = one->driver;
	if (sandbox->commands.last < one->driver.command)
		sandbox->commands.last = one->driver.command;
	handle = one->handle;
	free(one);
	return handle;
}

void warm_want(struct daemon *daemon, const struct policy_found *found, bool missed)
{
	struct warm *warm = warm_of(daemon);
	uint64_t now_ns = clock_monotonic_ns();

	if (!warm || !daemon->settings->pool_max)
		return;
	if (!str_equal(warm->policy, found->id)) {
		(void)!str_copy(warm->policy, sizeof warm->policy, found->id);
		warm->target = 0;
	}
	if ((missed || !warm->target) && warm->target < daemon->settings->pool_max)
		warm->target++;
	warm->short_ns = now_ns;
	daemon_wake_at(daemon, now_ns);
}

/* One for each that was wanted, when no client waits for an answer. When to be called again. */
static uint64_t make_one(struct daemon *daemon, uint64_t now_ns)
{
	struct warm *warm = daemon->warm;
	uint64_t later_ns = daemon_quiet_at(daemon, warm->short_ns, now_ns);
	struct policy_found found;

	if (later_ns)
		return later_ns;
	warm->short_ns = 0;
	while (warm->count >= warm->target && warm->first && !str_equal(warm->first->policy, warm->policy))
		end(warm->first);
	if (now_ns < warm->back_off_ns || warm->count >= warm->target ||
	    policies_by_id(&daemon->policies, warm->policy, &found) < 0)
		return UINT64_MAX;
	if (add(daemon, &found) < 0) {
		warm->back_off_ns = now_ns + (uint64_t)BACK_OFF_MS * NS_PER_MS;
		return UINT64_MAX;
	}
	if (warm->count == warm->target)
		return UINT64_MAX;
	warm->short_ns = clock_monotonic_ns();
	return warm->short_ns;
}

uint64_t warm_tend(struct daemon *daemon)
{
	struct warm *warm = daemon->warm;
	uint64_t now_ns = clock_monotonic_ns(), next_ns = UINT64_MAX;

	if (warm && warm->short_ns)
		next_ns = make_one(daemon, now_ns);
	while (warm && warm->first) {
		uint64_t end_ns = warm->first->born_ns + (uint64_t)WARM_AGE_MS * NS_PER_MS;

		if (now_ns < end_ns)
			return next_ns < end_ns ? next_ns : end_ns;
		warm->target = 0;
		end(warm->first);
	}
	return next_ns;
}

void warm_done(struct daemon *daemon)
{
	while (daemon->warm && daemon->warm->first)
		end(daemon->warm->first);
	free(daemon->warm);
	daemon->warm = NULL;
	pool_done(daemon);
}
