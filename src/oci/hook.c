/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/hook.h"

#include <poll.h>
#include <string.h>

#include "base/str.h"
#include "os/fd.h"
#include "os/pidref.h"
#include "os/spawn.h"

static int fail(enum oci_hook_kind kind, size_t index, const char *why, struct err *err)
{
	return err_set(err, ERR_STATE, EIO, "hook", "error running hook %s[%u]: %s", oci_hook_names[kind],
		       (unsigned)index,
		       why);
}

static int run_one(const struct oci_hook *hook, int state_fd, bool *ret_late)
{
	const char *const plain[] = { hook->path, NULL }, *const *env = (const char *const *)hook->env.items;
	struct spawn spawn = {
		.program = hook->path,
		.argv = hook->args.count ? hook->args.items : plain,
		.env = env, /* none is said: the runtime's own */
		.fds = { { state_fd, 0 } },
		.fd_count = 1,
		.unblocks_signals = true,
	};
	cleanup_pidref struct pidref ref = PIDREF_NONE;
	struct pollfd poll_fd;
	pid_t pid;
	int r = spawn_start(&spawn, &pid);

	if (r < 0)
		return r;
	r = pidref_open(&ref, pid);
	poll_fd = (struct pollfd){ .fd = ref.fd, .events = POLLIN };
	if (r == 0 && hook->timeout_s != FIELD_NONE && poll(&poll_fd, 1, (int)hook->timeout_s * 1000) == 0) {
		*ret_late = true;
		(void)!pidref_signal(&ref, SIGKILL);
	}
	return spawn_wait(pid, NULL);
}

int oci_hooks_run(const struct oci_config *config, enum oci_hook_kind kind, const struct buf *state, struct err *err)
{
	const struct oci_hook *hooks = config->hooks[kind].items;

	for (size_t i = 0; i < config->hooks[kind].count; i++) {
		/* A file, not a pipe: nobody waits for a hook that does not read. */
		cleanup_fd int fd = fd_memfd_new("state");
		bool is_late = false;
		char why[64] = "";
		int r = fd < 0 ? fd : fd_write_full(fd, state->bytes, state->size);

		if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
			r = -errno;
		if (r == 0)
			r = run_one(&hooks[i], fd, &is_late);
		if (r > 0)
			(void)!str_format(why, sizeof why, "exit status %d", r);
		if (r != 0 || is_late)
			return fail(kind, i, is_late ? "timed out" : r < 0 ? strerror(-r) : why, err);
	}
	return 0;
}
