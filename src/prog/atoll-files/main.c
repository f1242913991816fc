/* SPDX-License-Identifier: Apache-2.0 */
#include "change.h"
#include "look.h"
#include "place.h"
#include "ports.h"
#include "tree.h"
#include "watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "confine/confine.h"
#include "os/caps.h"
#include "os/fd.h"
#include "os/landlock.h"
#include "os/path.h"

/*
 * atoll-files: reads and changes the files of one sandbox for its owner, and connects to its ports. Started by the box
 * with the socket to it as fd 3, it goes into the sandbox's namespaces by the pidfd of its first process, takes its
 * user, its Landlock rules and nothing of its PID namespace and cgroup, so that nothing inside can see or hold it, and
 * confines itself once more before it looks at a file.
 *
 * Where a path leads is said to the box by a descriptor, which the box turns into the path that the policy is about.
 * What comes back is that path, without links, and nothing else is opened: what was swapped meanwhile is refused.
 */

/* ---- operations ---- */

static const struct {
	unsigned path, to;       /* how they are found */
	int (*act)(struct inside *inside, const char *path, const char *to);
} operations[FILES_OPERATION_COUNT] = {
	[FILES_OPEN] = { OBJECT_MISSING, 0, look_open },
	[FILES_STAT] = { 0, 0, look_stat },
	[FILES_READDIR] = { 0, 0, tree_readdir },
	[FILES_MKDIR] = { OBJECT_MISSING, 0, change_mkdir },
	[FILES_MOVE] = { OBJECT_NAME, OBJECT_NAME, change_move },
	[FILES_REMOVE] = { OBJECT_NAME, 0, tree_remove },
	[FILES_SETATTR] = { 0, 0, change_setattr },
	[FILES_WATCH] = { 0, 0, watch_add },
	[FILES_UNWATCH] = { 0, 0, watch_remove },
	[FILES_CONNECT] = { 0, 0, ports_connect },
};

static void forget_request(struct inside *inside)
{
	for (int i = 0; i < 2; i++)
		close_fd(&inside->places[i].fd);
	close_fd(&inside->result_fd);
	free(inside->request.attributes);
	inside->request = (struct files_request){ 0 };
}

static void begin_reply(struct inside *inside, int errnum)
{
	frame_begin(&inside->out, FILES_REPLY);
	frame_put_u64(&inside->out, inside->ticket);
	frame_put_u32(&inside->out, (uint32_t)errnum);
}

static int send_reply(struct inside *inside, int errnum)
{
	int r;

	if (errnum)
		begin_reply(inside, errnum);
	r = frame_end(&inside->out);
	if (r < 0) {
		begin_reply(inside, E2BIG);
		r = frame_end(&inside->out);
	}
	if (r == 0)
		r = frame_send(FILES_FD, &inside->out, &inside->result_fd, !errnum && inside->result_fd >= 0);
	forget_request(inside);
	return r;
}

static int send_place(struct inside *inside)
{
	const int fds[] = { inside->places[0].fd, inside->places[1].fd };
	int r;

	frame_begin(&inside->out, FILES_PLACE);
	frame_put_u64(&inside->out, inside->ticket);
	frame_put_string(&inside->out, inside->places[0].rest);
	frame_put_string(&inside->out, inside->places[1].rest);
	r = frame_end(&inside->out);
	return r < 0 ? r : frame_send(FILES_FD, &inside->out, fds, fds[1] >= 0 ? 2 : 1);
}

static unsigned how_found(const struct files_request *request)
{
	unsigned how = operations[request->operation].path;

	if (request->operation == FILES_STAT && request->flags & FILES_STAT_NOFOLLOW)
		how |= OBJECT_NOFOLLOW;
	if (request->operation == FILES_SETATTR && request->nofollow)
		how |= OBJECT_NOFOLLOW;
	return how;
}

static int on_request(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct inside *inside = context;
	uint64_t ticket = frame_get_u64(frame);
	int r;

	forget_request(inside);
	inside->ticket = ticket;
	r = files_request_get(frame, &inside->request);
	if (r < 0)
		return r;
	if (!operations[inside->request.operation].act)
		return send_reply(inside, EOPNOTSUPP);
	inside->places[0].rest[0] = inside->places[1].rest[0] = 0;
	if (inside->request.path)
		r = place_find(inside, inside->request.path, how_found(&inside->request), &inside->places[0]);
	if (r == 0 && inside->request.to)
		r = place_find(inside, inside->request.to, operations[inside->request.operation].to,
			       &inside->places[1]);
	if (r)
		return send_reply(inside, r);
	if (inside->request.path)
		return send_place(inside);
	begin_reply(inside, 0);
	return send_reply(inside, operations[inside->request.operation].act(inside, NULL, NULL));
}

static int on_go(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct inside *inside = context;
	uint64_t ticket = frame_get_u64(frame);
	int errnum = (int)frame_get_u32(frame);
	const char *path = frame_get_string(frame), *to = frame_get_string(frame);

	if (frame_finish(frame) < 0 || ticket != inside->ticket || !inside->request.operation || (!errnum && !path))
		return -EBADMSG;
	begin_reply(inside, 0);
	if (!errnum)
		errnum = operations[inside->request.operation].act(inside, path, to);
	return send_reply(inside, errnum);
}

/* ---- the way inside ---- */

struct beginning {
	uint32_t uid, gid, is_root;
	int init_fd, rules_fd;   /* owned */
};

static int on_begin(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct beginning *beginning = context;

	beginning->uid = frame_get_u32(frame);
	beginning->gid = frame_get_u32(frame);
	beginning->is_root = frame_get_u32(frame);
	beginning->init_fd = take_fd(&fds[0]);
	beginning->rules_fd = fd_count > 1 ? take_fd(&fds[1]) : FD_NONE;
	return frame_finish(frame);
}

/* The network last: one that is shared with the host is not the user namespace's, and nobody needs it here then. */
static int enter(const struct beginning *beginning, int *ret_net)
{
	if (beginning->is_root && syscall(SYS_setgroups, 0, NULL) < 0)
		return -errno;
	*ret_net = setns(beginning->init_fd, CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) == 0;
	if (!*ret_net && setns(beginning->init_fd, CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return -errno;
	if (chdir("/") < 0)
		return -errno;
	if (!beginning->is_root)
		return 0;
	if (prctl(PR_SET_KEEPCAPS, 1) < 0 ||
	    syscall(SYS_setresgid, beginning->gid, beginning->gid, beginning->gid) < 0 ||
	    syscall(SYS_setresuid, beginning->uid, beginning->uid, beginning->uid) < 0)
		return -errno;
	return 0;
}

static int give_up(const struct inside *inside, const struct beginning *beginning)
{
	const struct confine_place root = { inside->root_fd, landlock_rights(landlock_abi()) };
	struct err err;
	int r = caps_bound(0);

	if (r == 0)
		r = caps_drop_all();
	if (r == 0)
		r = caps_no_new_privs();
	/* Each change of credentials took it away; who has missed the death of the box finds the socket closed. */
	if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		r = -errno;
	if (r == 0 && beginning->rules_fd >= 0)
		r = landlock_restrict(beginning->rules_fd);
	return r < 0 ? r : confine_self(CONFINE_FILES, &root, 1, &err);
}

static int begin(struct inside *inside)
{
	static const struct frame_rule rules[] = { { FILES_BEGIN, 1, 64, 1, 2, on_begin } };
	struct beginning beginning = { .init_fd = FD_NONE, .rules_fd = FD_NONE };
	int r = frame_dispatch(FILES_FD, &inside->in, 0, rules, ARRAY_SIZE(rules), &beginning);

	r = r == 1 ? enter(&beginning, &inside->net) : -EPIPE;
	if (r == 0)
		r = inside->root_fd = fd_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	umask(022);
	if (r >= 0)
		r = give_up(inside, &beginning);
	close_fd(&beginning.init_fd);
	close_fd(&beginning.rules_fd);
	frame_begin(&inside->out, FILES_READY);
	if (r == 0)
		r = frame_end(&inside->out);
	return r < 0 ? r : frame_send(FILES_FD, &inside->out, NULL, 0);
}

static const struct frame_rule rules[] = {
	{ FILES_REQUEST, 1, FRAME_MESSAGE_MAX, 0, 0, on_request },
	{ FILES_GO, 1, 3 * PATH_MAX, 0, 0, on_go },
};

/* Between two halves of a request nothing else is told: its reply comes behind what it is about. */
static int step(struct inside *inside)
{
	struct pollfd polled[] = {
		{ .fd = FILES_FD, .events = POLLIN },
		{ .fd = inside->request.operation ? -1 : watch_fd(), .events = POLLIN },
	};

	if (poll(polled, ARRAY_SIZE(polled), -1) < 0)
		return -errno;
	if (polled[1].revents) {
		int r = watch_tell(inside);

		if (r < 0)
			return r;
	}
	if (!polled[0].revents)
		return 1;
	return frame_dispatch(FILES_FD, &inside->in, 0, rules, ARRAY_SIZE(rules), inside);
}

int main(void)
{
	static struct inside inside = { .root_fd = FD_NONE, .result_fd = FD_NONE,
					.places = { { .fd = FD_NONE }, { .fd = FD_NONE } } };
	int r;

	buf_init(&inside.in, FRAME_MESSAGE_MAX);
	buf_init(&inside.out, FILES_REPLY_MAX);
	buf_init(&inside.rows, FILES_ROWS_MAX);
	if (fd_secure_standard() < 0 || begin(&inside) < 0)
		return 125;
	do
		r = step(&inside);
	while (r == 1 || r == -EINTR);
	return r < 0 ? 125 : 0;
}
