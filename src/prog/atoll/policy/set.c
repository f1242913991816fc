/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/policy/set.h"

#include <limits.h>
#include <string.h>

#include "base/json.h"
#include "client/control-client.h"
#include "client/session-policy.h"
#include "os/fd.h"
#include "prog/atoll/verb/say.h"

static int send_policy(int socket_fd, const struct compiled *compiled, struct err *err)
{
	cleanup_fd int fd = fd_memfd_sealed("snapshot", compiled->bytes, compiled->size);
	cleanup_buf struct buf out;
	int r = fd < 0 ? fd : 0;

	buf_init(&out, 64);
	frame_begin(&out, CONTROL_POLICY);
	if (r == 0)
		r = frame_end(&out);
	if (r == 0)
		r = frame_send(socket_fd, &out, &fd, 1);
	return r < 0 ? err_set(err, ERR_STATE, -r, "session", "the session cannot be asked: %s", strerror(-r)) : 0;
}

static int show(const struct session_record *record, const struct compiled *compiled, uint32_t ended, bool json,
		struct err *err)
{
	const char *name = snapshot_policy(compiled->snapshot)->name;
	cleanup_buf struct buf text;
	struct json out;

	buf_init(&text, PATH_MAX + 512);
	if (json) {
		json_init(&out, &text);
		json_object_begin(&out, NULL);
		json_string(&out, "session", record->id);
		json_bytes(&out, "policy", name, strlen(name));
		json_u64(&out, "ended", ended);
		json_object_end(&out);
	} else {
		buf_printf(&text, "%s: the network goes by ", record->id);
		buf_put_escaped(&text, name, strlen(name), 0);
		buf_printf(&text, " now; connections that it ended: %u", ended);
	}
	buf_put_char(&text, '\n');
	return say_out(&text, err);
}

static int hand_over(int socket_fd, const struct session_record *record, const struct compiled *compiled, bool json,
		     struct err *err)
{
	struct client_answer answer;
	cleanup_buf struct buf scratch;
	uint32_t ended;
	int r = send_policy(socket_fd, compiled, err);

	buf_init(&scratch, FRAME_MESSAGE_MAX);
	if (r == 0)
		r = client_receive(socket_fd, &scratch, &answer, err);
	if (r < 0)
		return r;
	close_fd(&answer.fd);
	ended = frame_get_u32(&answer.frame);
	if (answer.frame.type != CONTROL_CHANGED || frame_finish(&answer.frame) < 0)
		return err_set(err, ERR_STATE, EPROTO, "session", "session %s gave no clear answer", record->id);
	return show(record, compiled, ended, json, err);
}

int policy_set(char **words, bool json, struct err *err)
{
	size_t count = 0;
	cleanup_session_record struct session_record record = { 0 };
	cleanup_compiled struct compiled compiled = { 0 };
	cleanup_fd int socket_fd = FD_NONE;
	int r;

	while (words[count])
		count++;
	if (count < 1 || count > 2) {
		err_set(err, ERR_USAGE, EINVAL, "policy",
			"set takes a session, if not the newest of the project, and a policy");
		err_hint(err, "atoll policy set [ID] POLICY; `atoll ps` lists sessions");
		return -EINVAL;
	}
	r = client_open(count == 2 ? words[0] : NULL, &record, &socket_fd, err);
	if (r < 0)
		return r;
	r = session_policy_compile_lowered(&record, words[count - 1], &compiled, err);
	if (r != 0)
		return r;
	return hand_over(socket_fd, &record, &compiled, json, err);
}
