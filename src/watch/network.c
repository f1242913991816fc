/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/network.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "os/fd.h"

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

/*
 * Theory of operation. The address of bind and sendto lies in memory that another thread of the caller can rewrite
 * once we have looked, so nothing may rest on what we saw. It does not: in the empty network namespace only loopback
 * exists, and whatever address stands there when the kernel reads it again, there is no route to anything else
 * (ENETUNREACH by topology). No unix socket of a type that sends to a path can be made (tools/seccomp/base.table), and
 * bind() only makes new ones. connect() is made from our copy (connect.c). The early refusal gives the caller a prompt
 * errno and us an exact record. Where the host's network is shared (level full), addresses of the internet are not
 * refused, only written down.
 */

union address {
	struct sockaddr any;
	struct sockaddr_in inet;
	struct sockaddr_in6 inet6;
	struct sockaddr_un local;
	struct sockaddr_storage storage;
};

enum { INET6_SIZE_MIN = 24 };    /* SIN6_LEN_RFC2133: the kernel takes it without the scope */

/* 0.0.0.0 as a destination is the host itself. */
static bool is_loopback4(uint32_t address)
{
	return ntohl(address) >> 24 == IN_LOOPBACKNET || address == htonl(INADDR_ANY);
}

static bool is_loopback6(const struct in6_addr *address)
{
	uint32_t mapped;

	if (IN6_IS_ADDR_LOOPBACK(address) || IN6_IS_ADDR_UNSPECIFIED(address))
		return true;
	memcpy(&mapped, address->s6_addr + 12, sizeof mapped);
	return IN6_IS_ADDR_V4MAPPED(address) && is_loopback4(mapped);
}

/* Fills family, address and port. False for families that have none of these. */
static bool describe(const union address *address, socklen_t size, struct watch_network *event, bool *ret_is_loopback)
{
	if (address->any.sa_family == AF_INET && size >= sizeof address->inet) {
		event->family = "inet";
		event->port = ntohs(address->inet.sin_port);
		inet_ntop(AF_INET, &address->inet.sin_addr, event->address, sizeof event->address);
		*ret_is_loopback = is_loopback4(address->inet.sin_addr.s_addr);
		return true;
	}
	if (address->any.sa_family == AF_INET6 && size >= INET6_SIZE_MIN) {
		event->family = "inet6";
		event->port = ntohs(address->inet6.sin6_port);
		inet_ntop(AF_INET6, &address->inet6.sin6_addr, event->address, sizeof event->address);
		*ret_is_loopback = is_loopback6(&address->inet6.sin6_addr);
		return true;
	}
	return false;
}

/* 127.0.0.1, ::1, and what is the same to connect(2): not the rest of 127.0.0.0/8. */
static bool is_localhost(const union address *address)
{
	struct in6_addr mapped = { .s6_addr = { [10] = 0xff, 0xff } };
	uint32_t number = htonl(INADDR_LOOPBACK);

	if (address->any.sa_family == AF_INET)
		return address->inet.sin_addr.s_addr == number || address->inet.sin_addr.s_addr == htonl(INADDR_ANY);
	memcpy(mapped.s6_addr + 12, &number, sizeof number);
	return IN6_IS_ADDR_LOOPBACK(&address->inet6.sin6_addr) || IN6_IS_ADDR_UNSPECIFIED(&address->inet6.sin6_addr) ||
	       IN6_ARE_ADDR_EQUAL(&address->inet6.sin6_addr, &mapped) ||
	       (IN6_IS_ADDR_V4MAPPED(&address->inet6.sin6_addr) && !address->inet6.sin6_addr.s6_addr32[3]);
}

static bool is_host_port(const union address *address, const struct watch_network *event,
			 const struct watch_gate *gate)
{
	for (size_t i = 0; i < gate->host_port_count; i++)
		if (gate->host_ports[i] == event->port)
			return is_localhost(address);
	return false;
}

/* The kernel refuses to bind it as well, for it is held (gate-net/host-ports.h): here the record is made. */
static enum network_verdict judge_host_port(struct watch_network *event)
{
	if (str_equal(event->operation, "connect")) {
		if (str_copy(event->address, sizeof event->address, "127.0.0.1") < 0)
			event->address[0] = 0;
		return NETWORK_GATE_DECIDES;
	}
	if (!str_equal(event->operation, "bind"))
		return NETWORK_REPORT;
	event->is_refused = true;
	event->errnum = EADDRINUSE;
	return NETWORK_REFUSE;
}

/* The gate's own address: its DNS is as local as loopback. */
static bool is_gate(const union address *address, const struct watch_gate *gate)
{
	if (address->any.sa_family == AF_INET)
		return address->inet.sin_addr.s_addr == gate->door4.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&address->inet6.sin6_addr, &gate->door6.sin6_addr);
}

static enum network_verdict judge_address(const union address *address, socklen_t size,
					  const struct watch_options *options, struct watch_network *event)
{
	bool is_loopback;

	if (describe(address, size, event, &is_loopback)) {
		if (is_host_port(address, event, &options->gate))
			return judge_host_port(event);
		if (is_loopback || !options->network_is_empty || str_equal(event->operation, "bind"))
			return NETWORK_REPORT;
		if (options->gate.is_there && str_equal(event->operation, "connect"))
			return is_gate(address, &options->gate) ? NETWORK_REPORT : NETWORK_GATE_DECIDES;
		event->is_refused = true;
		event->errnum = ENETUNREACH;
		return NETWORK_REFUSE;
	}
	switch (address->any.sa_family) {
	case AF_INET:   /* too short: the kernel says EINVAL */
	case AF_INET6:
	case AF_UNIX:
	case AF_NETLINK:
	case AF_UNSPEC: /* ends the association of a datagram socket */
		return NETWORK_SILENT;
	}
	return NETWORK_UNEXPECTED;
}

/*
 * getsockname() on a copy of the caller's fd, in a process of its own. The caller can see to it that the copy is the
 * last one: closing it here would wait for as long as the socket's SO_LINGER says, which is up to the caller and
 * may be hours. What the end of a process closes does not linger (inet_release()).
 */
static int ask_name(int pidfd, int fd, union address *address, socklen_t *size)
{
	volatile int errnum = ESRCH;
	pid_t pid = vfork();

	if (pid == 0) {
		int copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

		errnum = copy < 0 || getsockname(copy, &address->any, size) < 0 ? errno : 0;
		_exit(0);
	}
	if (pid < 0)
		return -errno;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return -errnum;
}

/* listen has no address: that of the socket is asked for. */
static enum network_verdict judge_listen(const struct seccomp_notif *request, struct watch_network *event)
{
	union address address = { 0 };
	cleanup_fd int caller = connect_open_caller((pid_t)request->pid);
	socklen_t size = sizeof address;
	bool is_loopback;
	int r;

	event->family = "unknown";
	if (caller < 0)
		return NETWORK_REPORT;
	r = ask_name(caller, (int)request->data.args[0], &address, &size);
	if (r == -EBADF)
		return NETWORK_SILENT;
	if (r < 0)
		return NETWORK_REPORT;
	return describe(&address, size, event, &is_loopback) ? NETWORK_REPORT : NETWORK_SILENT;
}

/* Which argument is the address; its length is the next. */
static int find_address(int number, const char **ret_operation)
{
	switch (number) {
	case SYS_connect:
		*ret_operation = "connect";
		return 1;
	case SYS_bind:
		*ret_operation = "bind";
		return 1;
	case SYS_sendto:
		*ret_operation = "sendto";
		return 4;
	}
	*ret_operation = "listen";
	return -1;
}

/* What the kernel says about the pointer and the size, before it looks inside. */
static int copy_address(struct remote *remote, const __u64 *args, union address *address, socklen_t *ret_size)
{
	int length = (int)args[1];
	int r;

	if (length < 0 || length > (int)sizeof *address)
		return EINVAL;
	r = length ? remote_read(remote, args[0], address, (size_t)length) : 0;
	*ret_size = (socklen_t)length;
	return -r;
}

enum network_verdict network_judge(struct remote *remote, const struct seccomp_notif *request,
				   const struct watch_options *options, struct watch_network *ret_event,
				   struct connect_address *ret_address)
{
	struct watch_network event = { .pid = (pid_t)request->pid };
	int at = find_address(request->data.nr, &event.operation);
	enum network_verdict verdict = NETWORK_SILENT;
	union address address = { 0 };
	socklen_t size = 0;

	if (at < 0) {
		verdict = judge_listen(request, &event);
		*ret_event = event;
		return verdict;
	}
	if (at == 4 && !request->data.args[at])
		return NETWORK_SILENT;
	event.errnum = copy_address(remote, request->data.args + at, &address, &size);
	if (event.errnum && event.errnum != EINVAL) {
		/* The kernel says EFAULT where memory is missing; where only we may not look, topology holds. */
		event.family = "unknown";
		verdict = NETWORK_REPORT;
	} else if (!event.errnum && size >= sizeof(sa_family_t)) {
		verdict = judge_address(&address, size, options, &event);
	}
	ret_address->storage = address.storage;
	ret_address->size = size;
	*ret_event = event;
	return verdict;
}

void network_refuse_unix(const struct connect_address *address, int errnum, struct watch_network *event)
{
	size_t offset = offsetof(struct sockaddr_un, sun_path), size = address->size;
	const char *path = (const char *)&address->storage + offset;
	struct buf text;

	event->family = "unknown";
	event->is_refused = true;
	event->errnum = errnum;
	if (address->any.sa_family != AF_UNIX || size <= offset)
		return;
	event->family = "unix";
	size -= offset;
	buf_init_fixed(&text, event->address, sizeof event->address);
	/* An abstract name starts with a NUL, and may have more of them. */
	if (!path[0])
		buf_put_char(&text, '@');
	buf_put_escaped(&text, path + !path[0], path[0] ? strnlen(path, size) : size - 1, sizeof event->address - 8);
	(void)buf_text(&text);
}
