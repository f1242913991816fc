/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netlink.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

enum { LOOPBACK_INDEX = 1 }; /* in every namespace: it is the first interface that is made */

int netlink_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	return fd < 0 ? -errno : fd;
}

/* One request and its acknowledgement. */
static int ask(int fd, const void *request, size_t request_size)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[256];
	} answer;
	ssize_t size;

	if (send(fd, request, request_size, 0) < 0)
		return -errno;
	do {
		size = recv(fd, &answer, sizeof answer, 0);
	} while (size < 0 && errno == EINTR);
	if (size < 0)
		return -errno;
	if ((size_t)size < sizeof answer.header + sizeof answer.error || answer.header.nlmsg_type != NLMSG_ERROR)
		return -EPROTO;
	return answer.error.error;
}

int netlink_loopback_up(int fd)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
	} request = {
		.header = { .nlmsg_len = sizeof request, .nlmsg_type = RTM_NEWLINK,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.info = { .ifi_family = AF_UNSPEC, .ifi_index = LOOPBACK_INDEX, .ifi_flags = IFF_UP,
			 .ifi_change = IFF_UP },
	};

	return ask(fd, &request, sizeof request);
}

/* On a loopback interface the kernel makes the whole IPv4 prefix of an address local by itself. */
int netlink_add_local4(int fd, const uint8_t address[4], unsigned bits)
{
	struct {
		struct nlmsghdr header;
		struct ifaddrmsg info;
		struct rtattr attribute;
		uint8_t address[4];
	} request = {
		.header = { .nlmsg_len = sizeof request, .nlmsg_type = RTM_NEWADDR,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		.info = { .ifa_family = AF_INET, .ifa_prefixlen = (uint8_t)bits, .ifa_index = LOOPBACK_INDEX },
		.attribute = { .rta_len = sizeof request.attribute + 4, .rta_type = IFA_LOCAL },
	};

	memcpy(request.address, address, sizeof request.address);
	return ask(fd, &request, sizeof request);
}

static int add_address6(int fd, const uint8_t address[16])
{
	struct {
		struct nlmsghdr header;
		struct ifaddrmsg info;
		struct rtattr attribute;
		uint8_t address[16];
	} request = {
		.header = { .nlmsg_len = sizeof request, .nlmsg_type = RTM_NEWADDR,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		.info = { .ifa_family = AF_INET6, .ifa_prefixlen = 128, .ifa_flags = IFA_F_NODAD,
			 .ifa_index = LOOPBACK_INDEX },
		.attribute = { .rta_len = sizeof request.attribute + 16, .rta_type = IFA_LOCAL },
	};

	memcpy(request.address, address, sizeof request.address);
	return ask(fd, &request, sizeof request);
}

static int add_route6(int fd, const uint8_t address[16], unsigned bits)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg info;
		struct rtattr to;
		uint8_t address[16];
		struct rtattr by;
		uint32_t interface;
	} request = {
		.header = { .nlmsg_len = sizeof request, .nlmsg_type = RTM_NEWROUTE,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE },
		.info = { .rtm_family = AF_INET6, .rtm_dst_len = (uint8_t)bits, .rtm_table = RT_TABLE_LOCAL,
			 .rtm_protocol = RTPROT_STATIC, .rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL },
		.to = { .rta_len = sizeof request.to + 16, .rta_type = RTA_DST },
		.by = { .rta_len = sizeof request.by + 4, .rta_type = RTA_OIF },
		.interface = LOOPBACK_INDEX,
	};

	memcpy(request.address, address, bits / 8);
	return ask(fd, &request, sizeof request);
}

int netlink_add_local6(int fd, const uint8_t address[16], unsigned bits)
{
	int r = add_address6(fd, address);

	return r < 0 ? r : add_route6(fd, address, bits);
}
