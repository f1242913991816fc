/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "client/fork-origin.h"
#include "client/parked/ground.h"
#include "os/clock.h"
#include "os/fd.h"
#include "prog/atoll/run/started.h"
#include "session/labels.h"
#include "session/record.h"
#include "session/run-request.h"
#include "wire/link.h"

extern char **environ;

static char *none[] = { NULL };

/* A sandbox as it is asked for. Vectors are owned; strings are borrowed from the request. */
struct started {
	struct run_setup setup;
	struct run_starter starter;
	char **argv, **environment, **places, **env_added, **published, **host_ports;
	const char *origin, *snapshot, *at_end;
	uint64_t umask, pty;
	struct run_completion completion;
	struct parking_ground *ground; /* owned; what it waits on */
	const struct snapshot *waits_under;
	struct start_request taken; /* what completed it; its strings are borrowed as those of the first */
};

#define AT(member) offsetof(struct started, member)
static const struct start_field fields[] = {
	/* Of these walls are made, or more is looked up than one that waited has time for: with a start alone. */
	{ "places", FIELD_STRINGS, AT(places) },
	{ "token", FIELD_STRING, AT(setup.token) },
	{ "record", FIELD_STRING, AT(setup.record) },
	{ "replay", FIELD_STRING, AT(setup.replay) },
	{ "host_ports", FIELD_STRINGS, AT(host_ports) },
	{ "home_from", FIELD_STRING, AT(starter.home_from) },
	{ "user_name", FIELD_STRING, AT(starter.user_name) },
	{ "root", FIELD_STRING, AT(setup.amendments.root) },
	{ "origin", FIELD_STRING, AT(origin) },
	{ "snapshot", FIELD_STRING, AT(snapshot) },
	{ "policy", FIELD_FD, AT(setup.policy_fd) },
	{ "age_ms", FIELD_U64, AT(completion.age_ms) },
	/* These with LINK_TAKE, too. */
	{ "lowest", FIELD_U64, AT(starter.greeting.lowest) },
	{ "highest", FIELD_U64, AT(starter.greeting.highest) },
	{ "events", FIELD_U64, AT(starter.greeting.events) },
	{ "id", FIELD_STRING, AT(setup.session) },
	{ "argv", FIELD_STRINGS, AT(argv) },
	{ "env", FIELD_STRINGS, AT(environment) },
	{ "env_add", FIELD_STRINGS, AT(env_added) },
	{ "env_exact", FIELD_STRINGS, AT(setup.exact_env) },
	{ "project", FIELD_STRING, AT(setup.project) },
	{ "cwd", FIELD_STRING, AT(setup.cwd) },
	{ "name", FIELD_STRING, AT(setup.name) },
	{ "agent", FIELD_STRING, AT(setup.agent) },
	{ "confidence", FIELD_STRING, AT(setup.confidence) },
	{ "task", FIELD_STRING, AT(setup.task) },
	{ "labels", FIELD_STRINGS, AT(starter.labels) },
	{ "report", FIELD_STRING, AT(setup.report) },
	{ "publish", FIELD_STRINGS, AT(published) },
	{ "at_end", FIELD_STRING, AT(at_end) },
	{ "stdin", FIELD_FD, AT(starter.streams[0]) },
	{ "stdout", FIELD_FD, AT(starter.streams[1]) },
	{ "stderr", FIELD_FD, AT(starter.streams[2]) },
	{ "pty", FIELD_U64, AT(pty) },
	{ "umask", FIELD_U64, AT(umask) },
	{ "deadline_ms", FIELD_U64, AT(starter.deadline_ms) },
};
#undef AT

enum { STARTED_ALONE = 12 };

static void started_done(struct started *started)
{
	free(started->argv);
	free(started->environment);
	free(started->places);
	free(started->env_added);
	free(started->setup.exact_env);
	free(started->published);
	free(started->host_ports);
	free(started->starter.labels);
	free(started->ground);
	start_request_done(&started->taken);
}

static int add_list(struct option_list *list, char **values, const char *what, struct err *err)
{
	for (; values && *values; values++) {
		if (list->count == OPTION_LIST_MAX)
			return err_set(err, ERR_USAGE, E2BIG, "start", "at most %d entries in %s", OPTION_LIST_MAX,
				       what);
		list->values[list->count++] = *values;
	}
	return 0;
}

/* Our working directory is / and means nothing. */
static int check_paths(const struct run_setup *setup, const struct run_starter *starter, struct err *err)
{
	const char *const paths[][2] = {
		{ "project", setup->project }, { "cwd", setup->cwd },	    { "token", setup->token },
		{ "report", setup->report },   { "record", setup->record }, { "replay", setup->replay },
		{ "home_from", starter->home_from },
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (paths[i][1] && paths[i][1][0] != '/')
			return err_set(err, ERR_USAGE, EINVAL, "start", "%s must be an absolute path", paths[i][0]);
	if (!setup->project && !setup->origin)
		return err_set(err, ERR_USAGE, EINVAL, "start", "there is no project");
	return setup->session && session_id_is_valid(setup->session)
		       ? 0
		       : err_set(err, ERR_USAGE, EINVAL, "start", "there is no proper id");
}

static int check_labels(char *const *labels, struct err *err)
{
	char *text = NULL;
	int r = labels_join((const char *const *)labels, &text);

	free(text);
	if (r == 0)
		return 0;
	r = err_set(err, ERR_USAGE, -r, "labels", "these are no labels: %s", err_errno_name(-r));
	err_hint(err, "%d of NAME=value at most, %d bytes together, names of letters, digits and ._/-", LABELS_MAX,
		 LABELS_SIZE_MAX);
	return r;
}

static int complete(struct started *started, struct err *err)
{
	struct run_setup *setup = &started->setup;
	int r = check_paths(setup, &started->starter, err);

	if (setup->origin && !setup->project)
		setup->project = setup->origin->project;
	if (r == 0)
		r = run_setup_check(setup, err);
	if (r == 0)
		r = add_list(&setup->env, started->env_added, "env_add", err);
	if (r == 0)
		r = add_list(&setup->publish, started->published, "publish", err);
	if (r == 0)
		r = add_list(&setup->amendments.host_ports, started->host_ports, "host_ports", err);
	if (r == 0 && setup->task && (!*setup->task || strlen(setup->task) > REQUEST_TASK_MAX))
		r = err_set(err, ERR_USAGE, EINVAL, "start", "a task is a text of at most %d bytes", REQUEST_TASK_MAX);
	if (r == 0)
		r = check_labels(started->starter.labels, err);
	if (r == 0 && started->at_end && !str_equal(started->at_end, "discard") && !str_equal(started->at_end, "keep"))
		r = err_set(err, ERR_USAGE, EINVAL, "start", "at_end is keep or discard");
	if (r < 0)
		return r;
	setup->flags = REQUEST_DETACH | REQUEST_QUIET;
	if (str_equal(started->at_end, "discard"))
		setup->flags |= REQUEST_DISCARD;
	setup->starter = &started->starter;
	/* Nothing of the environment but what was given. */
	setup->narrow = "off";
	setup->environment = started->environment;
	started->starter.pty = (uint32_t)started->pty;
	umask((mode_t)started->umask & 0777);
	return 0;
}

/* run_completion.check */
static int check_ground(void *context, const struct snapshot *snapshot, const char *project, const char *programs,
			struct err *err)
{
	struct started *started = context;

	started->waits_under = snapshot;
	started->ground = malloc(sizeof *started->ground);
	if (!started->ground)
		return err_set(err, ERR_INTERNAL, ENOMEM, "park", "no memory");
	return parking_check(snapshot, project, programs, started->ground, err);
}

/* run_completion.take */
static int take_rest(void *context, struct frame *frame, int *fds, size_t fd_count, struct err *err)
{
	struct started *started = context;
	int r;

	started->completion.started_ns = clock_monotonic_ns();
	r = parking_stands(started->waits_under, started->ground, err);
	if (r == 0)
		r = start_request_copy(&started->taken, frame, fds, fd_count, err);
	if (r == 0)
		r = start_request_get(&started->taken, fields + STARTED_ALONE,
				      ARRAY_SIZE(fields) - STARTED_ALONE, started, err);
	/* Those of the start are in the policy already. */
	started->setup.amendments.host_ports.count = 0;
	free(take_ptr(started->host_ports));
	if (r == 0)
		r = complete(started, err);
	started->completion.command = started->argv ? started->argv : none;
	return r;
}

int box_main(const struct run_setup *given, char **command, uint64_t started_ns, struct err *err)
{
	return run_setup_start(given, command, started_ns, err);
}

static int run(struct started *started, uint64_t started_ns, struct err *err)
{
	struct fork_origin *origin = NULL;
	int r;

	started->environment = started->environment ? started->environment : calloc(1, sizeof(char *));
	environ = started->places ? started->places : none;
	r = started->environment ? 0 : err_set(err, ERR_INTERNAL, ENOMEM, "start", "no memory");
	if (r == 0 && started->origin) {
		origin = calloc(1, sizeof *origin);
		r = origin ? fork_find(started->origin, started->snapshot, origin, err) : -ENOMEM;
		started->setup.origin = origin;
	}
	if (r == 0)
		r = complete(started, err);
	if (r == 0 && started->completion.age_ms) {
		started->completion.check = check_ground;
		started->completion.take = take_rest;
		started->completion.context = started;
		started->starter.completion = &started->completion;
	}
	if (r == 0)
		r = box_main(&started->setup, started->argv ? started->argv : none, started_ns, err);
	free(origin);
	return r;
}

/* What was explained on stderr, where that is all that is known: its last line. */
static void take_explanation(int fd, struct err *err)
{
	char text[ERR_MESSAGE_SIZE], *line;
	off_t size = lseek(fd, 0, SEEK_END);
	ssize_t n = size <= 0 ? 0 : pread(fd, text, sizeof text - 1, size > (off_t)sizeof text - 1
									      ? size - (off_t)(sizeof text - 1) : 0);

	if (n <= 0)
		return;
	text[n] = 0;
	while (n > 0 && text[n - 1] == '\n')
		text[--n] = 0;
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	err_set(err, ERR_POLICY, EINVAL, "start", "%s",
		line + (str_has_prefix(line, "atoll: ") ? 7 : 0));
}

int started_box_main(void)
{
	struct started started = { .setup.policy_fd = FD_NONE, .umask = 022,
				   .starter = { .socket_fd = LINK_SOCKET_FD, .streams = { FD_NONE, FD_NONE, FD_NONE },
						.deadline_ms = UINT64_MAX } };
	struct start_request request = { 0 };
	uint64_t started_ns = clock_monotonic_ns();
	struct err err = { 0 };
	int explained_fd, r;

	r = start_request_read(&request, &err);
	explained_fd = r < 0 ? FD_NONE : fd_memfd_new("explained");
	if (r == 0 && (explained_fd < 0 || dup2(explained_fd, STDERR_FILENO) < 0))
		r = err_set(&err, ERR_INTERNAL, errno, "start", "no memory file can be made");
	if (r == 0)
		r = start_request_get(&request, fields, ARRAY_SIZE(fields), &started, &err);
	if (r == 0)
		r = run(&started, started_ns, &err);
	if (r > 0 && err.code == ERR_NONE && started.setup.starter)
		take_explanation(explained_fd, &err);
	if (err.code != ERR_NONE)
		link_send_failure(LINK_SOCKET_FD, &err);
	started_done(&started);
	start_request_done(&request);
	return r < 0 ? 125 : r;
}
