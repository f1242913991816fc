/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a command under a policy, a level or the absolute path of a file, and prints what it was denied:
 *	cc denials.c $(pkg-config --cflags --libs libatoll) -o denials && ./denials medium "$PWD" sh -c 'cat /etc/shadow'
 */
#include <atoll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct atoll_error error = { .size = sizeof error };

static void check(int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "denials: %s: %s%s%s\n", error.where, error.what, *error.hint ? "; " : "", error.hint);
	exit(125);
}

static void print(const atoll_record *event)
{
	char subject[512];
	const char *kind = "", *rule = "", *hint = "";
	const void *bytes = "";
	size_t size = 0;

	atoll_get_string(event, "kind", &kind);
	atoll_get_string(event, "rule", &rule);
	atoll_get_string(event, "hint", &hint);
	atoll_get_bytes(event, "subject", &bytes, &size);
	atoll_escape(bytes, size, subject, sizeof subject);
	fprintf(stderr, "denied %s %s (%s)%s%s\n", kind, subject, rule, *hint ? ": " : "", hint);
}

int main(int argc, char **argv)
{
	extern char **environ;
	atoll_record *places = atoll_record_new(ATOLL_CONTEXT), *what = atoll_record_new(ATOLL_POLICY);
	atoll_record *how = atoll_record_new(ATOLL_SANDBOX), *event;
	atoll_context *context;
	atoll_policy *policy;
	atoll_sandbox *sandbox;
	uint64_t type = 0, status = 125;

	if (argc < 4)
		return fprintf(stderr, "usage: denials LEVEL|/POLICY PROJECT COMMAND…\n"), 125;
	check(atoll_default_places(places, (const char *const *)environ, &error));
	check(atoll_context_new(places, &context, &error));
	check(atoll_set_string(what, strchr(argv[1], '/') ? "policy" : "level", argv[1], &error));
	check(atoll_set_string(what, "project", argv[2], &error));
	check(atoll_policy_load(context, what, &policy, &error));
	check(atoll_set_string(how, "project", argv[2], &error));
	check(atoll_set_strings(how, "argv", (const char *const *)argv + 3, &error));
	check(atoll_set_strings(how, "env", (const char *const *)environ, &error));
	check(atoll_set_fd(how, "stdout", 1, &error));
	check(atoll_create(context, policy, how, &sandbox, &error));
	for (; type != ATOLL_EVENT_END; atoll_record_free(event)) {
		const char *failure = NULL;

		check(atoll_wait(sandbox, -1, &event, &error));
		atoll_get_u64(event, "event", &type);
		if (type == ATOLL_EVENT_DENIAL)
			print(event);
		if (type == ATOLL_EVENT_FAILED && atoll_get_string(event, "what", &failure))
			fprintf(stderr, "denials: %s\n", failure);
		if (type == ATOLL_EVENT_END)
			atoll_get_u64(event, "status", &status);
	}
	return (int)status;
}
