/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Three processes. The caller puts texts into the shared memory and sends a number; the worker puts the result there
 * and sends the number back with what came of it; the keeper waits for the worker's death and then answers in its
 * place. Nothing that the worker says is believed but for the size of its result, which is bounded; the result is
 * copied before anybody looks at it.
 */

#include "text/worker.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine/confine.h"
#include "os/fd.h"

enum { PIECES_MAX = 3 };

enum work { WORK_LINES, WORK_BINARY, WORK_MERGE, WORK_COUNT };

struct text_shared {
	uint32_t work;                      /* enum work */
	uint32_t is_ready;                  /* the worker is confined */
	uint32_t requested;                 /* the number that the caller waits for; 0: none */
	uint64_t sizes[PIECES_MAX];
	uint32_t has_piece[PIECES_MAX];
	uint64_t result_size;
	char pieces[PIECES_MAX][TEXT_SIZE_MAX];
	char result[TEXT_RESULT_MAX];
};

struct answer {
	uint32_t number;
	int32_t result;                     /* as the functions of git.h, or -ETIME */
};

/* The worker. */

static int do_lines(const struct text_piece pieces[PIECES_MAX], struct text_result *result)
{
	return text_compare_lines(&pieces[0], &pieces[1], result);
}

static int do_binary(const struct text_piece pieces[PIECES_MAX], struct text_result *result)
{
	return text_compare_binary(&pieces[0], &pieces[1], result);
}

static int do_merge(const struct text_piece pieces[PIECES_MAX], struct text_result *result)
{
	return text_merge(&pieces[0], &pieces[1], &pieces[2], result);
}

static int32_t do_work(struct text_shared *shared)
{
	static int (*const works[WORK_COUNT])(const struct text_piece *pieces, struct text_result *result) = {
		[WORK_LINES] = do_lines, [WORK_BINARY] = do_binary, [WORK_MERGE] = do_merge,
	};
	struct text_result result = { .bytes = shared->result, .max = TEXT_RESULT_MAX };
	struct text_piece pieces[PIECES_MAX];
	int r;

	for (size_t i = 0; i < PIECES_MAX; i++)
		pieces[i] = (struct text_piece){ shared->has_piece[i] ? shared->pieces[i] : NULL, shared->sizes[i] };
	r = works[shared->work](pieces, &result);
	shared->result_size = result.size;
	return r;
}

/* A new bound for this piece of work; at its end SIGPROF ends the process. */
static int limit_time(void)
{
	const struct itimerval bound = { .it_value.tv_sec = TEXT_CPU_SECONDS };

	return setitimer(ITIMER_PROF, &bound, NULL);
}

static void serve(int socket_fd, struct text_shared *shared)
{
	struct answer answer;

	while (read(socket_fd, &answer.number, sizeof answer.number) == (ssize_t)sizeof answer.number) {
		/* The keeper has answered that one. */
		if (answer.number != __atomic_load_n(&shared->requested, __ATOMIC_SEQ_CST))
			continue;
		answer.result = limit_time() < 0 ? -EIO : do_work(shared);
		if (write(socket_fd, &answer, sizeof answer) != (ssize_t)sizeof answer)
			return;
	}
}

/* Nothing that the caller had open is left. */
static int close_others(int socket_fd)
{
	if (socket_fd > STDERR_FILENO + 1 &&
	    syscall(SYS_close_range, (unsigned)STDERR_FILENO + 1, (unsigned)socket_fd - 1, 0) < 0)
		return -errno;
	if (syscall(SYS_close_range, (unsigned)socket_fd + 1, ~0u, 0) < 0)
		return -errno;
	close(STDIN_FILENO);
	close(STDOUT_FILENO);
	return 0;
}

/* Its exit status: 0 when the caller is gone; else it could not begin. */
static int be_worker(int socket_fd, struct text_shared *shared)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || confine_self(CONFINE_STAGE_TEXT, NULL, 0, NULL) < 0)
		return 1;
	shared->is_ready = true;
	serve(socket_fd, shared);
	return 0;
}

/* The keeper. */

static void run_keeper(int socket_fd, struct text_shared *shared)
{
	for (;;) {
		struct answer answer = { .result = -EIO };
		int status;
		pid_t pid;

		shared->is_ready = false;
		pid = fork();
		if (pid == 0)
			_exit(be_worker(socket_fd, shared));
		if (pid < 0)
			return;
		while (waitpid(pid, &status, 0) < 0)
			if (errno != EINTR)
				return;
		/* It ended by itself, or never came to its work: another one would not, either. */
		if (!WIFSIGNALED(status) || !shared->is_ready)
			return;
		if (WTERMSIG(status) == SIGPROF)
			answer.result = -ETIME;
		/*
		 * Whether it died over the request, or before or after it, nobody knows: the caller gets an answer, and
		 * takes no notice of a second one. Between two requests there is nothing to answer.
		 */
		answer.number = __atomic_load_n(&shared->requested, __ATOMIC_SEQ_CST);
		if (answer.number && write(socket_fd, &answer, sizeof answer) != (ssize_t)sizeof answer)
			return;
		/* The next worker may find it still waiting. */
		__atomic_compare_exchange_n(&shared->requested, &answer.number, 0, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
	}
}

static void be_keeper(int socket_fd, struct text_shared *shared)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && close_others(socket_fd) == 0 && text_begin() == 0 &&
	    confine_self(CONFINE_STAGE_KEEPER, NULL, 0, NULL) == 0)
		run_keeper(socket_fd, shared);
}

/* The caller. */

int text_worker_start(struct text_worker *ret_worker, struct err *err)
{
	struct text_worker worker = TEXT_WORKER_NONE;
	int ends[2];
	pid_t pid;

	worker.shared = mmap(NULL, sizeof *worker.shared, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (worker.shared == MAP_FAILED)
		return err_set(err, ERR_INTERNAL, errno, "diff", "no memory for texts: %s", strerror(errno));
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
		err_set(err, ERR_INTERNAL, errno, "diff", "socketpair: %s", strerror(errno));
		text_worker_stop(&worker);
		return -err->errnum;
	}
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		be_keeper(ends[1], worker.shared);
		_exit(0);
	}
	close(ends[1]);
	worker.socket_fd = ends[0];
	if (pid < 0) {
		err_set(err, ERR_INTERNAL, errno, "diff", "fork: %s", strerror(errno));
		text_worker_stop(&worker);
		return -err->errnum;
	}
	/* A worker that is gone is an error of write(2). */
	signal(SIGPIPE, SIG_IGN);
	*ret_worker = worker;
	return 0;
}

void text_worker_stop(struct text_worker *worker)
{
	close_fd(&worker->socket_fd);
	if (worker->shared)
		munmap(worker->shared, sizeof *worker->shared);
	worker->shared = NULL;
}

/* Until the answer to this request; one that belongs to an earlier request is none. */
static int receive(struct text_worker *worker, int *ret_result)
{
	struct answer answer;

	do {
		ssize_t n = read(worker->socket_fd, &answer, sizeof answer);

		if (n < 0 && errno == EINTR)
			answer.number = 0;
		else if (n != (ssize_t)sizeof answer)
			return -EPIPE;
	} while (answer.number != worker->number);
	*ret_result = answer.result;
	return 0;
}

static int is_known(int result, enum work work)
{
	return result == 0 || (work == WORK_MERGE && result == TEXT_MERGE_MARKED) || result == -EFBIG ||
	       result == -ETIME;
}

static int run(struct text_worker *worker, enum work work, const struct text_piece *const pieces[PIECES_MAX],
	       struct buf *out)
{
	struct text_shared *shared = worker->shared;
	uint64_t size;
	int r, result;

	if (worker->socket_fd < 0)
		return -EPIPE;
	for (size_t i = 0; i < PIECES_MAX; i++) {
		const struct text_piece *piece = pieces[i];

		if (piece && piece->size > TEXT_SIZE_MAX)
			return -EFBIG;
		shared->has_piece[i] = piece && piece->bytes;
		shared->sizes[i] = piece ? piece->size : 0;
		if (shared->has_piece[i])
			memcpy(shared->pieces[i], piece->bytes, piece->size);
	}
	shared->work = work;
	/* 0 is nobody's. */
	worker->number += worker->number == UINT32_MAX ? 2 : 1;
	__atomic_store_n(&shared->requested, worker->number, __ATOMIC_SEQ_CST);
	if (write(worker->socket_fd, &worker->number, sizeof worker->number) != (ssize_t)sizeof worker->number)
		return -EPIPE;
	r = receive(worker, &result);
	__atomic_store_n(&shared->requested, 0, __ATOMIC_SEQ_CST);
	if (r < 0)
		return r;
	size = shared->result_size;
	if (!is_known(result, work) || size > TEXT_RESULT_MAX)
		return -EIO;
	if (result >= 0)
		buf_put(out, shared->result, size);
	return result < 0 ? result : buf_error(out) ? buf_error(out) : result;
}

int text_worker_lines(struct text_worker *worker, const struct text_piece *before, const struct text_piece *after,
		      struct buf *out)
{
	return run(worker, WORK_LINES, (const struct text_piece *[]){ before, after, NULL }, out);
}

int text_worker_binary(struct text_worker *worker, const struct text_piece *before, const struct text_piece *after,
		       struct buf *out)
{
	return run(worker, WORK_BINARY, (const struct text_piece *[]){ before, after, NULL }, out);
}

int text_worker_merge(struct text_worker *worker, const struct text_piece *base, const struct text_piece *host,
		      const struct text_piece *session, struct buf *out)
{
	return run(worker, WORK_MERGE, (const struct text_piece *[]){ base, host, session }, out);
}
