/* SPDX-License-Identifier: Apache-2.0 */
#include "service/front/process.h"

#include <string.h>
#include <sys/epoll.h>

#include "base/str.h"
#include "os/fd.h"
#include "service/front/state.h"
#include "service/protocol/host.h"

enum { PIPE_BYTES = 32 << 10, WAITERS_MAX = 16, LINGER_MS = 500, TOKEN_SIZE = 129, SOURCES = 2 };

/* One pipe or terminal that is read. */
struct source {
	struct loop_source loop;
	struct process *process;
	enum process_stream stream;
};

struct process {
	struct front *front;
	struct process *next, **link;
	char sandbox[HOST_ID_SIZE], tag[257], token[TOKEN_SIZE];
	uint64_t command;
	uint32_t pid;
	bool is_pty, has_exited, is_held;
	struct process_end end;
	uint64_t last_ms;                /* of the last output, or of the exit */
	int input_fd;                    /* FD_NONE: none; of a pty: a duplicate of what is read */
	struct source sources[SOURCES];
	struct loop_source room;         /* of the input, while somebody waits */
	struct process_reader *readers;
	struct process_waiter *waiters;
	size_t waiter_count;
};

static void close_source(struct source *source)
{
	loop_remove(&source->process->front->loop, &source->loop);
	close_fd(&source->loop.fd);
}

static void wake_waiters(struct process *process)
{
	struct process_waiter *waiter = process->waiters;

	loop_remove(&process->front->loop, &process->room);
	process->waiters = NULL;
	process->waiter_count = 0;
	while (waiter) {
		struct process_waiter *next = waiter->next;

		waiter->process = NULL;
		waiter->ready(waiter->context);
		waiter = next;
	}
}

static void process_free(struct process *process)
{
	*process->link = process->next;
	if (process->next)
		process->next->link = process->link;
	for (size_t i = 0; i < SOURCES; i++)
		close_source(&process->sources[i]);
	loop_remove(&process->front->loop, &process->room);
	close_fd(&process->input_fd);
	while (process->readers)
		process_remove_reader(process->readers);
	wake_waiters(process);
	free(process);
}

static bool is_open(const struct process *process)
{
	return process->sources[0].loop.fd >= 0 || process->sources[1].loop.fd >= 0;
}

void process_end_stream(struct stream *stream, const struct process_end *end)
{
	if (end->is_timeout) {
		stream_end(stream, CONNECT_DEADLINE_EXCEEDED, "the command did not end in its time, and was killed");
		return;
	}
	process_put_ended(&stream->out, end);
	stream_end(stream, CONNECT_OK, NULL);
}

/* The end for all who are connected, once nothing more can come. */
static void finish(struct process *process)
{
	while (process->readers) {
		struct process_reader *reader = process->readers;

		process_end_stream(&reader->stream, &process->end);
		process_remove_reader(reader);
	}
	process_free(process);
}

static void hold(struct process *process, bool is_held)
{
	if (process->is_held == is_held)
		return;
	process->is_held = is_held;
	for (size_t i = 0; i < SOURCES; i++) {
		struct loop_source *source = &process->sources[i].loop;

		if (source->fd < 0)
			continue;
		if (is_held)
			loop_remove(&process->front->loop, source);
		else if (loop_add(&process->front->loop, source) < 0)
			close_fd(&source->fd);
	}
}

/* A reader that has caught up again. */
static void on_drained(void *context)
{
	struct process_reader *reader = context;

	if (reader->process)
		hold(reader->process, false);
}

static void send_to_readers(struct process *process, enum process_stream stream, const void *bytes, size_t size)
{
	struct process_reader *reader = process->readers, *next;
	bool is_alone = reader && !reader->next;

	for (; reader; reader = next) {
		next = reader->next;
		if (!is_alone && reader->stream.out.size > STREAM_MAX) {
			stream_end(&reader->stream, CONNECT_RESOURCE_EXHAUSTED, "this client reads too slowly");
			process_remove_reader(reader);
			continue;
		}
		process_put_data(&reader->stream.out, stream, bytes, size);
		stream_wake(&reader->stream);
	}
	/* One that was dropped may have left one behind that is far behind itself. */
	reader = process->readers;
	if (reader && !reader->next && reader->stream.out.size >= STREAM_FULL)
		hold(process, true);
}

static int on_output(void *context, uint32_t events)
{
	static uint8_t bytes[PIPE_BYTES];
	struct source *source = context;
	struct process *process = source->process;
	ssize_t n = read(source->loop.fd, bytes, sizeof bytes);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0) {
		process->last_ms = process->front->now_ms;
		send_to_readers(process, source->stream, bytes, (size_t)n);
		return 0;
	}
	/* The end of a pipe, or EIO of a terminal that nobody has open. */
	close_source(source);
	if (process->has_exited && !is_open(process))
		finish(process);
	return 0;
}

static void open_source(struct process *process, size_t i, int fd, enum process_stream stream)
{
	struct source *source = &process->sources[i];

	source->process = process;
	source->stream = stream;
	source->loop = (struct loop_source){ .fd = fd, .events = EPOLLIN, .ready = on_output, .context = source };
	if (fd >= 0 && (fd_set_nonblocking(fd, true) < 0 || loop_add(&process->front->loop, &source->loop) < 0))
		close_fd(&source->loop.fd);
}

static struct process *find_command(struct front *front, const char *sandbox, uint64_t command)
{
	for (struct process *process = front->processes; process; process = process->next)
		if (process->command == command && str_equal(process->sandbox, sandbox))
			return process;
	return NULL;
}

static void take_descriptors(struct process *process, struct service_message *reply)
{
	int terminal = service_take_fd(reply, "terminal");

	process->is_pty = terminal >= 0;
	process->input_fd = process->is_pty ? fd_duplicate(terminal) : service_take_fd(reply, "stdin");
	if (process->input_fd >= 0 && fd_set_nonblocking(process->input_fd, true) < 0)
		close_fd(&process->input_fd);
	open_source(process, 0, process->is_pty ? terminal : service_take_fd(reply, "stdout"),
		    process->is_pty ? PROCESS_PTY : PROCESS_STDOUT);
	open_source(process, 1, process->is_pty ? FD_NONE : service_take_fd(reply, "stderr"), PROCESS_STDERR);
}

struct process *process_open(struct front *front, const char *sandbox, const char *token,
			     struct service_message *reply)
{
	uint64_t command = service_number(reply, "command", 0);
	const char *tag = service_string(reply, "tag");
	struct process *process = find_command(front, sandbox, command);

	if (process || !(process = calloc(1, sizeof *process)))
		return process;
	process->front = front;
	process->command = command;
	process->pid = (uint32_t)service_number(reply, "pid", 0);
	process->last_ms = front->now_ms;
	if (str_copy(process->sandbox, sizeof process->sandbox, sandbox) < 0 ||
	    str_copy(process->tag, sizeof process->tag, tag ? tag : "") < 0 ||
	    str_copy(process->token, sizeof process->token, token ? token : "") < 0) {
		free(process);
		return NULL;
	}
	process->link = &front->processes;
	process->next = front->processes;
	if (process->next)
		process->next->link = &process->next;
	front->processes = process;
	take_descriptors(process, reply);
	return process;
}

/* In a time that does not tell where they differ. */
static bool is_same_token(const char *a, const char *b)
{
	size_t length = strlen(a);
	unsigned differs = 0;

	if (strlen(b) != length)
		return false;
	for (size_t i = 0; i < length; i++)
		differs |= (unsigned char)(a[i] ^ b[i]);
	return !differs;
}

struct process *process_find(struct front *front, const char *sandbox, const char *token,
			     const struct process_selector *selector)
{
	for (struct process *process = front->processes; process; process = process->next) {
		bool is_meant = selector->pid ? process->pid == selector->pid
					      : process->tag[0] && str_equal(process->tag, selector->tag);

		if (is_meant && str_equal(process->sandbox, sandbox))
			return is_same_token(process->token, token ? token : "") ? process : NULL;
	}
	return NULL;
}

void process_add_reader(struct process *process, struct process_reader *reader)
{
	reader->process = process;
	reader->next = process->readers;
	process->readers = reader;
	reader->stream.drained = on_drained;
	reader->stream.context = reader;
	process_put_started(&reader->stream.out, process->pid);
	stream_wake(&reader->stream);
	/* With a second one nobody waits for the first. */
	hold(process, false);
}

void process_remove_reader(struct process_reader *reader)
{
	struct process *process = reader->process;

	if (!process)
		return;
	for (struct process_reader **at = &process->readers; *at; at = &(*at)->next) {
		if (*at != reader)
			continue;
		*at = reader->next;
		break;
	}
	reader->process = NULL;
	hold(process, false);
}

int process_write(struct process *process, bool is_for_pty, const void *bytes, size_t *size)
{
	size_t written = 0;

	if (process->input_fd < 0 || is_for_pty != process->is_pty)
		return -ENOENT;
	/* Who came first writes first. */
	if (process->waiters) {
		*size = 0;
		return 0;
	}
	while (written < *size) {
		ssize_t n = write(process->input_fd, (const uint8_t *)bytes + written, *size - written);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0) {
			*size = written;
			return 0;
		}
		written += (size_t)n;
	}
	return 1;
}

static int on_room(void *context, uint32_t events)
{
	wake_waiters(context);
	return 0;
}

int process_wait(struct process *process, struct process_waiter *waiter)
{
	struct process_waiter **at = &process->waiters;
	int r;

	if (process->waiter_count >= WAITERS_MAX)
		return -EBUSY;
	process->room.fd = process->input_fd;
	process->room.events = EPOLLOUT;
	process->room.ready = on_room;
	process->room.context = process;
	r = loop_add(&process->front->loop, &process->room);
	if (r < 0)
		return r;
	while (*at)
		at = &(*at)->next;
	waiter->next = NULL;
	waiter->process = process;
	*at = waiter;
	process->waiter_count++;
	return 0;
}

void process_wait_no_more(struct process_waiter *waiter)
{
	struct process *process = waiter->process;

	if (!process)
		return;
	for (struct process_waiter **at = &process->waiters; *at; at = &(*at)->next) {
		if (*at != waiter)
			continue;
		*at = waiter->next;
		process->waiter_count--;
		break;
	}
	waiter->process = NULL;
	if (!process->waiters)
		loop_remove(&process->front->loop, &process->room);
}

void process_close_input(struct process *process)
{
	if (process->is_pty || process->input_fd < 0)
		return;
	loop_remove(&process->front->loop, &process->room);
	close_fd(&process->input_fd);
	wake_waiters(process);
}

struct process_end process_end_of(const struct service_message *message)
{
	return (struct process_end){
		.exit = (uint32_t)service_number(message, "exit", 0),
		.signal = (uint32_t)service_number(message, "signal", 0),
		.errnum = (uint32_t)service_number(message, "errno", 0),
		.is_timeout = str_equal(service_string(message, "ended"), "time"),
	};
}

void process_on_exit(struct front *front, const struct service_message *event)
{
	struct process *process =
		find_command(front, service_string(event, "sandbox"), service_number(event, "command", 0));

	if (!process)
		return;
	process->has_exited = true;
	process->end = process_end_of(event);
	process->last_ms = front->now_ms;
	if (!is_open(process))
		finish(process);
}

void process_on_gone(struct front *front, const char *sandbox)
{
	struct process *next;

	for (struct process *process = front->processes; process; process = next) {
		next = process->next;
		if (!str_equal(process->sandbox, sandbox))
			continue;
		for (struct process_reader *reader = process->readers; reader; reader = reader->next)
			stream_fail(&reader->stream);
		process_free(process);
	}
}

void process_tick(struct front *front)
{
	struct process *next;

	for (struct process *process = front->processes; process; process = next) {
		next = process->next;
		for (struct process_reader *reader = process->readers; reader; reader = reader->next) {
			if (!stream_is_silent(&reader->stream, front->now_ms))
				continue;
			process_put_keepalive(&reader->stream.out);
			stream_wake(&reader->stream);
		}
		/* What it left behind has its output open still, and says nothing. */
		if (process->has_exited && !process->is_held && front->now_ms - process->last_ms >= LINGER_MS)
			finish(process);
	}
}
