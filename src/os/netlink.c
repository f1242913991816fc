/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netlink.h"

#include <errno.h>
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

int netlink_loopback_up(void)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
	} request = {
		.header = { .nlmsg_len = sizeof request, .nlmsg_type = RTM_NEWLINK,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		/* `lo` is interface 1 in every namespace: it is the first that is made. */
		.info = { .ifi_family = AF_UNSPEC, .ifi_index = 1, .ifi_flags = IFF_UP, .ifi_change = IFF_UP },
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[128];
	} answer;
	cleanup_fd int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t size;

	if (fd < 0 || send(fd, &request, sizeof request, 0) < 0)
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
