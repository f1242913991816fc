/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-request/checkpoint.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "gate-request/gate-state.h"
#include "os/clock.h"
#include "os/fd.h"
#include "supervise/loop.h"
#include "supervise/peer-process.h"
#include "supervise/run.h"

/*
 * Everything inside stands still while the copy is made, also who asked. So who asks again and again slows itself; the
 * pause is for the host's disk.
 */
enum {
	TIME_SECONDS = 120, PAUSE_MS = 3000, PAUSE_FACTOR = 10, NS_PER_MS = 1000000, NAME_MAX_SIZE = 65,
	ARGUMENT_MAX = 1100,
};

static int reply(struct access_gate *gate, uint32_t id, enum desk_verdict verdict, const char *reason, const char *hint)
{
	struct desk_answer answer = { .id = id, .verdict = verdict, .rule = "stage.turn", .reason = reason,
				      .hint = hint };

	if (desk_answer_put(&gate->run->out, &answer) == 0)
		access_gate_send(gate);
	return 0;
}

/* The exit status of what took it, or -1. */
static int close_job(struct access_gate *gate)
{
	struct access_checkpoint *job = &gate->checkpoint;
	uint64_t now_ns = clock_monotonic_ns(), took_ns = now_ns - job->started_ns;
	siginfo_t info = { 0 };
	int status = -1;

	loop_remove(gate->run->loop, &job->source);
	close_fd(&job->near_fd);
	if (job->process.fd >= 0) {
		if (pidref_wait(&job->process, WEXITED, &info, NULL) > 0 && info.si_code == CLD_EXITED)
			status = info.si_status;
		pidref_done(&job->process);
		job->process = PIDREF_NONE;
	}
	job->id = 0;
	job->free_ns = now_ns + PAUSE_MS * (uint64_t)NS_PER_MS + PAUSE_FACTOR * took_ns;
	return status;
}

void access_checkpoint_done(struct access_gate *gate)
{
	struct access_checkpoint *job = &gate->checkpoint;

	if (job->process.fd >= 0)
		(void)!pidref_signal(&job->process, SIGKILL);
	(void)!close_job(gate);
	close_fd(&job->name_fd);
}

static int on_end(void *context, uint32_t events)
{
	struct access_gate *gate = context;
	struct access_checkpoint *job = &gate->checkpoint;
	char name[NAME_MAX_SIZE + 1], reason[NAME_MAX_SIZE + 64];
	uint32_t id = job->id;
	ssize_t size;
	int status = close_job(gate), r;

	(void)events;
	size = pread(job->name_fd, name, NAME_MAX_SIZE, 0);
	close_fd(&job->name_fd);
	if (status != 0 || size < 2)
		return reply(gate, id, DESK_UNANSWERED, "no checkpoint could be taken",
			     "it is too large, or nothing is staged here; `atoll snapshot --turn` outside says why");
	name[strcspn((name[size] = 0, name), "\n")] = 0;
	r = str_format(reason, sizeof reason, "checkpoint %s was taken", name);
	return r < 0 ? r : reply(gate, id, DESK_ALLOWED, reason, "");
}

static int start(struct access_gate *gate, const char *text)
{
	const struct run_request *request = gate->run->request;
	struct access_checkpoint *job = &gate->checkpoint;
	char message[ARGUMENT_MAX];
	char *argv[] = { (char *)"atoll", (char *)"snapshot", (char *)"--turn", message, (char *)request->session,
			 NULL };
	struct peer_fd name = { FD_NONE, STDOUT_FILENO };
	const struct peer_spec spec = { .program = "atoll", .argv = argv, .environment = request->command.env,
					.given = &name, .given_count = 1, .seconds = TIME_SECONDS };
	int low_fd = fd_memfd_new("checkpoint"), r;

	job->name_fd = low_fd < 0 ? low_fd : fd_move_above(low_fd, PEER_ABOVE);
	if (job->name_fd < 0)
		return job->name_fd;
	name.fd = job->name_fd;
	r = str_format(message, sizeof message, "--message=%s", *text ? text : "turn");
	if (r == 0)
		r = peer_start_as(request->init_path, &spec, &job->near_fd, &job->process);
	/* Its end, which alone says that waiting for it holds nobody up. */
	job->source = (struct loop_source){ .fd = job->process.fd, .events = EPOLLIN, .ready = on_end,
					    .context = gate };
	return r == 0 ? loop_add(gate->run->loop, &job->source) : r;
}

int access_checkpoint_take(struct access_gate *gate, uint32_t id, const char *text)
{
	struct access_checkpoint *job = &gate->checkpoint;

	/* What is recent serves as well: a hook is no failure for that. */
	if (job->id || clock_monotonic_ns() < job->free_ns)
		return reply(gate, id, DESK_ALLOWED, "skipped: another checkpoint is as good as this one", "");
	job->id = id;
	job->started_ns = clock_monotonic_ns();
	if (start(gate, text) == 0)
		return 0;
	access_checkpoint_done(gate);
	return reply(gate, id, DESK_UNANSWERED, "no checkpoint could be taken", "try again later");
}
