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
#include "gate-net/log.h"
#include "os/fd.h"
#include "os/netns.h"
#include "policy/publish.h"
#include "session/store.h"
#include "supervise/run.h"

enum { BACKLOG = 128, TEXT_MAX = 1024, ARRIVAL_ID = 1u << 31 };

union name {
	struct sockaddr any;
	struct sockaddr_in inet;
	struct sockaddr_in6 inet6;
};

static int bind_port(struct publish_rule *rule)
{
	cleanup_fd int fd = socket(rule->is_inet6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	socklen_t size = rule->is_inet6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
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
	    bind(fd, &name.any, size) < 0 || listen(fd, BACKLOG) < 0 || getsockname(fd, &name.any, &size) < 0)
		return -errno;
	rule->host_port = ntohs(rule->is_inet6 ? name.inet6.sin6_port : name.inet.sin_port);
	return take_fd(&fd);
}

static int open_port(struct net_gate *gate, const struct publish_rule *rule)
{
	struct published *published = &gate->publish.ports[gate->publish.count];
	char host[PUBLISH_TEXT_SIZE];

	if (gate->publish.count == NET_PUBLISH_MAX) {
		err_set(gate->run->err, ERR_USAGE, E2BIG, "publish", "at most %d ports can be published",
			NET_PUBLISH_MAX);
		return -E2BIG;
	}
	*published = (struct published){ .rule = *rule };
	published->fd = bind_port(&published->rule);
	if (published->fd >= 0) {
		gate->publish.count++;
		return 0;
	}
	publish_host_format(rule, host);
	err_set(gate->run->err, ERR_STATE, -published->fd, "publish",
		"port %u of the sandbox cannot be published at %s: %s", rule->port, host,
		err_errno_name(-published->fd));
	err_hint(gate->run->err, "choose another port of this machine, or 0 for any that is free");
	return published->fd;
}

int publish_open(struct net_gate *gate)
{
	const struct policy *policy = gate->run->policy->policy;
	int r = 0;

	if (policy->network.mode == NETWORK_HOST && gate->run->request->publish_count) {
		err_set(gate->run->err, ERR_USAGE, EINVAL, "publish",
			"this policy shares the network of the machine, where every port is open already");
		err_hint(gate->run->err, "leave --publish out");
		return -EINVAL;
	}
	for (size_t i = 0; r == 0 && i < policy->network.publish_count; i++)
		r = open_port(gate, &policy->network.publish[i]);
	for (size_t i = 0; r == 0 && i < gate->run->request->publish_count; i++)
		r = open_port(gate, &gate->run->request->publish[i]);
	return r;
}

int publish_listen(struct net_gate *gate, int (*ready)(void *context, uint32_t events))
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < gate->publish.count; i++) {
		struct published *published = &gate->publish.ports[i];

		published->source = (struct loop_source){ .fd = published->fd, .events = EPOLLIN, .ready = ready,
							  .context = gate };
		r = loop_add(gate->run->loop, &published->source);
	}
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

int publish_announce(struct net_gate *gate)
{
	char memory[TEXT_MAX], kept_memory[TEXT_MAX];
	struct buf text, kept;
	int r = 0;

	if (!gate->publish.count)
		return 0;
	buf_init_fixed(&text, memory, sizeof memory);
	buf_init_fixed(&kept, kept_memory, sizeof kept_memory);
	for (size_t i = 0; r == 0 && i < gate->publish.count; i++) {
		const struct published *published = &gate->publish.ports[i];
		char host[PUBLISH_TEXT_SIZE];

		publish_host_format(&published->rule, host);
		r = record_port(gate, published, host);
		buf_printf(&text, "atoll: port %u of the sandbox is %s\n", published->rule.port, host);
		buf_printf(&kept, "%s:%u\n", host, published->rule.port);
	}
	if (r == 0)
		r = fd_replace_file_at(gate->store->dir_fd, PUBLISH_FILE, kept.bytes, kept.size, 0600);
	if (r == 0 && !(gate->run->request->flags & REQUEST_QUIET))
		run_request_tell(gate->run->request, &text);
	return r;
}

int publish_hand_over(struct net_gate *gate)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < gate->publish.count; i++) {
		struct published *published = &gate->publish.ports[i];

		loop_remove(gate->run->loop, &published->source);
		frame_begin(&gate->run->out, GATE_PUBLISH);
		frame_put_u32(&gate->run->out, (uint32_t)i);
		frame_put_u32(&gate->run->out, published->rule.port);
		r = frame_end(&gate->run->out);
		if (r == 0)
			r = frame_send(gate->near_fd, &gate->run->out, &published->fd, 1);
		close_fd(&published->fd);
	}
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
	}
	while (gate->publish.spare_count)
		close_fd(&gate->publish.spares[--gate->publish.spare_count]);
}
