/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/call/front.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "os/clock.h"
#include "os/fd.h"
#include "os/spawn.h"

enum { SOCKET_BUFFER = 1 << 20, NS_PER_S = 1000000000, RATE_WINDOW_S = 60, BACK_OFF_S = 5 };

struct front_frame {
	struct front_frame *next;
	size_t size, fd_count;
	int fds[FRAME_FD_MAX];       /* owned */
	uint8_t bytes[];
};

static void free_frame(struct front_frame *frame)
{
	for (size_t i = 0; i < frame->fd_count; i++)
		close_fd(&frame->fds[i]);
	free(frame);
}

static void drop_queue(struct front *front)
{
	while (front->first) {
		struct front_frame *frame = front->first;

		front->first = frame->next;
		free_frame(frame);
	}
	front->last = &front->first;
	front->queued_bytes = 0;
}

void front_init(struct front *front, struct loop *loop, const struct front_setup *setup)
{
	front->setup = setup;
	front->loop = loop;
	front->process = PIDREF_NONE;
	front->socket = (struct loop_source){ .fd = FD_NONE };
	front->last = &front->first;
	buf_init(&front->scratch, FRAME_MESSAGE_MAX);
}

/* It is not asked whether it would like to end: it holds nothing that has to be put right. */
static void end_process(struct front *front)
{
	bool was_there = front->process.fd >= 0;
	siginfo_t info;

	loop_remove(front->loop, &front->socket);
	close_fd(&front->socket.fd);
	drop_queue(front);
	if (was_there) {
		(void)!pidref_signal(&front->process, SIGKILL);
		(void)!pidref_wait(&front->process, WEXITED, &info, NULL);
	}
	pidref_done(&front->process);
	front->process = PIDREF_NONE;
	/* Also where it had said nothing yet: the next one is to come. */
	front->is_ready = false;
	if (was_there)
		front->changed(front->context, false);
}

void front_done(struct front *front)
{
	end_process(front);
	buf_done(&front->scratch);
}

/* ---- what it says ---- */

static int take_message(struct front *front, struct frame *frame, int *fds, size_t fd_count)
{
	struct service_message *message = malloc(sizeof *message);
	uint8_t *bytes = malloc(frame->size);
	const char *problem;
	struct frame own;
	int r = message && bytes ? 0 : -ENOMEM;

	if (r == 0) {
		memcpy(bytes, frame->bytes, frame->size);
		r = frame_open(&own, bytes, frame->size);
	}
	if (r == 0)
		r = service_read(&own, fds, fd_count, message, &problem);
	if (r < 0) {
		free(message);
		free(bytes);
		return r;
	}
	for (size_t i = 0; i < fd_count; i++)
		fds[i] = FD_NONE;
	return front->request(front->context, bytes, message);
}

static int hear_ready(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct front *front = context;
	int r = frame_finish(frame);

	if (r < 0)
		return r;
	front->is_ready = true;
	front->changed(front->context, true);
	return 0;
}

static int hear_request(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	return take_message(context, frame, fds, fd_count);
}

enum { STATE_STARTING = 1 << 0, STATE_READY = 1 << 1 };

static const struct frame_rule rules[] = {
	{ SERVICE_READY, STATE_STARTING, FRAME_HEADER_SIZE, 0, 0, hear_ready },
	{ SERVICE_REQUEST, STATE_READY, FRAME_MESSAGE_MAX, 0, 0, hear_request },
};

/* ---- what it is told ---- */

static int send_queued(struct front *front)
{
	while (front->first) {
		struct front_frame *frame = front->first;
		ssize_t n = fd_send_message(front->socket.fd, frame->bytes, frame->size, frame->fds, frame->fd_count);

		/* Too many descriptors of this user are under way: they are received soon. */
		if (n == -EAGAIN || n == -ETOOMANYREFS)
			return 0;
		if (n < 0)
			return (int)n;
		front->first = frame->next;
		if (!front->first)
			front->last = &front->first;
		front->queued_bytes -= frame->size;
		free_frame(frame);
	}
	return 0;
}

static int on_socket(void *context, uint32_t events)
{
	struct front *front = context;
	int r = 0;

	if (events & EPOLLOUT)
		r = send_queued(front);
	if (r == 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		r = frame_dispatch(front->socket.fd, &front->scratch, front->is_ready, rules, ARRAY_SIZE(rules), front);
		r = r == -EAGAIN || r == 1 ? 0 : r == 0 ? -EPIPE : r;
	}
	if (r < 0)
		end_process(front);
	else
		r = loop_change(front->loop, &front->socket, front->first ? EPOLLIN | EPOLLOUT : EPOLLIN);
	return r == -ENOMEM ? r : 0;
}

static int queue_frame(struct front *front, const struct buf *out, const int *fds, size_t fd_count)
{
	struct front_frame *frame;

	if (front->queued_bytes + out->size > FRONT_QUEUE_MAX)
		return -ENOBUFS;
	frame = malloc(sizeof *frame + out->size);
	if (!frame)
		return -ENOMEM;
	*frame = (struct front_frame){ .size = out->size, .fd_count = fd_count };
	memcpy(frame->bytes, out->bytes, out->size);
	for (size_t i = 0; i < fd_count; i++)
		frame->fds[i] = fds[i];
	*front->last = frame;
	front->last = &frame->next;
	front->queued_bytes += out->size;
	return 0;
}

void front_send(struct front *front, const struct buf *out, int *fds, size_t fd_count)
{
	int r = -EAGAIN;

	if (front->socket.fd >= 0 && !front->first)
		r = frame_send(front->socket.fd, out, fds, fd_count);
	if (front->socket.fd >= 0 && (r == -EAGAIN || r == -ETOOMANYREFS)) {
		r = queue_frame(front, out, fds, fd_count);
		if (r == 0) {
			fd_count = 0;
			r = loop_change(front->loop, &front->socket, EPOLLIN | EPOLLOUT);
		}
	}
	for (size_t i = 0; i < fd_count; i++)
		close_fd(&fds[i]);
	/* Its end is seen by the loop, where nobody is in the middle of something. */
	if (r < 0 && front->socket.fd >= 0)
		shutdown(front->socket.fd, SHUT_RDWR);
}

/* ---- its start ---- */

static void put_fd(struct buf *out, const char *key, int fd, int *fds, size_t *count)
{
	int copy = fd < 0 ? FD_NONE : fd_duplicate(fd);

	if (copy < 0)
		return;
	field_put_fd(out, key, *count);
	fds[(*count)++] = copy;
}

static int send_setup(struct front *front)
{
	const struct front_setup *setup = front->setup;
	cleanup_buf struct buf out;
	int fds[FRAME_FD_MAX], r;
	size_t count = 0;

	buf_init(&out, FRAME_MESSAGE_MAX);
	service_begin_setup(&out);
	field_put_string(&out, "domain", setup->domain);
	if (setup->hosts && setup->hosts[0])
		field_put_strings(&out, "hosts", setup->hosts);
	field_put_u64(&out, "connections_max", setup->connections_max);
	field_put_u64(&out, "body_max", setup->body_max);
	put_fd(&out, "listen", setup->listen_fds[0], fds, &count);
	put_fd(&out, "listen6", setup->listen_fds[1], fds, &count);
	put_fd(&out, "certificate", setup->certificate_fd, fds, &count);
	put_fd(&out, "private_key", setup->private_key_fd, fds, &count);
	r = service_end(&out, count);
	if (r == 0) {
		front_send(front, &out, fds, count);
		return 0;
	}
	for (size_t i = 0; i < count; i++)
		close_fd(&fds[i]);
	return r;
}

static int spawn(struct front *front, int theirs)
{
	const char *const argv[] = { "atoll-front", NULL }, *const env[] = { NULL };
	struct spawn start = { .program = front->setup->program, .argv = argv, .env = env, .unblocks_signals = true,
			       .fds = { { theirs, SERVICE_FD }, { SPAWN_NULL, STDIN_FILENO }, { SPAWN_NULL,
			STDOUT_FILENO } },
			       .fd_count = 3 };
	pid_t pid;
	int r = spawn_start(&start, &pid);

	return r < 0 ? r : pidref_open(&front->process, pid);
}

int front_start(struct front *front, struct err *err)
{
	cleanup_fd int theirs = FD_NONE;
	int pair[2], size = SOCKET_BUFFER, r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, ERR_INTERNAL, errno, "front", "socketpair: %s", err_errno_name(errno));
	front->socket = (struct loop_source){ .fd = pair[0], .events = EPOLLIN, .ready = on_socket, .context = front };
	theirs = fd_move_above(pair[1], SERVICE_FD + 1);
	setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	front->starts_ns[front->start_count++ % ARRAY_SIZE(front->starts_ns)] = clock_monotonic_ns();
	front->generation++;
	r = theirs < 0 ? theirs : fd_set_nonblocking(pair[0], true);
	if (r == 0)
		r = spawn(front, theirs);
	if (r == 0)
		r = loop_add(front->loop, &front->socket);
	if (r == 0)
		r = send_setup(front);
	if (r < 0) {
		end_process(front);
		return err_not_started("front", front->setup->program, -r, err);
	}
	return 0;
}

/* As many as the ring holds within a minute; then one each five seconds. */
uint64_t front_next_start_ns(const struct front *front)
{
	uint64_t oldest, newest;

	if (front->process.fd >= 0)
		return UINT64_MAX;
	if (front->start_count < ARRAY_SIZE(front->starts_ns))
		return 0;
	oldest = front->starts_ns[front->start_count % ARRAY_SIZE(front->starts_ns)];
	newest = front->starts_ns[(front->start_count - 1) % ARRAY_SIZE(front->starts_ns)];
	if (newest - oldest > (uint64_t)RATE_WINDOW_S * NS_PER_S)
		return 0;
	return newest + (uint64_t)BACK_OFF_S * NS_PER_S;
}
