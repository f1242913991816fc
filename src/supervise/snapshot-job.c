/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/snapshot-job.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clock.h"
#include "os/fd.h"
#include "supervise/run.h"

enum { TIME_SECONDS = 120, ARGUMENT_MAX = 1100 };

extern char **environ;

/* It prints the name, one line, or why there is none, which begins with its own name. */
static bool is_name(const char *said)
{
	size_t length = strcspn(said, "\n");

	return length && said[length] == '\n' && !said[length + 1] && !memchr(said, ' ', length);
}

/* Its end is that of its socket, and what it printed is there by then. */
static int on_end(void *context, enum peer_fault fault)
{
	static const char prefix[] = "atoll: ";
	struct snapshot_job *job = context;
	char said[SNAPSHOT_SAID_MAX];
	ssize_t size = pread(job->said_fd, said, sizeof said - 1, 0);
	bool is_taken;

	close_fd(&job->said_fd);
	said[size < 0 ? 0 : size] = 0;
	is_taken = fault == PEER_HUNG_UP && is_name(said);
	said[strcspn(said, "\n")] = 0;
	return is_taken ? job->done(job->context, said, NULL)
			: job->done(job->context, NULL, said + (str_has_prefix(said, prefix) ? strlen(prefix) : 0));
}

static const struct peer_kind kind_of_job = { .program = "atoll", .may_leave = true, .broke = on_end };

void snapshot_job_init(struct snapshot_job *job, struct run *run,
		       int (*done)(void *context, const char *name, const char *why), void *context)
{
	*job = (struct snapshot_job){ .said_fd = FD_NONE, .done = done, .context = context };
	peer_init(&job->peer, run, &kind_of_job, UINT_MAX, job);
}

bool snapshot_job_is_busy(const struct snapshot_job *job)
{
	return job->said_fd >= 0;
}

/*
 * The places of sessions stand in our own environment. The command's may be another: a program that starts a sandbox
 * hands in what it likes.
 */
static int start(struct snapshot_job *job, const char *kind, const char *message)
{
	char option[ARGUMENT_MAX];
	char *argv[] = { (char *)"atoll", (char *)"snapshot", (char *)kind, message ? option : (char *)"--",
			 (char *)job->peer.run->request->session, NULL };
	const struct peer_fd given[] = { { job->said_fd, STDOUT_FILENO }, { job->said_fd, STDERR_FILENO } };
	const struct peer_spec spec = { .argv = argv, .environment = environ, .given = given,
					.given_count = ARRAY_SIZE(given), .seconds = TIME_SECONDS };
	int r = message ? str_format(option, sizeof option, "--message=%s", message) : 0;

	if (r == 0)
		r = peer_start(&job->peer, &spec);
	return r == 0 ? peer_listen(&job->peer) : r;
}

int snapshot_job_start(struct snapshot_job *job, const char *kind, const char *message)
{
	int fd = fd_memfd_new("snapshot"), r = fd < 0 ? fd : fd_move_above(fd, PEER_ABOVE);

	if (r < 0)
		return r;
	job->said_fd = r;
	r = start(job, kind, message);
	if (r < 0)
		close_fd(&job->said_fd);
	return r;
}

void snapshot_job_close(struct snapshot_job *job)
{
	peer_close(&job->peer, false);
	close_fd(&job->said_fd);
}
