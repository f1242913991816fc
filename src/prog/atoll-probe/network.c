/* SPDX-License-Identifier: Apache-2.0 */
/*
 * N5, N10, N11: socket families and protocols, and ways to an address. Nothing is sent beyond loopback: a
 * connected datagram socket shows that there is a route without a packet (192.0.2.1 is TEST-NET-1).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <net/if.h>

#include "base/err.h"
#include "numbers.h"
#include "probe.h"

#define NEED_OWN_NETWORK() \
	do { \
		if (targets->shared_network) \
			return outcome(note, OUTCOME_NOT_APPLICABLE, "the policy shares the host's network"); \
	} while (0)

/* number: the family; arguments: type, protocol. EAFNOSUPPORT outside: the kernel does not have it. */
static enum outcome try_socket(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const long *a = attempt->arguments;

	return outcome_of_call(note, syscall(SYS_socket, attempt->number, a[0], a[1]), "a socket");
}

static long connect_to(int type, int protocol, const char *text, long port, int family)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	long fd = syscall(SYS_socket, family, type, protocol);

	if (fd < 0)
		return -1;
	if (family == AF_INET) {
		inet_pton(AF_INET, text, &v4.sin_addr);
		return syscall(SYS_connect, fd, &v4, sizeof v4);
	}
	inet_pton(AF_INET6, text, &v6.sin6_addr);
	return syscall(SYS_connect, fd, &v6, sizeof v6);
}

/* text: the address; number: the family; arguments: type, protocol. */
static enum outcome try_loopback(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	const long *a = attempt->arguments;

	NEED_OWN_NETWORK();
	if (!targets->port)
		return outcome_no_target(note, "--port");
	return outcome_of_call(note, connect_to((int)a[0], (int)a[1], attempt->text, targets->port,
		(int)attempt->number), "connected");
}

static enum outcome try_fast_open(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)targets->port) };
	long fd = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);

	NEED_OWN_NETWORK();
	if (!targets->port)
		return outcome_no_target(note, "--port");
	inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
	return outcome_of_call(note, syscall(SYS_sendto, fd, "x", 1, 0x20000000 /* MSG_FASTOPEN */, &address,
		sizeof address), "connected");
}

static enum outcome try_route(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	NEED_OWN_NETWORK();
	return outcome_of_call(note, connect_to(SOCK_DGRAM, 0, attempt->text, 53, (int)attempt->number),
		"there is a route");
}

static enum outcome try_interfaces(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	struct ifreq request;
	long fd = syscall(SYS_socket, AF_INET, SOCK_DGRAM, 0);

	NEED_OWN_NETWORK();
	for (int index = 1; fd >= 0 && index < 32; index++) {
		memset(&request, 0, sizeof request);
		request.ifr_ifindex = index;
		if (ioctl((int)fd, SIOCGIFNAME, &request) == 0 && strcmp(request.ifr_name, "lo") != 0)
			return outcome(note, OUTCOME_BROKE, "interface %.16s", request.ifr_name);
	}
	return outcome(note, OUTCOME_HELD, "lo alone");
}

static enum outcome try_set_interface(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	struct ifreq request;
	long fd = syscall(SYS_socket, AF_INET, SOCK_DGRAM, 0);

	memset(&request, 0, sizeof request);
	memcpy(request.ifr_name, "lo", sizeof "lo");
	if (ioctl((int)fd, SIOCGIFFLAGS, &request) < 0)
		return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
	return outcome_of_call(note, ioctl((int)fd, SIOCSIFFLAGS, &request), "changed");
}

static enum outcome try_privileged_port(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(81) };
	long fd = syscall(SYS_socket, AF_INET, SOCK_STREAM, 0);

	NEED_OWN_NETWORK();
	inet_pton(AF_INET, "127.0.0.9", &address.sin_addr);
	return outcome_of_call(note, syscall(SYS_bind, fd, &address, sizeof address), "bound");
}

static enum outcome try_hypervisor(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	struct sockaddr_vm address = { .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_LOCAL, .svm_port = 0x7fffffff };
	long fd = syscall(SYS_socket, AF_VSOCK, SOCK_STREAM, 0);

	if (fd < 0)
		return outcome(note, OUTCOME_HELD, "%s", err_errno_name(errno));
	return outcome_of_reach(note, syscall(SYS_connect, fd, &address, sizeof address));
}

#define FAMILY(name, cases, family, type, protocol) \
	{ "socket-family." name, cases, "socket(" #family ", " #type ", " #protocol ")", try_socket, family, { type, \
		protocol }, NULL }
#define LOOPBACK(name, family, type, protocol, address) \
	{ "connect." name, "N2 N5 N10", "the host's listener at " address ", " name, try_loopback, family, { type, \
		protocol }, address }

static const struct attempt attempts[] = {
	FAMILY("netlink-audit", "N11", AF_NETLINK, SOCK_RAW, NETLINK_AUDIT),
	FAMILY("netlink-generic", "N11", AF_NETLINK, SOCK_RAW, NETLINK_GENERIC),
	FAMILY("netlink-netfilter", "N11", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER),
	FAMILY("netlink-uevent", "N11", AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT),
	FAMILY("netlink-sock-diag", "N11", AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG),
	FAMILY("netlink-xfrm", "N11", AF_NETLINK, SOCK_RAW, NETLINK_XFRM),
	FAMILY("netlink-connector", "N11", AF_NETLINK, SOCK_RAW, NETLINK_CONNECTOR),
	FAMILY("packet", "N11", AF_PACKET, SOCK_RAW, 0x0300),
	FAMILY("packet-dgram", "N11", AF_PACKET, SOCK_DGRAM, 0x0300),
	FAMILY("alg", "N11", AF_ALG, SOCK_SEQPACKET, 0),
	FAMILY("vsock", "N11", AF_VSOCK, SOCK_STREAM, 0),
	FAMILY("vsock-dgram", "N11", AF_VSOCK, SOCK_DGRAM, 0),
	FAMILY("xdp", "N11", AF_XDP, SOCK_RAW, 0),
	FAMILY("tipc", "N11", AF_TIPC, SOCK_SEQPACKET, 0),
	FAMILY("bluetooth", "N11", AF_BLUETOOTH, SOCK_RAW, 1),
	FAMILY("key", "N11", AF_KEY, SOCK_RAW, 2),
	FAMILY("can", "N11", AF_CAN, SOCK_RAW, 1),
	FAMILY("smc", "N11", AF_SMC, SOCK_STREAM, 0),
	FAMILY("kcm", "N11", AF_KCM, SOCK_DGRAM, 0),
	FAMILY("qipcrtr", "N11", AF_QIPCRTR, SOCK_DGRAM, 0),
	FAMILY("rds", "N11", AF_RDS, SOCK_SEQPACKET, 0),
	FAMILY("x25", "N11", AF_X25, SOCK_SEQPACKET, 0),
	FAMILY("nfc", "N11", AF_NFC, SOCK_SEQPACKET, 0),
	FAMILY("pppox", "N11", AF_PPPOX, SOCK_STREAM, 0),
	FAMILY("ax25", "N11", AF_AX25, SOCK_DGRAM, 0),
	FAMILY("mctp", "N11", AF_MCTP, SOCK_DGRAM, 0),
	FAMILY("mptcp", "N10", AF_INET, SOCK_STREAM, IPPROTO_MPTCP),
	FAMILY("mptcp6", "N10", AF_INET6, SOCK_STREAM, IPPROTO_MPTCP),
	FAMILY("sctp", "N10", AF_INET, SOCK_STREAM, IPPROTO_SCTP),
	FAMILY("sctp-packets", "N10", AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP),
	FAMILY("dccp", "N10", AF_INET, 6, IPPROTO_DCCP),
	FAMILY("udplite", "N10", AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE),
	FAMILY("icmp", "N10", AF_INET, SOCK_DGRAM, IPPROTO_ICMP),
	FAMILY("icmp6", "N10", AF_INET6, SOCK_DGRAM, IPPROTO_ICMPV6),
	FAMILY("raw", "N10", AF_INET, SOCK_RAW, IPPROTO_RAW),
	FAMILY("raw-icmp", "N10", AF_INET, SOCK_RAW, IPPROTO_ICMP),
	FAMILY("raw6", "N10", AF_INET6, SOCK_RAW, IPPROTO_RAW),
	FAMILY("old-packet", "N11", AF_INET, SOCK_PACKET, 0x0300),
	{ "vsock.connect", "N11", "connect to the local VSOCK address", try_hypervisor, 0, { 0 }, NULL },
	LOOPBACK("tcp", AF_INET, SOCK_STREAM, 0, "127.0.0.1"),
	LOOPBACK("tcp-any", AF_INET, SOCK_STREAM, 0, "0.0.0.0"),
	LOOPBACK("tcp6", AF_INET6, SOCK_STREAM, 0, "::1"),
	LOOPBACK("tcp6-mapped", AF_INET6, SOCK_STREAM, 0, "::ffff:127.0.0.1"),
	LOOPBACK("mptcp", AF_INET, SOCK_STREAM, IPPROTO_MPTCP, "127.0.0.1"),
	{ "connect.fast-open", "N5", "the host's listener by MSG_FASTOPEN", try_fast_open, 0, { 0 }, NULL },
	{ "route.ipv4", "N2 N5", "a route to 192.0.2.1", try_route, AF_INET, { 0 }, "192.0.2.1" },
	{ "route.metadata", "N7", "a route to 169.254.169.254", try_route, AF_INET, { 0 }, "169.254.169.254" },
	{ "route.private", "N7", "a route to 10.0.0.1", try_route, AF_INET, { 0 }, "10.0.0.1" },
	{ "route.ipv6", "N2 N5", "a route to 2001:db8::1", try_route, AF_INET6, { 0 }, "2001:db8::1" },
	{ "interfaces", "N2", "interfaces beyond lo", try_interfaces, 0, { 0 }, NULL },
	{ "interfaces.change", "N2", "change an interface", try_set_interface, 0, { 0 }, NULL },
	{ "bind.privileged", "X21", "bind port 81", try_privileged_port, 0, { 0 }, NULL },
};

const struct attempt_group probe_network = { attempts, ARRAY_SIZE(attempts) };
