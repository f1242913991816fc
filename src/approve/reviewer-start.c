/* SPDX-License-Identifier: Apache-2.0 */
#include "approve/reviewer-start.h"

#include <fcntl.h>

#include "base/str.h"
#include "os/fd.h"
#include "policy/certificate-files.h"
#include "supervise/peer-process.h"
#include "wire/judge.h"

/* What a program needs to find others and itself; nothing that loads code into it. */
static void pick_environment(char *const *env, char *out[], size_t size)
{
	static const char *const names[] = { "PATH=",	"HOME=",	    "USER=", "LANG=",
					     "LC_ALL=", "XDG_RUNTIME_DIR=", "TMPDIR=" };
	size_t count = 0;

	for (char *const *at = env; at && *at; at++)
		for (size_t i = 0; i < ARRAY_SIZE(names) && count + 1 < size; i++)
			if (str_has_prefix(*at, names[i]))
				out[count++] = *at;
	out[count] = NULL;
}

int reviewer_greet(const struct external_verifier *verifier, const struct reviewer_origin *origin, int judge_fd,
		   struct buf *scratch)
{
	const char *bundle = verifier->url ? certificate_bundle_path(origin->env) : NULL;
	cleanup_fd int bundle_fd = bundle ? fd_open_at(AT_FDCWD, bundle, O_RDONLY | O_NONBLOCK, 0) : FD_NONE;
	char *environment[16];
	struct judge_start start = {
		.timeout_ms = verifier->timeout_ms, .command = (char **)verifier->command, .environment = environment,
		.url = verifier->url, .model = verifier->model,
	};
	int fds[2], r;
	size_t count = 0;

	pick_environment(origin->env, environment, ARRAY_SIZE(environment));
	if (bundle_fd >= 0) {
		start.flags |= JUDGE_HAS_BUNDLE;
		fds[count++] = bundle_fd;
	}
	if (verifier->secret && origin->secret_fd >= 0) {
		start.flags |= JUDGE_HAS_SECRET;
		fds[count++] = origin->secret_fd;
	}
	r = judge_start_put(scratch, &start);
	return r < 0 ? r : frame_send(judge_fd, scratch, fds, count);
}

int reviewer_start(const struct external_verifier *verifier, const struct reviewer_origin *origin,
			struct buf *scratch, int *ret_fd, struct pidref *ret_process)
{
	struct pidref process = PIDREF_NONE;
	cleanup_fd int fd = FD_NONE;
	const struct peer_spec spec = { .program = "atoll-judge", .uid = origin->uid };
	int r = peer_start_as(origin->init_path, &spec, &fd, &process);

	if (r == 0)
		r = reviewer_greet(verifier, origin, fd, scratch);
	if (r < 0) {
		peer_end(&process);
		return r;
	}
	*ret_fd = take_fd(&fd);
	*ret_process = process;
	return 0;
}
