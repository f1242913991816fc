/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/peer.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "os/clock.h"
#include "os/fd.h"
#include "supervise/run.h"
#include "wire/frame.h"

enum { NS_PER_MS = 1000000 };

enum event {
	EVENT_START,
	EVENT_SERVES,
	EVENT_BREAKS,
	EVENT_DISMISS,
	EVENT_END,               /* its process is gone */
	EVENT_END_SPENT,         /* and it fell too often */
	EVENT_COUNT,
};

/* One column an event; what does not happen in a state leaves it as it is. */
static const uint8_t after[PEER_STATE_COUNT][EVENT_COUNT] = {
	/*                 START          SERVES        BREAKS        DISMISS       END           END_SPENT */
	[PEER_IDLE] =     { PEER_STARTING, PEER_IDLE,    PEER_IDLE,    PEER_IDLE,    PEER_IDLE,    PEER_SPENT },
	[PEER_STARTING] = { PEER_STARTING, PEER_SERVING, PEER_BROKEN,  PEER_LEAVING, PEER_IDLE,    PEER_SPENT },
	[PEER_SERVING] =  { PEER_SERVING,  PEER_SERVING, PEER_BROKEN,  PEER_LEAVING, PEER_IDLE,    PEER_SPENT },
	[PEER_BROKEN] =   { PEER_BROKEN,   PEER_BROKEN,  PEER_BROKEN,  PEER_LEAVING, PEER_IDLE,    PEER_SPENT },
	[PEER_LEAVING] =  { PEER_LEAVING,  PEER_LEAVING, PEER_LEAVING, PEER_LEAVING, PEER_IDLE,    PEER_SPENT },
	[PEER_SPENT] =    { PEER_SPENT,    PEER_SPENT,   PEER_SPENT,   PEER_SPENT,   PEER_SPENT,   PEER_SPENT },
};

static void enter(struct peer *peer, enum event event)
{
	peer->state = (enum peer_state)after[peer->state][event];
}

void peer_init(struct peer *peer, struct run *run, const struct peer_kind *kind, unsigned falls_max, void *context)
{
	*peer = (struct peer){ .run = run, .kind = kind, .context = context, .falls_max = falls_max,
			       .fd = FD_NONE, .far_fd = FD_NONE, .program_fd = FD_NONE, .process = PIDREF_NONE,
			       .deadline_ns = UINT64_MAX };
}

/* ---- those that have a process ---- */

static void add_to_run(struct peer *peer)
{
	const struct peer *at = peer->run->peers;

	while (at && at != peer)
		at = at->next;
	if (at)
		return;
	peer->next = peer->run->peers;
	peer->run->peers = peer;
}

static void remove_from_run(struct peer *peer)
{
	struct peer **at = &peer->run->peers;

	while (*at && *at != peer)
		at = &(*at)->next;
	if (*at)
		*at = peer->next;
	peer->next = NULL;
}

/* Its process and all that leads to it. */
static void end(struct peer *peer, bool is_fall)
{
	loop_remove(peer->run->loop, &peer->source);
	loop_remove(peer->run->loop, &peer->exit_source);
	close_fd(&peer->fd);
	close_fd(&peer->far_fd);
	close_fd(&peer->program_fd);
	peer_end(&peer->process);
	remove_from_run(peer);
	peer->deadline_ns = UINT64_MAX;
	peer->falls += is_fall;
	enter(peer, peer->falls >= peer->falls_max ? EVENT_END_SPENT : EVENT_END);
}

static int fell(struct peer *peer, int r)
{
	end(peer, true);
	return r;
}

/* It is gone before who uses it hears so: it may be started again from there. */
static int conclude(struct peer *peer)
{
	enum peer_fault fault = peer->fault;

	end(peer, fault != PEER_HUNG_UP || !peer->kind->may_leave);
	return peer->kind->broke(peer->context, fault);
}

/* ---- its beginning ---- */

int peer_prepare(struct peer *peer)
{
	int r;

	if (peer->program_fd < 0)
		peer->program_fd = peer_open(peer->run->request->init_path, peer->kind->program);
	if (peer->program_fd < 0) {
		r = peer->program_fd;
		peer->program_fd = FD_NONE;
		return r;
	}
	return peer->fd < 0 ? peer_socket(&peer->fd, &peer->far_fd) : 0;
}

int peer_start(struct peer *peer, const struct peer_spec *more)
{
	struct peer_spec spec = more ? *more : (struct peer_spec){ 0 };
	int r;

	if (peer->state != PEER_IDLE)
		return -ESHUTDOWN;
	r = peer_prepare(peer);
	spec.program = peer->kind->program;
	if (peer->kind->user && !spec.uid)
		spec.uid = peer_uid(peer->run, peer->kind->user);
	if (r == 0)
		r = peer_spawn(&spec, peer->program_fd, peer->far_fd, &peer->process);
	if (r < 0)
		return fell(peer, r);
	close_fd(&peer->far_fd);
	close_fd(&peer->program_fd);
	peer->fatal = 0;
	add_to_run(peer);
	enter(peer, EVENT_START);
	if (!peer->kind->must_greet)
		enter(peer, EVENT_SERVES);
	return 0;
}

/* Negative: the log failed. */
static int hear_batch(struct peer *peer)
{
	const struct peer_kind *kind = peer->kind;
	void *user = peer->context;
	int r = 1;

	for (unsigned i = 0; r > 0 && i < (kind->batch ? kind->batch : 1) && peer_is_there(peer); i++)
		r = peer_hear(peer);
	return r < 0 || !kind->heard ? (r < 0 ? r : 0) : kind->heard(user);
}

static int on_message(void *context, uint32_t events)
{
	struct peer *peer = context;
	int r;

	if (events & EPOLLOUT) {
		r = loop_change(peer->run->loop, &peer->source, EPOLLIN);
		if (r == 0)
			r = peer->kind->has_room(peer->context);
		if (r < 0)
			return r;
	}
	if (!(events & ~(uint32_t)EPOLLOUT) || !peer_is_there(peer))
		return 0;
	r = hear_batch(peer);
	return r == 0 && peer->state == PEER_BROKEN ? conclude(peer) : r;
}

int peer_listen(struct peer *peer)
{
	int r;

	peer->source = (struct loop_source){ .fd = peer->fd, .events = EPOLLIN, .ready = on_message, .context = peer };
	r = loop_add(peer->run->loop, &peer->source);
	return r < 0 ? fell(peer, r) : 0;
}

int peer_greet(struct peer *peer, int r, const int *fds, size_t fd_count)
{
	if (r == 0)
		r = frame_send(peer->fd, &peer->run->out, fds, fd_count);
	return r < 0 ? fell(peer, r) : peer_listen(peer);
}

/* ---- its use ---- */

bool peer_is_there(const struct peer *peer)
{
	return peer->state == PEER_STARTING || peer->state == PEER_SERVING;
}

void peer_serves(struct peer *peer)
{
	enter(peer, EVENT_SERVES);
}

int peer_send(struct peer *peer, const int *fds, size_t fd_count)
{
	int r = peer_is_there(peer) ? frame_send(peer->fd, &peer->run->out, fds, fd_count) : -EPIPE;

	if (r < 0 && r != -EAGAIN && r != -EMSGSIZE && r != -ENOBUFS)
		peer_break(peer, PEER_DEAF);
	return r;
}

int peer_wait_for_room(struct peer *peer)
{
	return loop_change(peer->run->loop, &peer->source, EPOLLIN | EPOLLOUT);
}

void peer_expect(struct peer *peer, uint64_t deadline_ns)
{
	peer->deadline_ns = deadline_ns;
	if (deadline_ns != UINT64_MAX)
		add_to_run(peer);
}

void peer_break(struct peer *peer, enum peer_fault fault)
{
	if (!peer_is_there(peer))
		return;
	peer->fault = fault;
	enter(peer, EVENT_BREAKS);
	/* What it says is not heard, and would wake the loop again and again. */
	loop_remove(peer->run->loop, &peer->source);
}

int peer_fail(struct peer *peer, int r)
{
	if (r < 0)
		peer->fatal = r;
	return r;
}

int peer_hear(struct peer *peer)
{
	int r = frame_dispatch(peer->fd, &peer->run->scratch, peer->state, peer->kind->rules, peer->kind->rule_count,
			       peer->context);

	if (peer->fatal < 0 || r == 1)
		return peer->fatal < 0 ? peer->fatal : 1;
	if (r == 0 || r == -ECONNRESET || r == -EPIPE)
		peer_break(peer, PEER_HUNG_UP);
	else if (r == -EPROTO || r == -EBADMSG)
		peer_break(peer, PEER_NONSENSE);
	else if (r != -EAGAIN && r != -EINTR)
		return r;
	return 0;
}

/* ---- its end ---- */

static int gone(struct peer *peer)
{
	end(peer, false);
	if (peer->kind->left)
		peer->kind->left(peer->context);
	return 0;
}

static int process_ended(void *context, uint32_t events)
{
	(void)events;
	return gone(context);
}

void peer_dismiss(struct peer *peer)
{
	if (!peer_is_there(peer) && peer->state != PEER_BROKEN)
		return;
	loop_remove(peer->run->loop, &peer->source);
	close_fd(&peer->fd);
	enter(peer, EVENT_DISMISS);
	peer->deadline_ns = clock_monotonic_ns() + peer->kind->leave_ms * (uint64_t)NS_PER_MS;
	peer->exit_source = (struct loop_source){ .fd = peer->process.fd, .events = EPOLLIN, .ready = process_ended,
						  .context = peer };
	/* Where the loop cannot, its time is over at once. */
	if (loop_add(peer->run->loop, &peer->exit_source) < 0)
		peer->deadline_ns = 0;
}

void peer_close(struct peer *peer, bool waits)
{
	struct pollfd polled = { .fd = peer->process.fd, .events = POLLIN };

	loop_remove(peer->run->loop, &peer->source);
	close_fd(&peer->fd);
	if (waits && polled.fd >= 0)
		(void)!poll(&polled, 1, (int)peer->kind->leave_ms);
	end(peer, false);
}

void peer_retire(struct peer *peer, bool waits)
{
	peer_close(peer, waits);
	enter(peer, EVENT_END_SPENT);
}

void peer_abandon(struct peer *peer)
{
	pidref_done(&peer->process);
	peer->process = PIDREF_NONE;
	peer_retire(peer, false);
}

/* ---- in each turn of the loop ---- */

/* Of what was due nothing is afterwards, unless who uses it says when it is late next. */
static int look_at(struct peer *peer, uint64_t now_ns)
{
	if (peer->state == PEER_BROKEN)
		return conclude(peer);
	peer->deadline_ns = UINT64_MAX;
	if (peer->state == PEER_LEAVING)
		return gone(peer);
	if (peer->run->ended != ENDED_NOT)
		return 0;
	if (peer->kind->late)
		return peer->kind->late(peer->context, now_ns);
	peer_break(peer, PEER_LATE);
	return conclude(peer);
}

static bool is_due(const struct peer *peer, uint64_t now_ns)
{
	return peer->state == PEER_BROKEN || peer->deadline_ns <= now_ns;
}

static struct peer *first_due(const struct run *run, uint64_t now_ns)
{
	struct peer *at = run->peers;

	while (at && !is_due(at, now_ns))
		at = at->next;
	return at;
}

static int peers_check(void *state, uint64_t now_ns)
{
	struct run *run = state;
	int r = 0;

	/* From the first again: what is told of one may start and end others. */
	for (struct peer *due; r == 0 && (due = first_due(run, now_ns));)
		r = look_at(due, now_ns);
	return r;
}

static int peers_timeout_ms(const void *state, uint64_t now_ns)
{
	const struct run *run = state;
	uint64_t next_ns = UINT64_MAX;

	for (const struct peer *at = run->peers; at; at = at->next)
		if (is_due(at, now_ns) || at->deadline_ns < next_ns)
			next_ns = is_due(at, now_ns) ? now_ns : at->deadline_ns;
	if (next_ns == UINT64_MAX)
		return -1;
	return next_ns > now_ns ? (int)((next_ns - now_ns) / NS_PER_MS) + 1 : 0;
}

const struct module peers_module = {
	.name = "peers",
	.checks_when_ended = true,
	.check = peers_check,
	.timeout_ms = peers_timeout_ms,
};
