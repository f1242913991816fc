/* SPDX-License-Identifier: Apache-2.0 */
#include "client/tokens.h"

#include <string.h>
#include <sys/socket.h>

#include "approve/token-grants.h"
#include "base/str.h"
#include "client/dirs.h"
#include "client/program.h"
#include "os/fd.h"
#include "session/directories.h"
#include "session/record.h"

int token_directories(struct token_directories *ret_dirs, struct err *err)
{
	char state[PATH_MAX];
	int r = session_state_dir(state, sizeof state, true, err);

	if (r == 0)
		r = dirs_config("token", "keys", "atoll/tokens", ret_dirs->keys, err);
	if (r < 0)
		return r;
	r = path_join(ret_dirs->store, PATH_MAX, state, "tokens");
	return r < 0 ? err_set(err, ERR_USAGE, -r, "token", "a directory's path is too long") : 0;
}

/* What atoll-token says goes to stderr. 1: it does not hold. */
static int run_token_check(const struct token_presented *presented, int far_fd, struct err *err)
{
	struct token_directories dirs;
	const char *argv[] = { "atoll-token", "--keys", dirs.keys, "--store", dirs.store, "--project",
			       presented->project, "--agent", presented->policy, "--agent",
			       presented->session ? presented->session : presented->policy, "--agent",
			       presented->agent ? presented->agent : presented->policy, "take", "--",
			       presented->file, NULL };
	const struct program program = { .name = "atoll-token", .argv = argv, .fds = { { far_fd, TOKEN_FD } },
				       .fd_count = 1 };
	int r = token_directories(&dirs, err);

	if (r == 0)
		r = program_run(&program, err);
	return r > 0 ? 1 : r;
}

/* Everything lies in the socket already: atoll-token has ended. */
static int receive(int fd, struct buf *ret_frame)
{
	struct token_allowance allowance;
	struct token_held held;
	struct frame frame;
	size_t fd_count;
	void *bytes = buf_reserve(ret_frame, TOKEN_HELD_MAX);
	ssize_t n = bytes ? fd_receive_message(fd, bytes, TOKEN_HELD_MAX, NULL, 0, &fd_count) : -ENOMEM;
	int r = n < 0 ? (int)n : frame_open(&frame, bytes, (size_t)n);

	if (r == 0)
		r = frame.type == TOKEN_HOLDS ? token_held_get(&frame, &held) : -EBADMSG;
	for (uint32_t i = 0; r == 0 && i < held.count; i++) {
		r = token_allowance_get(&frame, &allowance);
		if (r == 0)
			free(allowance.argv);
	}
	if (r == 0)
		r = frame_finish(&frame);
	ret_frame->size = r < 0 ? 0 : (size_t)n;
	return r;
}

int token_present(const struct token_presented *presented, struct buf *ret_frame, struct err *err)
{
	cleanup_fd int near_fd = FD_NONE, far_fd = FD_NONE;
	int ends[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_set(err, ERR_INTERNAL, errno, "token", "no socket: %s", strerror(errno));
	/* Out of the way of the descriptor that atoll-token gets. */
	near_fd = fd_move_above(ends[0], TOKEN_FD + 1);
	far_fd = fd_move_above(ends[1], TOKEN_FD + 1);
	if (near_fd < 0 || far_fd < 0)
		return err_set(err, ERR_INTERNAL, near_fd < 0 ? -near_fd : -far_fd, "token", "no socket: %s",
			       strerror(near_fd < 0 ? -near_fd : -far_fd));
	r = run_token_check(presented, far_fd, err);
	/* Without our end of it a reader sees the end. */
	close_fd(&far_fd);
	if (r != 0)
		return r;
	r = receive(near_fd, ret_frame);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "token", "atoll-token gave no answer that can be read") : r;
}

int token_lends(const struct buf *held_frame, enum trust_level *ret_level, char *by, size_t size)
{
	struct token_held held;
	struct frame frame;
	int r = frame_open(&frame, held_frame->bytes, held_frame->size);

	if (r == 0)
		r = token_held_get(&frame, &held);
	if (r < 0)
		return r;
	if (held.trust >= TRUST_COUNT)
		return -EBADMSG;
	*ret_level = (enum trust_level)held.trust;
	return str_format(by, size, "token %.40s", held.id);
}

int token_narrow_limits(const struct buf *held_frame, struct policy *policy)
{
	struct token_held held;
	struct frame frame;
	int r = frame_open(&frame, held_frame->bytes, held_frame->size);

	if (r == 0)
		r = token_held_get(&frame, &held);
	if (r == 0)
		token_grants_narrow(&held, policy);
	return r;
}
