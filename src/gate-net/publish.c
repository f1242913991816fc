/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/publish.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "audit/writer.h"
#include "base/str.h"
#include "gate-net/gate.h"
#include "gate-net/link.h"
#include "gate-net/log.h"
#include "os/fd.h"
#include "os/remote/netns.h"
#include "policy/publish.h"
#include "session/store.h"
#include "supervise/run.h"
#include "watch/watch.h"

enum { BACKLOG = 128, TEXT_MAX = 1024, ARRIVAL_ID = 1u << 31 };

union name {
	struct sockaddr any;
	struct sockaddr_in inet;
	struct sockaddr_in6 inet6;
};

/* *ret_claim_fd is owned. */
static int bind_port(struct publish_rule *rule, int *ret_claim_fd)
{
	cleanup_fd int fd = socket(rule->is_inet6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t size = rule->is_inet6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	cleanup_fd int claim_fd = FD_NONE;
	union name name = { 0 };

	if (fd < 0)
		return -errno;
	if (rule->is_inet6)
		name.inet6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT,
						    .sin6_port = htons(rule->host_port) };
	else
		name.inet = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) },
						  .sin_port = htons(rule->host_port) };
	/* A port of a run that has just ended is free again. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0 ||
	    /* Accepted sockets inherit it: what comes in small pieces is handed on in small pieces. */
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)) < 0 ||
	    bind(fd, &name.any, size) < 0 || getsockname(fd, &name.any, &size) < 0)
		return -errno;
	rule->host_port = ntohs(rule->is_inet6 ? name.inet6.sin6_port : name.inet.sin_port);
	claim_fd = own_port_claim(rule->host_port, rule->is_inet6);
	if (claim_fd < 0 && claim_fd != FD_NONE)
		return claim_fd;
	if (listen(fd, BACKLOG) < 0)
		return -errno;
	*ret_claim_fd = take_fd(&claim_fd);
	return take_fd(&fd);
}

/* 1: there is no room for one more. Else as bind_port(), and it is one of the gate's. */
static int add_port(struct net_gate *gate, const struct publish_rule *rule)
{
	struct published *published = &gate->publish.ports[gate->publish.count];

	if (gate->publish.count == NET_PUBLISH_MAX)
		return 1;
	*published = (struct published){ .rule = *rule, .claim_fd = FD_NONE };
	published->fd = bind_port(&published->rule, &published->claim_fd);
	if (published->fd < 0)
		return published->fd;
	gate->publish.count++;
	return 0;
}

static int open_port(struct net_gate *gate, const struct publish_rule *rule)
{
	char host[PUBLISH_TEXT_SIZE];
	int r = add_port(gate, rule);

	if (r > 0) {
		err_set(gate->run->err, ERR_USAGE, E2BIG, "publish", "at most %d ports can be published",
			NET_PUBLISH_MAX);
		return -E2BIG;
	}
	if (r == 0)
		return 0;
	publish_host_format(rule, host);
	err_set(gate->run->err, ERR_STATE, -r, "publish",
		"port %u of the sandbox cannot be published at %s: %s", rule->port, host, err_errno_name(-r));
	err_hint(gate->run->err, "choose another port of this machine, or 0 for any free port");
	return r;
}

int publish_open(struct net_gate *gate)
{
	const struct policy *policy = gate->run->policy->policy;
	int r = 0;

	if (policy->network.mode == NETWORK_HOST && gate->run->request->publish.count) {
		err_set(gate->run->err, ERR_USAGE, EINVAL, "publish",
			"this policy shares the network of the machine, where every port is open already");
		err_hint(gate->run->err, "leave --publish out");
		return -EINVAL;
	}
	for (size_t i = 0; r == 0 && i < policy->network.publish_count; i++)
		if (!policy->network.publish[i].is_on_demand)
			r = open_port(gate, &policy->network.publish[i]);
	for (size_t i = 0; r == 0 && i < gate->run->request->publish.count; i++)
		r = open_port(gate, &gate->run->request->publish.rules[i]);
	return r == 0 ? host_ports_check(gate) : r;
}

static int watch_port(struct net_gate *gate, struct published *published)
{
	published->source = (struct loop_source){ .fd = published->fd, .events = EPOLLIN, .ready = gate->publish.ready,
						  .context = gate };
	return loop_add(gate->run->loop, &published->source);
}

int publish_listen(struct net_gate *gate, int (*ready)(void *context, uint32_t events))
{
	int r = 0;

	gate->publish.ready = ready;
	for (size_t i = 0; r == 0 && i < gate->publish.count; i++)
		r = watch_port(gate, &gate->publish.ports[i]);
	return r;
}

static void write_port(struct json *json, const void *context)
{
	const struct published *published = context;

	json_u64(json, "port", published->rule.port);
}

static int record_port(struct net_gate *gate, const struct published *published, const char *host)
{
	struct audit_event event = {
		.type = AUDIT_NET_LISTEN,
		.verdict = verdict_names[VERDICT_ALLOW],
		.rule = published->rule.origin.id,
		.subject = host,
		.subject_size = strlen(host),
		.write_detail = write_port,
		.context = published,
	};

	return audit_write(gate->run->audit, &event);
}

/* In the log, and for people. */
static int announce_port(struct net_gate *gate, const struct published *published)
{
	char host[PUBLISH_TEXT_SIZE], memory[PUBLISH_TEXT_SIZE + 64];
	struct buf text;
	int r;

	publish_host_format(&published->rule, host);
	r = record_port(gate, published, host);
	buf_init_fixed(&text, memory, sizeof memory);
	buf_printf(&text, "atoll: port %u of the sandbox is %s\n", published->rule.port, host);
	if (r == 0 && !(gate->run->request->flags & REQUEST_QUIET))
		run_request_tell(gate->run->request, &text);
	return r;
}

static int keep_list(struct net_gate *gate)
{
	char memory[TEXT_MAX], host[PUBLISH_TEXT_SIZE];
	struct buf kept;

	buf_init_fixed(&kept, memory, sizeof memory);
	for (size_t i = 0; i < gate->publish.count; i++) {
		publish_host_format(&gate->publish.ports[i].rule, host);
		buf_printf(&kept, "%s:%u\n", host, gate->publish.ports[i].rule.port);
	}
	return fd_replace_file_at(gate->store->dir_fd, PUBLISH_FILE, kept.bytes, kept.size, 0600);
}

int publish_announce(struct net_gate *gate)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < gate->publish.count; i++)
		r = announce_port(gate, &gate->publish.ports[i]);
	return r == 0 && gate->publish.count ? keep_list(gate) : r;
}

static void hand_over_port(struct net_gate *gate, size_t index)
{
	struct published *published = &gate->publish.ports[index];

	frame_begin(&gate->run->out, GATE_PUBLISH);
	frame_put_u32(&gate->run->out, (uint32_t)index);
	frame_put_u32(&gate->run->out, published->rule.port);
	gate_send(gate, frame_end(&gate->run->out), &published->fd, 1);
	close_fd(&published->fd);
}

void publish_hand_over(struct net_gate *gate)
{
	for (size_t i = 0; gate_is_there(gate) && i < gate->publish.count; i++) {
		loop_remove(gate->run->loop, &gate->publish.ports[i].source);
		hand_over_port(gate, i);
	}
}

/* ---- on demand ---- */

static bool is_open(const struct net_gate *gate, const struct publish_rule *rule)
{
	for (size_t i = 0; i < gate->publish.count; i++)
		if (gate->publish.ports[i].rule.port == rule->port &&
		    str_equal(gate->publish.ports[i].rule.origin.id, rule->origin.id))
			return true;
	return false;
}

/* Somebody else has the port, as a second run of the same agent would: that one's log-in cannot come back here. */
static void say_taken(struct net_gate *gate, const struct publish_rule *rule, int r)
{
	char host[PUBLISH_TEXT_SIZE], memory[PUBLISH_TEXT_SIZE + 200];
	struct buf text;

	if (gate->publish.has_said_taken || gate->run->request->flags & REQUEST_QUIET)
		return;
	gate->publish.has_said_taken = true;
	publish_host_format(rule, host);
	buf_init_fixed(&text, memory, sizeof memory);
	buf_printf(&text, "atoll: port %u of the sandbox cannot be reached from this machine: %s: %s\n", rule->port,
		   host, r > 0 ? "too many ports are open" : err_errno_name(-r));
	run_request_tell(gate->run->request, &text);
}

static int open_late(struct net_gate *gate, const struct publish_rule *rule)
{
	size_t index = gate->publish.count;
	int r = add_port(gate, rule);

	if (r != 0) {
		say_taken(gate, rule, r);
		return 0;
	}
	r = announce_port(gate, &gate->publish.ports[index]);
	if (r == 0)
		r = keep_list(gate);
	if (r < 0)
		return r;
	if (!gate_is_there(gate))
		return watch_port(gate, &gate->publish.ports[index]);
	hand_over_port(gate, index);
	return 0;
}

int publish_on_listen(struct net_gate *gate, const struct watch_network *event)
{
	const struct policy_network *network = &gate->run->policy->policy->network;
	int r = 0;

	if (network->mode != NETWORK_GATE || !str_equal(event->operation, "listen") || !gate_can_hear(gate))
		return 0;
	for (size_t i = 0; r == 0 && i < network->publish_count; i++)
		if (network->publish[i].is_on_demand && network->publish[i].port == event->port &&
		    !is_open(gate, &network->publish[i]))
			r = open_late(gate, &network->publish[i]);
	return r;
}

/* One for each connection; the child that makes them is dearer than all else of it, so it makes some. */
static int take_inside(struct net_gate *gate)
{
	struct publish *publish = &gate->publish;
	int r = 0;

	if (!publish->spare_count) {
		r = netns_sockets(&gate->run->init, AF_INET6, publish->spares, PUBLISH_SPARES_MAX);
		/* A family that the kernel runs without is no reason to refuse what the other one can do. */
		if (r == -EAFNOSUPPORT)
			r = netns_sockets(&gate->run->init, AF_INET, publish->spares, PUBLISH_SPARES_MAX);
		publish->spare_count = r == 0 ? PUBLISH_SPARES_MAX : 0;
	}
	return r < 0 ? r : take_fd(&publish->spares[--publish->spare_count]);
}

int publish_judge(struct net_gate *gate, const struct gate_arrived *arrived, int *ret_fd)
{
	struct published *published;
	int r;

	if (arrived->index >= gate->publish.count || !(arrived->id & ARRIVAL_ID))
		return -EBADMSG;
	published = &gate->publish.ports[arrived->index];
	r = gate_log_arrived(gate, arrived, &published->rule);
	if (r < 0)
		return r;
	published->connections++;
	*ret_fd = take_inside(gate);
	return *ret_fd >= 0;
}

void publish_to_json(const struct publish *publish, struct json *json)
{
	char host[PUBLISH_TEXT_SIZE];

	json_array_begin(json, "published");
	for (size_t i = 0; i < publish->count; i++) {
		publish_host_format(&publish->ports[i].rule, host);
		json_object_begin(json, NULL);
		json_u64(json, "port", publish->ports[i].rule.port);
		json_string(json, "host", host);
		json_u64(json, "connections", publish->ports[i].connections);
		json_object_end(json);
	}
	json_array_end(json);
}

void publish_close(struct net_gate *gate)
{
	for (size_t i = 0; i < gate->publish.count; i++) {
		loop_remove(gate->run->loop, &gate->publish.ports[i].source);
		close_fd(&gate->publish.ports[i].fd);
		close_fd(&gate->publish.ports[i].claim_fd);
	}
	while (gate->publish.spare_count)
		close_fd(&gate->publish.spares[--gate->publish.spare_count]);
}
