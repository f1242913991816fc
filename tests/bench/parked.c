/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How long a program waits for a sandbox through libatoll, for bench.py:
 *	parked LEVEL|/POLICY PROJECT cold|taken|run|burst|sustain|hold COUNT
 * cold: each is created. taken: each was parked before, one of four. Both print, a line each, the µs from the call to
 * READY. run: each was parked before, and runs `true`: the µs until its end. burst: COUNT are parked, and then all are
 * taken as fast as they come: prints the µs that the calls took and those until the last was READY. sustain: COUNT are
 * taken and ended, and others parked for them: prints the µs of all. hold: COUNT are parked until its input ends; says
 * so by a line. All of them end before it does.
 */
#include <atoll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { POOL = 4 };

static struct atoll_error error = { .size = sizeof error };
static atoll_context *context;
static atoll_policy *policy;
static atoll_record *how, *shape;

static void check(int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "parked: %s: %s%s%s\n", error.where, error.what, *error.hint ? "; " : "", error.hint);
	exit(125);
}

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void await(atoll_sandbox *sandbox, uint64_t wanted)
{
	uint64_t type = 0;

	while (type != wanted) {
		const char *what = "it ended";
		atoll_record *event;

		if (atoll_wait(sandbox, 20000, &event, &error) != 1) {
			fprintf(stderr, "parked: no event for 20 s\n");
			exit(125);
		}
		atoll_get_u64(event, "event", &type);
		if (type == ATOLL_EVENT_FAILED || (type == ATOLL_EVENT_END && wanted != ATOLL_EVENT_END)) {
			atoll_get_string(event, "what", &what);
			fprintf(stderr, "parked: %s\n", what);
			exit(125);
		}
		atoll_record_free(event);
	}
}

static void end(atoll_sandbox *sandbox)
{
	uint64_t ticket;

	check(atoll_stop(sandbox, 0, &ticket, NULL, &error));
	await(sandbox, ATOLL_EVENT_END);
	atoll_sandbox_free(sandbox);
}

static atoll_sandbox *park(void)
{
	atoll_sandbox *sandbox;

	check(atoll_park(context, shape, policy, &sandbox, &error));
	return sandbox;
}

static void each(long count, int is_taken)
{
	atoll_sandbox *pool[POOL], *sandbox;

	for (int i = 0; is_taken && i < POOL; i++)
		pool[i] = park();
	for (int i = 0; is_taken && i < POOL; i++)
		await(pool[i], ATOLL_EVENT_PARKED);
	for (long i = 0; i < count; i++) {
		double start_us = now_us();

		if (is_taken) {
			sandbox = pool[i % POOL];
			check(atoll_take(sandbox, policy, how, &error));
		} else {
			check(atoll_create(context, policy, how, &sandbox, &error));
		}
		await(sandbox, ATOLL_EVENT_READY);
		printf("%.1f\n", now_us() - start_us);
		end(sandbox);
		if (is_taken) {
			pool[i % POOL] = park();
			await(pool[i % POOL], ATOLL_EVENT_PARKED);
		}
	}
	for (int i = 0; is_taken && i < POOL; i++)
		atoll_sandbox_free(pool[i]);
}

/* What a run out of the pool is at best: `true` as the command of one that waits, until nothing is left of it. */
static void runs(long count)
{
	static const char *const argv[] = { "/bin/true", NULL };

	check(atoll_set_strings(how, "argv", argv, &error));
	for (long i = 0; i < count; i++) {
		atoll_sandbox *sandbox = park();
		double start_us;

		await(sandbox, ATOLL_EVENT_PARKED);
		start_us = now_us();
		check(atoll_take(sandbox, policy, how, &error));
		await(sandbox, ATOLL_EVENT_END);
		printf("%.1f\n", now_us() - start_us);
		atoll_sandbox_free(sandbox);
	}
}

static void burst(long count)
{
	atoll_sandbox **all = calloc((size_t)count, sizeof *all);
	double start_us, called_us;

	for (long i = 0; i < count; i++) {
		all[i] = park();
		await(all[i], ATOLL_EVENT_PARKED);
	}
	start_us = now_us();
	for (long i = 0; i < count; i++)
		check(atoll_take(all[i], policy, how, &error));
	called_us = now_us();
	for (long i = 0; i < count; i++)
		await(all[i], ATOLL_EVENT_READY);
	printf("%.1f %.1f\n", called_us - start_us, now_us() - start_us);
	for (long i = 0; i < count; i++)
		end(all[i]);
	free(all);
}

/*
 * Sandboxes that are taken, ended and parked anew as fast as the machine can, from POOL that wait: what a pool gives
 * for long. Each is READY before its end is asked for.
 */
static void sustain(long count)
{
	atoll_sandbox *pool[POOL];
	double start_us;

	for (int i = 0; i < POOL; i++)
		pool[i] = park();
	for (int i = 0; i < POOL; i++)
		await(pool[i], ATOLL_EVENT_PARKED);
	start_us = now_us();
	for (long i = 0; i < count; i++) {
		atoll_sandbox *sandbox = pool[i % POOL];
		uint64_t ticket;

		if (i >= POOL)
			await(sandbox, ATOLL_EVENT_PARKED);
		check(atoll_take(sandbox, policy, how, &error));
		await(sandbox, ATOLL_EVENT_READY);
		check(atoll_stop(sandbox, 0, &ticket, NULL, &error));
		atoll_sandbox_free(sandbox);
		pool[i % POOL] = park();
	}
	printf("%.1f\n", now_us() - start_us);
	for (int i = 0; i < POOL; i++)
		atoll_sandbox_free(pool[i]);
}

static void hold(long count)
{
	atoll_sandbox **all = calloc((size_t)count, sizeof *all);

	for (long i = 0; i < count; i++) {
		all[i] = park();
		await(all[i], ATOLL_EVENT_PARKED);
	}
	puts("parked");
	fflush(stdout);
	while (getchar() != EOF)
		continue;
	for (long i = 0; i < count; i++)
		atoll_sandbox_free(all[i]);
	free(all);
}

int main(int argc, char **argv)
{
	extern char **environ;
	atoll_record *places = atoll_record_new(ATOLL_CONTEXT), *what = atoll_record_new(ATOLL_POLICY);

	if (argc != 5)
		return fprintf(stderr, "usage: parked LEVEL|/POLICY PROJECT MODE COUNT\n"), 125;
	how = atoll_record_new(ATOLL_SANDBOX);
	shape = atoll_record_new(ATOLL_SHAPE);
	check(atoll_default_places(places, (const char *const *)environ, &error));
	check(atoll_context_new(places, &context, &error));
	check(atoll_set_string(what, strchr(argv[1], '/') ? "policy" : "level", argv[1], &error));
	check(atoll_set_string(what, "project", argv[2], &error));
	check(atoll_policy_load(context, what, &policy, &error));
	check(atoll_set_string(how, "project", argv[2], &error));
	check(atoll_set_string(shape, "project", argv[2], &error));
	if (strcmp(argv[3], "run") == 0)
		runs(strtol(argv[4], NULL, 10));
	else if (strcmp(argv[3], "burst") == 0)
		burst(strtol(argv[4], NULL, 10));
	else if (strcmp(argv[3], "sustain") == 0)
		sustain(strtol(argv[4], NULL, 10));
	else if (strcmp(argv[3], "hold") == 0)
		hold(strtol(argv[4], NULL, 10));
	else
		each(strtol(argv[4], NULL, 10), strcmp(argv[3], "taken") == 0);
	return 0;
}
