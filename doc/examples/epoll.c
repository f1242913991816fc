/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command in COUNT sandboxes at once, from one loop, and counts how they end:
 *	cc epoll.c $(pkg-config --cflags --libs libatoll) -o epoll && ./epoll medium "$PWD" 10 true
 */
#include <atoll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static struct atoll_error error = { .size = sizeof error };

static void check(int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "epoll: %s: %s%s%s\n", error.where, error.what, *error.hint ? "; " : "", error.hint);
	exit(125);
}

/* Reads what there is. 1: it has ended, and well; 0: it has ended; -1: it goes on. */
static int read_events(atoll_sandbox *sandbox)
{
	uint64_t type = 0, status = 1;
	const char *what;
	atoll_record *event;
	int r;

	while (type != ATOLL_EVENT_END && (r = atoll_next(sandbox, &event, &error)) != 0) {
		check(r);
		atoll_get_u64(event, "event", &type);
		if (type == ATOLL_EVENT_FAILED && atoll_get_string(event, "what", &what))
			fprintf(stderr, "epoll: %s: %s\n", atoll_id(sandbox), what);
		if (type == ATOLL_EVENT_END)
			atoll_get_u64(event, "status", &status);
		atoll_record_free(event);
	}
	return type == ATOLL_EVENT_END ? status == 0 : -1;
}

int main(int argc, char **argv)
{
	extern char **environ;
	atoll_record *places = atoll_record_new(ATOLL_CONTEXT), *what = atoll_record_new(ATOLL_POLICY);
	atoll_record *how = atoll_record_new(ATOLL_SANDBOX);
	int loop = epoll_create1(EPOLL_CLOEXEC), left, well = 0;
	atoll_context *context;
	atoll_policy *policy;

	if (argc < 5)
		return fprintf(stderr, "usage: epoll LEVEL|/POLICY PROJECT COUNT COMMAND…\n"), 125;
	check(atoll_default_places(places, (const char *const *)environ, &error));
	check(atoll_context_new(places, &context, &error));
	check(atoll_set_string(what, strchr(argv[1], '/') ? "policy" : "level", argv[1], &error));
	check(atoll_set_string(what, "project", argv[2], &error));
	check(atoll_policy_load(context, what, &policy, &error));
	check(atoll_set_string(how, "project", argv[2], &error));
	check(atoll_set_strings(how, "argv", (const char *const *)argv + 4, &error));
	check(atoll_set_strings(how, "env", (const char *const *)environ, &error));
	for (left = 0; left < strtol(argv[3], NULL, 10); left++) {
		struct epoll_event event = { .events = EPOLLIN };
		atoll_sandbox *sandbox;

		check(atoll_create(context, policy, how, &sandbox, &error));
		event.data.ptr = sandbox;
		if (epoll_ctl(loop, EPOLL_CTL_ADD, atoll_fd(sandbox), &event) < 0)
			return 125;
	}
	while (left) {
		struct epoll_event event;
		int ended = epoll_wait(loop, &event, 1, -1) == 1 ? read_events(event.data.ptr) : -1;

		if (ended < 0)
			continue;
		epoll_ctl(loop, EPOLL_CTL_DEL, atoll_fd(event.data.ptr), NULL);
		atoll_sandbox_free(event.data.ptr);
		well += ended;
		left--;
	}
	printf("%d of %s ended well\n", well, argv[3]);
	return 0;
}
