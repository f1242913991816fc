/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/pool.h"

#include <sys/epoll.h>

#include "base/str.h"
#include "os/clock.h"
#include "service/launcher/store/user.h"

enum { NS_PER_MS = 1000000, BACK_OFF_MS = 5000 };

struct parked {
	struct parked *next;
	struct daemon *daemon;
	atoll_sandbox *handle;       /* owned */
	struct loop_source source;
	char id[32];                 /* of its policy */
	bool is_waiting;             /* PARKED was heard */
};

struct pool {
	struct parked *first;        /* the oldest first */
	size_t count;
	char id[32];                 /* of the policy that was wanted last: sandboxes wait under this one alone */
	size_t target;
	uint64_t wanted_ns;          /* when */
	uint64_t back_off_ns;        /* nothing is parked before */
	uint64_t short_ns;           /* since when fewer wait than the target; 0: there is nothing to start */
	size_t starting;             /* that do not wait yet */
};

static struct pool *pool_of(struct daemon *daemon)
{
	if (!daemon->pool)
		daemon->pool = calloc(1, sizeof *daemon->pool);
	return daemon->pool;
}

static void free_parked(struct parked *parked)
{
	loop_remove(&parked->daemon->loop, &parked->source);
	atoll_sandbox_free(parked->handle);
	free(parked);
}

static void take_out(struct pool *pool, struct parked *parked)
{
	struct parked **at = &pool->first;

	while (*at != parked)
		at = &(*at)->next;
	*at = parked->next;
	pool->count--;
	pool->starting -= !parked->is_waiting;
}

void pool_done(struct daemon *daemon)
{
	struct pool *pool = daemon->pool;

	while (pool && pool->first) {
		struct parked *parked = pool->first;

		take_out(pool, parked);
		free_parked(parked);
	}
	free(pool);
	daemon->pool = NULL;
}

/* ---- those that wait ---- */

/* When nobody waits for an answer. */
static void start_next(struct daemon *daemon)
{
	if (daemon->pool->short_ns)
		daemon_wake_at(daemon, clock_monotonic_ns());
}

/* It waits, or it has ended, by its age or because it could not be. */
static int on_event(void *context, uint32_t events)
{
	struct parked *parked = context;
	struct daemon *daemon = parked->daemon;
	struct pool *pool = daemon->pool;
	atoll_record *event;

	while (atoll_next(parked->handle, &event, NULL) == 1) {
		uint64_t type = 0;

		atoll_get_u64(event, "event", &type);
		atoll_record_free(event);
		if (type == ATOLL_EVENT_PARKED && !parked->is_waiting) {
			parked->is_waiting = true;
			pool->starting--;
			start_next(daemon);
		}
		if (type == ATOLL_EVENT_FAILED)
			pool->back_off_ns = clock_monotonic_ns() + (uint64_t)BACK_OFF_MS * NS_PER_MS;
		if (type != ATOLL_EVENT_END)
			continue;
		take_out(pool, parked);
		free_parked(parked);
		start_next(daemon);
		break;
	}
	return 0;
}

static atoll_sandbox *park(struct daemon *daemon, const struct policy_found *found)
{
	atoll_record *shape = atoll_record_new(ATOLL_SHAPE);
	atoll_sandbox *handle = NULL;
	int r = shape ? atoll_set_string(shape, "project", found->project, NULL) : ATOLL_E_NO_MEMORY;

	if (r == 0)
		r = atoll_set_string(shape, "home_from", daemon->places.home, NULL);
	if (r == 0)
		r = atoll_set_string(shape, "user_name", USER_NAME, NULL);
	if (r == 0)
		r = atoll_park(daemon->context, shape, found->policy, &handle, NULL);
	atoll_record_free(shape);
	return r == 0 ? handle : NULL;
}

static int add(struct daemon *daemon, const struct policy_found *found)
{
	struct parked *parked = calloc(1, sizeof *parked), **at = &daemon->pool->first;
	int r = parked ? str_copy(parked->id, sizeof parked->id, found->id) : -ENOMEM;

	if (r == 0) {
		parked->daemon = daemon;
		parked->handle = park(daemon, found);
		r = parked->handle ? 0 : -EIO;
	}
	if (r == 0) {
		parked->source = (struct loop_source){ .fd = atoll_fd(parked->handle), .events = EPOLLIN,
						       .ready = on_event, .context = parked };
		r = loop_add(&daemon->loop, &parked->source);
	}
	if (r < 0) {
		if (parked)
			atoll_sandbox_free(parked->handle);
		free(parked);
		return r;
	}
	while (*at)
		at = &(*at)->next;
	*at = parked;
	daemon->pool->count++;
	daemon->pool->starting++;
	return 0;
}

/* ---- for whom they are ---- */

atoll_sandbox *pool_take(struct daemon *daemon, const struct policy_found *found, const atoll_record *record)
{
	struct pool *pool = pool_of(daemon);
	struct parked *parked = pool ? pool->first : NULL;
	atoll_sandbox *handle;

	while (parked && !(parked->is_waiting && str_equal(parked->id, found->id)))
		parked = parked->next;
	if (!parked)
		return NULL;
	take_out(pool, parked);
	if (atoll_take(parked->handle, found->policy, record, NULL) < 0) {
		free_parked(parked);
		return NULL;
	}
	loop_remove(&daemon->loop, &parked->source);
	handle = parked->handle;
	free(parked);
	return handle;
}

void pool_want(struct daemon *daemon, const struct policy_found *found, bool missed)
{
	struct pool *pool = pool_of(daemon);
	uint64_t now_ns = clock_monotonic_ns();

	if (!pool || !daemon->settings->pool_max)
		return;
	/* Another policy than the last one: what waits is for that, and goes first. */
	if (!str_equal(pool->id, found->id)) {
		(void)!str_copy(pool->id, sizeof pool->id, found->id);
		pool->target = 0;
	}
	pool->wanted_ns = now_ns;
	if ((missed || !pool->target) && pool->target < daemon->settings->pool_max)
		pool->target++;
	if (!pool->short_ns)
		pool->short_ns = now_ns;
	daemon_wake_at(daemon, now_ns);
}

/* What waits for another policy than the last one goes first. */
static void make_room(struct pool *pool)
{
	while (pool->count >= pool->target && pool->first && !str_equal(pool->first->id, pool->id)) {
		struct parked *oldest = pool->first;

		take_out(pool, oldest);
		free_parked(oldest);
	}
}

/* One at a time: the start of one is time that somebody may come to want. When to be called again. */
static uint64_t fill(struct daemon *daemon, uint64_t now_ns)
{
	struct pool *pool = daemon->pool;
	uint64_t later_ns = daemon_quiet_at(daemon, pool->short_ns, now_ns);
	struct policy_found found;

	if (now_ns < pool->back_off_ns)
		return pool->back_off_ns;
	/* Its end wakes us. */
	if (pool->starting)
		return UINT64_MAX;
	if (later_ns)
		return later_ns;
	make_room(pool);
	pool->short_ns = pool->count < pool->target ? now_ns : 0;
	/* Nobody waits for those that would wait. */
	if (!pool->short_ns || quotas_are_pressed(&daemon->quotas, daemon->settings->pressure_max, now_ns) ||
	    policies_by_id(&daemon->policies, pool->id, &found) < 0) {
		pool->short_ns = 0;
		return UINT64_MAX;
	}
	if (add(daemon, &found) == 0)
		return UINT64_MAX;
	pool->back_off_ns = now_ns + (uint64_t)BACK_OFF_MS * NS_PER_MS;
	return pool->back_off_ns;
}

uint64_t pool_tend(struct daemon *daemon)
{
	struct pool *pool = daemon->pool;
	uint64_t now_ns = clock_monotonic_ns(), next_ns = UINT64_MAX, end_ns;

	if (!pool)
		return UINT64_MAX;
	if (pool->short_ns)
		next_ns = fill(daemon, now_ns);
	if (!pool->count)
		return next_ns;
	end_ns = pool->wanted_ns + (uint64_t)POOL_IDLE_MS * NS_PER_MS;
	if (now_ns < end_ns)
		return next_ns < end_ns ? next_ns : end_ns;
	while (pool->first) {
		struct parked *parked = pool->first;

		take_out(pool, parked);
		free_parked(parked);
	}
	pool->target = 0;
	pool->short_ns = 0;
	return UINT64_MAX;
}
