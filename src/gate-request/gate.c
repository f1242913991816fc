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

/* Whoever waited at the desk hears the end of the connection; a number of a request means another one to the next. */
static void drop_requests(struct access_gate *gate)
{
	access_gate_forget(gate);
	access_token_done(gate);
	access_checkpoint_done(gate);
}

/* There is nobody at the desk. */
static int vacate(void *context, enum peer_fault fault)
{
	struct access_gate *gate = context;

	(void)fault;
	drop_requests(gate);
	/* One that falls again and again is left alone: connections are refused from then on. */
	if (gate->peer.state == PEER_SPENT) {
		close_fd(&gate->listen_fd);
		return 0;
	}
	return loop_add(gate->run->loop, &gate->listen_source);
}

static const struct peer_kind desk = {
	.program = "atoll-desk", .user = PEER_DESK, .may_leave = true, .broke = vacate,
	.rules = access_gate_rules, .rule_count = DESK_RULE_COUNT,
};

void access_gate_send(struct access_gate *gate)
{
	if (peer_is_there(&gate->peer) && peer_send(&gate->peer, NULL, 0) < 0)
		peer_break(&gate->peer, PEER_DEAF);
}

static int connection_waits(void *context, uint32_t events)
{
	struct access_gate *gate = context;
	int r = peer_start(&gate->peer, NULL);

	(void)events;
	loop_remove(gate->run->loop, &gate->listen_source);
	frame_begin(&gate->run->out, DESK_START);
	if (r == 0)
		r = peer_greet(&gate->peer, frame_end(&gate->run->out), &gate->listen_fd, 1);
	return r < 0 ? vacate(gate, PEER_DEAF) : 0;
}

bool access_gate_open(struct access_gate **ret_gate, struct run *run, struct runtime_mounts *mounts,
		      struct queue *queue)
{
	const struct namespaces_task task = { .inside = bind_inside };
	struct access_gate *gate = calloc(1, sizeof *gate);

	if (!gate)
		return false;
	*gate = (struct access_gate){ .run = run, .queue = queue, .mounts = mounts, .listen_fd = FD_NONE,
				      .tokens = DESK_BURST,
				      .refilled_ns = clock_monotonic_ns() };
	peer_init(&gate->peer, run, &desk, DESK_STARTS_MAX, gate);
	access_token_init(gate);
	access_checkpoint_init(gate);
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
	peer_close(&gate->peer, false);
	drop_requests(gate);
	loop_remove(gate->run->loop, &gate->listen_source);
	close_fd(&gate->listen_fd);
	for (size_t i = 0; i < DESK_KEPT_MAX; i++)
		free(gate->kept[i].frame);
	free(gate);
}
