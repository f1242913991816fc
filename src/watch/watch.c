/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/watch.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "os/clock.h"
#include "os/identity.h"
#include "watch/confined.h"
#include "watch/exec-stop.h"
#include "watch/exec.h"
#include "watch/file/files.h"
#include "watch/network.h"
#include "watch/own-mounts.h"
#include "watch/pair.h"
#include "watch/refusals.h"
#include "watch/waiting.h"

/* Linux 6.6: the answer wakes the caller on our CPU, 6 µs instead of 34. */
#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1UL << 0)
#endif

#if defined(__x86_64__)
#define ARCH_NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH_NATIVE AUDIT_ARCH_AARCH64
#else
#error "no system call numbers for this architecture"
#endif

/*
 * Two rules hold for every notification. The record comes before the answer, so that nothing happens that is not
 * written down; and an answer is always given, a refusal where anything went wrong, so that no caller hangs. A
 * connect that would block gets its answer when it is through.
 * Were we to die, the kernel would fail every waiting and later call with ENOSYS.
 */

struct watch {
	int listener_fd;
	int epoll_fd;                    /* owned: over the listener (not once attended) and the timer of waiting */
	int beside_fd;                   /* borrowed: see watch_attend(); FD_NONE before */
	struct watch_options options;
	struct watch_handlers handlers;
	struct waiting waiting;
	struct exec_stops held;
	struct connector connector;
	bool has_connector;
	struct files *files;             /* owned; NULL: file calls are not mediated, or nothing was moved yet */
	struct files *modes;             /* owned; NULL: not made, or no directory was to have set-ID bits yet */
	struct watch_options mode_options; /* of these: all calls are made here */
	struct pairs pairs;
	struct own_mounts own_mounts;
	struct confined confined;        /* with options.moves_directories alone */
	size_t request_size;             /* the running kernel's, which may exceed our headers' */
	struct seccomp_notif *request;   /* owned */
	struct reply reply;              /* response owned */
	struct remote remote;
	struct exec_text text;
};

/* How long watch_serve() waits for the next call, and how long it stays in all. */
enum { STAY_MS = 1, STAY_NS = 10000000 };

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static int allocate_messages(struct watch *watch, struct err *err)
{
	struct seccomp_notif_sizes sizes;
	size_t response_size;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
		return err_set(err, ERR_WALL, errno, "seccomp", "this kernel has no seccomp user notification");
	watch->request_size = larger(sizes.seccomp_notif, sizeof *watch->request);
	response_size = larger(sizes.seccomp_notif_resp, sizeof *watch->reply.response);
	watch->request = malloc(watch->request_size);
	watch->reply.response = calloc(1, response_size);
	if (!watch->request || !watch->reply.response)
		return err_set(err, ERR_INTERNAL, ENOMEM, "seccomp", "out of memory");
	return 0;
}

static int add_source(struct watch *watch, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	return epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_sources(struct watch *watch, struct err *err)
{
	int r = waiting_init(&watch->waiting);

	watch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (r == 0)
		r = watch->epoll_fd < 0 ? -errno : add_source(watch, watch->listener_fd);
	if (r == 0)
		r = add_source(watch, watch->waiting.timer_fd);
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "seccomp", "epoll: %s", err_errno_name(-r)) : 0;
}

static int open_connector(struct watch *watch, struct err *err)
{
	int r = connector_init(&watch->connector, watch->listener_fd, &watch->options);

	watch->has_connector = r == 0;
	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "seccomp", "no timer: %s", err_errno_name(-r)) : 0;
}

static int open_files(struct watch *watch, struct err *err)
{
	int r = files_new(&watch->files, watch->epoll_fd, &watch->reply, &watch->options, &watch->handlers);

	return r < 0 ? err_set(err, ERR_INTERNAL, -r, "seccomp", "cannot mediate files: %s", err_errno_name(-r)) : 0;
}

int watch_new(struct watch **ret_watch, int listener_fd, const struct watch_options *options,
	      const struct watch_handlers *handlers, struct err *err)
{
	/* Not calloc: most of it is text that a quiet sandbox never touches. */
	struct watch *watch = malloc(sizeof *watch);
	int r;

	if (!watch) {
		close_fd(&listener_fd);
		return err_set(err, ERR_INTERNAL, ENOMEM, "seccomp", "out of memory");
	}
	watch->listener_fd = listener_fd;
	watch->beside_fd = FD_NONE;
	watch->options = *options;
	watch->handlers = *handlers;
	watch->request = NULL;
	watch->reply = (struct reply){ .listener_fd = listener_fd };
	watch->has_connector = false;
	watch->files = watch->modes = NULL;
	watch->pairs = (struct pairs){ 0 };
	exec_stop_init(&watch->held);
	confined_init(&watch->confined);
	own_mounts_init(&watch->own_mounts, &watch->options);
	r = open_sources(watch, err);
	if (r == 0)
		r = allocate_messages(watch, err);
	if (r == 0)
		r = open_connector(watch, err);
	if (r == 0 && options->mediates_files)
		r = open_files(watch, err);
	if (r < 0) {
		watch_free(watch);
		return r;
	}
	/* EINVAL or ENOTTY: an older kernel, only slower. */
	ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	*ret_watch = watch;
	return 0;
}

void watch_free(struct watch *watch)
{
	if (!watch)
		return;
	files_free(watch->files);
	files_free(watch->modes);
	exec_stop_done(&watch->held);
	waiting_done(&watch->waiting);
	if (watch->has_connector)
		connector_done(&watch->connector);
	close_fd(&watch->epoll_fd);
	close_fd(&watch->listener_fd);
	free(watch->request);
	free(watch->reply.response);
	free(watch);
}

void watch_end_held(struct watch *watch)
{
	exec_stop_done(&watch->held);
}

int watch_fd(const struct watch *watch)
{
	return watch->epoll_fd;
}

int watch_attend(struct watch *watch, int beside_fd, int *ret_listener_fd)
{
	if (epoll_ctl(watch->epoll_fd, EPOLL_CTL_DEL, watch->listener_fd, NULL) < 0)
		return -errno;
	watch->beside_fd = beside_fd;
	*ret_listener_fd = watch->listener_fd;
	return 0;
}

/* errnum 0: the call goes on. */
static int answer(struct watch *watch, int errnum)
{
	uint64_t id = watch->request->id;

	return errnum ? reply_error(&watch->reply, id, errnum) : reply_continue(&watch->reply, id);
}

/* The handler's result counts before that of the answer. */
static int conclude(struct watch *watch, int handled, int errnum)
{
	int r = answer(watch, handled < 0 && !errnum ? EPERM : errnum);

	return handled < 0 ? handled : r;
}

/*
 * Whether the caller still waits: then its pid meant the same process while we read. Where nobody can tell whose memory
 * that was, it is refused; *ret_result is that of the answer, for which it may wait.
 */
static bool still_waits(struct watch *watch, int *ret_result)
{
	int awaited = reply_is_awaited(&watch->reply, watch->request->id);

	*ret_result = awaited < 0 ? answer(watch, EPERM) : 0;
	return awaited > 0;
}

static int refuse(struct watch *watch)
{
	const struct seccomp_data *data = &watch->request->data;
	const struct watch_refused_call *call = data->arch == ARCH_NATIVE ? watch_refused_call_find(data->nr) : NULL;
	struct watch_refusal event = {
		.pid = (pid_t)watch->request->pid,
		.syscall = call ? call->name : "unknown",
		.errnum = call ? call->errnum : EPERM,
	};

	/* Datagrams, which could name any path (tools/seccomp/base.table); the family as such exists. */
	if (call && data->nr == SYS_socket && (uint32_t)data->args[0] == AF_UNIX)
		event.errnum = EPROTONOSUPPORT;
	for (size_t i = 0; i < ARRAY_SIZE(event.arguments); i++)
		event.arguments[i] = data->args[i];
	return conclude(watch, watch->handlers.on_refusal(watch->handlers.context, &event), event.errnum);
}

/* ---- execs ---- */

static int hold_exec(struct watch *watch, uint64_t id, pid_t pid, uint64_t token)
{
	bool was_open = watch->held.signal_fd >= 0;
	uint64_t before;
	int r = exec_stop_begin(&watch->held, pid, token, &before), handled;

	if (!was_open && watch->held.signal_fd >= 0) {
		int added = add_source(watch, watch->held.signal_fd);

		if (added == 0)
			added = add_source(watch, watch->held.timer_fd);
		r = added < 0 ? added : r;
	}
	if (r == 1)
		watch->handlers.on_over(watch->handlers.context, before);
	/* Was it gone before it was seized, its number may have been another's by then: that one is let go. */
	if (r >= 0 && reply_is_awaited(&watch->reply, id) <= 0) {
		exec_stop_abandon(&watch->held, pid);
		watch->handlers.on_over(watch->handlers.context, token);
		return 0;
	}
	if (r >= 0) {
		r = reply_continue(&watch->reply, id);
		exec_stop_continued(&watch->held, pid);
		return r;
	}
	handled = watch->handlers.on_unheld(watch->handlers.context, token, pid, -r);
	r = reply_error(&watch->reply, id, r == -EAGAIN ? EAGAIN : EPERM);
	return handled < 0 ? handled : r;
}

int watch_answer_exec(struct watch *watch, uint64_t id, pid_t pid, const struct watch_exec_answer *answer)
{
	if (answer->errnum)
		return reply_error(&watch->reply, id, answer->errnum);
	if (!answer->is_held)
		return reply_continue(&watch->reply, id);
	if (reply_is_awaited(&watch->reply, id) > 0)
		return hold_exec(watch, id, pid, answer->token);
	watch->handlers.on_over(watch->handlers.context, answer->token);
	return 0;
}

static int serve_exec(struct watch *watch)
{
	struct watch_exec_answer answer = { 0 };
	struct watch_exec event;
	int r;

	remote_begin(&watch->remote, (pid_t)watch->request->pid);
	exec_read(&watch->remote, watch->request, &watch->text, &event);
	remote_end(&watch->remote);
	if (!still_waits(watch, &r))
		return r;
	r = watch->handlers.on_exec(watch->handlers.context, &event, &answer);
	if (r < 0)
		return conclude(watch, r, EPERM);
	return answer.is_later ? 0 : watch_answer_exec(watch, event.id, event.pid, &answer);
}

/* The result of a connect that was made. What is to be recorded or told about it comes first. */
static int conclude_connect(struct watch *watch, const struct connect_call *call, const struct connect_result *result)
{
	struct watch_network event = { .pid = call->pid, .operation = "connect" };
	int handled = 0, r;

	if (result->outcome == CONNECT_REFUSED) {
		network_refuse_unix(&call->address, result->errnum, &event);
		handled = watch->handlers.on_network(watch->handlers.context, &event);
	}
	if (result->source.size)
		handled = watch->handlers.on_gated(watch->handlers.context, call->pid, &result->source.any,
						   &call->address.any);
	r = result->errnum ? reply_error(&watch->reply, call->id, result->errnum) :
			     reply_value(&watch->reply, call->id, 0);
	return handled < 0 ? handled : r;
}

static bool is_heard_now(struct watch *watch, const struct connect_call *call, const struct connect_result *result)
{
	const struct sockaddr_un *address = (const void *)&call->address.storage;
	size_t size = call->address.size, offset = offsetof(struct sockaddr_un, sun_path);
	char path[sizeof address->sun_path + 1];

	if (result->outcome != CONNECT_DONE || result->errnum != ECONNREFUSED || address->sun_family != AF_UNIX ||
	    !watch->handlers.on_unheard || size <= offset || size > sizeof *address)
		return false;
	memcpy(path, address->sun_path, size - offset);
	path[size - offset] = 0;
	return watch->handlers.on_unheard(watch->handlers.context, path);
}

static bool is_gate_behind(const struct watch *watch, const struct connect_call *call)
{
	return call->is_gated && watch->handlers.is_gate_behind &&
	       watch->handlers.is_gate_behind(watch->handlers.context);
}

static int serve_connect(struct watch *watch, const struct connect_address *address, bool is_gated)
{
	const struct seccomp_notif *request = watch->request;
	struct connect_call call = {
		.id = request->id, .pid = (pid_t)request->pid, .fd = (int)request->data.args[0], .address = *address,
		.is_gated = is_gated,
	};
	struct connect_result result = { .outcome = CONNECT_WAITS };

	call.is_held = is_gate_behind(watch, &call);
	if (call.is_held && waiting_add(&watch->waiting, &call, &result) == 0)
		return 0;
	connect_try(&watch->connector, &call, &result);
	if (is_heard_now(watch, &call, &result))
		connect_try(&watch->connector, &call, &result);
	/* When too many wait already, the caller does not. */
	if (result.outcome == CONNECT_WAITS && waiting_add(&watch->waiting, &call, &result) == 0)
		return 0;
	return conclude_connect(watch, &call, &result);
}

static int retry_connect(struct watch *watch, struct waiting_call *waiting, size_t *position)
{
	struct connect_call call = waiting->call;
	struct connect_result result = { .outcome = CONNECT_DONE, .errnum = EINTR };

	call.is_again = !call.is_held;
	waiting->call.is_held = call.is_held && is_gate_behind(watch, &call);
	/* Killed, or interrupted by a signal before Linux 6.0: then it has its EINTR, or asks again. */
	if (!remote_is_interrupted(call.pid) && reply_is_awaited(&watch->reply, call.id) > 0) {
		if (waiting->call.is_held)
			result.outcome = CONNECT_WAITS;
		else
			connect_try(&watch->connector, &call, &result);
	}
	if (result.outcome == CONNECT_WAITS && clock_monotonic_ns() < waiting->deadline_ns) {
		waiting_keep(waiting);
		return 0;
	}
	if (result.outcome == CONNECT_WAITS)
		result = (struct connect_result){ .errnum = waiting->timeout_errnum };
	waiting_drop(&watch->waiting, position);
	return conclude_connect(watch, &call, &result);
}

/* ERESTARTSYS, which no header for programs has. */

bool watch_is_awaited(const struct watch *watch, uint64_t id)
{
	return reply_is_awaited(&watch->reply, id) != 0;
}

int watch_restart_exec(struct watch *watch, uint64_t id, pid_t pid)
{
	return reply_restart(&watch->reply, id, pid);
}

void watch_set_signalled(struct watch *watch, bool is_signalled)
{
	watch->reply.is_signalled = is_signalled;
}

int watch_release_waiting(struct watch *watch)
{
	int result = 0;

	while (watch->waiting.count) {
		size_t first = 0;
		const struct connect_call *call = &watch->waiting.calls[first].call;
		int r = reply_restart(&watch->reply, call->id, call->pid);

		if (r < 0)
			result = r;
		waiting_drop(&watch->waiting, &first);
	}
	if (watch->files) {
		int r = files_release_waiting(watch->files);

		result = r < 0 ? r : result;
	}
	return result;
}

int watch_file_retry(struct watch *watch, uint64_t id)
{
	int r = watch->files ? files_retry(watch->files, &watch->remote, id) : 0;

	identity_return();
	return r;
}

/* At most max: what is due and left out keeps the timer readable. */
static int serve_waiting(struct watch *watch, unsigned max)
{
	struct waiting_call *waiting;
	size_t position = 0;
	int r = 0;

	while (r >= 0 && max-- && (waiting = waiting_next(&watch->waiting, &position)))
		r = retry_connect(watch, waiting, &position);
	return r < 0 ? r : 0;
}

static int serve_network(struct watch *watch)
{
	bool is_connect = watch->request->data.nr == SYS_connect;
	struct connect_address address;
	enum network_verdict verdict;
	struct watch_network event;
	int r = 0;

	remote_begin(&watch->remote, (pid_t)watch->request->pid);
	verdict = network_judge(&watch->remote, watch->request, &watch->options, &event, &address);
	remote_end(&watch->remote);
	if (!still_waits(watch, &r))
		return r;
	if (verdict == NETWORK_UNEXPECTED)
		return refuse(watch);
	if (verdict == NETWORK_GATE_DECIDES) {
		r = watch->handlers.on_gate(watch->handlers.context, &event);
		return r ? conclude(watch, r < 0 ? r : 0, r < 0 ? EPERM : r) : serve_connect(watch, &address, true);
	}
	if (verdict != NETWORK_SILENT)
		r = watch->handlers.on_network(watch->handlers.context, &event);
	if (r < 0 || verdict == NETWORK_REFUSE || (is_connect && event.errnum))
		return conclude(watch, r, event.errnum);
	return is_connect ? serve_connect(watch, &address, false) : answer(watch, 0);
}

/* The bits that only directories may have are refused of all, where the calls cannot be made. */
static struct files *files_for_modes(struct watch *watch)
{
	struct watch_options *options = &watch->mode_options;

	*options = watch->options;
	options->mediates_files = true;
	options->moves_directories = false;
	if (!watch->modes && files_new_unjudged(&watch->modes, watch->epoll_fd, &watch->reply, options) < 0)
		watch->modes = NULL;
	return watch->modes;
}

static int serve_by(struct watch *watch, struct files *files)
{
	int r = files_serve(files, &watch->remote, watch->request);

	if (r != 1)
		return r;
	identity_return();
	return refuse(watch);
}

static int serve_file(struct watch *watch)
{
	bool is_mediated = watch->options.mediates_files;
	struct err err;

	if (watch->handlers.on_link && files_makes_link(watch->request->data.nr))
		watch->handlers.on_link(watch->handlers.context);
	if (!is_mediated &&
	    confined_may_have(&watch->confined, (pid_t)watch->request->pid, watch->options.init_pid))
		return answer(watch, 0);
	/* Only renames and links are seen: who makes none has nothing of this. */
	if (!watch->files && open_files(watch, &err) < 0)
		return answer(watch, 0);
	return serve_by(watch, watch->files);
}

static int serve_confining(struct watch *watch)
{
	if (!watch->options.moves_directories || watch->options.mediates_files)
		return refuse(watch);
	if (watch->request->data.nr == SYS_prctl)
		confined_add_subreaper(&watch->confined);
	else
		confined_add(&watch->confined, (pid_t)watch->request->pid);
	return answer(watch, 0);
}

static int serve_pair(struct watch *watch)
{
	int r = pair_serve(&watch->pairs, &watch->reply, watch->request, watch->options.uid, watch->options.gid);

	return r == 1 ? refuse(watch) : r;
}

static int serve_mount(struct watch *watch)
{
	int r = own_mounts_serve(&watch->own_mounts, &watch->reply, &watch->remote, watch->request);

	return r == 1 ? refuse(watch) : r;
}

/*
 * A name that is moved or removed by somebody in another mount namespace than the sandbox's: what is mounted on it here
 * holds it for nobody there. So it is done here, where each name is looked at first (watch/file/change.c).
 */
static bool changes_from_elsewhere(struct watch *watch)
{
	if (!watch->options.own_mount_source[0] || !files_removes_name(watch->request->data.nr))
		return false;
	identity_return();
	return own_mounts_is_elsewhere(&watch->own_mounts, (pid_t)watch->request->pid);
}

static int serve_from_elsewhere(struct watch *watch)
{
	struct files *files = files_for_modes(watch);

	return files ? serve_by(watch, files) : answer(watch, EPERM);
}

static int serve_request(struct watch *watch)
{
	const struct seccomp_data *data = &watch->request->data;

	if (data->arch == ARCH_NATIVE && changes_from_elsewhere(watch))
		return serve_from_elsewhere(watch);
	if (data->arch == ARCH_NATIVE && files_cover(&watch->options, data->nr))
		return serve_file(watch);
	/* Of the file call before this one. */
	identity_return();
	if (data->arch != ARCH_NATIVE)
		return refuse(watch);
	switch (data->nr) {
	case SYS_execve:
	case SYS_execveat:
		return serve_exec(watch);
	case SYS_socketpair:
		return serve_pair(watch);
	case SYS_mount:
		return serve_mount(watch);
	case SYS_prctl:
	case SYS_landlock_restrict_self:
		return serve_confining(watch);
	case SYS_connect:
	case SYS_bind:
	case SYS_listen:
	case SYS_sendto:
		return serve_network(watch);
	}
	if (files_changes_mode(data->nr) && files_for_modes(watch))
		return serve_by(watch, watch->modes);
	/* In the sandbox's own mount namespace, where the kernel sees what is mounted. */
	if (watch->options.own_mount_source[0] && files_removes_name(data->nr))
		return answer(watch, 0);
	return refuse(watch);
}

/* 1: a request is in watch->request; 0: its caller is gone already; -errno. */
static int receive(struct watch *watch)
{
	/* The kernel refuses a buffer that is not zero. */
	memset(watch->request, 0, watch->request_size);
	if (ioctl(watch->listener_fd, SECCOMP_IOCTL_NOTIF_RECV, watch->request) == 0)
		return 1;
	return errno == ENOENT || errno == EINTR ? 0 : -errno;
}

/* Before new calls: a process whose exec failed has made its next one already. */
static int serve_held(struct watch *watch)
{
	struct exec_stop_events events = {
		.on_image = watch->handlers.on_image,
		.on_over = watch->handlers.on_over,
		.on_late = watch->handlers.on_unheld,
		.context = watch->handlers.context,
	};

	return watch->held.signal_fd >= 0 ? exec_stop_look(&watch->held, &events) : 0;
}

/* 1: one was served, and nothing else is known to be ready; 0: none, or enough; GONE; or negative. */
enum { GONE = 2 };

static int serve_next(struct watch *watch, int timeout_ms)
{
	struct pollfd polled[] = {
		{ .fd = watch->listener_fd, .events = POLLIN },
		{ .fd = watch->beside_fd, .events = POLLIN },
	};
	int r;

	/* RECV blocks, whatever the fd's flags say. A caller that dies after this poll makes it ENOENT. */
	if (poll(polled, ARRAY_SIZE(polled), timeout_ms) < 0)
		return errno == EINTR ? 0 : -errno;
	if (!(polled[0].revents & POLLIN))
		return polled[0].revents & POLLHUP ? GONE : 0;
	r = receive(watch);
	if (r > 0)
		r = serve_request(watch);
	return r < 0 ? r : !polled[1].revents;
}

/*
 * Who opens one file mostly opens the next within a moment: to wait for it here is to be back in it without a round
 * through everything that the owner looks after, and without giving back the ids that the next call needs.
 */
static int serve_close_ones(struct watch *watch)
{
	uint64_t end_ns = clock_monotonic_ns() + STAY_NS;
	int r;

	do
		r = serve_next(watch, STAY_MS);
	while (r == 1 && clock_monotonic_ns() < end_ns);
	return r;
}

int watch_serve(struct watch *watch, unsigned max)
{
	int r = serve_waiting(watch, max);

	if (r >= 0 && watch->files)
		r = files_look(watch->files);
	if (r == 0)
		r = serve_held(watch);
	if (r < 0)
		return r;
	if (watch->options.mediates_files && watch->beside_fd >= 0) {
		r = serve_close_ones(watch);
	} else {
		r = 1;
		for (unsigned i = 0; r == 1 && i < max; i++)
			r = serve_next(watch, 0);
	}
	identity_return();
	return r == 1 ? 0 : r == GONE ? 1 : r;
}
