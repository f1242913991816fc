/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/gate.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/json.h"
#include "base/str.h"
#include "gate-net/link.h"
#include "gate-net/log.h"
#include "jail/spec.h"
#include "os/clock.h"
#include "os/fd.h"
#include "policy/decide.h"
#include "policy/synthetic.h"
#include "supervise/run.h"
#include "watch/watch.h"

/*
 * The gate is a program of its own, because it takes in bytes from both sides; it starts when the first byte comes, so
 * that a run which never uses the network pays for four sockets only (but see gate_prepare()). What it asks and tells
 * is checked: whether a connection may go out is decided here again, by the same snapshot. We never wait for it: where
 * it does not take our word it is ended, and with it the network, which the sandbox can do without.
 */

enum { FINISH_MS = GATE_LINGER_MS + 300, HEAR_BATCH = 16, CHANGE_LOOK_MS = 500 };

_Static_assert((int)GATE_FD == (int)PEER_FD && (int)GATE_CANARIES_FD < (int)PEER_ABOVE,
	       "the gate finds what it is given where the wire says");
_Static_assert((int)JAIL_GATE_SOCKETS == (int)GATE_SOCKET_COUNT && (int)JAIL_GATE_DOOR6 == (int)GATE_DOOR6 &&
	       (int)JAIL_GATE_DNS_UDP == (int)GATE_DNS_UDP, "the jail makes the sockets in the order of the wire");

static const struct peer_kind kind;

void gate_init(struct net_gate *gate, struct run *run, struct store *store, struct queue *queue)
{
	*gate = (struct net_gate){
		.run = run, .store = store, .queue = queue,
		.start = { .secrets_fd = FD_NONE, .canaries_fd = FD_NONE },
	};
	peer_init(&gate->peer, run, &kind, 1, gate);
	certificates_init(&gate->certificates);
	for (size_t i = 0; i < GATE_SOCKET_COUNT; i++)
		gate->sockets[i] = FD_NONE;
}

static int fail_prepare(struct net_gate *gate, int r, const char *what)
{
	err_set(gate->run->err, ERR_STATE, -r, "network gate", "%s: %s", what, err_errno_name(-r));
	err_hint(gate->run->err, "atoll-egress must lie beside atoll; install atoll again");
	return r;
}

static void gate_forget_sockets(struct net_gate *gate)
{
	for (size_t i = 0; i < GATE_SOCKET_COUNT; i++)
		close_fd(&gate->sockets[i]);
}

static const char *write_address(const struct gate_address *address, char text[INET6_ADDRSTRLEN])
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	if (memcmp(address->bytes, mapped, sizeof mapped) == 0)
		return inet_ntop(AF_INET, address->bytes + 12, text, INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET6, address->bytes, text, INET6_ADDRSTRLEN);
}

/* Whether the gate hears the client before it asks: what it says is a part of the decision. */
static bool hears_first(const struct net_gate *gate, const struct gate_route *route, const char *host)
{
	return (route->host && gate_port_is_tls(route->target.port)) ||
	       gate->run->request->recording.mode != RECORDING_NONE ||
	       policy_intercepts(gate->run->network_policy, host, route->target.port) || gate->next_policy;
}

/* Decides and writes down here what would else cost a question of the gate, where it is known what it would ask. */
static int grant_route(struct net_gate *gate, struct gate_route *route)
{
	struct gate_open open = { .id = route->id, .pid = route->pid, .port = route->target.port };
	char address[INET6_ADDRSTRLEN];
	uint32_t number;
	int granted;

	if (synthetic_find(route->target.bytes, &number))
		open.host = route->host = gate_names_find(&gate->names, number);
	else if (address_is_loopback(route->target.bytes))
		open.host = "localhost";
	else
		open.host = write_address(&route->target, address);
	if (!open.host || policy_counts_connections(gate->run->network_policy) ||
	    hears_first(gate, route, open.host))
		return 0;
	granted = gate_log_granted(gate, &open);
	route->is_granted = granted > 0;
	return granted;
}

/*
 * A socket is not writable any more when a quarter of it is taken: what is left is for answers to the gate, which must
 * get through, and for who cannot wait.
 */
bool gate_is_behind(const struct net_gate *gate)
{
	struct pollfd polled = { .fd = gate->peer.fd, .events = POLLOUT };

	return gate_can_hear(gate) && poll(&polled, 1, 0) == 0;
}

/* ::1 and 0.0.0.0 lead to the host's loopback as 127.0.0.1 does: to whichever of its families answers. */
static void normalise(struct gate_address *target)
{
	static const uint8_t localhost[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 }, any[16];
	static const uint8_t mapped_any[16] = { [10] = 0xff, [11] = 0xff };

	if (address_is_loopback(target->bytes) || memcmp(target->bytes, any, 16) == 0 ||
	    memcmp(target->bytes, mapped_any, 16) == 0)
		memcpy(target->bytes, localhost, sizeof localhost);
}

int gate_route(struct net_gate *gate, pid_t pid, const struct sockaddr *source, const struct sockaddr *target)
{
	struct gate_route route = { .id = ++gate->last_id, .pid = (uint32_t)pid,
				    .source = gate_address_of(source), .target = gate_address_of(target) };
	int r;

	if (!gate_can_hear(gate))
		return 0;
	normalise(&route.target);
	r = grant_route(gate, &route);
	/* What the gate gets no note about, it closes. */
	if (r >= 0 && gate_route_put(&gate->run->out, &route) == 0)
		(void)!frame_send(gate->peer.fd, &gate->run->out, NULL, 0);
	return r < 0 ? r : 0;
}

void gate_fill_options(struct net_gate *gate, struct watch_options *options)
{
	uint8_t address4[4], address6[16];

	synthetic_make(SYNTHETIC_GATE, address4, address6);
	options->gate = (struct watch_gate){
		.is_there = true,
		.has_ipv6 = gate->sockets[GATE_DOOR6] >= 0,
		.door4 = { .sin_family = AF_INET, .sin_port = htons(SYNTHETIC_DOOR_PORT) },
		.door6 = { .sin6_family = AF_INET6, .sin6_port = htons(SYNTHETIC_DOOR_PORT) },
	};
	host_ports_fill_options(gate, &options->gate);
	memcpy(&options->gate.door4.sin_addr, address4, sizeof address4);
	memcpy(&options->gate.door6.sin6_addr, address6, sizeof address6);
}

/* ---- the program ---- */

/* At a number that is none of the gate's. */
static int copy_recording(const struct run_request *request)
{
	int fd = request->recording.mode ? fd_duplicate(request->recording.fd) : FD_NONE;

	return fd < 0 ? fd : fd_move_above(fd, PEER_ABOVE);
}

/* The policy as it is now, for the gate to map. */
static int copy_snapshot(const struct net_gate *gate)
{
	const struct policy_change *change = &gate->change;
	int fd = fd_memfd_sealed("snapshot", change->bytes ? change->bytes : gate->run->policy->bytes,
				 change->bytes ? change->size : gate->run->policy->size);

	return fd < 0 ? fd : fd_move_above(fd, PEER_ABOVE);
}

static int spawn(struct net_gate *gate)
{
	cleanup_fd int snapshot_fd = copy_snapshot(gate), recording_fd = copy_recording(gate->run->request);
	const struct peer_fd given[] = {
		{ snapshot_fd, GATE_SNAPSHOT_FD },
		{ recording_fd, GATE_RECORDING_FD },
		{ gate->start.secrets_fd, GATE_SECRETS_FD },
		{ gate->start.canaries_fd, GATE_CANARIES_FD },
	};
	const struct peer_spec spec = {
		.given = given, .given_count = ARRAY_SIZE(given), .uid = getuid() == 0 ? gate->start.uid : 0,
	};
	int r;

	if (snapshot_fd < 0)
		return snapshot_fd;
	if (gate->run->request->recording.mode && recording_fd < 0)
		return recording_fd;
	r = peer_start(&gate->peer, &spec);
	close_fd(&gate->start.secrets_fd);
	close_fd(&gate->start.canaries_fd);
	return r;
}

bool gate_reads_requests(const struct net_gate *gate)
{
	return policy_intercepts_any(gate->run->policy->policy) || gate->run->request->recording.mode != RECORDING_NONE;
}

/* The jail is made with a certificate whose key the gate has. */
static struct certificates_input certificates_input(struct net_gate *gate)
{
	return (struct certificates_input){ gate->peer.fd, &gate->run->out, &gate->run->scratch,
					    gate->run->request->command.env };
}

static int start_early(struct net_gate *gate)
{
	struct certificates_input input = certificates_input(gate);
	int r = spawn(gate);

	if (r < 0)
		return fail_prepare(gate, r, "the network gate cannot be started");
	return certificates_begin(&gate->certificates, &input, gate->run->err);
}

int gate_introduce(struct net_gate *gate, struct err *err)
{
	struct certificates_input input = certificates_input(gate);
	int r = gate->is_used && gate_reads_requests(gate) ? certificates_finish(&gate->certificates, &input, err) : 1;

	if (r == 0)
		peer_serves(&gate->peer);
	return r < 0 ? r : 0;
}

/* All gates pause: nothing new goes out either. */
static int on_paused(void *context, enum event_type type, const void *detail)
{
	(void)type, (void)detail;
	gate_pause(context);
	return 0;
}

int gate_prepare(struct net_gate *gate, uid_t host_uid, int canaries_fd)
{
	int r;

	gate->is_used = true;
	gate->start.canaries_fd = canaries_fd < 0 ? canaries_fd : fd_move_above(canaries_fd, PEER_ABOVE);
	if (gate->start.canaries_fd < 0 && gate->start.canaries_fd != FD_NONE)
		return fail_prepare(gate, gate->start.canaries_fd, "no socket for the network gate");
	gate->subscriber = (struct subscriber){ 1 << EVENT_PAUSED, on_paused, gate, NULL };
	hub_subscribe(gate->run->hub, &gate->subscriber);
	/* Beside it in the same range, which nobody uses: what is inside has no uid in common with the gate. */
	gate->start.uid = host_uid ^ PEER_GATE;
	r = peer_prepare(&gate->peer);
	if (r < 0)
		return fail_prepare(gate, r, gate->peer.program_fd < 0
						     ? "the program of the network gate cannot be found"
						     : "no socket for the network gate");
	if (gate->run->request->secrets.gate_fd >= 0)
		r = gate->start.secrets_fd = fd_move_above(gate->run->request->secrets.gate_fd, PEER_ABOVE);
	if (r < 0)
		return fail_prepare(gate, r, "no socket for the network gate");
	return gate_reads_requests(gate) ? start_early(gate) : 0;
}

/* A variable of the caller's; the small letters win, as for curl. NULL: not set, or empty. */
static const char *caller_variable(char **env, const char *small, const char *capital)
{
	const char *value = env_find(env, small);

	if (!value || !*value)
		value = env_find(env, capital);
	return value && *value ? value : NULL;
}

static int greet(struct net_gate *gate)
{
	char **env = gate->run->request->command.env;
	bool has_ipv6 = gate->sockets[GATE_DOOR6] >= 0;
	struct gate_start start = { .has_ipv6 = has_ipv6, .test_hosts = gate->run->request->tests.hosts,
				    .proxy = caller_variable(env, "https_proxy", "HTTPS_PROXY"),
				    .no_proxy = caller_variable(env, "no_proxy", "NO_PROXY") };
	int r = gate_start_put(&gate->run->out, &start);

	return peer_greet(&gate->peer, r, gate->sockets, has_ipv6 ? GATE_SOCKET_COUNT : GATE_DOOR6);
}

/* All that leads to the program, and who waits for it. */
static void close_doors(struct net_gate *gate)
{
	gate_questions_done(gate);
	for (size_t i = 0; i < GATE_SOCKET_COUNT; i++)
		loop_remove(gate->run->loop, &gate->sources[i]);
	gate_forget_sockets(gate);
	publish_close(gate);
}

/* There is no network any more, for this reason where none was named yet: that is written down. */
static int lose(struct net_gate *gate, const char *why)
{
	int r;

	gate_name_failure(gate, why);
	peer_retire(&gate->peer, false);
	gate_forget_unsent(gate);
	close_doors(gate);
	r = gate_log_failure(gate);
	return r == 0 && gate->change.is_pending ? policy_change_conclude(gate, ENETDOWN, 0) : r;
}

static int broke(void *context, enum peer_fault fault)
{
	static const char *const reasons[] = {
		[PEER_HUNG_UP] = "it ended unexpectedly", [PEER_NONSENSE] = "it spoke out of turn",
		[PEER_DEAF] = "it does not listen", [PEER_LATE] = "it is late",
	};

	return lose(context, reasons[fault]);
}

static int heard(void *context)
{
	return run_check_log_size(((struct net_gate *)context)->run);
}

static const struct peer_kind kind = {
	.program = "atoll-egress", .rules = gate_rules, .rule_count = GATE_RULE_COUNT, .must_greet = true,
	.batch = HEAR_BATCH, .heard = heard, .broke = broke, .has_room = gate_has_room,
};

/* Its sockets, and a place in the loop. Negative: the log failed. */
static int hand_over(struct net_gate *gate)
{
	int r = greet(gate);

	/* It has its own now; ours would keep the door open behind it. */
	gate_forget_sockets(gate);
	if (r < 0)
		return lose(gate, err_errno_name(-r));
	publish_hand_over(gate);
	if (gate_pause_left_ms(gate))
		gate_pause(gate);
	gate_say_asking(gate, gate_questions_is_on(gate));
	return 0;
}

/* Another policy, which the gate is told where it is there. */
static int check_change(struct net_gate *gate)
{
	struct policy_change *change = &gate->change;
	const struct policy_change_snapshot *next = &change->held[change->count - 1];
	int r = 0;

	if (clock_monotonic_ns() >= change->until_ns)
		gate_mark_lost(gate, "it did not take another policy");
	if (change->is_told)
		return 0;
	change->is_told = true;
	if (gate->peer.state == PEER_IDLE)
		return policy_change_conclude(gate, 0, 0);
	/* Started for its certificate, and not used yet: nobody would hear its answer. */
	if (gate->sockets[GATE_DNS_UDP] >= 0)
		r = hand_over(gate);
	gate_say_policy(gate, next->bytes, next->size);
	return r;
}

static int gate_check(void *context, uint64_t now_ns)
{
	struct net_gate *gate = context;
	int r = gate->change.is_pending ? check_change(gate) : 0;

	if (r == 0 && gate_is_there(gate))
		gate_say_asking(gate, gate_questions_is_on(gate));
	return r;
}

static int start_gate(struct net_gate *gate)
{
	int r;

	if (gate->peer.state != PEER_IDLE)
		return 0;
	for (size_t i = 0; i < GATE_SOCKET_COUNT; i++)
		loop_remove(gate->run->loop, &gate->sources[i]);
	r = spawn(gate);
	return r < 0 ? lose(gate, err_errno_name(-r)) : hand_over(gate);
}

static int socket_ready(void *context, uint32_t events)
{
	(void)events;
	return start_gate(context);
}

int gate_listen(struct net_gate *gate)
{
	int r = 0;

	if (gate->peer.state != PEER_IDLE)
		return hand_over(gate);
	for (size_t i = 0; r == 0 && gate->is_used && i < GATE_SOCKET_COUNT; i++) {
		gate->sources[i] = (struct loop_source){ .fd = gate->sockets[i], .events = EPOLLIN,
							 .ready = socket_ready, .context = gate };
		if (gate->sockets[i] >= 0)
			r = loop_add(gate->run->loop, &gate->sources[i]);
	}
	return r == 0 ? publish_listen(gate, socket_ready) : r;
}

int gate_judge(struct net_gate *gate, const struct watch_network *event)
{
	struct gate_address address = { .bytes = { [10] = 0xff, 0xff } };
	uint32_t number;

	if (inet_pton(AF_INET, event->address, address.bytes + 12) != 1 &&
	    inet_pton(AF_INET6, event->address, address.bytes) != 1)
		return EINVAL;
	/* Whose name it stands for, the gate knows. */
	if (synthetic_find(address.bytes, &number) && number >= SYNTHETIC_FIRST)
		return 0;
	return gate_log_address(gate, event);
}

static bool is_somebody_there(const struct net_gate *gate)
{
	struct pollfd doors[] = { { .fd = gate->sockets[GATE_DOOR4], .events = POLLIN },
				  { .fd = gate->sockets[GATE_DOOR6], .events = POLLIN } };

	return poll(doors, ARRAY_SIZE(doors), 0) > 0;
}

/* All that it has left to tell. Negative: the log failed. */
static int hear_rest(struct net_gate *gate)
{
	uint64_t until_ns = clock_monotonic_ns() + FINISH_MS * (uint64_t)1000000;
	int r = 0;

	loop_remove(gate->run->loop, &gate->peer.source);
	frame_begin(&gate->run->out, GATE_STOP);
	if (frame_end(&gate->run->out) == 0)
		(void)!frame_send(gate->peer.fd, &gate->run->out, NULL, 0);
	while (r >= 0 && gate_is_there(gate)) {
		struct pollfd polled = { .fd = gate->peer.fd, .events = POLLIN };
		uint64_t now_ns = clock_monotonic_ns();

		if (now_ns >= until_ns || poll(&polled, 1, (int)((until_ns - now_ns) / 1000000) + 1) <= 0)
			break;
		/* Where it has said everything it leaves. */
		r = peer_hear(&gate->peer);
	}
	return r < 0 ? r : 0;
}

int gate_finish(struct net_gate *gate)
{
	int r = 0;

	/* Somebody connected and was gone before we looked. */
	if (gate->peer.state == PEER_IDLE && is_somebody_there(gate))
		r = start_gate(gate);
	if (r == 0 && gate->change.is_pending)
		r = check_change(gate);
	if (r == 0 && gate->peer.state == PEER_BROKEN)
		r = broke(gate, gate->peer.fault);
	if (r == 0 && gate_is_there(gate)) {
		r = hear_rest(gate);
		/* That it was gone then is no failure; what it or we named as one is. */
		if (r == 0 && gate->failure[0])
			r = lose(gate, gate->failure);
	}
	peer_retire(&gate->peer, false);
	close_doors(gate);
	return r;
}

static void gate_done(void *context)
{
	struct net_gate *gate = context;

	peer_retire(&gate->peer, false);
	gate_forget_unsent(gate);
	close_doors(gate);
	certificates_done(&gate->certificates);
	gate_names_done(&gate->names);
	close_fd(&gate->start.secrets_fd);
	close_fd(&gate->start.canaries_fd);
	host_ports_done(gate);
	policy_change_done(&gate->change);
}

/* A change that the gate does not answer is given up. */
static int gate_timeout_ms(const void *context, uint64_t now_ns)
{
	const struct net_gate *gate = context;

	return gate->change.is_pending ? CHANGE_LOOK_MS : -1;
}

void gate_to_json(const struct net_gate *gate, struct json *json)
{
	json_object_begin(json, "network");
	json_string(json, "gate", !gate->is_used ? "none" : gate->failure[0] ? "failed" : "ready");
	json_string(json, "failure", gate->failure[0] ? gate->failure : NULL);
	json_u64(json, "lookups", gate->counts.lookups);
	json_u64(json, "connections", gate->counts.connections);
	json_u64(json, "requests", gate->counts.requests);
	json_u64(json, "simulated", gate->counts.simulated);
	json_u64(json, "replayed", gate->counts.replayed);
	json_u64(json, "policy_changes", gate->change.made);
	publish_to_json(&gate->publish, json);
	json_object_end(json);
}

const struct module net_gate_module = {
	.name = "gate-net",
	.checks_when_ended = true,
	.check = gate_check,
	.timeout_ms = gate_timeout_ms,
	.done = gate_done,
};
