/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/str.h"
#include "box/control/control.h"
#include "box/report/report.h"
#include "box/state/sandbox.h"
#include "box/steps.h"
#include "os/fd.h"
#include "os/memory.h"
#include "os/vmfork.h"
#include "wire/link.h"

/*
 * Theory of operation. A box whose request is not complete builds every wall that the policy asks for, as for any
 * other start; init loads its filter and waits. Only then does it wait as well, in its loop, for one message of its
 * starter. What stands until then is named after the id under which it waits. The message completes the request: the
 * session's directory and the control socket get its id, and everything that is somebody's begins: record, log, first
 * command, clocks, clients. Nothing inside has run but init, so nothing is to be cleaned; it never waits again.
 *
 * It ends when the starter hangs up, when its time is over, when the mounts of the host change, and when anything
 * fails.
 */

enum { MS_NS = 1000000, TAKE_FDS_MAX = 3 };

static int stale(struct box *box, int errnum, const char *why)
{
	err_set(box->run.err, ERR_STATE, errnum, "park", "the parked sandbox was given up: %s", why);
	err_hint(box->run.err, "park another, or start one");
	return -errnum;
}

static int on_take(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct box *box = context;
	const struct run_parking *parking = box->run.request->parking;

	box->parking.is_taken = true;
	loop_remove(box->run.loop, &box->parking.starter_source);
	return parking->take(parking->context, frame, fds, fd_count, box->run.err);
}

static const struct frame_rule rules[] = {
	{ LINK_TAKE, 1, FRAME_MESSAGE_MAX, 0, TAKE_FDS_MAX, on_take },
};

static int starter_ready(void *context, uint32_t events)
{
	struct box *box = context;
	int r = frame_dispatch(box->run.request->starter->socket_fd, &box->run.scratch, 0, rules, ARRAY_SIZE(rules),
			       box);

	(void)events;
	if (r == 0 || r == -ECONNRESET)
		return stale(box, ECANCELED, "whoever parked it is gone");
	if (r < 0 && box->run.err->code == ERR_NONE)
		return stale(box, -r, "its starter broke the protocol");
	return r < 0 ? r : 0;
}

/* What stands in the sandbox would differ from what a start finds now. */
static int mounts_changed(void *context, uint32_t events)
{
	return stale(context, ESTALE, "something was mounted or unmounted on the host");
}

/* The first look counts from the moment at which it was opened. */
int park_prepare(struct box *box)
{
	box->parking.mounts_fd = fd_open_at(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY, 0);
	return box->parking.mounts_fd < 0
		       ? stale(box, -box->parking.mounts_fd, "the mounts of the host cannot be watched") : 0;
}

/*
 * It says once that they changed, to whoever polls it: an epoll that is polled itself would lose that. So it takes the
 * place beside the loop's epoll, where the listener of init's filter stands, which nobody is under but init.
 */
static void watch_mounts(struct box *box)
{
	box->parking.mounts_source = (struct loop_source){ .fd = box->parking.mounts_fd, .events = EPOLLPRI,
							   .ready = mounts_changed, .context = box };
	loop_remove(box->run.loop, &box->serving.listener_source);
	loop_add_first(box->run.loop, &box->parking.mounts_source);
}

static int end_watch(struct box *box)
{
	struct pollfd mounts = { .fd = box->parking.mounts_fd, .events = POLLPRI };
	bool is_changed = poll(&mounts, 1, 0) != 0;

	loop_remove(box->run.loop, &box->parking.mounts_source);
	loop_remove(box->run.loop, &box->parking.starter_source);
	close_fd(&box->parking.mounts_fd);
	loop_add_first(box->run.loop, &box->serving.listener_source);
	return is_changed ? mounts_changed(box, POLLPRI) : 0;
}

/* Of the loop, until is_over() or until_ns: 1, 0 at that time, or negative. */
static int wait_until(struct box *box, bool (*is_over)(const struct box *box), uint64_t until_ns)
{
	while (!is_over(box)) {
		uint64_t now_ns = clock_monotonic_ns();
		int r = now_ns >= until_ns ? 0 : loop_step(box->run.loop, (int)((until_ns - now_ns) / MS_NS + 1));

		if (r < 0)
			return r;
		if (now_ns >= until_ns)
			return 0;
		if (box->run.is_dead || box->run.ended != ENDED_NOT)
			return stale(box, ECHILD, "it was ended");
	}
	return 1;
}

static bool is_taken(const struct box *box)
{
	return box->parking.is_taken;
}

static int wait_for_taker(struct box *box)
{
	const struct run_request *request = box->run.request;
	uint64_t until_ns = clock_monotonic_ns() + request->parking->age_ms * MS_NS;
	int r;

	box->parking.starter_source = (struct loop_source){ .fd = request->starter->socket_fd, .events = EPOLLIN,
							    .ready = starter_ready, .context = box };
	r = loop_add(box->run.loop, &box->parking.starter_source);
	if (r == 0)
		r = wait_until(box, serve_is_ready, until_ns);
	if (r == 1)
		r = limit_group_begin(box->run.limits, box->run.init.pid);
	if (r == 0 && serve_is_ready(box))
		watch_mounts(box);
	if (r == 0 && serve_is_ready(box) && !box->parking.is_taken) {
		r = link_send_parked(request->starter->socket_fd);
		/* The program's own pages stay: all boxes share them, and whoever takes it would wait for them. */
		vmfork_rest();
		memory_rest_stack();
	}
	if (r == 0)
		r = wait_until(box, is_taken, until_ns);
	if (r == 0)
		return stale(box, ETIMEDOUT, "its time was over");
	return r < 0 && box->run.err->code == ERR_NONE ? stale(box, -r, "it cannot wait") : r < 0 ? r : 0;
}

/* What was named after the id under which it waited. The guardian first, which then tidies behind both. */
static int rename_all(struct box *box)
{
	struct run *run = &box->run;
	int r = guardian_follow(run->request->session);

	if (r < 0)
		return err_set(run->err, ERR_INTERNAL, -r, "guardian", "no memory");
	r = store_rename(&box->store, run->request, run->err);
	if (r < 0)
		return r;
	r = control_rename(box);
	return r < 0 ? err_set(run->err, ERR_STATE, -r, "control", "cannot rename the control socket in %s: %s",
			       run->request->runtime_dir, err_errno_name(-r)) : 0;
}

/* Ports of the host are opened for whom they are, where the sandbox was built with a gate that they lead through. */
static int open_ports(struct box *box)
{
	if (!box->run.request->publish.count)
		return 0;
	if (box->gates.net.is_used)
		return publish_open(&box->gates.net);
	err_set(box->run.err, ERR_USAGE, EINVAL, "publish",
		"a parked sandbox without a network gate publishes no port");
	err_hint(box->run.err, "start one for it");
	return -EINVAL;
}

int park(struct box *box)
{
	const struct staging_input staging = { .request = box->run.request, .session_fd = box->store.dir_fd };
	int r = wait_for_taker(box);

	if (r == 0)
		r = end_watch(box);
	if (r < 0)
		return r;
	box->run.course = (struct run_course){ .stage_started_ns = box->run.request->started_ns };
	r = rename_all(box);
	if (r == 0)
		r = report_prepare(box);
	if (r == 0)
		r = open_ports(box);
	if (r == 0)
		r = staging_begin(&box->build.staging, &staging, box->run.err);
	if (r == 0)
		r = build_session(box, box->run.err);
	run_stage(&box->run, "take");
	box->parking.is_waiting = r < 0;
	return r;
}
