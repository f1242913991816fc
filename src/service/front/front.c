/* SPDX-License-Identifier: Apache-2.0 */
#include "service/front/front.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/str.h"
#include "confine/confine.h"
#include "os/clock.h"
#include "os/fd.h"
#include "service/front/events.h"
#include "service/front/launcher.h"
#include "service/front/serve.h"
#include "service/front/state.h"
#include "service/protocol/value.h"

enum { NS_PER_MS = 1000000, TICK_MS = 1000, BUSY_TICK_MS = 250, PEM_MAX = 256 << 10 };

static int fail(struct err *err, int r, const char *what)
{
	return err_set(err, ERR_INTERNAL, -r, "front", "%s: %s", what, strerror(-r));
}

/* A PEM file that was opened by the launcher, whose place in it belongs to all fronts. */
static int read_pem(struct service_message *setup, const char *key, char **ret_text)
{
	cleanup_fd int fd = service_take_fd(setup, key);
	cleanup_buf struct buf text;
	ssize_t n;
	off_t offset = 0;

	buf_init(&text, PEM_MAX);
	if (fd < 0)
		return 0;
	do {
		char *at = buf_reserve(&text, 4096);

		n = at ? pread(fd, at, 4096, offset) : -1;
		offset += n > 0 ? n : 0;
		text.size -= 4096 - (size_t)(n > 0 ? n : 0);
	} while (n > 0);
	*ret_text = n == 0 ? str_dup(buf_text(&text)) : NULL;
	return *ret_text ? 0 : -EIO;
}

static int take_names(struct front *front, const struct service_message *setup)
{
	const char *const *hosts = service_strings(setup, "hosts");
	size_t count = strv_count(hosts);

	front->names = calloc(count + 2, sizeof *front->names);
	if (!front->names)
		return -ENOMEM;
	front->names[0] = str_dup(service_string(setup, "domain"));
	for (size_t i = 0; i < count; i++)
		front->names[i + 1] = str_dup(hosts[i]);
	/* A domain may have a port, which is no part of the name. */
	for (size_t i = 0; i <= count; i++) {
		if (!front->names[i])
			return -ENOMEM;
		front->names[i][strcspn(front->names[i], ":")] = 0;
	}
	return 0;
}

static int take_setup(struct front *front, struct service_message *setup)
{
	int r = take_names(front, setup);

	front->listen_fds[0] = service_take_fd(setup, "listen");
	front->listen_fds[1] = service_take_fd(setup, "listen6");
	front->body_max = service_number(setup, "body_max", FRONT_BODY_MAX);
	front->connections_max = (unsigned)service_number(setup, "connections_max", FRONT_CONNECTIONS_MAX);
	if (r == 0)
		r = read_pem(setup, "certificate", &front->certificate);
	if (r == 0)
		r = read_pem(setup, "private_key", &front->private_key);
	return r == 0 && !front->certificate != !front->private_key ? -EINVAL : r;
}

static int receive_setup(struct front *front, int fd)
{
	int fds[FRAME_FD_MAX] = { FD_NONE, FD_NONE, FD_NONE, FD_NONE };
	struct service_message *setup = calloc(1, sizeof *setup);
	uint8_t *bytes = malloc(FRAME_MESSAGE_MAX);
	const char *problem;
	struct frame frame;
	size_t count = 0;
	ssize_t n = setup && bytes ? fd_receive_message(fd, bytes, FRAME_MESSAGE_MAX, fds, FRAME_FD_MAX, &count)
				   : -ENOMEM;
	int r = n <= 0 ? (n < 0 ? (int)n : -EPIPE) : frame_open(&frame, bytes, (size_t)n);

	if (r == 0)
		r = service_read(&frame, fds, count, setup, &problem);
	if (r == 0) {
		r = setup->type == SERVICE_SETUP ? take_setup(front, setup) : -EPROTO;
		service_message_done(setup);
	}
	free(bytes);
	free(setup);
	return r;
}

static int serve(struct front *front, struct err *err)
{
	uint64_t ticked_ms = 0;

	for (;;) {
		uint64_t tick_ms = front->processes ? BUSY_TICK_MS : TICK_MS;
		int r;

		front->now_ms = clock_monotonic_ns() / NS_PER_MS;
		if (front->now_ms - ticked_ms >= tick_ms) {
			ticked_ms = front->now_ms;
			serve_tick(front);
			front_tick(front);
		}
		r = loop_step(&front->loop, serve_turn(front, (int)tick_ms));
		if (r == -EPIPE || r == -ECONNRESET)
			return 0;
		if (r < 0)
			return fail(err, r, "the launcher cannot be understood");
	}
}

/* As many as it may have: a client takes one, a command of its three more. */
static void raise_descriptors(struct front *front)
{
	struct rlimit limit;
	rlim_t half;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	half = limit.rlim_cur / 2;
	if (front->connections_max > half)
		front->connections_max = (unsigned)half;
}

/* What needs a file, a socket or another system call comes before the walls. */
static int begin(struct front *front, int launcher_fd, struct err *err)
{
	int r = receive_setup(front, launcher_fd);

	if (r < 0)
		return fail(err, r, "the launcher sends no setup");
	value_prepare();
	raise_descriptors(front);
	signal(SIGPIPE, SIG_IGN);
	r = loop_init(&front->loop);
	front->launcher = r == 0 ? launcher_new(front, launcher_fd, front_event) : NULL;
	if (r == 0)
		r = front->launcher ? serve_begin(front) : -ENOMEM;
	if (r < 0)
		return fail(err, r, front->certificate ? "TLS cannot be served with this certificate and key"
						       : "HTTP cannot be served");
	r = confine_self(CONFINE_FRONT, NULL, 0, err);
	if (r < 0)
		return r;
	r = launcher_listen(front->launcher);
	if (r == 0)
		r = launcher_tell_ready(front->launcher);
	return r < 0 ? fail(err, r, "the launcher cannot be told") : 0;
}

int front_run(int launcher_fd, const struct front_extension *extension, struct err *err)
{
	struct front front = { .loop.epoll_fd = FD_NONE, .listen_fds = { FD_NONE, FD_NONE }, .spare_fd = FD_NONE,
			       .extension = extension };
	int r;

	front.now_ms = clock_monotonic_ns() / NS_PER_MS;
	r = begin(&front, launcher_fd, err);
	/* The kernel takes back all that is open when the process ends, as it does next. */
	return r < 0 ? r : serve(&front, err);
}
