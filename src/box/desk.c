/* SPDX-License-Identifier: Apache-2.0 */
#include "box/desk.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/str.h"
#include "box/desk-state.h"
#include "box/desk-token.h"
#include "box/state.h"
#include "build/enter-namespaces.h"
#include "os/clock.h"
#include "os/path.h"
#include "supervise/peer.h"

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
static void lose(struct box *box)
{
	struct desk *desk = box->desk;

	loop_remove(box->run.loop, &desk->near_source);
	close_fd(&desk->near_fd);
	peer_end(&desk->process);
	requests_forget(box);
	/* The number of its request means another one to the next desk. */
	desk_token_done(box);
}

/* There is nobody at the desk. One that falls again and again is left alone: connections are refused from then on. */
static int vacate(struct box *box, bool is_fall)
{
	struct desk *desk = box->desk;

	lose(box);
	desk->falls += is_fall;
	if (desk->falls >= DESK_STARTS_MAX) {
		close_fd(&desk->listen_fd);
		return 0;
	}
	return loop_add(box->run.loop, &desk->listen_source);
}

void desk_send(struct box *box)
{
	struct desk *desk = box->desk;

	/* It is told of its end by the loop, as if it had gone by itself. */
	if (desk->near_fd >= 0 && frame_send(desk->near_fd, &box->run.out, NULL, 0) < 0)
		shutdown(desk->near_fd, SHUT_RDWR);
}

static int desk_speaks(void *context, uint32_t events)
{
	struct box *box = context;
	int r = requests_serve(box);

	(void)events;
	if (r > 0)
		return 0;
	if (r < 0 && r != -EPROTO && r != -EBADMSG && r != -ECONNRESET)
		return r;
	return vacate(box, r < 0);
}

static int start(struct box *box)
{
	struct desk *desk = box->desk;
	int r = peer_start(&box->run, "atoll-desk", peer_uid(&box->run, PEER_DESK), &desk->near_fd, &desk->process);

	frame_begin(&box->run.out, DESK_START);
	if (r == 0)
		r = frame_end(&box->run.out);
	if (r == 0)
		r = frame_send(desk->near_fd, &box->run.out, &desk->listen_fd, 1);
	desk->near_source = (struct loop_source){ .fd = desk->near_fd, .events = EPOLLIN, .ready = desk_speaks,
						  .context = box };
	return r == 0 ? loop_add(box->run.loop, &desk->near_source) : r;
}

static int connection_waits(void *context, uint32_t events)
{
	struct box *box = context;

	(void)events;
	loop_remove(box->run.loop, &box->desk->listen_source);
	return start(box) < 0 ? vacate(box, true) : 0;
}

bool desk_open(void *context, const char *path)
{
	struct box *box = context;
	const struct namespaces_task task = { .inside = bind_inside };
	struct desk *desk;

	/* Whatever way the caller names it; in a place of its own it gets what it has there. */
	if (box->desk || !str_equal(path_basename(path), path_basename(DESK_SOCKET)) ||
	    !policy_hears_requests(box->run.policy->policy))
		return false;
	desk = box->desk = calloc(1, sizeof *desk);
	if (!desk)
		return false;
	*desk = (struct desk){ .listen_fd = FD_NONE, .near_fd = FD_NONE, .process = PIDREF_NONE, .tokens = DESK_BURST,
			       .token = { .near_fd = FD_NONE, .process = PIDREF_NONE },
			       .refilled_ns = clock_monotonic_ns() };
	if (namespaces_run(&box->run, &task, &desk->listen_fd) < 0)
		return false;
	desk->listen_source = (struct loop_source){ .fd = desk->listen_fd, .events = EPOLLIN,
						    .ready = connection_waits, .context = box };
	return loop_add(box->run.loop, &desk->listen_source) == 0;
}

void desk_close(struct box *box)
{
	struct desk *desk = box->desk;

	if (!desk)
		return;
	lose(box);
	loop_remove(box->run.loop, &desk->listen_source);
	close_fd(&desk->listen_fd);
	for (size_t i = 0; i < DESK_KEPT_MAX; i++)
		free(desk->kept[i].frame);
	free(desk);
	box->desk = NULL;
}
