/* SPDX-License-Identifier: Apache-2.0 */
#include "service/interpreter/driver.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"
#include "service/front/launcher.h"
#include "service/runtime/runtime.h"

/*
 * Theory of operation. The box relays the two outputs of a command each by itself, and a command has no third one. So
 * the lines of a driver stand in its outputs, among what the code writes there: in frames that begin with a mark which
 * no two drivers share. A frame is one write that a pipe takes as a whole, so that nothing comes in between, and what
 * the code wrote before a line comes before it. The end of a run is said in both outputs: when both have come, so has
 * all that was written. Code that forges frames spoils its own results.
 *
 * The driver's text is the first thing that is sent, so that a sandbox needs no file of ours, and no command line of it
 * is long.
 */

enum {
	READ_BYTES = 32 << 10,
	LAST_READS = 64,             /* of what a driver that has ended leaves */
	OUT_MAX = 24 << 20,          /* of what is asked for, as JSON of ASCII alone */
	LINE_SMALL = 256 << 10,      /* up to here a line may always grow */
	FRAME_MAX = 4096,            /* PIPE_BUF */
	LENGTH_DIGITS = 4,
	REST_MAX = READ_BYTES + FRAME_MAX,
};

static void begin_output(struct driver_output *output)
{
	buf_init(&output->rest, REST_MAX);
	buf_init(&output->line, INTERPRETER_LINE_MAX + READ_BYTES);
	output->is_passing_over = false;
}

void driver_init(struct driver *driver, struct front *front, const char *sandbox, const struct driver_events *events)
{
	*driver = (struct driver){ .front = front, .events = events, .input.fd = FD_NONE };
	(void)!str_copy(driver->sandbox, sizeof driver->sandbox, sandbox);
	buf_init(&driver->out, OUT_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(driver->outputs); i++) {
		driver->outputs[i].source.fd = FD_NONE;
		driver->outputs[i].driver = driver;
		begin_output(&driver->outputs[i]);
	}
}

static void close_source(struct driver *driver, struct loop_source *source)
{
	loop_remove(front_loop(driver->front), source);
	close_fd(&source->fd);
}

/* Nothing of it is known any more; its command goes on, with its input closed. */
static void forget(struct driver *driver)
{
	launcher_forget(front_launcher(driver->front), driver->start_ticket);
	launcher_forget(front_launcher(driver->front), driver->signal_ticket);
	close_source(driver, &driver->input);
	buf_done(&driver->out);
	buf_init(&driver->out, OUT_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(driver->outputs); i++) {
		struct driver_output *output = &driver->outputs[i];

		close_source(driver, &output->source);
		buf_done(&output->rest);
		buf_done(&output->line);
		begin_output(output);
	}
	driver->state = DRIVER_NONE;
	driver->command = driver->start_ticket = driver->signal_ticket = 0;
	driver->is_held = false;
}

static struct buf *ask(struct driver *driver, enum service_operation operation, uint64_t *ret_ticket)
{
	struct buf *out = launcher_begin(front_launcher(driver->front), operation, ret_ticket);

	if (!out)
		return NULL;
	field_put_string(out, "sandbox", driver->sandbox);
	field_put_string(out, "token", driver->token);
	return out;
}

static void on_signalled(void *context, struct service_message *reply)
{
	struct driver *driver = context;

	driver->signal_ticket = 0;
	driver->events->signalled(driver);
}

static int send_signal(struct driver *driver, int number, launcher_replied replied, uint64_t *ret_ticket)
{
	uint64_t ticket = 0;
	struct buf *out = driver->command ? ask(driver, SERVICE_SIGNAL, &ticket) : NULL;
	int r;

	if (!out)
		return -EAGAIN;
	field_put_u64(out, "command", driver->command);
	field_put_u64(out, "signal", (uint64_t)number);
	r = launcher_send(front_launcher(driver->front), ticket, replied, driver);
	if (r == 0 && ret_ticket)
		*ret_ticket = ticket;
	return r;
}

void driver_stop(struct driver *driver)
{
	/* Where that cannot be asked for, the end of its input ends it, unless its code prevents that. */
	if (driver->state == DRIVER_RUNNING)
		(void)!send_signal(driver, SIGKILL, NULL, NULL);
	forget(driver);
}

static void lose(struct driver *driver, const char *why)
{
	driver_stop(driver);
	driver->events->lost(driver, why);
}

void driver_signal(struct driver *driver, int number)
{
	if (driver->state != DRIVER_RUNNING || driver->signal_ticket)
		return;
	if (send_signal(driver, number, on_signalled, &driver->signal_ticket) < 0)
		lose(driver, NULL);
}

/* ---- what it writes ---- */

static bool is_error(const struct driver_output *output)
{
	return output == &output->driver->outputs[1];
}

/* What stands in frames. What an event does may end the driver. */
static void take_lines(struct driver_output *output, const uint8_t *bytes, size_t size)
{
	struct driver *driver = output->driver;
	const uint8_t *at = bytes, *end = bytes + size, *newline;

	while (driver->state == DRIVER_RUNNING && (newline = memchr(at, '\n', (size_t)(end - at)))) {
		buf_put(&output->line, at, (size_t)(newline - at));
		driver->events->line(driver, is_error(output), output->is_passing_over ? NULL : output->line.bytes,
				     output->line.size);
		buf_reset(&output->line);
		output->is_passing_over = false;
		at = newline + 1;
	}
	if (driver->state != DRIVER_RUNNING)
		return;
	buf_put(&output->line, at, (size_t)(end - at));
	if (output->is_passing_over || output->line.size >= INTERPRETER_LINE_MAX || buf_error(&output->line) < 0 ||
	    (output->line.size > LINE_SMALL && !driver->events->has_room(driver, output->line.size))) {
		output->is_passing_over = true;
		buf_reset(&output->line);
	}
}

/* Where a frame begins, or could if more came; size where none does. */
static size_t find_mark(const struct driver *driver, const uint8_t *bytes, size_t size)
{
	size_t length = strlen(driver->mark);

	for (size_t at = 0; at < size; at++) {
		const uint8_t *found = memchr(bytes + at, driver->mark[0], size - at);

		if (!found)
			return size;
		at = (size_t)(found - bytes);
		if (memcmp(found, driver->mark, size - at < length ? size - at : length) == 0)
			return at;
	}
	return size;
}

/* The size of what stands in a frame whose head is here; negative: it is none. */
static int read_length(const uint8_t *digits)
{
	int length = 0;

	for (size_t i = 0; i < LENGTH_DIGITS; i++) {
		const char *found = digits[i] ? strchr("0123456789abcdef", digits[i]) : NULL;

		if (!found)
			return -1;
		length = length * 16 + (int)(found - "0123456789abcdef");
	}
	return length <= FRAME_MAX ? length : -1;
}

/* Takes what is whole from the rest; at its end all of it. Returns how much. */
static size_t take_rest(struct driver_output *output, bool is_last)
{
	struct driver *driver = output->driver;
	size_t head = strlen(driver->mark) + LENGTH_DIGITS, at = 0;

	while (driver->state == DRIVER_RUNNING && at < output->rest.size) {
		const uint8_t *bytes = output->rest.bytes + at;
		size_t left = output->rest.size - at, text = find_mark(driver, bytes, left), taken;
		int length;

		if (text) {
			bool is_cut = is_last || text < left;

			taken = driver->events->output(driver, is_error(output), bytes, text, is_cut);
			at += taken;
			if (taken < text)
				break;
			continue;
		}
		length = left >= head ? read_length(bytes + head - LENGTH_DIGITS) : 0;
		if (length < 0) {
			at += driver->events->output(driver, is_error(output), bytes, head, true);
			continue;
		}
		if (left < head + (size_t)length || left < head)
			break;
		take_lines(output, bytes + head, (size_t)length);
		at += head + (size_t)length;
	}
	return at;
}

/* Once. 1: there may be more; 0: nothing now; negative: it is closed. */
static int read_output(struct driver_output *output)
{
	size_t taken;
	uint8_t *at;
	ssize_t n;

	if (output->source.fd < 0)
		return -EBADF;
	at = buf_reserve(&output->rest, READ_BYTES);
	if (!at)
		return -ENOMEM;
	output->rest.size -= READ_BYTES;
	n = read(output->source.fd, at, READ_BYTES);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	output->rest.size += (size_t)n;
	n = n ? 1 : -EPIPE;
	taken = take_rest(output, n < 0);
	/* An event may have ended the driver, and with it the rest. */
	if (output->driver->state != DRIVER_RUNNING)
		return -EPIPE;
	buf_consume(&output->rest, taken);
	return (int)n;
}

static int on_output(void *context, uint32_t events)
{
	struct driver_output *output = context;
	struct driver *driver = output->driver;

	if (read_output(output) >= 0 || driver->state != DRIVER_RUNNING)
		return 0;
	close_source(driver, &output->source);
	/* Its lines come by standard output. */
	if (!is_error(output))
		lose(driver, NULL);
	return 0;
}

/* ---- what it reads ---- */

static int write_input(struct driver *driver)
{
	size_t done = 0;

	while (done < driver->out.size) {
		size_t size = driver->out.size - done;
		ssize_t n = write(driver->input.fd, driver->out.bytes + done, size < READ_BYTES ? size : READ_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0)
			break;
		done += (size_t)n;
	}
	buf_consume(&driver->out, done);
	if (!driver->out.size) {
		buf_done(&driver->out);
		buf_init(&driver->out, OUT_MAX);
	}
	return 0;
}

static int on_input(void *context, uint32_t events)
{
	driver_flush(context);
	return 0;
}

void driver_flush(struct driver *driver)
{
	struct loop *loop = front_loop(driver->front);
	int r;

	if (driver->state != DRIVER_RUNNING)
		return;
	r = buf_error(&driver->out) < 0 ? -ENOMEM : write_input(driver);
	/* Nobody is told of a hang-up who waits for nothing: the outputs say that it ended. */
	if (r == 0 && driver->out.size)
		r = loop_add(loop, &driver->input);
	else
		loop_remove(loop, &driver->input);
	if (r < 0)
		lose(driver, NULL);
}

void driver_hold(struct driver *driver, bool is_held)
{
	struct loop *loop = front_loop(driver->front);

	if (driver->state != DRIVER_RUNNING || driver->is_held == is_held)
		return;
	driver->is_held = is_held;
	for (size_t i = 0; i < ARRAY_SIZE(driver->outputs); i++) {
		struct loop_source *source = &driver->outputs[i].source;

		if (is_held)
			loop_remove(loop, source);
		else if (source->fd >= 0 && loop_add(loop, source) < 0)
			close_source(driver, source);
	}
}

void driver_on_exit(struct driver *driver)
{
	/* What it said last; a process that it left behind may have the other end open still. */
	for (size_t i = 0; i < ARRAY_SIZE(driver->outputs); i++)
		for (unsigned n = 0; n < LAST_READS && driver->state == DRIVER_RUNNING; n++)
			if (read_output(&driver->outputs[i]) <= 0)
				break;
	if (driver->state != DRIVER_RUNNING)
		return;
	driver->command = 0;
	lose(driver, NULL);
}

/* ---- its start ---- */

static int take_descriptors(struct driver *driver, struct service_message *reply)
{
	static const char *const keys[] = { "stdout", "stderr" };
	int r;

	driver->input = (struct loop_source){ .fd = service_take_fd(reply, "stdin"), .events = EPOLLOUT,
					      .ready = on_input, .context = driver };
	r = driver->input.fd < 0 ? -EBADF : fd_set_nonblocking(driver->input.fd, true);
	for (size_t i = 0; i < ARRAY_SIZE(keys) && r == 0; i++) {
		struct driver_output *output = &driver->outputs[i];

		output->source = (struct loop_source){ .fd = service_take_fd(reply, keys[i]), .events = EPOLLIN,
						       .ready = on_output, .context = output };
		r = output->source.fd < 0 ? -EBADF : fd_set_nonblocking(output->source.fd, true);
		if (r == 0)
			r = loop_add(front_loop(driver->front), &output->source);
	}
	return r;
}

/* The record separator, and given, or what no other driver has. */
static int set_mark(struct driver *driver, const char *given)
{
	driver->mark[0] = '\x1e';
	return given ? str_copy(driver->mark + 1, sizeof driver->mark - 1, given) : runtime_make_mark(driver->mark + 1);
}

static void on_started(void *context, struct service_message *reply)
{
	struct driver *driver = context;
	const char *message = service_string(reply, "message"), *mark = service_string(reply, "mark");

	driver->start_ticket = 0;
	if (reply->status >= 300) {
		lose(driver, message ? message : "it cannot be started");
		return;
	}
	driver->command = service_number(reply, "command", 0);
	driver->state = DRIVER_RUNNING;
	/* One that was started ahead has read its text. */
	if (mark && set_mark(driver, mark) == 0)
		buf_reset(&driver->out);
	if (take_descriptors(driver, reply) < 0) {
		lose(driver, "the service has no descriptor left");
		return;
	}
	driver_flush(driver);
	if (driver->state == DRIVER_RUNNING)
		driver->events->started(driver);
}

int driver_start(struct driver *driver, enum interpreter_language language, const char *cwd, bool may_be_warm)
{
	const struct runtime *runtime = runtime_find(interpreter_language_name(language));
	const char *argv[RUNTIME_ARGV_MAX];
	char size[RUNTIME_SIZE_MAX];
	uint64_t ticket = 0;
	struct buf *out;
	int r;

	if (!runtime)
		return -ENOTSUP;
	out = ask(driver, SERVICE_EXEC, &ticket);
	if (!out)
		return -EAGAIN;
	r = set_mark(driver, NULL);
	if (r < 0)
		return r;
	runtime_command(runtime, driver->mark + 1, size, argv);
	field_put_strings(out, "argv", argv);
	if (cwd)
		field_put_string(out, "cwd", cwd);
	field_put_u64(out, "bound", 1);
	if (may_be_warm)
		field_put_string(out, "warm", runtime->language);
	r = launcher_send(front_launcher(driver->front), ticket, on_started, driver);
	if (r < 0)
		return r;
	buf_put(&driver->out, runtime->text, runtime->size);
	driver->start_ticket = ticket;
	driver->state = DRIVER_STARTING;
	return 0;
}
