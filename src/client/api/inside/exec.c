/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>

#include "client/api/fault.h"
#include "client/api/record.h"
#include "client/api/sandbox.h"
#include "client/api/streams.h"
#include "os/fd.h"

/* One more command, with its streams. */

enum { STREAM_COUNT = 3, COMMAND_SIZE = 4000, TAG_MAX = 255 };

/* A command has all three or a terminal. */
static int fill_streams(struct stream_plan *plan, int *null_fd)
{
	for (int i = 0; i < STREAM_COUNT; i++) {
		if (plan->fds[i] >= 0)
			continue;
		if (*null_fd < 0)
			*null_fd = fd_open_at(AT_FDCWD, "/dev/null", O_RDWR, 0);
		if (*null_fd < 0)
			return *null_fd;
		plan->fds[i] = *null_fd;
	}
	return 0;
}

static int send_command(atoll_sandbox *sandbox, const atoll_record *command, struct stream_plan *plan,
			uint64_t *ticket, atoll_record **result, struct atoll_error *error)
{
	struct request request = { .fds = plan->fds, .streams = plan->ours,
				   .fd_count = !plan->pty ? STREAM_COUNT : plan->lasting ? 1 : 0 };
	cleanup_fd int null_fd = FD_NONE;
	size_t unused = 0;
	struct buf out;
	int r = plan->pty ? 0 : fill_streams(plan, &null_fd);

	plan->ours = NULL;
	request.ticket = sandbox_begin(sandbox, &out, LINK_RUN);
	/* As large as most environments are: each growth would be a piece of memory more. */
	if (buf_reserve(&out, COMMAND_SIZE))
		out.size -= COMMAND_SIZE;
	request.out = &out;
	if (plan->pty)
		field_put_u64(&out, "pty", plan->pty);
	if (plan->lasting)
		field_put_u64(&out, "lasting", plan->lasting);
	if (r == 0)
		r = record_put_fields(command, stream_keys, &out, NULL, 0, &unused);
	if (r == 0)
		return sandbox_request(sandbox, &request, ticket, result, error);
	streams_free(request.streams);
	buf_done(&out);
	return fault_errno(error, r, "exec");
}

int atoll_exec(atoll_sandbox *sandbox, const atoll_record *command, uint64_t *ticket, atoll_record **result,
	       struct atoll_error *error)
{
	const char *const *argv = NULL;
	const char *cwd = record_string(command, "cwd");
	struct stream_plan plan;
	const void *token;
	size_t token_size;
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if (atoll_record_kind(command) != ATOLL_COMMAND || !atoll_get_strings(command, "argv", &argv) || !argv[0])
		return fault_set(error, ATOLL_E_INVALID, 0, "exec", "there is no command: \"argv\"");
	if (cwd && cwd[0] != '/')
		return fault_set(error, ATOLL_E_INVALID, 0, "exec", "\"cwd\" is no absolute path");
	if (record_string(command, "tag") && strlen(record_string(command, "tag")) > TAG_MAX)
		return fault_set(error, ATOLL_E_INVALID, 0, "exec", "\"tag\" has more than %d bytes", TAG_MAX);
	if (atoll_get_bytes(command, "token", &token, &token_size))
		r = sandbox_need(sandbox, 2, error);
	if (r == 0 && (record_string(command, "tag") || record_string(command, "user")))
		r = sandbox_need(sandbox, 3, error);
	if (r < 0)
		return r;
	r = stream_plan_make(&plan, command, error);
	if (r == 0 && plan.lasting)
		r = sandbox_need(sandbox, 3, error);
	if (r == 0)
		r = send_command(sandbox, command, &plan, ticket, result, error);
	stream_plan_done(&plan);
	return r;
}

/* Nobody waits for what comes of it, as with a terminal's own. */
static int resize_lasting(atoll_sandbox *sandbox, uint64_t command, uint64_t size, struct atoll_error *error)
{
	struct buf out;
	int r;

	if (sandbox->socket_fd < 0 || sandbox_need(sandbox, 3, NULL) < 0)
		return fault_set(error, ATOLL_E_NOT_FOUND, 0, "resize", "there is no terminal of such a command here");
	(void)sandbox_begin(sandbox, &out, LINK_RESIZE);
	frame_put_u64(&out, command);
	frame_put_u64(&out, size);
	r = frame_end(&out);
	r = r < 0 ? fault_errno(error, r, "resize") : sandbox_send(sandbox, &out, NULL, 0, error);
	buf_done(&out);
	return r;
}

int atoll_resize(atoll_sandbox *sandbox, uint64_t command, uint32_t rows, uint32_t columns, struct atoll_error *error)
{
	struct winsize size = { .ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns };
	struct streams *streams = NULL;
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if (!rows || !columns || rows > UINT16_MAX || columns > UINT16_MAX)
		return fault_set(error, ATOLL_E_INVALID, 0, "resize", "a terminal has 1 to 65535 rows and columns");
	for (streams = sandbox->streams; streams && streams->command != command;)
		streams = streams->next;
	if (!streams || streams->terminal_fd < 0)
		return resize_lasting(sandbox, command, (uint64_t)rows << 16 | columns, error);
	return ioctl(streams->terminal_fd, TIOCSWINSZ, &size) < 0 ? fault_errno(error, -errno, "resize") : 0;
}
