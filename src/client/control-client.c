/* SPDX-License-Identifier: Apache-2.0 */
#include "client/control-client.h"

#include <string.h>
#include <sys/socket.h>

#include "base/str.h"
#include "client/dirs.h"
#include "os/fd.h"
#include "session/control-socket.h"
#include "session/directories.h"

int client_project(char out[PATH_MAX], struct err *err)
{
	char cwd[PATH_MAX];
	int r = dirs_cwd(cwd, err);

	return r < 0 ? r : session_project_of(cwd, out, PATH_MAX, err);
}

/* Which project this is matters only where no session is named. */
static int find(const char *state, const char *id_or_name, const char *running_in, struct session_record *ret_record,
		struct err *err)
{
	char project[PATH_MAX];
	int r = id_or_name ? 0 : client_project(project, err);

	return r < 0 ? r : session_find(state, id_or_name ? NULL : project, id_or_name, running_in, ret_record, err);
}

int client_find(const char *id_or_name, struct session_record *ret_record, struct err *err)
{
	char state[PATH_MAX], runtime[PATH_MAX];
	int r = session_state_dir(state, sizeof state, false, err);

	if (session_runtime_dir(runtime, sizeof runtime, false, NULL) < 0)
		*runtime = 0;
	return r < 0 ? r : find(state, id_or_name, runtime, ret_record, err);
}

int client_find_any(const char *state, const char *id_or_name, struct session_record *ret_record, struct err *err)
{
	return find(state, id_or_name, NULL, ret_record, err);
}

int client_open(const char *id_or_name, struct session_record *ret_record, int *ret_fd, struct err *err)
{
	int r = client_find(id_or_name, ret_record, err);

	if (r < 0)
		return r;
	r = control_socket_connect(ret_record->id, err);
	if (r < 0) {
		session_record_done(ret_record);
		return r;
	}
	*ret_fd = r;
	return 0;
}

static int take_error(struct frame *frame, struct err *err)
{
	size_t size;
	const void *bytes = frame_get_bytes(frame, &size);
	struct err sent;

	if (frame_finish(frame) < 0 || size != sizeof sent)
		return err_set(err, ERR_INTERNAL, EBADMSG, "session",
			       "the box sent an error that cannot be read");
	memcpy(&sent, bytes, sizeof sent);
	sent.stage[sizeof sent.stage - 1] = 0;
	sent.message[sizeof sent.message - 1] = 0;
	sent.hint[sizeof sent.hint - 1] = 0;
	if (sent.code <= ERR_NONE || sent.code >= ERR_CODE_COUNT)
		sent.code = ERR_INTERNAL;
	*err = sent;
	return sent.errnum > 0 ? -sent.errnum : -EINVAL;
}

int client_receive(int socket_fd, struct buf *scratch, struct client_answer *ret_answer, struct err *err)
{
	struct client_answer answer = { .fd = FD_NONE };
	size_t fd_count;
	ssize_t n;
	void *bytes;
	int r;

	buf_reset(scratch);
	bytes = buf_reserve(scratch, FRAME_MESSAGE_MAX);
	if (!bytes)
		return err_set(err, ERR_INTERNAL, ENOMEM, "session", "no memory for an answer");
	n = fd_receive_message(socket_fd, bytes, FRAME_MESSAGE_MAX, &answer.fd, 1, &fd_count);
	if (n == 0 || n == -ECONNRESET)
		return err_set(err, ERR_STATE, ECONNRESET, "session", "the session has ended");
	r = n < 0 ? (int)n : frame_open(&answer.frame, bytes, (size_t)n);
	if (r < 0) {
		close_fd(&answer.fd);
		return err_set(err, ERR_STATE, -r, "session", "the session's answer cannot be read: %s",
			       strerror(-r));
	}
	if (answer.frame.type == CONTROL_ERROR) {
		close_fd(&answer.fd);
		return take_error(&answer.frame, err);
	}
	*ret_answer = answer;
	return 0;
}

int client_send(int socket_fd, uint16_t type, size_t count, uint32_t value, struct err *err)
{
	cleanup_buf struct buf out;
	int r;

	buf_init(&out, 256);
	frame_begin(&out, type);
	if (count)
		frame_put_u32(&out, value);
	r = frame_end(&out);
	if (r == 0)
		r = frame_send(socket_fd, &out, NULL, 0);
	if (r < 0)
		return err_set(err, ERR_STATE, -r, "session", "the session cannot be asked: %s",
			       strerror(-r));
	return 0;
}
