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
#include "gate-request/checkpoint.h"
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
static void end_program(struct access_gate *gate)
{
	loop_remove(gate->run->loop, &gate->near_source);
	close_fd(&gate->near_fd);
	peer_end(&gate->process);
	access_gate_forget(gate);
	/* The number of its request means another one to the next desk. */
	access_token_done(gate);
	access_checkpoint_done(gate);
}

/* There is nobody at the desk. One that falls again and again is left alone: connections are refused from then on. */
static int vacate(struct access_gate *gate, bool is_fall)
{
	end_program(gate);
	gate->falls += is_fall;
	if (gate->falls >= DESK_STARTS_MAX) {
		close_fd(&gate->listen_fd);
		return 0;
	}
	return loop_add(gate->run->loop, &gate->listen_source);
}

void access_gate_send(struct access_gate *gate)
{
	/* It is told of its end by the loop, as if it had gone by itself. */
	if (gate->near_fd >= 0 && frame_send(gate->near_fd, &gate->run->out, NULL, 0) < 0)
		shutdown(gate->near_fd, SHUT_RDWR);
}

static int desk_speaks(void *context, uint32_t events)
{
	struct access_gate *gate = context;
	int r = access_gate_serve(gate);

	(void)events;
	if (r > 0)
		return 0;
	if (r < 0 && r != -EPROTO && r != -EBADMSG && r != -ECONNRESET)
		return r;
	return vacate(gate, r < 0);
}

static int start(struct access_gate *gate)
{
	int r = peer_start(gate->run, "atoll-desk", peer_uid(gate->run, PEER_DESK), &gate->near_fd, &gate->process);

	frame_begin(&gate->run->out, DESK_START);
	if (r == 0)
		r = frame_end(&gate->run->out);
	if (r == 0)
		r = frame_send(gate->near_fd, &gate->run->out, &gate->listen_fd, 1);
	gate->near_source = (struct loop_source){ .fd = gate->near_fd, .events = EPOLLIN, .ready = desk_speaks,
						  .context = gate };
	return r == 0 ? loop_add(gate->run->loop, &gate->near_source) : r;
}

static int connection_waits(void *context, uint32_t events)
{
	struct access_gate *gate = context;

	(void)events;
	loop_remove(gate->run->loop, &gate->listen_source);
	return start(gate) < 0 ? vacate(gate, true) : 0;
}

bool access_gate_open(struct access_gate **ret_gate, struct run *run, struct runtime_mounts *mounts,
		      struct queue *queue)
{
	const struct namespaces_task task = { .inside = bind_inside };
	struct access_gate *gate = calloc(1, sizeof *gate);

	if (!gate)
		return false;
	*gate = (struct access_gate){ .run = run, .queue = queue, .mounts = mounts, .listen_fd = FD_NONE,
				      .near_fd = FD_NONE, .process = PIDREF_NONE, .tokens = DESK_BURST,
			       .token = { .near_fd = FD_NONE, .process = PIDREF_NONE },
			       .checkpoint = { .near_fd = FD_NONE, .name_fd = FD_NONE, .process = PIDREF_NONE },
			       .refilled_ns = clock_monotonic_ns() };
	/* Also where it fails: then nobody asks here. */
	*ret_gate = gate;
	if (namespaces_run(run, &task, &gate->listen_fd) < 0)
		return false;
	gate->listen_source = (struct loop_source){ .fd = gate->listen_fd, .events = EPOLLIN,
						    .ready = connection_waits, .context = gate };
	return loop_add(run->loop, &gate->listen_source) == 0;
}

bool access_gate_is_wanted(const struct run *run, const char *path)
{
	return str_equal(path_basename(path), path_basename(DESK_SOCKET)) && policy_hears_requests(run->policy->policy);
}

void access_gate_close(struct access_gate *gate)
{
	if (!gate)
		return;
	end_program(gate);
	loop_remove(gate->run->loop, &gate->listen_source);
	close_fd(&gate->listen_fd);
	for (size_t i = 0; i < DESK_KEPT_MAX; i++)
		free(gate->kept[i].frame);
	free(gate);
}
