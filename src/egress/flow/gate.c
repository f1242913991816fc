/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/flow/gate.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/str.h"
#include "confine/confine.h"
#include "egress/flow/door.h"
#include "egress/flow/flow.h"
#include "egress/flow/requests.h"
#include "egress/flow/sealed.h"
#include "egress/flow/service.h"
#include "egress/limit/labels.h"
#include "egress/record/record.h"
#include "os/clock.h"
#include "policy/decide.h"
#include "policy/trust-files.h"

/*
 * Theory of operation. Inside, every allowed name has an address of its own, and every connection to such an address
 * ends at the door, of which the box tells us where it was meant to go. So a connection names its host exactly, for any
 * program and without its help. Before it goes out it is judged by name and port, written down by the box, judged by
 * what its TLS client says, and by the address that the name leads to.
 *
 * The box is asked before a connection goes out and answers when the record is queued. Sending to it may block: then
 * the log cannot follow, and neither may we.
 */

enum gate_state { GATE_NEW, GATE_SERVING };

enum { BOX_BATCH = 256 };

static int send_plain(struct gate *gate, uint16_t type)
{
	frame_begin(&gate->link.out, type);
	return frame_end(&gate->link.out);
}

static int on_start(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate *gate = context;
	struct gate_start start;
	int r = gate_start_get(frame, &start);

	if (r < 0 || fd_count != (start.has_ipv6 ? 4u : 3u) || (gate->authority.ca && !gate->authority.bundle))
		return -EBADMSG;
	for (size_t i = 0; i < fd_count; i++)
		gate->sockets[i] = take_fd(&fds[i]);
	r = dialer_set_test_hosts(gate->dialer, start.test_hosts);
	if (r == 0) {
		r = dialer_set_proxy(gate->dialer, start.proxy, start.no_proxy);
		if (r < 0)
			gate->hearing.failure = "HTTPS_PROXY is not of the form http://[USER:PASSWORD@]HOST[:PORT]";
	}
	for (const struct gate_service *const *service = gate->services; r == 0 && *service; service++)
		r = (*service)->start ? (*service)->start(gate) : 0;
	gate->hearing.state = GATE_SERVING;
	return r;
}

static int on_introduce(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate *gate = context;
	uint32_t wanted = frame_get_u32(frame);
	int files[TRUST_FILE_COUNT];
	size_t taken = 1;
	int r;

	for (int file = 0; file < TRUST_FILE_COUNT; file++)
		files[file] = wanted & 1u << file && taken < fd_count ? fds[taken++] : FD_NONE;
	if (frame_finish(frame) < 0 || wanted >> TRUST_FILE_COUNT || taken != fd_count || !gate->authority.ca ||
	    gate->authority.bundle)
		return -EBADMSG;
	r = authority_introduce(&gate->authority, fds[0], files);
	if (r == 0)
		box_link_send(&gate->link, send_plain(gate, GATE_INTRODUCED));
	return r;
}

static int on_route(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate_route route;
	int r = gate_route_get(frame, &route);

	(void)fds;
	(void)fd_count;
	if (r == 0)
		door_route(context, &route);
	return r;
}

static int on_go(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint32_t id = frame_get_u32(frame), is_granted = frame_get_u32(frame);

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0)
		return -EBADMSG;
	flow_go(context, id, is_granted);
	return 0;
}

static int on_publish(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint32_t index = frame_get_u32(frame), port = frame_get_u32(frame);

	(void)fd_count;
	if (frame_finish(frame) < 0 || !port || port > UINT16_MAX)
		return -EBADMSG;
	return publishing_add(context, index, (uint16_t)port, take_fd(&fds[0]));
}

static int on_inside(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint32_t id = frame_get_u32(frame);

	if (frame_finish(frame) < 0)
		return -EBADMSG;
	publishing_go(context, id, fd_count ? take_fd(&fds[0]) : FD_NONE);
	return 0;
}

static int on_pause(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint64_t ms = frame_get_u64(frame);
	struct gate *gate = context;

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0 || ms > UINT32_MAX)
		return -EBADMSG;
	gate->paused_until_ns = clock_monotonic_ns() + ms * 1000000;
	return 0;
}

static int on_measure(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate *gate = context;

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0)
		return -EBADMSG;
	frame_begin(&gate->link.out, GATE_MEASURED);
	frame_put_u64(&gate->link.out, quota_used(gate->quota, QUOTA_IN));
	frame_put_u64(&gate->link.out, quota_used(gate->quota, QUOTA_OUT));
	box_link_send(&gate->link, frame_end(&gate->link.out));
	return 0;
}

static int on_answer(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate_answer answer;
	int r = gate_answer_get(frame, &answer);

	(void)fds;
	(void)fd_count;
	if (r == 0)
		requests_answered(context, &answer);
	return r;
}

static int on_asking(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	uint32_t asks = frame_get_u32(frame);
	struct gate *gate = context;

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0 || asks > 1)
		return -EBADMSG;
	gate->asks = asks;
	return 0;
}

/* 0, and the new policy is in force as a whole; or the old one is as if nobody had asked. */
static int change_policy(struct gate *gate, int fd)
{
	struct snapshot *snapshot;
	int r = sealed_snapshot_load(fd, &snapshot);

	if (r < 0)
		return r;
	/* The certificate that this would need is made before the jail. */
	if (policy_intercepts_any(snapshot_policy(snapshot)) && !gate->authority.ca)
		return -EOPNOTSUPP;
	r = quota_change(gate->quota, snapshot_policy(snapshot), clock_monotonic_ns());
	if (r == 0)
		gate->now = *snapshot_policy(snapshot);
	return r;
}

static int on_policy(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate *gate = context;
	int r = frame_finish(frame) < 0 ? -EBADMSG : 0;
	uint32_t ended = 0;

	(void)fd_count;
	if (r < 0)
		return r;
	r = change_policy(gate, fds[0]);
	if (r == 0)
		ended = flows_judge_again(gate);
	frame_begin(&gate->link.out, GATE_POLICY_SET);
	frame_put_u32(&gate->link.out, (uint32_t)-r);
	frame_put_u32(&gate->link.out, ended);
	box_link_send(&gate->link, frame_end(&gate->link.out));
	return 0;
}

static int on_stop(void *context, struct frame *frame, int *fds, size_t fd_count)
{
	struct gate *gate = context;

	(void)fds;
	(void)fd_count;
	if (frame_finish(frame) < 0)
		return -EBADMSG;
	/* What was sent before the end is sent, as the kernel would have done for a program that has ended. */
	for (const struct gate_service *const *service = gate->services; *service; service++)
		if ((*service)->stop)
			(*service)->stop(gate);
	event_add(&gate->hearing.stop_timer, &(struct timeval){ .tv_usec = GATE_LINGER_MS * 1000 });
	gate_check_stopped(gate);
	return 0;
}

static void on_stop_timer(evutil_socket_t fd, short what, void *context)
{
	struct gate *gate = context;

	(void)fd;
	(void)what;
	event_base_loopbreak(gate->base);
}

static const struct frame_rule box_rules[] = {
	{ GATE_START, 1 << GATE_NEW, 8192, 3, 4, on_start },
	{ GATE_ROUTE, 1 << GATE_NEW | 1 << GATE_SERVING, 512, 0, 0, on_route },
	{ GATE_GO, 1 << GATE_SERVING, 64, 0, 0, on_go },
	{ GATE_POLICY, 1 << GATE_NEW | 1 << GATE_SERVING, 64, 1, 1, on_policy },
	{ GATE_PUBLISH, 1 << GATE_SERVING, 64, 1, 1, on_publish },
	{ GATE_INSIDE, 1 << GATE_SERVING, 64, 0, 1, on_inside },
	{ GATE_PAUSE, 1 << GATE_NEW | 1 << GATE_SERVING, 64, 0, 0, on_pause },
	{ GATE_MEASURE, 1 << GATE_SERVING, 64, 0, 0, on_measure },
	{ GATE_ANSWER, 1 << GATE_SERVING, 2048, 0, 0, on_answer },
	{ GATE_ASKING, 1 << GATE_SERVING, 64, 0, 0, on_asking },
	{ GATE_STOP, 1 << GATE_NEW | 1 << GATE_SERVING, 64, 0, 0, on_stop },
	{ GATE_INTRODUCE, 1 << GATE_NEW, 64, 1, FRAME_FD_MAX, on_introduce },
};

/*
 * All that is there: the box does not wait for us, and answers as many connections as the door takes in one turn. One
 * at a time, its socket would fill up, and it would take us for dead.
 */
static int hear_box(struct gate *gate, int fd)
{
	struct gate_hearing *hearing = &gate->hearing;
	int r = 1;

	for (int i = 0; r > 0 && i < BOX_BATCH; i++) {
		struct pollfd polled = { .fd = fd, .events = POLLIN };

		if (i && poll(&polled, 1, 0) <= 0)
			break;
		r = frame_dispatch(fd, &hearing->scratch, hearing->state, box_rules, ARRAY_SIZE(box_rules), gate);
	}
	return r;
}

static void on_box(evutil_socket_t fd, short what, void *context)
{
	struct gate *gate = context;
	int r = hear_box(gate, fd);

	(void)what;
	if (r > 0)
		return;
	/* The box has gone: so has everything inside. */
	gate->link.error = r == -ECONNRESET ? 0 : r;
	event_base_loopbreak(gate->base);
}

/* As many files as we may have; what is left of connections, and of visits to published ports, follows from that. */
static void raise_limits(struct gate *gate)
{
	/* Two sockets and two pipes, or one and DIAL_ATTEMPTS_MAX; strays, DNS over TCP, spare pipes. */
	enum { FDS_EACH = 6, FDS_OTHER = 256,
	       BOTH_MAX = GATE_FLOWS_MAX + PUBLISH_VISITS_MAX, BOTH_MIN = 18 };
	size_t both = BOTH_MIN;
	struct rlimit limit;

	gate->flows.max = GATE_FLOWS_MAX;
	gate->publishing.visits_max = PUBLISH_VISITS_MAX;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= FDS_OTHER + FDS_EACH * BOTH_MAX)
		return;
	if (limit.rlim_cur > 2 * FDS_OTHER)
		both = (limit.rlim_cur - FDS_OTHER) / FDS_EACH;
	gate->publishing.visits_max = (both * PUBLISH_VISITS_MAX + BOTH_MAX - 1) / BOTH_MAX;
	gate->flows.max = both - gate->publishing.visits_max;
}

/*
 * Two priorities: names and the box come first, relays after them and for a few milliseconds at a time. Else hundreds
 * of busy connections let queries wait until the kernel drops them, and a resolver asks again after five seconds only.
 */
static struct event_base *new_base(bool is_precise)
{
	static const struct timeval slice = { .tv_usec = 5000 };
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;
	/* What is held back of bodies waits for less than a millisecond (pace.h). Other timers may be some late. */
	int flags = EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST | EVENT_BASE_FLAG_NOLOCK |
		    (is_precise ? EVENT_BASE_FLAG_PRECISE_TIMER : 0);

	/* Many connections are short: what is watched of a socket changes more often than it is waited for. */
	if (config && event_config_set_max_dispatch_interval(config, &slice, -1, 1) == 0 &&
	    event_config_set_flag(config, flags) == 0)
		base = event_base_new_with_config(config);
	if (config)
		event_config_free(config);
	if (base && event_base_priority_init(base, 2) < 0) {
		event_base_free(base);
		return NULL;
	}
	return base;
}

static void on_limit(void *context, const struct quota_hit *hit)
{
	struct gate_limit limit = { hit->rule, hit->kind, hit->amount };
	struct gate *gate = context;

	box_link_send(&gate->link, gate_limit_put(&gate->link.out, &limit));
}

/* Came with libevent's fixes of September 2026 (CVE-2026-63379 to CVE-2026-63388), which changed no number. */
extern void evhttp_check_transfer_encoding_(void) __attribute__((weak));

/* What was built with them may meet an older library. */
static int check_library(struct err *err)
{
	if (evhttp_check_transfer_encoding_)
		return 0;
	err_set(err, ERR_WALL, ELIBBAD, "network gate",
		"the libevent of this machine lacks its security fixes of September 2026");
	err_hint(err, "upgrade libevent-core and libevent-extra (Debian 12: 2.1.12-stable-8+deb12u1 or later)");
	return -ELIBBAD;
}

static struct labels *new_labels(void)
{
	uint8_t seed[16];

	return getrandom(seed, sizeof seed, 0) == (ssize_t)sizeof seed ? labels_new(seed) : NULL;
}

/* Names before connections; the door takes who waits before flows are stopped. */
static const struct gate_service *const services[] = { &dns_service, &door_service, &flow_service, &publish_service,
						       NULL };

static int open_gate(struct gate *gate, bool has_tape, struct err *err)
{
	const struct policy *policy = gate->policy;
	struct event *readable = &gate->hearing.box_readable;
	const char *names[POLICY_SECRETS_MAX];
	bool is_precise = policy_secrets(policy, names) || strv_count(policy->canary_files);
	int r;

	for (size_t i = 0; i < GATE_SOCKET_COUNT; i++)
		gate->sockets[i] = FD_NONE;
	raise_limits(gate);
	buf_init(&gate->hearing.scratch, FRAME_MESSAGE_MAX);
	r = check_library(err);
	if (r < 0)
		return r;
	gate->base = new_base(is_precise);
	gate->names = host_names_new(NAMES_MAX);
	gate->labels = new_labels();
	if (!gate->base || !gate->names || !gate->labels || dialer_new(&gate->dialer, gate->base, gate->policy) < 0 ||
	    quota_new(&gate->quota, policy, clock_monotonic_ns(), on_limit, gate) < 0)
		return err_set(err, ERR_INTERNAL, ENOMEM, "network gate", "out of memory");
	r = gate_secrets_load(&gate->secrets, policy, err);
	if (r < 0)
		return r;
	if ((has_tape || policy_intercepts_any(policy)) && authority_init(&gate->authority) < 0)
		return err_set(err, ERR_INTERNAL, EIO, "network gate", "cannot make the session's certificate");
	if (gate_accept_init(gate) < 0 || memory_init(&gate->memory, gate->base) < 0 ||
	    event_assign(readable, gate->base, gate->link.fd, EV_READ | EV_PERSIST, on_box, gate) < 0 ||
	    event_priority_set(readable, 0) < 0 || event_add(readable, NULL) < 0 ||
	    box_link_start(&gate->link, gate->base) < 0 ||
	    evtimer_assign(&gate->hearing.stop_timer, gate->base, on_stop_timer, gate) < 0)
		return err_set(err, ERR_INTERNAL, EINVAL, "network gate", "no event loop");
	return 0;
}

static void end_services(struct gate *gate)
{
	for (const struct gate_service *const *service = gate->services; *service; service++)
		(*service)->end(gate);
}

static void close_gate(struct gate *gate)
{
	end_services(gate);
	box_link_flush(&gate->link);
	for (size_t i = 0; i < GATE_SOCKET_COUNT; i++)
		close_fd(&gate->sockets[i]);
	dialer_free(gate->dialer);
	host_names_free(gate->names);
	labels_free(gate->labels);
	quota_free(gate->quota);
	authority_done(&gate->authority);
	gate_secrets_done(&gate->secrets);
	tape_free(gate->tape);
	buf_done(&gate->hearing.scratch);
	box_link_done(&gate->link);
}

/* Read by a process that has confined itself: it may be anybody's. */
static int open_tape(struct gate *gate, int fd, struct err *err)
{
	const struct record_hidden hidden = { gate->secrets.scanner, SECRET_WORDS, gate->secrets.long_words };
	int flags = fd < 0 ? 0 : fcntl(fd, F_GETFL), r;

	if (fd < 0)
		return 0;
	r = (flags & O_ACCMODE) == O_RDONLY ? tape_replay(&gate->tape, fd, err) : tape_record(&gate->tape, fd, err);
	if (r == 0)
		tape_hide(gate->tape, &hidden);
	return r;
}

/* What could not be kept, when it is too late to refuse it. */
static int finish_tape(struct gate *gate, struct err *err)
{
	int r = gate->tape ? tape_error(gate->tape) : 0;

	if (r < 0)
		err_set(err, ERR_STATE, -r, "recording", "the recording is not complete: %s", err_errno_name(-r));
	return r;
}

/* A socket that is closed with something unread in it takes what was sent over it along: the box gets ECONNRESET. */
static void hear_out(int fd)
{
	enum { PATIENCE_MS = 2000 };
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	char nothing;

	while (poll(&polled, 1, PATIENCE_MS) > 0 && recv(fd, &nothing, sizeof nothing, MSG_DONTWAIT) > 0)
		;
}

/* The last word to the box, where there is one. */
static void tell_broken(struct gate *gate, const struct err *err)
{
	box_link_flush(&gate->link);
	frame_begin(&gate->link.out, GATE_BROKEN);
	frame_put_bytes(&gate->link.out, err, sizeof *err);
	if (frame_end(&gate->link.out) == 0)
		(void)!frame_send(gate->link.fd, &gate->link.out, NULL, 0);
	hear_out(gate->link.fd);
}

static int serve(struct gate *gate, struct err *err)
{
	int r;

	box_link_send(&gate->link, send_plain(gate, GATE_READY));
	if (!gate->link.error)
		event_base_dispatch(gate->base);
	r = gate->link.error;
	if (r < 0)
		err_set(err, ERR_INTERNAL, -r, "network gate", "%s",
			gate->hearing.failure ? gate->hearing.failure : err_errno_name(-r));
	end_services(gate);
	return r < 0 ? r : finish_tape(gate, err);
}

int gate_run(int box_fd, const struct policy *policy, int tape_fd, struct err *err)
{
	struct gate *gate = calloc(1, sizeof *gate);
	int r;

	if (!gate)
		return err_set(err, ERR_INTERNAL, ENOMEM, "network gate", "out of memory");
	box_link_init(&gate->link, box_fd);
	gate->services = services;
	gate->now = *policy;
	gate->policy = &gate->now;
	publishing_init(&gate->publishing, gate);
	r = open_gate(gate, tape_fd >= 0, err);
	if (r == 0)
		r = confine_self(CONFINE_EGRESS, NULL, 0, err);
	if (r == 0)
		r = open_tape(gate, tape_fd, err);
	if (r == 0)
		r = serve(gate, err);
	if (r < 0)
		tell_broken(gate, err);
	close_gate(gate);
	free(gate);
	return r;
}
