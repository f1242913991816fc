/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/spawn.h"

#include <sys/socket.h>

#include "client/api/fault.h"
#include "os/fd.h"
#include "os/spawn.h"
#include "wire/link.h"

void spawn_request_init(struct spawn_request *request, const struct atoll_context *context, const char *name)
{
	*request = (struct spawn_request){ .name = name };
	buf_init(&request->frame, LINK_START_SIZE_MAX);
	frame_begin(&request->frame, LINK_START);
	field_put_strings(&request->frame, "places", (const char *const *)context->environment);
}

void spawn_request_done(struct spawn_request *request)
{
	buf_done(&request->frame);
}

/* Both ends close-on-exec, and not in the place of a closed 0, 1 or 2 of the caller. */
static int open_socket(int ends[2])
{
	int r = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0 ? -errno : 0;

	if (r < 0)
		return r;
	for (int i = 0; r >= 0 && i < 2; i++)
		r = ends[i] = fd_move_above(ends[i], 3);
	if (r >= 0)
		r = fd_set_nonblocking(ends[0], true);
	if (r < 0) {
		close_fd(&ends[0]);
		close_fd(&ends[1]);
	}
	return r < 0 ? r : 0;
}

static int set_failure(const char *program, int r, const char *step, struct atoll_error *error)
{
	bool is_limit = r == -EAGAIN || r == -EMFILE || r == -ENOMEM;

	return fault_set(error, is_limit ? ATOLL_E_LIMIT : ATOLL_E_STATE, -r, "start", "%s cannot be started: %s: %s",
			 program, step, err_errno_name(-r));
}

/* In the order in which they are found: the request, the socket, those that it counts. */
static int start(const struct spawn_request *request, const struct atoll_context *context, int request_fd,
		 int socket_fd, struct atoll_error *error)
{
	const char *argv[] = { request->name, request->id, NULL }, *const env[] = { NULL }, *step = "";
	struct spawn spawn = { .program = context->program, .argv = argv, .env = env, .fd_count = 2 };
	int r;

	spawn.fds[0] = (struct spawn_fd){ request_fd, LINK_START_FD };
	spawn.fds[1] = (struct spawn_fd){ socket_fd, LINK_SOCKET_FD };
	for (size_t i = 0; i < request->fd_count; i++)
		spawn.fds[spawn.fd_count++] = (struct spawn_fd){ request->fds[i], LINK_FIRST_FD + (int)i };
	r = spawn_detached(&spawn, &step);
	return r < 0 ? set_failure(context->program, r, step, error) : 0;
}

int spawn_request_start(struct spawn_request *request, const struct atoll_context *context, int *ret_fd,
			struct atoll_error *error)
{
	int ends[2] = { FD_NONE, FD_NONE }, r = context_need_programs(context, error);
	cleanup_fd int request_fd = FD_NONE;

	if (r < 0)
		return r;
	r = frame_end(&request->frame);
	if (r == 0)
		r = open_socket(ends);
	if (r == 0 && request->greet)
		r = request->greet(ends[0], context);
	if (r == 0)
		r = request_fd = fd_memfd_sealed("atoll-start", request->frame.bytes, request->frame.size);
	if (r < 0)
		r = r == -ENOBUFS ? fault_set(error, ATOLL_E_LIMIT, 0, "start", "the request is larger than %d bytes",
					      LINK_START_SIZE_MAX)
				  : fault_errno(error, r, "start");
	else
		r = start(request, context, request_fd, ends[1], error);
	close_fd(&ends[1]);
	if (r < 0)
		close_fd(&ends[0]);
	else
		*ret_fd = ends[0];
	return r < 0 ? r : 0;
}
