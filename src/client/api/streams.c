/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/streams.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "base/str.h"
#include "client/api/fault.h"
#include "client/api/record.h"
#include "os/fd.h"

/* They are to last: that bit stands for none of the three. */
enum { STREAMS_ALL = (1 << 3) - 1, LASTING = 1 << 3 };

enum { ROWS = 24, COLUMNS = 80, SIZE_MAX_16 = 0xffff };

const char *const stream_keys[] = { "stdin", "stdout", "stderr", "streams", "rows", "columns", "unattached", NULL };

int streams_reserve(struct streams *streams)
{
	for (size_t i = 0; i < ARRAY_SIZE(streams->reserved); i++) {
		int fd = streams->reserved[i];

		if (fd < 0)
			fd = fd_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
		streams->reserved[i] = fd < 0 ? fd : fd_move_above(fd, 3);
		if (streams->reserved[i] < 0)
			return streams->reserved[i];
	}
	return 0;
}

void streams_release(struct streams *streams)
{
	for (size_t i = 0; i < ARRAY_SIZE(streams->reserved); i++)
		close_fd(&streams->reserved[i]);
}

void stream_plan_done(struct stream_plan *plan)
{
	for (int i = 0; i < 3; i++)
		close_fd(&plan->theirs[i]);
	streams_free(plan->ours);
	plan->ours = NULL;
}

/* Our end does not block where the library reads it; the other one is the command's, and does. */
static int open_pipe(struct stream_plan *plan, int which, bool is_captured)
{
	int ends[2], ours = which == 0 ? 1 : 0, r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		r = ends[i] = fd_move_above(ends[i], 3);
		if (r < 0) {
			close_fd(&ends[!i]);
			return r;
		}
	}
	plan->ours->fds[which] = ends[ours];
	plan->fds[which] = plan->theirs[which] = ends[!ours];
	plan->lasting |= plan->lasting ? 1u << which : 0;
	return is_captured ? fd_set_nonblocking(ends[ours], true) : 0;
}

/* The box keeps the terminal itself; this is connected with it. */
static int open_socket(struct stream_plan *plan)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	plan->ours->fds[0] = fd_move_above(ends[0], 3);
	plan->fds[0] = plan->theirs[0] = fd_move_above(ends[1], 3);
	return plan->ours->fds[0] < 0 ? plan->ours->fds[0] : plan->theirs[0] < 0 ? plan->theirs[0] : 0;
}

static int plan_pty(struct stream_plan *plan, const struct atoll_record *record, struct atoll_error *error)
{
	uint64_t rows = ROWS, columns = COLUMNS;
	int r;

	(void)record_u64(record, "rows", &rows);
	(void)record_u64(record, "columns", &columns);
	if (!rows || !columns || rows > SIZE_MAX_16 || columns > SIZE_MAX_16)
		return fault_set(error, ATOLL_E_INVALID, 0, "streams", "\"rows\" and \"columns\" are 1 to 65535");
	plan->pty = rows << 16 | columns;
	plan->ours->is_pty = true;
	plan->lasting = plan->lasting ? STREAMS_ALL : 0;
	r = plan->lasting ? open_socket(plan) : streams_reserve(plan->ours);
	return r < 0 ? fault_errno(error, r, "streams") : 0;
}

/*
 * Nobody is there at the start: our ends are closed before the box has the others, so that it finds no reader who would
 * take something with him, and the ring keeps all for the first atoll_attach().
 */
static int leave_streams(struct stream_plan *plan, const struct atoll_record *record, struct atoll_error *error)
{
	uint64_t unattached = 0;

	(void)record_u64(record, "unattached", &unattached);
	if (!unattached)
		return 0;
	if (!plan->lasting)
		return fault_set(error, ATOLL_E_INVALID, 0, "streams",
				 "\"unattached\" is for \"keep\" with \"streams\"");
	for (int i = 0; i < 3; i++)
		close_fd(&plan->ours->fds[i]);
	return 0;
}

static int plan_streams(struct stream_plan *plan, const struct atoll_record *record, const char *how,
			struct atoll_error *error)
{
	bool is_captured = str_equal(how, "capture");
	uint64_t keep = 0;
	int r = 0;

	/* A sandbox's own command has no such key. */
	(void)record_u64(record, "keep", &keep);
	plan->lasting = how && keep ? LASTING : 0;
	if (str_equal(how, "pty"))
		return plan_pty(plan, record, error);
	for (int i = 0; i < 3; i++)
		plan->fds[i] = record_fd(record, stream_keys[i]);
	if (!how)
		return 0;
	if (!is_captured && !str_equal(how, "pipe"))
		return fault_set(error, ATOLL_E_INVALID, 0, "streams", "\"streams\" is pipe, capture or pty");
	plan->ours->is_captured = is_captured;
	for (int i = is_captured ? 1 : 0; r == 0 && i < 3; i++)
		if (plan->fds[i] < 0)
			r = open_pipe(plan, i, is_captured);
	plan->lasting &= ~(unsigned)LASTING;
	return r < 0 ? fault_errno(error, r, "streams") : 0;
}

int stream_plan_make(struct stream_plan *plan, const struct atoll_record *record, struct atoll_error *error)
{
	const char *how = record_string(record, "streams");
	int r;

	*plan = (struct stream_plan){ .fds = { FD_NONE, FD_NONE, FD_NONE }, .theirs = { FD_NONE, FD_NONE, FD_NONE } };
	if (how) {
		plan->ours = calloc(1, sizeof *plan->ours);
		if (!plan->ours)
			return fault_errno(error, -ENOMEM, "streams");
		*plan->ours = (struct streams){ .fds = { FD_NONE, FD_NONE, FD_NONE }, .terminal_fd = FD_NONE,
					       .reserved = { FD_NONE, FD_NONE } };
	}
	r = plan_streams(plan, record, how, error);
	return r == 0 ? leave_streams(plan, record, error) : r;
}
