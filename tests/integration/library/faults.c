/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each allocation and each system call of libatoll fails once: what it was called for says so (code and struct
 * atoll_error) or comes about all the same, in good time, and nothing is left: no memory, no descriptor. Linked with
 * --wrap for each name of WRAPPED in test_library.py. faults PROGRAMS STATE RUNTIME POLICY PROJECT [SCENARIO]
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atoll.h>

static long calls, fails_at, live;
static const char *failed_name = "";

/* Whether this one fails, by which errno. */
static int fails(const char *name, int errnum)
{
	if (++calls != fails_at)
		return 0;
	failed_name = name;
	errno = errnum;
	return 1;
}

#define MEMORY(type, name, parameters, arguments)                                  \
	type __real_##name parameters;                                             \
	type __wrap_##name parameters;                                             \
	type __wrap_##name parameters                                              \
	{                                                                          \
		void *made = fails(#name, ENOMEM) ? NULL : __real_##name arguments; \
		live += made != NULL;                                              \
		return made;                                                       \
	}
#define CALL(type, name, errnum, parameters, arguments)                        \
	type __real_##name parameters;                                         \
	type __wrap_##name parameters;                                         \
	type __wrap_##name parameters                                          \
	{                                                                      \
		return fails(#name, errnum) ? (type)-1 : __real_##name arguments; \
	}

MEMORY(void *, malloc, (size_t size), (size))
MEMORY(void *, calloc, (size_t count, size_t size), (count, size))
MEMORY(char *, strdup, (const char *text), (text))

void __real_free(void *memory);
void __wrap_free(void *memory);
void __wrap_free(void *memory)
{
	live -= memory != NULL;
	__real_free(memory);
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size)
{
	void *made = fails("realloc", ENOMEM) ? NULL : __real_realloc(memory, size);

	live += made && !memory;
	return made;
}

int __real_vasprintf(char **text, const char *format, va_list args);
int __wrap_vasprintf(char **text, const char *format, va_list args);
int __wrap_vasprintf(char **text, const char *format, va_list args)
{
	int r = fails("vasprintf", ENOMEM) ? -1 : __real_vasprintf(text, format, args);

	live += r >= 0;
	return r;
}

CALL(int, socket, EMFILE, (int domain, int type, int protocol), (domain, type, protocol))
CALL(int, socketpair, EMFILE, (int domain, int type, int protocol, int *fds), (domain, type, protocol, fds))
CALL(int, epoll_create1, EMFILE, (int flags), (flags))
CALL(int, eventfd, EMFILE, (unsigned value, int flags), (value, flags))
CALL(int, pipe2, EMFILE, (int *fds, int flags), (fds, flags))
CALL(int, memfd_create, EMFILE, (const char *name, unsigned flags), (name, flags))
CALL(int, inotify_init1, EMFILE, (int flags), (flags))
CALL(int, inotify_add_watch, ENOSPC, (int fd, const char *path, unsigned mask), (fd, path, mask))
CALL(int, open64, EMFILE, (const char *path, int flags, unsigned mode), (path, flags, mode))
CALL(int, openat64, EMFILE, (int at, const char *path, int flags, unsigned mode), (at, path, flags, mode))
CALL(int, fcntl64, EMFILE, (int fd, int command, long argument), (fd, command, argument))
CALL(int, connect, ENOMEM, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size))
CALL(int, getsockopt, ENOMEM, (int fd, int level, int name, void *value, socklen_t *size),
     (fd, level, name, value, size))
CALL(int, epoll_ctl, ENOMEM, (int fd, int what, int other, struct epoll_event *event), (fd, what, other, event))
CALL(int, epoll_wait, ENOMEM, (int fd, struct epoll_event *events, int count, int timeout),
     (fd, events, count, timeout))
CALL(int, poll, ENOMEM, (struct pollfd *fds, nfds_t count, int timeout), (fds, count, timeout))
CALL(ssize_t, recv, ENOMEM, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags))
CALL(ssize_t, recvmsg, ENOMEM, (int fd, struct msghdr *message, int flags), (fd, message, flags))
CALL(ssize_t, sendmsg, ENOMEM, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
CALL(ssize_t, read, EIO, (int fd, void *bytes, size_t size), (fd, bytes, size))
CALL(ssize_t, write, EIO, (int fd, const void *bytes, size_t size), (fd, bytes, size))
CALL(int, fstat64, EIO, (int fd, void *st), (fd, st))
CALL(int, stat64, EIO, (const char *path, void *st), (path, st))
CALL(int, access, EACCES, (const char *path, int mode), (path, mode))
CALL(long, lseek64, EIO, (int fd, long offset, int from), (fd, offset, from))
CALL(int, clone, EAGAIN, (int (*run)(void *), void *stack, int flags, void *context, void *a, void *b, void *c),
     (run, stack, flags, context, a, b, c))
CALL(void *, mmap64, ENOMEM, (void *at, size_t size, int protection, int flags, int fd, long offset),
     (at, size, protection, flags, fd, offset))
CALL(ssize_t, getrandom, EIO, (void *bytes, size_t size, unsigned flags), (bytes, size, flags))
CALL(int, setsid, EPERM, (void), ())
CALL(int, dup2, EMFILE, (int from, int to), (from, to))
CALL(int, chdir, EACCES, (const char *path), (path))
CALL(int, execve, ENOMEM, (const char *path, char *const *argv, char *const *env), (path, argv, env))
CALL(int, ioctl, EIO, (int fd, unsigned long what, void *value), (fd, what, value))

/* ---- scenarios: 0, or the code that something failed with ---- */

static char **words;
static atoll_context *standing;
static atoll_policy *policy;
static const char *standing_id;
static int is_bad;

static int bad(const char *scenario, const char *what)
{
	printf("BAD %s: call %ld (%s): %s\n", scenario, fails_at, failed_name, what);
	is_bad = 1;
	return -1;
}

static struct atoll_error error;

/* What fails says so. */
static int check(const char *scenario, int r)
{
	if (r < 0 && (error.code != r || !error.what[0] || !error.where[0]))
		bad(scenario, "the error is not filled in");
	return r;
}

#define TRY(r, call) ((r) < 0 ? (r) : ((r) = check(__func__, (call))))

static int load_places(atoll_context **ret)
{
	static const char *const keys[] = { "programs", "state", "runtime" };
	atoll_record *record = atoll_record_new(ATOLL_CONTEXT);
	int r = record ? 0 : ATOLL_E_NO_MEMORY;

	for (int i = 0; r == 0 && i < 3; i++)
		TRY(r, atoll_set_string(record, keys[i], words[1 + i], &error));
	TRY(r, atoll_set_u64(record, "timeout_ms", 10000, &error));
	TRY(r, atoll_context_new(record, ret, &error));
	atoll_record_free(record);
	return r;
}

static int contexts(void)
{
	atoll_context *made = NULL;
	int r = load_places(&made);

	atoll_context_free(made);
	return r;
}

static int load_policy(atoll_policy **ret)
{
	atoll_record *record = atoll_record_new(ATOLL_POLICY);
	int r = record ? 0 : ATOLL_E_NO_MEMORY;

	TRY(r, atoll_set_string(record, "policy", words[4], &error));
	TRY(r, atoll_set_string(record, "project", words[5], &error));
	TRY(r, atoll_policy_load(standing, record, ret, &error));
	atoll_record_free(record);
	return r;
}

static int policies(void)
{
	atoll_policy *made = NULL;
	int r = load_policy(&made);

	atoll_policy_free(made);
	return r;
}

/* Until this event; whatever happens it comes, or the handle says why not. */
static int until(const char *scenario, atoll_sandbox *sandbox, uint64_t wanted)
{
	uint64_t event = 0;

	while (event != wanted && event != ATOLL_EVENT_END) {
		atoll_record *record = NULL;
		int r = check(scenario, atoll_wait(sandbox, 20000, &record, &error));

		if (r < 0)
			return r;
		if (r == 0)
			return bad(scenario, "nothing comes any more");
		event = 0;
		(void)atoll_get_u64(record, "event", &event);
		atoll_record_free(record);
	}
	return event == wanted ? 0 : ATOLL_E_GONE;
}

static atoll_record *new_command(uint32_t kind, const char *const *argv, const char *streams, int *ret)
{
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	atoll_record *record = atoll_record_new(kind);
	int r = record ? 0 : ATOLL_E_NO_MEMORY;

	TRY(r, atoll_set_strings(record, "argv", argv, &error));
	TRY(r, atoll_set_strings(record, "env", env, &error));
	TRY(r, atoll_set_string(record, "streams", streams, &error));
	if (kind == ATOLL_SANDBOX)
		TRY(r, atoll_set_string(record, "project", words[5], &error));
	*ret = r;
	return record;
}

static int creations(void)
{
	const char *const argv[] = { "echo", "hello", NULL };
	atoll_sandbox *sandbox = NULL;
	int r;
	atoll_record *record = new_command(ATOLL_SANDBOX, argv, "capture", &r);

	TRY(r, atoll_create(standing, policy, record, &sandbox, &error));
	if (r == 0)
		r = until(__func__, sandbox, ATOLL_EVENT_END);
	atoll_sandbox_free(sandbox);
	atoll_record_free(record);
	return r;
}

/* What is parked is taken, or stays parked, or has ended: a handle knows which. */
static int parkings(void)
{
	const char *const argv[] = { "echo", "hello", NULL };
	atoll_sandbox *sandbox = NULL;
	atoll_record *shape = atoll_record_new(ATOLL_SHAPE);
	int r;
	atoll_record *record = new_command(ATOLL_SANDBOX, argv, "capture", &r);

	if (!shape)
		r = ATOLL_E_NO_MEMORY;
	TRY(r, atoll_set_string(shape, "project", words[5], &error));
	TRY(r, atoll_park(standing, shape, policy, &sandbox, &error));
	if (r == 0)
		r = until(__func__, sandbox, ATOLL_EVENT_PARKED);
	TRY(r, atoll_take(sandbox, policy, record, &error));
	if (r == 0)
		r = until(__func__, sandbox, ATOLL_EVENT_END);
	atoll_sandbox_free(sandbox);
	atoll_record_free(record);
	atoll_record_free(shape);
	return r;
}

static int commands(const char *scenario, const char *streams)
{
	const char *const argv[] = { "echo", "hello", NULL };
	atoll_sandbox *sandbox = NULL;
	atoll_record *result = NULL;
	int r;
	atoll_record *record = new_command(ATOLL_COMMAND, argv, streams, &r);

	TRY(r, atoll_find(standing, standing_id, &sandbox, &error));
	TRY(r, atoll_exec(sandbox, record, NULL, &result, &error));
	if (r == 0)
		r = until(scenario, sandbox, ATOLL_EVENT_EXIT);
	atoll_record_free(result);
	atoll_record_free(record);
	atoll_sandbox_free(sandbox);
	return r;
}

static int captures(void)
{
	return commands(__func__, "capture");
}

static int pipes(void)
{
	return commands(__func__, "pipe");
}

static int terminals(void)
{
	return commands(__func__, "pty");
}

static int take_rows(const char *scenario, atoll_cursor *cursor)
{
	int r = 1;

	while (r == 1 || r == ATOLL_E_AGAIN) {
		struct pollfd waited = { .fd = atoll_cursor_fd(cursor), .events = POLLIN };
		atoll_record *row = NULL;

		if (r == ATOLL_E_AGAIN && __real_poll(&waited, 1, 20000) == 0)
			return bad(scenario, "no row comes any more");
		r = atoll_cursor_next(cursor, &row, &error);
		if (r == 1)
			atoll_record_free(row);
	}
	atoll_cursor_free(cursor);
	return check(scenario, r);
}

static int lists(void)
{
	atoll_sandbox *sandbox = NULL;
	atoll_cursor *cursor = NULL;
	atoll_record *info = NULL;
	int r = 0;

	TRY(r, atoll_list(standing, NULL, &cursor, &error));
	if (r == 0)
		r = take_rows(__func__, cursor);
	TRY(r, atoll_find(standing, standing_id, &sandbox, &error));
	TRY(r, atoll_info(sandbox, &info, &error));
	TRY(r, atoll_log(sandbox, NULL, &cursor, &error));
	if (r == 0)
		r = take_rows(__func__, cursor);
	TRY(r, atoll_questions(sandbox, &cursor, &error));
	if (r == 0)
		r = take_rows(__func__, cursor);
	TRY(r, atoll_grants(sandbox, &cursor, &error));
	if (r == 0)
		r = take_rows(__func__, cursor);
	atoll_record_free(info);
	atoll_sandbox_free(sandbox);
	return r;
}

static int requests(void)
{
	atoll_sandbox *sandbox = NULL;
	atoll_record *result[4] = { NULL };
	uint64_t ticket;
	int r = 0;

	TRY(r, atoll_find(standing, standing_id, &sandbox, &error));
	TRY(r, atoll_sample(sandbox, NULL, &result[0], &error));
	TRY(r, atoll_status(sandbox, NULL, &result[1], &error));
	TRY(r, atoll_hold(sandbox, NULL, NULL, &result[2], &error));
	TRY(r, atoll_thaw(sandbox, NULL, &result[3], &error));
	TRY(r, atoll_sample(sandbox, &ticket, NULL, &error));
	if (r == 0)
		r = until(__func__, sandbox, ATOLL_EVENT_DONE);
	for (int i = 0; i < 4; i++)
		atoll_record_free(result[i]);
	atoll_sandbox_free(sandbox);
	return r;
}

/* A command that lasts, listed, attached and closed. */
static int lasting(const char *scenario, const char *streams)
{
	const char *const argv[] = { "cat", NULL };
	int is_terminal = strcmp(streams, "pty") == 0;
	atoll_record *result[4] = { NULL };
	atoll_sandbox *sandbox = NULL;
	atoll_cursor *cursor = NULL;
	uint64_t command = 0;
	int r;
	atoll_record *record = new_command(ATOLL_COMMAND, argv, streams, &r);

	TRY(r, atoll_set_u64(record, "keep", 1, &error));
	TRY(r, atoll_set_string(record, "tag", "mine", &error));
	TRY(r, atoll_find(standing, standing_id, &sandbox, &error));
	TRY(r, atoll_exec(sandbox, record, NULL, &result[0], &error));
	if (r == 0)
		(void)atoll_get_u64(result[0], "command", &command);
	TRY(r, atoll_commands(sandbox, command - 1, NULL, &result[1], &error));
	TRY(r, atoll_rows(sandbox, result[1], &cursor, &error));
	if (r == 0)
		r = take_rows(scenario, cursor);
	TRY(r, atoll_attach(sandbox, command, NULL, NULL, &result[2], &error));
	TRY(r, atoll_resize(sandbox, command, 30, 90, &error));
	if (is_terminal)
		TRY(r, atoll_signal(sandbox, command, 9, NULL, &result[3], &error));
	else
		TRY(r, atoll_close_input(sandbox, command, NULL, &result[3], &error));
	if (r == 0)
		r = until(scenario, sandbox, ATOLL_EVENT_EXIT);
	for (int i = 0; i < 4; i++)
		atoll_record_free(result[i]);
	atoll_record_free(record);
	/* What was started all the same is not left for the next round. */
	if (r < 0 && sandbox && command) {
		long at = fails_at;

		fails_at = 0;
		(void)atoll_signal(sandbox, command, 9, NULL, NULL, NULL);
		fails_at = at;
	}
	atoll_sandbox_free(sandbox);
	return r;
}

static int lasting_pipes(void)
{
	return lasting(__func__, "pipe");
}

static int lasting_terminals(void)
{
	return lasting(__func__, "pty");
}

static int files(void)
{
	const char *const labels[] = { "a=b", NULL };
	atoll_record *result[4] = { NULL }, *update = atoll_record_new(ATOLL_UPDATE);
	atoll_sandbox *sandbox = NULL;
	atoll_cursor *cursor = NULL;
	uint64_t watch = 0;
	int r = update ? 0 : ATOLL_E_NO_MEMORY;

	TRY(r, atoll_find(standing, standing_id, &sandbox, &error));
	TRY(r, atoll_stat(sandbox, "/etc/passwd", ATOLL_STAT_ATTRIBUTES, NULL, &result[0], &error));
	TRY(r, atoll_open(sandbox, "/etc/passwd", NULL, NULL, &result[1], &error));
	TRY(r, atoll_readdir(sandbox, "/", NULL, NULL, &result[2], &error));
	TRY(r, atoll_rows(sandbox, result[2], &cursor, &error));
	if (r == 0)
		r = take_rows(__func__, cursor);
	TRY(r, atoll_watch(sandbox, words[5], ATOLL_WATCH_RECURSIVE, NULL, &result[3], &error));
	if (r == 0)
		(void)atoll_get_u64(result[3], "watch", &watch);
	TRY(r, atoll_unwatch(sandbox, watch, NULL, NULL, &error));
	TRY(r, atoll_set_strings(update, "labels", labels, &error));
	TRY(r, atoll_update(sandbox, update, NULL, NULL, &error));
	for (int i = 0; i < 4; i++)
		atoll_record_free(result[i]);
	atoll_record_free(update);
	atoll_sandbox_free(sandbox);
	return r;
}

static int reviews(void)
{
	atoll_sandbox *sandbox = NULL;
	atoll_cursor *cursor = NULL;
	int r = 0;

	TRY(r, atoll_find(standing, standing_id, &sandbox, &error));
	TRY(r, atoll_diff(sandbox, NULL, &cursor, &error));
	if (r == 0)
		r = take_rows(__func__, cursor);
	atoll_sandbox_free(sandbox);
	return r;
}

/* ---- each call of each once ---- */

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static void try_scenario(const char *name, int (*run)(void))
{
	long total, failed = 0, memory = live;
	int fds, r;

	fails_at = 0;
	if (run() < 0) {
		bad(name, error.what);
		return;
	}
	calls = 0;
	(void)run();
	total = calls;
	fds = count_fds();
	for (long at = 1; at <= total; at++) {
		memset(&error, 0, sizeof error);
		error.size = sizeof error;
		calls = 0;
		fails_at = at;
		r = run();
		failed += r < 0;
		fails_at = 0;
		if (count_fds() != fds) {
			fails_at = at;
			bad(name, "descriptors are left");
			fails_at = 0;
			fds = count_fds();
		}
		if (live != memory) {
			fails_at = at;
			bad(name, "memory is left");
			fails_at = 0;
			memory = live;
		}
	}
	printf("%s calls %ld failed %ld\n", name, total, failed);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} scenarios[] = {
		/* Lists first: what the others do makes the lists and the log longer, and says nothing new. */
		{ "contexts", contexts }, { "policies", policies }, { "lists", lists },
		{ "creations", creations }, { "parkings", parkings }, { "captures", captures },
		{ "pipes", pipes }, { "terminals", terminals }, { "lasting_pipes", lasting_pipes },
		{ "lasting_terminals", lasting_terminals }, { "files", files }, { "requests", requests },
		{ "reviews", reviews },
	};
	atoll_sandbox *sandbox;
	atoll_record *record;

	/* What would be missed if nothing were counted. */
	fails_at = 2;
	if (!malloc(1) || malloc(1) || live != 1 || calls != 2)
		return 3;
	live = calls = fails_at = 0;
	words = argv;
	error.size = sizeof error;
	if (argc < 6 || load_places(&standing) < 0 || load_policy(&policy) < 0) {
		fprintf(stderr, "%s\n", error.what);
		return 2;
	}
	record = atoll_record_new(ATOLL_SANDBOX);
	if (atoll_set_string(record, "project", words[5], &error) < 0 ||
	    atoll_create(standing, policy, record, &sandbox, &error) < 0 ||
	    until("start", sandbox, ATOLL_EVENT_READY) < 0) {
		fprintf(stderr, "%s\n", error.what);
		return 2;
	}
	standing_id = atoll_id(sandbox);
	for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++)
		if (argc < 7 || strcmp(argv[6], scenarios[i].name) == 0)
			try_scenario(scenarios[i].name, scenarios[i].run);
	(void)atoll_stop(sandbox, 0, NULL, NULL, &error);
	atoll_sandbox_free(sandbox);
	atoll_record_free(record);
	atoll_policy_free(policy);
	atoll_context_free(standing);
	return is_bad;
}
