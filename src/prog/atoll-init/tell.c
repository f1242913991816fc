/* SPDX-License-Identifier: Apache-2.0 */
#include "init.h"

/* Every message of init's fits; INIT_BROKEN with a short name is the longest. */
enum { MESSAGE_SIZE = 256 };

static int send_frame(const struct init *init, struct buf *out, int fd)
{
	int r = frame_end(out);

	return r < 0 ? r : frame_send(init->wire_fd, out, &fd, fd >= 0);
}

static int send_numbers(const struct init *init, enum init_message type, const uint32_t *numbers, size_t count, int fd)
{
	uint8_t memory[MESSAGE_SIZE];
	struct buf out;

	buf_init_fixed(&out, memory, sizeof memory);
	frame_begin(&out, (uint16_t)type);
	for (size_t i = 0; i < count; i++)
		frame_put_u32(&out, numbers[i]);
	return send_frame(init, &out, fd);
}

int tell_ready(const struct init *init, int listener_fd, int root_fd, int rules_fd)
{
	const int fds[] = { listener_fd, root_fd, rules_fd };
	uint8_t memory[MESSAGE_SIZE];
	struct buf out;
	int r;

	buf_init_fixed(&out, memory, sizeof memory);
	frame_begin(&out, INIT_READY);
	r = frame_end(&out);
	return r < 0 ? r : frame_send(init->wire_fd, &out, fds, rules_fd < 0 ? 2 : 3);
}

int tell_started(const struct init *init, uint32_t id, pid_t pid, int master_fd)
{
	return send_numbers(init, INIT_STARTED, (uint32_t[]){ id, (uint32_t)pid }, 2, master_fd);
}

int tell_failed(const struct init *init, uint32_t id, int errnum, enum init_failure failure)
{
	return send_numbers(init, INIT_FAILED, (uint32_t[]){ id, (uint32_t)errnum, failure }, 3, FD_NONE);
}

int tell_stopped(const struct init *init, uint32_t id, int signal_number)
{
	return send_numbers(init, INIT_STOPPED, (uint32_t[]){ id, (uint32_t)signal_number }, 2, FD_NONE);
}

int tell_exited(const struct init *init, const struct init_exit *event)
{
	uint8_t memory[MESSAGE_SIZE];
	struct buf out;
	int r;

	buf_init_fixed(&out, memory, sizeof memory);
	r = init_exit_put(&out, event);
	return r < 0 ? r : frame_send(init->wire_fd, &out, NULL, 0);
}

int tell_broken(const struct init *init, int errnum, const char *wall)
{
	uint8_t memory[MESSAGE_SIZE];
	struct buf out;

	buf_init_fixed(&out, memory, sizeof memory);
	frame_begin(&out, INIT_BROKEN);
	frame_put_u32(&out, (uint32_t)errnum);
	frame_put_string(&out, wall);
	return send_frame(init, &out, FD_NONE);
}
