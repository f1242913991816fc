/* SPDX-License-Identifier: Apache-2.0 */
#include "service/interpreter/contexts.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/str.h"
#include "os/clock.h"
#include "wire/service.h"

/*
 * Theory of operation. The extension's state is the list of contexts. What a driver says goes into the run at the head
 * of its context, and from there into the stream of its client as that has room; a driver is not read meanwhile, so
 * that it stands still in its writes. A client that leaves has its code interrupted; nothing else runs in that context
 * until the driver says that it ended, or has been killed for not doing so.
 */

#define HOME "/home/user"

enum {
	NS_PER_US = 1000,
	PATIENCE_MS = 5000,               /* of an interrupt */
	KEEPALIVE_S = 5,
	HELD_MAX = 512 << 20,             /* bytes of long lines of all contexts together */
	RUN_OUT_MAX = 3 * INTERPRETER_LINE_MAX,
	BOTH = 3,                         /* outputs, as bits */
};

static void dispatch(struct context *context);

/* ---- the list ---- */

static struct context *first_of(struct front *front)
{
	return *front_extension_state(front);
}

struct context *contexts_next(struct front *front, const char *sandbox, struct context *at)
{
	at = at ? at->next : first_of(front);
	while (at && !str_equal(at->driver.sandbox, sandbox))
		at = at->next;
	return at;
}

struct context *contexts_find(struct front *front, const char *sandbox, const char *id)
{
	struct context *context = contexts_next(front, sandbox, NULL);

	while (context && !str_equal(context->id, id))
		context = contexts_next(front, sandbox, context);
	return context;
}

static bool has_room(struct front *front, const char *sandbox)
{
	struct context *context = contexts_next(front, sandbox, NULL);
	size_t count = 0;

	for (; context; context = contexts_next(front, sandbox, context))
		count++;
	return count < CONTEXTS_MAX;
}

static const struct driver_events events;

struct context *contexts_add(struct front *front, const char *sandbox, enum interpreter_language language,
			     const char *cwd)
{
	static uint64_t last_id;
	struct context *context = has_room(front, sandbox) ? calloc(1, sizeof *context) : NULL;
	struct context *last = first_of(front);

	if (!context)
		return NULL;
	context->cwd = str_dup(cwd ? cwd : HOME);
	if (!context->cwd) {
		free(context);
		return NULL;
	}
	/* None that another front gave, whose contexts are gone with it. */
	if (!last_id)
		last_id = clock_realtime_ns() / NS_PER_US;
	if (str_format(context->id, sizeof context->id, "context-%llu", (unsigned long long)++last_id) < 0)
		context->id[0] = 0;
	context->language = language;
	driver_init(&context->driver, front, sandbox, &events);
	/* The newest is the last one of a list. */
	while (last && last->next)
		last = last->next;
	if (last)
		last->next = context;
	else
		*front_extension_state(front) = context;
	return context;
}

struct context *contexts_default(struct front *front, const char *sandbox, enum interpreter_language language)
{
	struct context *context = contexts_next(front, sandbox, NULL);

	while (context && !(context->is_default && context->language == language))
		context = contexts_next(front, sandbox, context);
	if (context)
		return context;
	context = contexts_add(front, sandbox, language, NULL);
	if (context)
		context->is_default = true;
	return context;
}

/* ---- what a client gets ---- */

/* Moves what the stream has room for. */
static void move(struct run *run)
{
	while (run->out_at < run->out.size && run->stream.out.size < STREAM_FULL) {
		size_t size = run->out.size - run->out_at;

		if (size > STREAM_FULL - run->stream.out.size)
			size = STREAM_FULL - run->stream.out.size;
		buf_put(&run->stream.out, run->out.bytes + run->out_at, size);
		run->out_at += size;
	}
	if (buf_error(&run->out) < 0)
		stream_fail(&run->stream);
	if (run->out_at < run->out.size)
		return;
	buf_done(&run->out);
	buf_init(&run->out, RUN_OUT_MAX);
	run->out_at = 0;
}

/* Sends what was put into run->out. */
static void send_output(struct run *run)
{
	move(run);
	stream_wake(&run->stream);
	if (run->is_over && !run->out.size)
		stream_close(&run->stream);
	else if (run->context && run->context->runs == run)
		driver_hold(&run->context->driver, run->out.size || run->stream.out.size >= STREAM_FULL);
}

/* The client has caught up. */
static void on_drained(void *context)
{
	send_output(context);
}

static void take_out(struct run *run)
{
	struct run **at = &run->context->runs;

	while (*at != run)
		at = &(*at)->next;
	*at = run->next;
	run->context = NULL;
}

static void finish(struct run *run)
{
	take_out(run);
	interpreter_put_end(&run->out);
	run->is_over = true;
	send_output(run);
}

static void fail(struct run *run, const char *name, const char *value)
{
	interpreter_put_error(&run->out, name, value);
	finish(run);
}

/* ---- what a driver says ---- */

static struct context *context_of(struct driver *driver)
{
	return (struct context *)((char *)driver - offsetof(struct context, driver));
}

/* What runs and has a client still. */
static struct run *running(struct context *context)
{
	struct run *run = context->runs;

	return run && run->number && run->number == context->busy ? run : NULL;
}

static void be_idle(struct context *context)
{
	context->busy = context->interrupted_ms = 0;
	context->ended = 0;
}

static void on_line(struct driver *driver, bool is_error, const void *bytes, size_t size)
{
	struct context *context = context_of(driver);
	struct run *run = running(context);
	cleanup_buf struct buf unheard;
	struct buf *out = run ? &run->out : &unheard;
	int r;

	buf_init(&unheard, RUN_OUT_MAX);
	if (!context->busy)
		return;
	r = bytes ? interpreter_read_line(bytes, size, context->busy, out) : -EMSGSIZE;
	if (r < 0)
		interpreter_put_error(out, "ResultError", r == -EMSGSIZE ? "a result was too large" :
				      "a result could not be read");
	if (r == INTERPRETER_MISSING) {
		context->is_missing = true;
		driver_signal(driver, SIGKILL);
		return;
	}
	if (r == INTERPRETER_ENDED)
		context->ended |= is_error ? 2 : 1;
	if (context->ended == BOTH) {
		be_idle(context);
		if (run)
			finish(run);
		driver_hold(driver, false);
		dispatch(context);
	} else if (run) {
		send_output(run);
	}
}

static size_t on_output(struct driver *driver, bool is_error, const void *bytes, size_t size, bool is_last)
{
	struct run *run = running(context_of(driver));

	/* What nobody waits for is not kept. */
	if (!run)
		return size;
	size = interpreter_put_output(&run->out, is_error, bytes, size, clock_realtime_ns() / NS_PER_US, is_last);
	send_output(run);
	return size;
}

static bool on_growth(struct driver *driver, size_t size)
{
	size_t held = size;

	for (struct context *at = first_of(driver->front); at; at = at->next)
		held += at->driver.outputs[0].line.size + at->driver.outputs[1].line.size +
			(at->runs ? at->runs->out.size : 0);
	return held <= HELD_MAX;
}

static void on_started(struct driver *driver)
{
	dispatch(context_of(driver));
}

static void fail_missing(struct context *context, struct run *run)
{
	const struct runtime *runtime = runtime_find(interpreter_language_name(context->language));
	char why[INTERPRETER_WHY_SIZE];

	context->is_missing = false;
	if (!runtime || str_format(why, sizeof why, "the sandbox has no %s", runtime->needs) < 0)
		why[0] = 0;
	fail(run, "InterpreterNotStarted", why);
}

static void on_lost(struct driver *driver, const char *why)
{
	struct context *context = context_of(driver);
	struct run *run = why ? context->runs : running(context);

	be_idle(context);
	if (run && why)
		fail(run, "InterpreterNotStarted", why);
	else if (run && context->is_missing)
		fail_missing(context, run);
	else if (run)
		fail(run, "UnexpectedEndOfExecution", "the interpreter ended before the code did");
	dispatch(context);
}

static void on_signalled(struct driver *driver)
{
	dispatch(context_of(driver));
}

static const struct driver_events events = {
	.line = on_line, .output = on_output, .has_room = on_growth, .started = on_started, .lost = on_lost,
	.signalled = on_signalled,
};

/* ---- runs ---- */

/* False: it could not be, and the runs heard why. */
static bool start(struct context *context)
{
	const char *language = interpreter_language_name(context->language);
	int r = driver_start(&context->driver, context->language, context->cwd,
			     context->is_default && strv_has(runtime_ahead, language));

	if (r == 0)
		return true;
	while (context->runs)
		fail(context->runs, "InterpreterNotStarted",
		     r == -ENOTSUP ? "there is no interpreter of this language here" :
				     "the service cannot start an interpreter now");
	return false;
}

static void put_run(struct context *context, const struct run *run)
{
	static void (*const put[])(struct buf *, uint64_t, const struct interpreter_request *) = {
		[RUNTIME_JSON] = interpreter_put_run, [RUNTIME_QUOTED] = interpreter_put_shell_run,
		[RUNTIME_COUNTED] = interpreter_put_counted_run,
	};
	const struct runtime *runtime = runtime_find(interpreter_language_name(context->language));

	put[runtime ? runtime->form : RUNTIME_JSON](&context->driver.out, run->number, &run->request);
}

/* The next run, where none runs. An interrupt that is on its way must not meet it. */
static void dispatch(struct context *context)
{
	struct driver *driver = &context->driver;
	struct run *run = context->runs;

	if (!run || context->busy || driver->signal_ticket || driver->state == DRIVER_STARTING)
		return;
	if (driver->state == DRIVER_NONE) {
		(void)start(context);
		return;
	}
	run->number = context->busy = ++context->last_number;
	put_run(context, run);
	driver_flush(driver);
}

int contexts_run(struct context *context, struct run *run, const char *token)
{
	struct run **at = &context->runs;
	size_t count = 0;

	for (; *at; at = &(*at)->next)
		count++;
	if (count >= RUNS_MAX)
		return -EBUSY;
	(void)!str_copy(context->driver.token, sizeof context->driver.token, token);
	run->next = NULL;
	run->context = context;
	run->stream.keepalive_s = KEEPALIVE_S;
	run->stream.drained = on_drained;
	run->stream.context = run;
	buf_init(&run->out, RUN_OUT_MAX);
	*at = run;
	dispatch(context);
	return 0;
}

void contexts_leave(struct run *run)
{
	struct context *context = run->context;
	bool is_running = context && running(context) == run;

	if (context)
		take_out(run);
	if (!is_running)
		return;
	context->interrupted_ms = front_now_ms(context->driver.front);
	driver_hold(&context->driver, false);
	driver_signal(&context->driver, SIGINT);
}

/* ---- ends ---- */

static void end_runs(struct context *context, const char *name, const char *value)
{
	driver_stop(&context->driver);
	be_idle(context);
	while (context->runs)
		fail(context->runs, name, value);
}

void contexts_restart(struct context *context)
{
	end_runs(context, "ContextRestarting", "the context was restarted");
}

static void free_context(struct front *front, struct context *context)
{
	struct context *at = first_of(front);

	if (at == context)
		*front_extension_state(front) = context->next;
	while (at && at->next != context)
		at = at->next;
	if (at)
		at->next = context->next;
	driver_stop(&context->driver);
	free(context->cwd);
	free(context);
}

void contexts_remove(struct front *front, struct context *context)
{
	end_runs(context, "ContextRemoved", "the context was removed");
	free_context(front, context);
}

void contexts_on_exit(struct front *front, const struct service_message *event)
{
	const char *sandbox = service_string(event, "sandbox");
	uint64_t command = service_number(event, "command", 0);
	struct context *context = contexts_next(front, sandbox, NULL);

	while (context && context->driver.command != command)
		context = contexts_next(front, sandbox, context);
	if (context && command)
		driver_on_exit(&context->driver);
}

void contexts_on_gone(struct front *front, const char *sandbox)
{
	struct context *context;

	while ((context = contexts_next(front, sandbox, NULL))) {
		while (context->runs) {
			struct run *run = context->runs;

			take_out(run);
			stream_fail(&run->stream);
		}
		/* No command of it is left to be killed. */
		context->driver.command = 0;
		free_context(front, context);
	}
}

void contexts_tick(struct front *front)
{
	for (struct context *context = first_of(front); context; context = context->next) {
		for (struct run *run = context->runs; run; run = run->next) {
			if (run->out.size || !stream_is_silent(&run->stream, front_now_ms(front)))
				continue;
			interpreter_put_keepalive(&run->out);
			send_output(run);
		}
		if (context->interrupted_ms && front_now_ms(front) - context->interrupted_ms >= PATIENCE_MS &&
		    !context->driver.signal_ticket)
			driver_signal(&context->driver, SIGKILL);
	}
}
