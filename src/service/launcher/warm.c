/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/warm.h"

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "service/launcher/function/operations.h"
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
	struct ahead drivers[AHEAD_MAX]; /* owned */
	uint64_t tickets[AHEAD_MAX]; /* of their starts; 0: it has none */
	uint64_t born_ns;
};

struct warm {
	struct waiting_one *first;   /* the oldest first */
	size_t count, target;
	char policy[32];             /* that was wanted last */
	bool wants[AHEAD_MAX];       /* languages, as in runtime_ahead */
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
	for (size_t i = 0; i < AHEAD_MAX; i++)
		ahead_done(&one->drivers[i]);
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

static void put_modules(const struct settings *settings, const char *argv[RUNTIME_ARGV_MAX])
{
	size_t count = strv_count(argv);

	for (size_t i = 0; i < settings->preload_count && count + 1 < RUNTIME_ARGV_MAX; i++)
		argv[count++] = settings->preload[i];
	argv[count] = NULL;
}

static int start_driver(struct waiting_one *one, size_t at)
{
	const struct runtime *runtime = runtime_find(runtime_ahead[at]);
	atoll_record *record = atoll_record_new(ATOLL_COMMAND);
	const char *argv[RUNTIME_ARGV_MAX];
	char size[RUNTIME_SIZE_MAX];
	int r = record && runtime && runtime_make_mark(one->drivers[at].mark) == 0 ? 0 : ATOLL_E_NO_MEMORY;

	if (r == 0) {
		runtime_command(runtime, one->drivers[at].mark, size, argv);
		/* The first one is Python. */
		if (at == 0)
			put_modules(one->daemon->settings, argv);
		r = atoll_set_strings(record, "argv", argv, NULL);
	}
	if (r == 0)
		r = atoll_set_string(record, "cwd", USER_HOME, NULL);
	if (r == 0)
		r = atoll_set_string(record, "streams", "pipe", NULL);
	if (r == 0)
		r = atoll_exec(one->handle, record, &one->tickets[at], NULL, NULL);
	if (r == 0)
		one->drivers[at].language = runtime_ahead[at];
	atoll_record_free(record);
	return r;
}

static int start_drivers(struct waiting_one *one)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < AHEAD_MAX && runtime_ahead[i]; i++)
		if (i == 0 || one->daemon->warm->wants[i])
			r = start_driver(one, i);
	return r;
}

/* Its text is smaller than a pipe. */
static bool take_driver(struct waiting_one *one, atoll_record *event)
{
	uint64_t code = 0, ticket = 0;
	const struct runtime *runtime;
	struct ahead *driver = NULL;

	atoll_get_u64(event, "code", &code);
	atoll_get_u64(event, "ticket", &ticket);
	for (size_t i = 0; i < AHEAD_MAX; i++)
		if (one->drivers[i].language && one->tickets[i] == ticket)
			driver = &one->drivers[i];
	if (code || !driver || !atoll_get_u64(event, "command", &driver->command))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(stream_keys); i++)
		driver->fds[i] = atoll_take_fd(event, stream_keys[i]);
	runtime = runtime_find(driver->language);
	return runtime && driver->fds[0] >= 0 &&
	       write(driver->fds[0], runtime->text, runtime->size) == (ssize_t)runtime->size;
}

static void note_pid(struct waiting_one *one, atoll_record *event)
{
	uint64_t command = 0;

	atoll_get_u64(event, "command", &command);
	for (size_t i = 0; i < AHEAD_MAX; i++)
		if (one->drivers[i].language && one->drivers[i].command == command)
			atoll_get_u64(event, "pid", &one->drivers[i].pid);
}

/* All its drivers run, and have their texts. */
static bool is_ready(const struct waiting_one *one)
{
	for (size_t i = 0; i < AHEAD_MAX; i++)
		if (one->drivers[i].language && !one->drivers[i].pid)
			return false;
	return one->drivers[0].language;
}

/* False: it comes to nothing. */
static bool hear(struct waiting_one *one, atoll_record *event)
{
	uint64_t type = 0;

	atoll_get_u64(event, "event", &type);
	switch (type) {
	case ATOLL_EVENT_READY:
		return start_drivers(one) == 0;
	case ATOLL_EVENT_DONE:
		return take_driver(one, event);
	case ATOLL_EVENT_STARTED:
		note_pid(one, event);
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
		for (size_t i = 0; i < AHEAD_MAX; i++)
			ahead_init(&one->drivers[i]);
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

	while (one && !(is_ready(one) && str_equal(one->policy, policy)))
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
	for (size_t i = 0; i < AHEAD_MAX; i++) {
		sandbox->commands.ahead[i] = one->drivers[i];
		if (sandbox->commands.last < one->drivers[i].command)
			sandbox->commands.last = one->drivers[i].command;
	}
	handle = one->handle;
	free(one);
	return handle;
}

/* A language that was wanted and not there is started ahead from now on, until nobody wants any. */
static void note_languages(struct daemon *daemon)
{
	for (size_t i = 0; i < AHEAD_MAX && runtime_ahead[i]; i++)
		if (str_equal(daemon->registry.not_ahead, runtime_ahead[i]))
			daemon->warm->wants[i] = true;
	daemon->registry.not_ahead[0] = 0;
}

void warm_want(struct daemon *daemon, const struct policy_found *found, bool missed)
{
	struct warm *warm = warm_of(daemon);
	uint64_t now_ns = clock_monotonic_ns();

	if (!warm || !daemon->settings->pool_max)
		return;
	note_languages(daemon);
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
		memset(warm->wants, 0, sizeof warm->wants);
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
	functions_done(daemon);
	pool_done(daemon);
}
