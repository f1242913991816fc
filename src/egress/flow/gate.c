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
#include "egress/flow/dispatch.h"
#include "egress/flow/publish.h"
#include "egress/flow/service.h"
#include "egress/limit/labels.h"
#include "egress/record/record.h"
#include "os/clock.h"
#include "policy/decide.h"

/*
 * Theory of operation. Inside, every allowed name has an address of its own, and every connection to such an address
 * ends at the door, of which the box tells us where it was meant to go. So a connection names its host exactly, for any
 * program and without its help. Before it goes out it is judged by name and port, written down by the box, judged by
 * what its TLS client says, and by the address that the name leads to.
 *
 * The box is asked before a connection goes out and answers when the record is queued. Sending to it may block: then
 * the log cannot follow, and neither may we.
 */

static void on_stop_timer(evutil_socket_t fd, short what, void *context)
{
	struct gate *gate = context;

	(void)fd;
	(void)what;
	event_base_loopbreak(gate->base);
}

static void on_box(evutil_socket_t fd, short what, void *context)
{
	struct gate *gate = context;
	int r = dispatch_box(gate);

	(void)fd;
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

static int open_gate(struct gate *gate, bool has_recording, struct err *err)
{
	const struct policy *policy = gate->policy;
	struct event *readable = &gate->hearing.box_readable;
	const char *names[POLICY_SECRETS_MAX];
	bool is_precise = policy_secrets(policy, names) || strv_count(policy->data.canary_files);
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
	if ((has_recording || policy_intercepts_any(policy)) && authority_init(&gate->authority) < 0)
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
	recording_free(gate->recording);
	buf_done(&gate->hearing.scratch);
	box_link_done(&gate->link);
}

/* Read by a process that has confined itself: it may be anybody's. */
static int open_recording(struct gate *gate, int fd, struct err *err)
{
	const struct record_hidden hidden = { gate->secrets.scanner, SECRET_WORDS, gate->secrets.long_words };
	int flags = fd < 0 ? 0 : fcntl(fd, F_GETFL), r;

	if (fd < 0)
		return 0;
	r = (flags & O_ACCMODE) == O_RDONLY ? recording_read(&gate->recording, fd, err)
					    : recording_write(&gate->recording, fd, err);
	if (r == 0)
		recording_hide(gate->recording, &hidden);
	return r;
}

/* What could not be kept, when it is too late to refuse it. */
static int finish_recording(struct gate *gate, struct err *err)
{
	int r = gate->recording ? recording_error(gate->recording) : 0;

	if (r < 0)
		err_set(err, ERR_STATE, -r, "recording", "the recording is not complete: %s", err_errno_name(-r));
	return r;
}

/* A socket that is closed with something unread in it takes what was sent over it along: the box gets ECONNRESET. */
static void drain_box(int fd)
{
	enum { PATIENCE_MS = 2000 };
	struct pollfd polled = { .fd = fd, .events = POLLIN };
	char nothing;

	while (poll(&polled, 1, PATIENCE_MS) > 0 && recv(fd, &nothing, sizeof nothing, MSG_DONTWAIT) > 0)
		;
}

/* The last word to the box, where there is one. */
static void report_broken(struct gate *gate, const struct err *err)
{
	box_link_flush(&gate->link);
	frame_begin(&gate->link.out, GATE_BROKEN);
	frame_put_bytes(&gate->link.out, err, sizeof *err);
	if (frame_end(&gate->link.out) == 0)
		(void)!frame_send(gate->link.fd, &gate->link.out, NULL, 0);
	drain_box(gate->link.fd);
}

static int serve(struct gate *gate, struct err *err)
{
	int r;

	box_link_send_plain(&gate->link, GATE_READY);
	if (!gate->link.error)
		event_base_dispatch(gate->base);
	r = gate->link.error;
	if (r < 0)
		err_set(err, ERR_INTERNAL, -r, "network gate", "%s",
			gate->hearing.failure ? gate->hearing.failure : err_errno_name(-r));
	end_services(gate);
	return r < 0 ? r : finish_recording(gate, err);
}

int gate_run(int box_fd, const struct policy *policy, int recording_fd, struct err *err)
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
	r = open_gate(gate, recording_fd >= 0, err);
	if (r == 0)
		r = confine_self(CONFINE_EGRESS, NULL, 0, err);
	if (r == 0)
		r = open_recording(gate, recording_fd, err);
	if (r == 0)
		r = serve(gate, err);
	if (r < 0)
		report_broken(gate, err);
	close_gate(gate);
	free(gate);
	return r;
}
