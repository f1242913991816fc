/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "confine/confine.h"
#include "judge/judge.h"
#include "judge/opinion.h"
#include "os/clock.h"
#include "os/fd.h"

/*
 * One start of the command for each case: the case is its stdin, a sealed file in memory, and what it writes to stdout
 * its opinion, where it ends with 0 in time. It is under the walls of this process, in a session of its own, which is
 * killed when its time is up. A few run at a time, the others wait for their turn; their time runs from the start.
 */

enum { RUNNING_MAX = 4, NS_PER_MS = 1000000, STATUS_NONE = -1 };

struct trial {
	uint32_t id;                 /* 0: free */
	enum judge_question question;
	char *json;                  /* owned, until it runs */
	pid_t pid;                   /* 0: it does not run */
	int out_fd;
	struct buf out;
	uint64_t until_ns;
};

struct bench {
	struct judge *judge;
	struct trial trials[JUDGE_OPEN_MAX];
	size_t running;
};

static struct trial *find(struct bench *bench, uint32_t id)
{
	for (size_t i = 0; i < JUDGE_OPEN_MAX; i++)
		if (bench->trials[i].id == id)
			return &bench->trials[i];
	return NULL;
}

/* Ends it, with what it left behind in its session. Its wait status; STATUS_NONE: it had not ended by itself. */
static int stop(struct bench *bench, struct trial *trial)
{
	int status = STATUS_NONE;

	if (trial->pid) {
		siginfo_t info = { 0 };
		bool has_ended = waitid(P_PID, (id_t)trial->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
				 info.si_pid;

		/* Before it is reaped, so that its number is nobody else's. */
		kill(-trial->pid, SIGKILL);
		kill(trial->pid, SIGKILL);
		if (waitpid(trial->pid, &status, 0) < 0 || !has_ended)
			status = STATUS_NONE;
		trial->pid = 0;
		bench->running--;
	}
	close_fd(&trial->out_fd);
	return status;
}

static void drop(struct bench *bench, struct trial *trial)
{
	(void)stop(bench, trial);
	free(trial->json);
	buf_done(&trial->out);
	*trial = (struct trial){ .out_fd = FD_NONE };
}

static int fail(struct bench *bench, struct trial *trial, const char *why)
{
	int r = judge_tell_unclear(bench->judge, trial->id, trial->question, why);

	drop(bench, trial);
	return r;
}

/* ---- one run ---- */

/* In the child. */
static void become(const struct judge *judge, int in_fd, int out_fd)
{
	int null_fd = fd_open_at(AT_FDCWD, "/dev/null", O_WRONLY, 0);

	/* Atoll ignores these for itself, which is inherited; but who writes to a closed pipe is to end. */
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	setsid();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || chdir("/") < 0 || null_fd < 0 || dup2(in_fd, 0) < 0 ||
	    dup2(out_fd, 1) < 0 || dup2(null_fd, 2) < 0)
		return;
	execve(judge->start.command[0], judge->start.command, judge->start.environment);
}

static int begin(struct bench *bench, struct trial *trial)
{
	cleanup_fd int in_fd = fd_memfd_sealed("case", trial->json, strlen(trial->json)), out_fd = FD_NONE;
	int ends[2];

	if (in_fd < 0 || lseek(in_fd, 0, SEEK_SET) < 0)
		return -EIO;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	trial->out_fd = ends[0];
	out_fd = ends[1];
	trial->pid = fork();
	if (trial->pid == 0) {
		become(bench->judge, in_fd, out_fd);
		_exit(127);
	}
	if (trial->pid < 0) {
		trial->pid = 0;
		return -errno;
	}
	bench->running++;
	buf_init(&trial->out, OPINION_MAX);
	return fd_set_nonblocking(trial->out_fd, true);
}

static int begin_waiting(struct bench *bench)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < JUDGE_OPEN_MAX && bench->running < RUNNING_MAX; i++) {
		struct trial *trial = &bench->trials[i];

		if (trial->id && !trial->pid && begin(bench, trial) < 0)
			r = fail(bench, trial, "the verifier could not be started");
	}
	return r;
}

/* It has closed its output, or ended. */
static int finish(struct bench *bench, struct trial *trial)
{
	uint64_t grace_ns = clock_monotonic_ns() + 200 * (uint64_t)NS_PER_MS;
	struct judge_answer answer;
	siginfo_t info = { 0 };
	int status, r;

	/* Who closes it ends, a moment later. */
	while (waitid(P_PID, (id_t)trial->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && !info.si_pid &&
	       clock_monotonic_ns() < grace_ns)
		poll(NULL, 0, 1);
	status = stop(bench, trial);
	if (status == STATUS_NONE || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return fail(bench, trial, "the verifier did not end well");
	answer = (struct judge_answer){ trial->out.bytes, trial->out.size, false };
	r = judge_tell_answer(bench->judge, trial->id, trial->question, &answer);
	drop(bench, trial);
	return r;
}

static int hear(struct bench *bench, struct trial *trial)
{
	uint8_t bytes[4096];
	ssize_t n = read(trial->out_fd, bytes, sizeof bytes);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : finish(bench, trial);
	if (n == 0)
		return finish(bench, trial);
	buf_put(&trial->out, bytes, (size_t)n);
	return buf_error(&trial->out) ? fail(bench, trial, "the verifier's answer is too long") : 0;
}

/* ---- what the box says ---- */

static int take_case(struct bench *bench, struct frame *frame, enum judge_question question)
{
	struct trial *trial = find(bench, 0);
	const char *json;
	uint32_t id;
	int r = judge_case_get(frame, &id, &json);

	if (r < 0)
		return r;
	if (!trial || find(bench, id))
		return -EPROTO;
	trial->json = strdup(json);
	if (!trial->json)
		return -ENOMEM;
	trial->id = id;
	trial->question = question;
	trial->until_ns = clock_monotonic_ns() + bench->judge->start.timeout_ms * NS_PER_MS;
	return 0;
}

static int on_case(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	return take_case(context, frame, QUESTION_ACTION);
}

static int on_narrow(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	return take_case(context, frame, QUESTION_NARROW);
}

static int on_forget(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct bench *bench = context;
	uint32_t id = frame_get_u32(frame);
	struct trial *trial;

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	trial = id ? find(bench, id) : NULL;
	if (trial)
		drop(bench, trial);
	return 0;
}

static const struct frame_rule rules[] = {
	{ JUDGE_CASE, 1, FRAME_MESSAGE_MAX, 0, 0, on_case },
	{ JUDGE_FORGET, 1, 64, 0, 0, on_forget },
	{ JUDGE_NARROW, 1, FRAME_MESSAGE_MAX, 0, 0, on_narrow },
};

/* ---- the loop ---- */

static int timeout_ms(const struct bench *bench)
{
	uint64_t now_ns = clock_monotonic_ns(), next_ns = UINT64_MAX;

	for (size_t i = 0; i < JUDGE_OPEN_MAX; i++)
		if (bench->trials[i].id && bench->trials[i].until_ns < next_ns)
			next_ns = bench->trials[i].until_ns;
	if (next_ns == UINT64_MAX)
		return -1;
	return next_ns > now_ns ? (int)((next_ns - now_ns) / NS_PER_MS) + 1 : 0;
}

static int end_late(struct bench *bench)
{
	uint64_t now_ns = clock_monotonic_ns();
	int r = 0;

	for (size_t i = 0; r == 0 && i < JUDGE_OPEN_MAX; i++)
		if (bench->trials[i].id && bench->trials[i].until_ns <= now_ns)
			r = fail(bench, &bench->trials[i], "the verifier did not answer in time");
	return r;
}

/* 1: go on; 0: the box has gone. */
static int step(struct bench *bench)
{
	struct pollfd polled[RUNNING_MAX + 1] = { { .fd = bench->judge->box_fd, .events = POLLIN } };
	struct trial *who[RUNNING_MAX + 1];
	size_t count = 1;
	int r = begin_waiting(bench);

	for (size_t i = 0; i < JUDGE_OPEN_MAX && count < ARRAY_SIZE(polled); i++)
		if (bench->trials[i].pid) {
			who[count] = &bench->trials[i];
			polled[count++] = (struct pollfd){ .fd = bench->trials[i].out_fd, .events = POLLIN };
		}
	if (r == 0 && poll(polled, count, timeout_ms(bench)) < 0)
		return errno == EINTR ? 1 : -errno;
	for (size_t i = 1; r == 0 && i < count; i++)
		if (polled[i].revents)
			r = hear(bench, who[i]);
	if (r == 0)
		r = end_late(bench);
	if (r < 0 || !polled[0].revents)
		return r < 0 ? r : 1;
	return frame_dispatch(bench->judge->box_fd, &bench->judge->scratch, 0, rules, ARRAY_SIZE(rules), bench);
}

int judge_by_command(struct judge *judge, struct err *err)
{
	struct bench *bench = calloc(1, sizeof *bench);
	int r = bench ? confine_self(CONFINE_JUDGE_COMMAND, NULL, 0, err) : -ENOMEM;

	if (r < 0) {
		free(bench);
		return r;
	}
	bench->judge = judge;
	for (size_t i = 0; i < JUDGE_OPEN_MAX; i++)
		bench->trials[i].out_fd = FD_NONE;
	do
		r = step(bench);
	while (r > 0);
	for (size_t i = 0; i < JUDGE_OPEN_MAX; i++)
		drop(bench, &bench->trials[i]);
	free(bench);
	return r;
}
