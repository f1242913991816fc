/* SPDX-License-Identifier: Apache-2.0 */
#include "gate-net/host-ports.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/str.h"
#include "gate-net/gate.h"
#include "os/remote/netns.h"
#include "supervise/run.h"
#include "watch/watch.h"

_Static_assert((int)NET_HOST_PORTS_MAX == (int)WATCH_HOST_PORTS_MAX, "the supervisor has room for all");
_Static_assert(2 * NET_HOST_PORTS_MAX <= FD_PASS_MAX, "a socket of each family fits into one message");

static int refuse(struct net_gate *gate, int errnum, uint16_t port, const char *why, const char *hint)
{
	err_set(gate->run->err, ERR_STATE, errnum, "host-port", "port %u of this machine cannot be reached: %s", port,
		why);
	err_hint(gate->run->err, "%s", hint);
	return -errnum;
}

static bool is_published(const struct net_gate *gate, uint16_t port)
{
	for (size_t i = 0; i < gate->publish.count; i++)
		if (gate->publish.ports[i].rule.port == port)
			return true;
	return false;
}

int host_ports_check(struct net_gate *gate)
{
	const struct policy *policy = gate->run->policy->policy;

	for (size_t i = 0; i < policy->network.host_port_count; i++) {
		uint16_t port = policy->network.host_ports[i].port;

		if (is_published(gate, port))
			return refuse(gate, EADDRINUSE, port, "the same port of the sandbox is published",
				      "publish another port of the sandbox, or leave --host-port out");
		if (own_port_is_claimed(port))
			return refuse(gate, EACCES, port, "atoll itself listens there, for another sandbox",
				      "`atoll ps` lists the ports that sandboxes publish; choose another");
	}
	return 0;
}

int host_ports_hold(struct net_gate *gate)
{
	const struct policy *policy = gate->run->policy->policy;
	uint16_t ports[NET_HOST_PORTS_MAX];
	int r = 0;

	for (size_t i = 0; i < policy->network.host_port_count; i++)
		ports[i] = policy->network.host_ports[i].port;
	if (policy->network.mode == NETWORK_GATE && policy->network.host_port_count)
		r = netns_hold_ports(&gate->run->init, ports, policy->network.host_port_count, gate->host_ports.held);
	if (r < 0)
		return refuse(gate, -r, ports[0], "it, or one beside it, cannot be held inside the sandbox",
			      "is the port taken inside? Choose another");
	gate->host_ports.held_count = (size_t)r;
	return 0;
}

void host_ports_fill_options(const struct net_gate *gate, struct watch_gate *options)
{
	const struct policy *policy = gate->run->policy->policy;

	for (size_t i = 0; i < policy->network.host_port_count; i++)
		options->host_ports[i] = policy->network.host_ports[i].port;
	options->host_port_count = policy->network.host_port_count;
}

void host_ports_done(struct net_gate *gate)
{
	while (gate->host_ports.held_count)
		close_fd(&gate->host_ports.held[--gate->host_ports.held_count]);
}

/* ---- the ports of atoll itself ---- */

/* The name of a port, and its size; a socket to use with it. -errno. */
static int open_name(uint16_t port, bool is_inet6, struct sockaddr_un *name, socklen_t *ret_size)
{
	int r;

	*name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	r = str_format(name->sun_path + 1, sizeof name->sun_path - 1, "atoll-port/%d/%u", is_inet6 ? 6 : 4, port);
	*ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name->sun_path + 1));
	if (r < 0)
		return r;
	r = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return r < 0 ? -errno : r;
}

int own_port_claim(uint16_t port, bool is_inet6)
{
	struct sockaddr_un name;
	socklen_t size;
	cleanup_fd int fd = open_name(port, is_inet6, &name, &size);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&name, size) < 0)
		return errno == EADDRINUSE ? FD_NONE : -errno;
	return take_fd(&fd);
}

/* By connect(2), not bind(2): whoever looks must not be in the way of who claims. */
static bool is_claimed(uint16_t port, bool is_inet6)
{
	struct sockaddr_un name;
	socklen_t size;
	cleanup_fd int fd = open_name(port, is_inet6, &name, &size);

	return fd < 0 || connect(fd, (struct sockaddr *)&name, size) == 0 || errno != ECONNREFUSED;
}

bool own_port_is_claimed(uint16_t port)
{
	return is_claimed(port, false) || is_claimed(port, true);
}
