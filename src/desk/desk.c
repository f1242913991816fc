/* SPDX-License-Identifier: Apache-2.0 */
#include "desk/desk.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/str.h"
#include "confine/confine.h"
#include "desk/line.h"
#include "desk/reply.h"
#include "os/clock.h"
#include "os/fd.h"

/*
 * One loop over poll(2): the box, the listening socket, and the connections, each with what it wrote up to now and what
 * it has not read yet. A connection that is refused, or breaks the rules, is told why where it can be, and closed.
 * Reading is what is slowed down when too much is written: bytes wait in the writer's own socket then.
 */

enum { NS_PER_MS = 1000000, POLLED_MAX = DESK_CONNECTIONS_MAX + 2 };

/* A request without its last answer. */
struct open_request {
	uint32_t id;                 /* 0: free */
	bool is_text;
	bool has_tag;
	char tag[LINE_TAG_MAX];
};

struct connection {
	int fd;                      /* FD_NONE: free */
	size_t in_size;
	struct buf out;
	uint64_t begun_ns;           /* when the line that is not finished began */
	bool is_ending;              /* nothing more is read; closed when all is written and answered */
	struct open_request open[DESK_OPEN_MAX];
	char in[LINE_MAX_BYTES];
};

struct desk {
	int box_fd, listen_fd;
	struct connection connections[DESK_CONNECTIONS_MAX];
	uint32_t last_id;
	uint64_t tokens, refilled_ns;
	struct buf out, scratch;     /* frames */
};

/* ---- connections ---- */

static int tell_box(struct desk *desk, int r)
{
	return r < 0 ? r : frame_send(desk->box_fd, &desk->out, NULL, 0);
}

static int forget(struct desk *desk, uint32_t id)
{
	frame_begin(&desk->out, DESK_FORGET);
	frame_put_u32(&desk->out, id);
	return tell_box(desk, frame_end(&desk->out));
}

/* Negative: the box has gone. */
static int end_connection(struct desk *desk, struct connection *connection)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < DESK_OPEN_MAX; i++)
		if (connection->open[i].id)
			r = forget(desk, connection->open[i].id);
	close_fd(&connection->fd);
	buf_done(&connection->out);
	return r;
}

static bool has_open(const struct connection *connection)
{
	for (size_t i = 0; i < DESK_OPEN_MAX; i++)
		if (connection->open[i].id)
			return true;
	return false;
}

/* What does not fit into the socket now waits; false: the connection is of no use any more. */
static bool flush(struct connection *connection)
{
	while (connection->out.size) {
		ssize_t n = send(connection->fd, connection->out.bytes, connection->out.size,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return (errno == EAGAIN || errno == EINTR) && !buf_error(&connection->out);
		buf_consume(&connection->out, (size_t)n);
	}
	return !buf_error(&connection->out);
}

static void refuse_line(struct connection *connection, const char *why)
{
	reply_put_invalid(&connection->out, &(struct reply_form){ 0 }, why);
	connection->is_ending = true;
}

/* ---- lines ---- */

static struct open_request *find_open(struct connection *connection, uint32_t id)
{
	for (size_t i = 0; i < DESK_OPEN_MAX; i++)
		if (connection->open[i].id == id)
			return &connection->open[i];
	return NULL;
}

static int pass_on(struct desk *desk, struct line *line, uint32_t id)
{
	line->want.id = id;
	switch (line->kind) {
	case LINE_WANT:
	case LINE_EXPLAIN:
		return tell_box(desk, desk_want_put(&desk->out, line->kind == LINE_WANT ? DESK_WANT : DESK_EXPLAIN,
						    &line->want));
	case LINE_WAIT:
		frame_begin(&desk->out, DESK_WAIT);
		frame_put_u32(&desk->out, id);
		frame_put_u32(&desk->out, line->question);
		frame_put_u64(&desk->out, line->want.wait_ms);
		break;
	case LINE_TOKEN:
		frame_begin(&desk->out, DESK_TOKEN);
		frame_put_u32(&desk->out, id);
		frame_put_string(&desk->out, line->token);
		break;
	case LINE_CHECKPOINT:
		frame_begin(&desk->out, DESK_CHECKPOINT);
		frame_put_u32(&desk->out, id);
		frame_put_string(&desk->out, line->checkpoint);
		break;
	case LINE_STATUS:
		frame_begin(&desk->out, DESK_STATUS);
		frame_put_u32(&desk->out, id);
		break;
	}
	return tell_box(desk, frame_end(&desk->out));
}

/* Negative: the box has gone. */
static int serve_line(struct desk *desk, struct connection *connection, const char *bytes, size_t size)
{
	struct open_request *request = find_open(connection, 0);
	struct line line;
	const char *why;
	int r;

	if (line_parse(bytes, size, &line, &why) < 0) {
		refuse_line(connection, why);
		return 0;
	}
	if (!request) {
		refuse_line(connection, "too many requests of one connection have no answer yet");
		line_done(&line);
		return 0;
	}
	*request = (struct open_request){ .id = ++desk->last_id, .is_text = line.is_text, .has_tag = line.tag };
	if (line.tag && str_copy(request->tag, sizeof request->tag, line.tag) < 0)
		request->tag[0] = 0;
	r = pass_on(desk, &line, request->id);
	line_done(&line);
	return r;
}

static bool take_token(struct desk *desk)
{
	uint64_t now_ns = clock_monotonic_ns(),
		 more = (now_ns - desk->refilled_ns) / NS_PER_MS / DESK_LINES_REFILL_MS;

	desk->refilled_ns += more * DESK_LINES_REFILL_MS * NS_PER_MS;
	desk->tokens = desk->tokens + more > DESK_LINES_BURST ? DESK_LINES_BURST : desk->tokens + more;
	if (!desk->tokens)
		return false;
	desk->tokens--;
	return true;
}

static bool is_blank(const char *bytes, size_t size)
{
	while (size && strchr(" \t\r", bytes[size - 1]) && bytes[size - 1])
		size--;
	return !size;
}

/* The lines that are whole. */
static int serve_lines(struct desk *desk, struct connection *connection)
{
	size_t at = 0;
	int r = 0;

	while (r == 0 && !connection->is_ending) {
		const char *end = memchr(connection->in + at, '\n', connection->in_size - at);
		size_t size = end ? (size_t)(end - connection->in) - at : 0;

		if (!end || !take_token(desk))
			break;
		if (!is_blank(connection->in + at, size))
			r = serve_line(desk, connection, connection->in + at, size);
		at += size + 1;
	}
	memmove(connection->in, connection->in + at, connection->in_size - at);
	connection->in_size -= at;
	if (at)
		connection->begun_ns = clock_monotonic_ns();
	if (connection->in_size == sizeof connection->in && !memchr(connection->in, '\n', connection->in_size))
		refuse_line(connection, "the line is longer than 16383 bytes");
	return r;
}

static bool has_line(const struct connection *connection)
{
	return memchr(connection->in, '\n', connection->in_size) != NULL;
}

static int hear(struct desk *desk, struct connection *connection)
{
	ssize_t n = recv(connection->fd, connection->in + connection->in_size,
			 sizeof connection->in - connection->in_size, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (!connection->in_size)
		connection->begun_ns = clock_monotonic_ns();
	if (n > 0)
		connection->in_size += (size_t)n;
	if (n > 0)
		return serve_lines(desk, connection);
	connection->is_ending = true;
	/* The last line needs no end of its own. */
	return n == 0 && !is_blank(connection->in, connection->in_size) ?
		       serve_line(desk, connection, connection->in, connection->in_size) : 0;
}

/* ---- the box ---- */

static struct connection *find_connection(struct desk *desk, uint32_t id)
{
	for (size_t i = 0; id && i < DESK_CONNECTIONS_MAX; i++)
		if (desk->connections[i].fd >= 0 && find_open(&desk->connections[i], id))
			return &desk->connections[i];
	return NULL;
}

static struct reply_form form_of(const struct open_request *request)
{
	return (struct reply_form){ request->has_tag ? request->tag : NULL, request->is_text };
}

static int on_start(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct desk *desk = context;

	(void)fd_count;
	if (frame_finish(frame) < 0 || desk->listen_fd >= 0)
		return -EBADMSG;
	desk->listen_fd = take_fd(&fds[0]);
	return fd_set_nonblocking(desk->listen_fd, true);
}

static int on_answer(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct desk *desk = context;
	struct connection *connection;
	struct desk_answer answer;
	int r = desk_answer_get(frame, &answer);

	(void)fds;
	(void)fd_count;
	if (r < 0)
		return r;
	connection = find_connection(desk, answer.id);
	if (connection) {
		struct open_request *request = find_open(connection, answer.id);
		struct reply_form form = form_of(request);

		reply_put_answer(&connection->out, &form, &answer);
		if (answer.verdict != DESK_WAITS)
			request->id = 0;
	}
	free(answer.near);
	return 0;
}

static int on_told(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct desk *desk = context;
	struct connection *connection;
	struct desk_status status;
	int r = desk_status_get(frame, &status);

	(void)fds;
	(void)fd_count;
	if (r < 0)
		return r;
	connection = find_connection(desk, status.id);
	if (connection) {
		struct open_request *request = find_open(connection, status.id);
		struct reply_form form = form_of(request);

		reply_put_status(&connection->out, &form, &status);
		request->id = 0;
	}
	return 0;
}

static const struct frame_rule rules[] = {
	{ DESK_START, 1, 64, 1, 1, on_start },
	{ DESK_ANSWER, 1, FRAME_MESSAGE_MAX, 0, 0, on_answer },
	{ DESK_TOLD, 1, FRAME_MESSAGE_MAX, 0, 0, on_told },
};

/* ---- the loop ---- */

static void accept_one(struct desk *desk)
{
	static const char full[] = "{\"verdict\":\"invalid\",\"reason\":\"too many are connected\"}\n";
	cleanup_fd int fd = accept4(desk->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (size_t i = 0; fd >= 0 && i < DESK_CONNECTIONS_MAX; i++) {
		struct connection *connection = &desk->connections[i];

		if (connection->fd >= 0)
			continue;
		connection->fd = take_fd(&fd);
		connection->in_size = 0;
		connection->is_ending = false;
		connection->begun_ns = clock_monotonic_ns();
		memset(connection->open, 0, sizeof connection->open);
		buf_init(&connection->out, DESK_OUT_MAX);
		return;
	}
	if (fd >= 0)
		(void)!send(fd, full, sizeof full - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool is_late(const struct connection *connection, uint64_t now_ns)
{
	return connection->in_size && !has_line(connection) &&
	       now_ns - connection->begun_ns > DESK_QUIET_MS * (uint64_t)NS_PER_MS;
}

static int serve_connection(struct desk *desk, struct connection *connection, short events)
{
	int r = 0;

	/* Closed for both directions: nobody hears an answer. Half-closed still waits for its own. */
	if (events & (POLLERR | POLLNVAL) || ((events & POLLHUP) && !(events & POLLIN)))
		return end_connection(desk, connection);
	if (!connection->is_ending && has_line(connection))
		r = serve_lines(desk, connection);
	else if (!connection->is_ending && events & POLLIN)
		r = hear(desk, connection);
	if (r < 0)
		return r;
	if (is_late(connection, clock_monotonic_ns()))
		refuse_line(connection, "the line was not finished");
	if (!flush(connection) || (connection->is_ending && !connection->out.size && !has_open(connection)))
		return end_connection(desk, connection);
	return 0;
}

/* What is waited for; how many. */
static size_t fill_polled(struct desk *desk, struct pollfd polled[POLLED_MAX], struct connection *who[POLLED_MAX])
{
	size_t count = 0;

	polled[count++] = (struct pollfd){ .fd = desk->box_fd, .events = POLLIN };
	polled[count++] = (struct pollfd){ .fd = desk->listen_fd, .events = POLLIN };
	for (size_t i = 0; i < DESK_CONNECTIONS_MAX; i++) {
		struct connection *connection = &desk->connections[i];
		bool reads = !connection->is_ending && !has_line(connection);

		if (connection->fd < 0)
			continue;
		who[count] = connection;
		polled[count++] = (struct pollfd){
			.fd = connection->fd,
			.events = (short)((reads ? POLLIN : 0) | (connection->out.size ? POLLOUT : 0)),
		};
	}
	return count;
}

static int timeout_ms(const struct desk *desk, size_t count)
{
	for (size_t i = 0; i < DESK_CONNECTIONS_MAX; i++)
		if (desk->connections[i].fd >= 0 && !desk->connections[i].is_ending && has_line(&desk->connections[i]))
			return DESK_LINES_REFILL_MS;
	return count > 2 ? DESK_QUIET_MS : DESK_IDLE_MS;
}

/* 1: nobody is connected, for long enough. */
static int step(struct desk *desk)
{
	struct pollfd polled[POLLED_MAX];
	struct connection *who[POLLED_MAX];
	size_t count = fill_polled(desk, polled, who);
	int r = poll(polled, count, timeout_ms(desk, count));

	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	if (r == 0 && count == 2)
		return 1;
	if (polled[0].revents) {
		r = frame_dispatch(desk->box_fd, &desk->scratch, 0, rules, ARRAY_SIZE(rules), desk);
		if (r <= 0)
			return r < 0 ? r : -ECONNRESET;
	}
	if (desk->listen_fd >= 0 && polled[1].revents & POLLIN)
		accept_one(desk);
	for (size_t i = 2; i < count; i++) {
		r = serve_connection(desk, who[i], polled[i].revents);
		if (r < 0)
			return r;
	}
	return 0;
}

int desk_run(int box_fd, struct err *err)
{
	struct desk *desk = calloc(1, sizeof *desk);
	int r;

	if (!desk)
		return err_set(err, ERR_INTERNAL, ENOMEM, "desk", "out of memory");
	desk->box_fd = box_fd;
	desk->listen_fd = FD_NONE;
	desk->tokens = DESK_LINES_BURST;
	desk->refilled_ns = clock_monotonic_ns();
	buf_init(&desk->out, FRAME_MESSAGE_MAX);
	buf_init(&desk->scratch, FRAME_MESSAGE_MAX);
	for (size_t i = 0; i < DESK_CONNECTIONS_MAX; i++)
		desk->connections[i].fd = FD_NONE;
	line_prepare();
	r = confine_self(CONFINE_DESK, NULL, 0, err);
	while (r == 0)
		r = step(desk);
	for (size_t i = 0; i < DESK_CONNECTIONS_MAX; i++)
		if (desk->connections[i].fd >= 0 && end_connection(desk, &desk->connections[i]) < 0)
			r = r > 0 ? -ECONNRESET : r;
	close_fd(&desk->listen_fd);
	buf_done(&desk->out);
	buf_done(&desk->scratch);
	free(desk);
	return r < 0 && r != -ECONNRESET ? r : 0;
}
