/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-file/directory-move.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "build/disk-full.h"
#include "build/enter-namespaces.h"
#include "gate-file/directory-holders.h"
#include "gate-file/gate.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/proc.h"
#include "stage/snapshot/move-tree.h"
#include "supervise/freeze.h"
#include "supervise/loop.h"
#include "supervise/run.h"

/*
 * Theory of operation. A child of the box does it, step by step, and the box says when:
 *
 *	child                                        box
 *	has all files copied up      MOVE_READY  →   stops everything inside
 *	finds who is in the tree     ←  MOVE_GO
 *	moves it, has those stop     MOVE_MOVED  →   lets everything go on
 *	leads them to the new place  ←  MOVE_GO
 *	ends                         MOVE_LED    →   answers the caller
 *
 * The caller waits in its notification. It cannot be stopped there, so that the freeze sends it back to make its call
 * again (watch_release_waiting()), and it finds the move under way or done: its thread, its call and the text of its
 * paths say that it is the same one.
 *
 * A child that is killed in the middle leaves the tree in two places. Another one takes that back while everything
 * still stands still; where that fails too, the sandbox ends.
 */

enum message { MOVE_READY, MOVE_GO, MOVE_MOVED, MOVE_LED };
enum phase { PHASE_PREPARES, PHASE_READY, PHASE_MOVES, PHASE_TAKES_BACK, PHASE_LEADS, PHASE_DONE };

enum { MS_NS = 1000000, RUN_MS = 20000, AGAIN_MS = 20, DONE_KEPT_MS = 60000 };

struct message_frame {
	int32_t kind, errnum;
};

struct move {
	struct moves *moves;
	enum phase phase;
	/* Who asked, by which a call that is made again is known: */
	pid_t tid;
	uint64_t started;            /* when that thread began */
	char *text[2];               /* owned */
	int number, flags;
	uint64_t id;                 /* of the notification that waits now */
	/* What is moved: */
	int dir_fd[2];               /* owned */
	char name[2][NAME_MAX + 1];
	char *path[2];               /* owned: as seen inside */
	bool has_target;             /* an empty directory is at the new place */
	struct stat target;
	const char *call;            /* static: its name */
	pid_t child;
	int link_fd;                 /* owned */
	struct loop_source source;
	int errnum;
	uint64_t done_ns;
};

static void move_free(struct move *move)
{
	if (!move)
		return;
	for (size_t i = 0; i < 2; i++) {
		free(move->text[i]);
		free(move->path[i]);
		close_fd(&move->dir_fd[i]);
	}
	close_fd(&move->link_fd);
	free(move);
}

/* ---- in the child ---- */

static int send_state(int fd, enum message kind, int errnum)
{
	struct message_frame frame = { kind, errnum };

	return send(fd, &frame, sizeof frame, MSG_NOSIGNAL) == sizeof frame ? 0 : -EPIPE;
}

static bool hear(int fd, struct message_frame *ret_frame)
{
	ssize_t size;

	do
		size = recv(fd, ret_frame, sizeof *ret_frame, 0);
	while (size < 0 && errno == EINTR);
	return size == sizeof *ret_frame;
}

static bool may_go_on(int fd)
{
	struct message_frame frame;

	return hear(fd, &frame) && frame.kind == MOVE_GO;
}

/* With the sandbox's rights over files, and bound to the box. */
static int become_mover(const struct move *move, pid_t box)
{
	const int kept[] = { move->dir_fd[0], move->dir_fd[1], move->link_fd, move->moves->run->init.fd };
	struct rlimit files;
	sigset_t all;
	int r;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	r = fd_keep_only(kept, ARRAY_SIZE(kept));
	if (r == 0)
		r = namespaces_take_rights(move->moves->run);
	if (r < 0)
		return r;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	umask(0);
	/* The death signal comes after the change of ids, which clears it. */
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != box ? -ESRCH : 0;
}

static struct stage_move plan(const struct move *move)
{
	return (struct stage_move){
		.from_fd = move->dir_fd[0],
		.from = move->name[0],
		.to_fd = move->dir_fd[1],
		.to = move->name[1],
		.is_exchange = move->flags & RENAME_EXCHANGE,
		.target = move->has_target ? &move->target : NULL,
		.deadline_ns = clock_monotonic_ns() + RUN_MS * (uint64_t)MS_NS,
	};
}

/* While everything stands still. */
static int move_and_seize(const struct move *move, struct holders *holders)
{
	struct stage_move todo = plan(move);
	int r = holders_find(holders, move->moves->run->init.pid, move->path[0], todo.is_exchange ? move->path[1]
			     : NULL);

	/* Before anything is moved: who cannot be led to the new place would be left at none. */
	if (r == 0)
		r = holders_seize(holders, move->moves->run->init.pid);
	if (r < 0)
		return -EXDEV;
	todo.kept = holders->kept;
	todo.kept_count = holders->kept_count;
	todo.keeps_all = holders->keeps_all;
	return stage_move_run(&todo);
}

static _Noreturn void be_child(const struct move *move, pid_t box)
{
	struct stage_move todo = plan(move);
	struct holders holders = { 0 };
	int r = become_mover(move, box);

	if (r == 0)
		r = stage_move_prepare(&todo);
	if (send_state(move->link_fd, MOVE_READY, -r) < 0 || r < 0 || !may_go_on(move->link_fd))
		_exit(0);
	r = move_and_seize(move, &holders);
	if (send_state(move->link_fd, MOVE_MOVED, -r) < 0)
		_exit(0);
	/* Not before: the box takes back what it was not told of. */
	if (r == 0)
		(void)!stage_move_settle(&todo);
	if (!may_go_on(move->link_fd))
		_exit(0);
	if (r == 0)
		(void)!holders_redirect(&holders, move->path[1], move->path[0]);
	holders_done(&holders);
	_exit(send_state(move->link_fd, MOVE_LED, -r) < 0);
}

static _Noreturn void be_restorer(const struct move *move, pid_t box)
{
	struct stage_move todo = plan(move);
	int r = become_mover(move, box);

	/* Who has what open was known to the one that was killed. */
	todo.keeps_all = true;
	if (r == 0)
		r = stage_move_take_back(&todo);
	_exit(send_state(move->link_fd, MOVE_MOVED, -r) < 0);
}

/* ---- in the box ---- */

static int on_message(void *context, uint32_t events);

static int start_child(struct move *move, void (*be)(const struct move *move, pid_t box))
{
	pid_t box = getpid();
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	move->child = fork();
	if (move->child == 0) {
		move->link_fd = ends[1];
		be(move, box);
		_exit(1);
	}
	close(ends[1]);
	if (move->child < 0) {
		close(ends[0]);
		move->child = 0;
		return -EAGAIN;
	}
	move->link_fd = ends[0];
	move->source = (struct loop_source){ .fd = move->link_fd, .events = EPOLLIN, .ready = on_message,
					     .context = move->moves };
	return loop_add(move->moves->run->loop, &move->source);
}

static void end_child(struct move *move)
{
	loop_remove(move->moves->run->loop, &move->source);
	close_fd(&move->link_fd);
	if (!move->child)
		return;
	kill(move->child, SIGKILL);
	while (waitpid(move->child, NULL, 0) < 0 && errno == EINTR)
		;
	move->child = 0;
}

/* It is no pause of the agent's. */
static const struct freeze_holder move_freeze = { .counts_time = true, .traces = true };

static int record(struct move *move)
{
	const struct watch_file event = {
		.id = move->id,
		.pid = move->tid,
		.call = move->call,
		.access = WATCH_FILE_RENAME,
		.path = move->path[0],
		.target = move->path[1],
		.is_exchange = move->flags & RENAME_EXCHANGE,
		.is_directory = true,
		.errnum = move->errnum,
	};

	return file_gate_record(move->moves->files, &event);
}

/* Its caller asks again at the next turn of the loop. */
static int finish(struct move *move, int errnum)
{
	struct moves *moves = move->moves;
	int thawed = freeze_is_held_by(moves->run->freeze, &move_freeze) ? freeze_end(moves->run->freeze) : 0, r;

	end_child(move);
	for (size_t i = 0; i < 2; i++)
		close_fd(&move->dir_fd[i]);
	move->phase = PHASE_DONE;
	move->errnum = errnum;
	move->done_ns = clock_monotonic_ns();
	r = record(move);
	move_free(moves->done[moves->next_done]);
	moves->done[moves->next_done] = move;
	moves->next_done = (moves->next_done + 1) % MOVES_DONE_MAX;
	moves->move = NULL;
	moves->is_due = true;
	return r < 0 ? r : thawed;
}

static int end_run(struct moves *moves)
{
	run_end(moves->run, ENDED_POLICY);
	return err_set(moves->run->err, ERR_INTERNAL, EIO, "stage",
		       "the sandbox was ended: a directory was half renamed, and could not be put back");
}

/* What was moved goes back, while everything still stands still. */
static int take_back(struct move *move)
{
	end_child(move);
	move->phase = PHASE_TAKES_BACK;
	return start_child(move, be_restorer) < 0 ? end_run(move->moves) : 0;
}

static int freeze_for(struct move *move)
{
	struct moves *moves = move->moves;
	int r = freeze_begin(moves->run->freeze, &move_freeze, "rename");

	if (r == -EBUSY)
		return 0; /* another one holds it: moves_check() tries again */
	/* Now nothing changes any more. Who takes the move back knows of this place only what is remembered here. */
	move->has_target = fstatat(move->dir_fd[1], move->name[1], &move->target, AT_SYMLINK_NOFOLLOW) == 0 &&
			   S_ISDIR(move->target.st_mode);
	if (r < 0 || send_state(move->link_fd, MOVE_GO, 0) < 0)
		return finish(move, EXDEV);
	move->phase = PHASE_MOVES;
	return 0;
}

static int on_ready(struct move *move, int errnum)
{
	if (errnum)
		return finish(move, errnum);
	move->phase = PHASE_READY;
	return freeze_for(move);
}

static int on_moved(struct move *move, int errnum)
{
	int r;

	if (errnum == EIO)
		return end_run(move->moves);
	move->errnum = errnum;
	r = freeze_end(move->moves->run->freeze);
	if (r < 0)
		return r;
	move->phase = PHASE_LEADS;
	return send_state(move->link_fd, MOVE_GO, 0) < 0 ? finish(move, errnum) : 0;
}

static int on_child_gone(struct move *move)
{
	switch (move->phase) {
	case PHASE_MOVES:
		return take_back(move);
	case PHASE_TAKES_BACK:
		return end_run(move->moves);
	case PHASE_LEADS:
		return finish(move, move->errnum);
	default:
		return finish(move, EXDEV);
	}
}

static int on_message(void *context, uint32_t events)
{
	struct moves *moves = context;
	struct move *move = moves->move;
	struct message_frame frame;

	if (!hear(move->link_fd, &frame))
		return on_child_gone(move);
	if (move->phase == PHASE_PREPARES && frame.kind == MOVE_READY)
		return on_ready(move, frame.errnum);
	if (move->phase == PHASE_MOVES && frame.kind == MOVE_MOVED)
		return on_moved(move, frame.errnum);
	if (move->phase == PHASE_TAKES_BACK && frame.kind == MOVE_MOVED)
		return frame.errnum ? end_run(moves) : finish(move, EXDEV);
	if (move->phase == PHASE_LEADS && frame.kind == MOVE_LED)
		return finish(move, move->errnum);
	return on_child_gone(move);
}

/* ---- what the supervisor asks ---- */

static uint64_t start_of(pid_t tid)
{
	uint64_t started;

	return proc_start_ticks(tid, &started) < 0 ? 0 : started;
}

static bool is_same(const struct move *move, const struct watch_move *event)
{
	return move && move->tid == event->pid && move->number == event->number && move->flags == event->flags &&
	       str_equal(move->text[0], event->text[0]) && str_equal(move->text[1], event->text[1]) &&
	       move->started && move->started == start_of(event->pid);
}

static int wait_in_line(struct moves *moves, uint64_t id)
{
	if (moves->waiting_count == MOVES_WAITING_MAX)
		return EXDEV;
	moves->waiting[moves->waiting_count++] = id;
	return WATCH_FILE_WAITS;
}

int move_find(struct moves *moves, const struct watch_move *event)
{
	for (size_t i = 0; i < MOVES_DONE_MAX; i++) {
		struct move *done = moves->done[i];
		int errnum;

		if (!is_same(done, event))
			continue;
		errnum = done->errnum;
		moves->done[i] = NULL;
		move_free(done);
		return errnum;
	}
	if (!is_same(moves->move, event))
		return WATCH_MOVE_NEW;
	moves->move->id = event->id;
	return wait_in_line(moves, event->id);
}

static struct move *move_new(struct moves *moves, const struct watch_move *event)
{
	struct move *move = calloc(1, sizeof *move);

	if (!move)
		return NULL;
	*move = (struct move){ .moves = moves, .tid = event->pid, .started = start_of(event->pid), .id = event->id,
			       .number = event->number, .flags = event->flags, .call = event->call,
			       .dir_fd = { FD_NONE, FD_NONE }, .link_fd = FD_NONE };
	for (size_t i = 0; i < 2; i++) {
		move->text[i] = str_dup(event->text[i]);
		move->path[i] = str_dup(event->path[i]);
		move->dir_fd[i] = fd_duplicate(event->dir_fd[i]);
		if (!move->text[i] || !move->path[i] || move->dir_fd[i] < 0 ||
		    str_copy(move->name[i], sizeof move->name[i], event->name[i]) < 0) {
			move_free(move);
			return NULL;
		}
	}
	return move;
}

int move_begin(struct moves *moves, const struct watch_move *event)
{
	struct move *move;

	if (moves->run->ended != ENDED_NOT || moves->run->is_dead)
		return EXDEV;
	if (moves->move)
		return wait_in_line(moves, event->id);
	move = move_new(moves, event);
	if (!move)
		return EXDEV;
	if (start_child(move, be_child) < 0) {
		end_child(move);
		move_free(move);
		return EXDEV;
	}
	moves->move = move;
	return wait_in_line(moves, event->id);
}

/* ---- at each turn of the loop ---- */

static int retry(struct moves *moves)
{
	uint64_t ids[MOVES_WAITING_MAX];
	size_t count = moves->waiting_count;
	int r = 0;

	memcpy(ids, moves->waiting, count * sizeof *ids);
	moves->waiting_count = 0;
	moves->is_due = false;
	for (size_t i = 0; r >= 0 && moves->run->watch && i < count; i++)
		r = watch_file_retry(moves->run->watch, ids[i]);
	return r < 0 ? r : 0;
}

static int moves_check(void *context, uint64_t now_ns)
{
	struct moves *moves = context;
	struct move *move = moves->move;
	int r = 0;

	if (move && move->phase == PHASE_PREPARES && moves->disk->watch.is_full)
		r = finish(move, ENOSPC);
	else if (move && move->phase == PHASE_READY)
		r = freeze_for(move);
	return r < 0 || !moves->is_due ? r : retry(moves);
}

static int moves_timeout_ms(const void *context, uint64_t now_ns)
{
	const struct moves *moves = context;
	const struct move *move = moves->move;

	return move && move->phase <= PHASE_READY ? AGAIN_MS : -1;
}

/* Nobody inside goes on: what is half done is finished or taken back before anybody looks at what is staged. */
static void conclude(struct move *move)
{
	struct message_frame frame;

	if (move->phase == PHASE_MOVES && !hear(move->link_fd, &frame)) {
		end_child(move);
		move->phase = PHASE_TAKES_BACK;
		if (start_child(move, be_restorer) < 0)
			return;
	}
	if (move->phase == PHASE_TAKES_BACK)
		(void)!hear(move->link_fd, &frame);
}

void moves_done(struct moves *moves)
{
	if (moves->move) {
		conclude(moves->move);
		end_child(moves->move);
	}
	move_free(moves->move);
	for (size_t i = 0; i < MOVES_DONE_MAX; i++)
		move_free(moves->done[i]);
	*moves = (struct moves){ 0 };
}

const struct module moves_module = {
	.name = "directory-moves",
	.checks_when_ended = true,
	.check = moves_check,
	.timeout_ms = moves_timeout_ms,
};
