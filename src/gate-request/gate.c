/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-request/gate.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/str.h"
#include "build/enter-namespaces.h"
#include "gate-request/gate-state.h"
#include "gate-request/token.h"
#include "os/clock.h"
#include "os/path.h"
#include "policy/decide.h"
#include "supervise/peer.h"
#include "supervise/run.h"

/*
 * A start makes no more than the name: an inode of a socket that nobody listens on. The supervisor makes every
 * connection anyway (watch/connect.c); when one to that name is refused for the first time, a socket is bound in its
 * place by a child that enters the sandbox, and the connection is tried again. Bytes from inside are read by
 * atoll-desk, which has the listening socket as long as anybody is connected, and ends when nobody is.
 */

enum { BACKLOG = 16 };

static int bind_inside(void *context, int root_fd, int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup_fd int writable = namespaces_writable_root(root_fd), directory = FD_NONE, fd = FD_NONE;
	const char *name = path_basename(DESK_SOCKET);

	(void)context;
	if (writable < 0)
		return writable;
	directory = path_open2(writable, "run/atoll", O_PATH | O_DIRECTORY, 0, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	if (directory < 0)
		return directory;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || fchdir(directory) < 0 || (unlinkat(directory, name, 0) < 0 && errno != ENOENT))
		return -errno;
	memcpy(address.sun_path, name, strlen(name) + 1);
	if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || fchmodat(directory, name, 0666, 0) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* ---- the program ---- */

static int connection_waits(void *context, uint32_t events);

/* Ends the program, if there is one; whoever waited at it hears the end of the connection. */
static void lose(struct desk *desk)
{
	loop_remove(desk->run->loop, &desk->near_source);
	close_fd(&desk->near_fd);
	peer_end(&desk->process);
	requests_forget(desk);
	/* The number of its request means another one to the next desk. */
	desk_token_done(desk);
}

/* There is nobody at the desk. One that falls again and again is left alone: connections are refused from then on. */
static int vacate(struct desk *desk, bool is_fall)
{
	lose(desk);
	desk->falls += is_fall;
	if (desk->falls >= DESK_STARTS_MAX) {
		close_fd(&desk->listen_fd);
		return 0;
	}
	return loop_add(desk->run->loop, &desk->listen_source);
}

void desk_send(struct desk *desk)
{
	/* It is told of its end by the loop, as if it had gone by itself. */
	if (desk->near_fd >= 0 && frame_send(desk->near_fd, &desk->run->out, NULL, 0) < 0)
		shutdown(desk->near_fd, SHUT_RDWR);
}

static int desk_speaks(void *context, uint32_t events)
{
	struct desk *desk = context;
	int r = requests_serve(desk);

	(void)events;
	if (r > 0)
		return 0;
	if (r < 0 && r != -EPROTO && r != -EBADMSG && r != -ECONNRESET)
		return r;
	return vacate(desk, r < 0);
}

static int start(struct desk *desk)
{
	int r = peer_start(desk->run, "atoll-desk", peer_uid(desk->run, PEER_DESK), &desk->near_fd, &desk->process);

	frame_begin(&desk->run->out, DESK_START);
	if (r == 0)
		r = frame_end(&desk->run->out);
	if (r == 0)
		r = frame_send(desk->near_fd, &desk->run->out, &desk->listen_fd, 1);
	desk->near_source = (struct loop_source){ .fd = desk->near_fd, .events = EPOLLIN, .ready = desk_speaks,
						  .context = desk };
	return r == 0 ? loop_add(desk->run->loop, &desk->near_source) : r;
}

static int connection_waits(void *context, uint32_t events)
{
	struct desk *desk = context;

	(void)events;
	loop_remove(desk->run->loop, &desk->listen_source);
	return start(desk) < 0 ? vacate(desk, true) : 0;
}

bool desk_open(struct desk **ret_desk, struct run *run, struct runtime_mounts *mounts, struct queue *queue)
{
	const struct namespaces_task task = { .inside = bind_inside };
	struct desk *desk = calloc(1, sizeof *desk);

	if (!desk)
		return false;
	*desk = (struct desk){ .run = run, .queue = queue, .mounts = mounts, .listen_fd = FD_NONE, .near_fd = FD_NONE,
			       .process = PIDREF_NONE, .tokens = DESK_BURST,
			       .token = { .near_fd = FD_NONE, .process = PIDREF_NONE },
			       .refilled_ns = clock_monotonic_ns() };
	/* Also where it fails: then nobody asks here. */
	*ret_desk = desk;
	if (namespaces_run(run, &task, &desk->listen_fd) < 0)
		return false;
	desk->listen_source = (struct loop_source){ .fd = desk->listen_fd, .events = EPOLLIN,
						    .ready = connection_waits, .context = desk };
	return loop_add(run->loop, &desk->listen_source) == 0;
}

bool desk_is_wanted(const struct run *run, const char *path)
{
	return str_equal(path_basename(path), path_basename(DESK_SOCKET)) && policy_hears_requests(run->policy->policy);
}

void desk_close(struct desk *desk)
{
	if (!desk)
		return;
	lose(desk);
	loop_remove(desk->run->loop, &desk->listen_source);
	close_fd(&desk->listen_fd);
	for (size_t i = 0; i < DESK_KEPT_MAX; i++)
		free(desk->kept[i].frame);
	free(desk);
}
