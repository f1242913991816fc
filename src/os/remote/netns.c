/* SPDX-License-Identifier: Apache-2.0 */
#include "os/remote/netns.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "os/fd.h"

/*
 * In a child with memory of its own, not one of vfork(2): entering a user namespace changes credentials, and with them
 * whether the memory can be read by processes of the same user (dumpable), which would be ours as well.
 */
struct job {
	int (*make)(const void *context, int *fds, size_t *ret_count); /* an errno */
	const void *context;
};

static int enter_and_make(const struct pidref *process, const struct job *job, int *fds, size_t *ret_count)
{
	if (setns(process->fd, CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return errno;
	return job->make(job->context, fds, ret_count);
}

static void send_sockets(const struct pidref *process, const struct job *job, int to_fd)
{
	int fds[FD_PASS_MAX], errnum;
	size_t count = 0;

	errnum = enter_and_make(process, job, fds, &count);
	if (fd_send_message(to_fd, &errnum, sizeof errnum, fds, errnum ? 0 : count) < 0)
		return; /* the other end hears that nothing came */
}

/* How many there are in fds, which has room for FD_PASS_MAX; none and -errno. */
static int make_inside(const struct pidref *process, const struct job *job, int *fds)
{
	int ends[2], errnum = ECHILD;
	size_t fd_count = 0;
	ssize_t n;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		send_sockets(process, job, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	n = pid < 0 ? -errno : fd_receive_message(ends[0], &errnum, sizeof errnum, fds, FD_PASS_MAX, &fd_count);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n == (ssize_t)sizeof errnum && !errnum)
		return (int)fd_count;
	for (size_t i = 0; i < fd_count; i++)
		close_fd(&fds[i]);
	return n < 0 ? (int)n : -(errnum ? errnum : EPROTO);
}

/* ---- sockets to connect with ---- */

struct plain {
	int family;
	size_t count;
};

static int make_plain(const void *context, int *fds, size_t *ret_count)
{
	const struct plain *plain = context;

	for (*ret_count = 0; *ret_count < plain->count; ++*ret_count) {
		int fd = socket(plain->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		/* What comes in small pieces is handed on in small pieces. */
		if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)) < 0)
			return errno;
		fds[*ret_count] = fd;
	}
	return 0;
}

int netns_sockets(const struct pidref *process, int family, int *fds, size_t count)
{
	struct plain plain = { family, count };
	struct job job = { make_plain, &plain };
	int made[FD_PASS_MAX], r;

	if (!count || count > FD_PASS_MAX)
		return -EINVAL;
	r = make_inside(process, &job, made);
	for (int i = 0; i < r; i++) {
		if (r == (int)count)
			fds[i] = made[i];
		else
			close_fd(&made[i]);
	}
	return r < 0 ? r : r == (int)count ? 0 : -EPROTO;
}

/* ---- sockets that hold ports ---- */

struct held {
	const uint16_t *ports;
	size_t count;
};

/* 0 and *ret_fd, FD_NONE where the kernel runs without the family; or an errno. */
static int hold(int family, uint16_t port, int *ret_fd)
{
	struct sockaddr_in6 inet6 = { .sin6_family = AF_INET6, .sin6_port = htons(port),
				      .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in inet = { .sin_family = AF_INET, .sin_port = htons(port),
				    .sin_addr = { htonl(INADDR_LOOPBACK) } };
	bool is_inet6 = family == AF_INET6;
	cleanup_fd int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*ret_fd = FD_NONE;
	if (fd < 0)
		return is_inet6 && errno == EAFNOSUPPORT ? 0 : errno;
	if (bind(fd, is_inet6 ? (void *)&inet6 : (void *)&inet, is_inet6 ? sizeof inet6 : sizeof inet) < 0)
		return is_inet6 && errno == EADDRNOTAVAIL ? 0 : errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int make_held(const void *context, int *fds, size_t *ret_count)
{
	static const int families[] = { AF_INET, AF_INET6 };
	const struct held *held = context;
	size_t count = 0;

	for (size_t i = 0; i < held->count; i++)
		for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
			int errnum = hold(families[f], held->ports[i], &fds[count]);

			if (errnum)
				return errnum;
			count += fds[count] >= 0;
		}
	*ret_count = count;
	return 0;
}

int netns_hold_ports(const struct pidref *process, const uint16_t *ports, size_t count, int fds[FD_PASS_MAX])
{
	struct held held = { ports, count };
	struct job job = { make_held, &held };

	return !count || 2 * count > FD_PASS_MAX ? -EINVAL : make_inside(process, &job, fds);
}
