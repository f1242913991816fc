/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The network gate's side inside: `lo` has an address of each family beyond loopback, all synthetic addresses are local
 * to it, and the sockets for DNS and for connections are made here, where the namespace is. Their ports are privileged,
 * so that nothing inside can take them or is in their way.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "jail/job.h"
#include "os/fd.h"
#include "os/netlink.h"
#include "policy/synthetic.h"

enum { PORT_DNS = 53, BACKLOG_DOOR = 4096, BACKLOG_DNS = 16 };

union gate_name {
	struct sockaddr any;
	struct sockaddr_in inet;
	struct sockaddr_in6 inet6;
};

static int bind_gate(int fd, bool is_inet6, uint16_t port)
{
	uint8_t address4[4], address6[16];
	union gate_name name = { 0 };

	synthetic_make(SYNTHETIC_GATE, address4, address6);
	name.any.sa_family = is_inet6 ? AF_INET6 : AF_INET;
	if (is_inet6) {
		name.inet6.sin6_port = htons(port);
		memcpy(&name.inet6.sin6_addr, address6, sizeof address6);
	} else {
		name.inet.sin_port = htons(port);
		memcpy(&name.inet.sin_addr, address4, sizeof address4);
	}
	return bind(fd, &name.any, is_inet6 ? sizeof name.inet6 : sizeof name.inet) < 0 ? -errno : 0;
}

static int open_gate(enum jail_gate_socket which)
{
	bool is_inet6 = which == JAIL_GATE_DOOR6, is_udp = which == JAIL_GATE_DNS_UDP;
	bool is_door = is_inet6 || which == JAIL_GATE_DOOR4;
	cleanup_fd int fd = socket(is_inet6 ? AF_INET6 : AF_INET,
				   (is_udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r = fd < 0 ? -errno : bind_gate(fd, is_inet6, is_door ? SYNTHETIC_DOOR_PORT : PORT_DNS);

	if (r == 0 && !is_udp && listen(fd, is_door ? BACKLOG_DOOR : BACKLOG_DNS) < 0)
		r = -errno;
	return r < 0 ? r : take_fd(&fd);
}

/* What is open where one of them fails, the parent closes: the report says which. */
static int open_gates(int fds[JAIL_GATE_SOCKETS], bool has_ipv6)
{
	size_t count = has_ipv6 ? JAIL_GATE_SOCKETS : JAIL_GATE_DOOR6;

	for (size_t i = 0; i < count; i++) {
		int fd = open_gate((enum jail_gate_socket)i);

		if (fd < 0)
			return fd;
		fds[i] = fd;
	}
	return 0;
}

int child_gate(const struct jail_job *job, int netlink_fd, struct err *err)
{
	uint8_t address4[4], address6[16];
	bool has_ipv6;
	int r;

	/* Without a namespace of its own all of this would be done to the host's network. */
	if (!(job->report->prepared.namespaces & CLONE_NEWNET))
		return jail_wall_demanded(job->spec, WALL_NETNS, EPERM, err,
					  "the network gate needs a network namespace of the sandbox's own");
	synthetic_make(SYNTHETIC_GATE, address4, address6);
	r = netlink_add_local4(netlink_fd, address4, SYNTHETIC_BITS4);
	has_ipv6 = netlink_add_local6(netlink_fd, address6, SYNTHETIC_BITS6) == 0;
	if (r == 0)
		r = open_gates(job->report->prepared.gate, has_ipv6);
	return r < 0 ? err_set(err, ERR_WALL, -r, wall_names[WALL_NETNS], "cannot make the network gate's sockets: %s",
			       err_errno_name(-r)) : 0;
}
