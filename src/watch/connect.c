/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/connect.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/openat2.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/path.h"
#include "watch/own-mounts.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* Linux 6.9 */
#endif

/*
 * Theory of operation. A bind mount shows a socket of the host, and connect() to it reaches the host's daemon,
 * whether the mount is read-only or not. Whoever lets the caller's own connect() go on after a look at the address has
 * not decided anything: another thread can put another path into the memory, or by dup2() another socket under the
 * number, before the kernel reads either; what was judged as an internet address ends as a path. So no connect() goes
 * on. The address is copied once, and a copy of the caller's socket is connected to just that.
 *
 * A path is resolved below the caller's own root or directory, as the caller's user, and the socket found there must
 * lie on a file system that was made for this sandbox: everything else is the host's, or could be. The copy is then
 * connected to that very inode through /proc/self/fd, so that swapping names is of no use.
 *
 * Where there is a network gate, a stream that was meant to go beyond loopback is connected to the gate's door, and
 * the gate is told whose connection this is and where it was meant to go. Its judgement comes later, at the gate:
 * nothing rests on our note being right. Datagrams go where the caller says, and nothing of the outside is there.
 *
 * Paths are for a child made by vfork(): it can take the sandbox's ids, which decide about the path and which the peer
 * then sees (SO_PEERCRED), while the pid is one from outside, 0 to the peer. Nothing of that matters to a connection by
 * internet address, which is made here: the child would be half of what it costs. Two calls could block: connect(),
 * where another thread of the caller makes the socket blocking behind our back, and close(), where the copy has become
 * the last one and SO_LINGER says so. Both end at a signal; so one comes, and comes again, until we are through.
 */

/* Only a caller that works against us makes it that long; it must not stop our clocks. */
enum { CHILD_MAX_MS = 100, TICK_FIRST_MS = 20, TICK_NEXT_MS = 5 };

struct attempt {
	const struct connect_call *call;
	const struct connector *connector;
	int socket_fd, root_fd;      /* the caller's socket; its root, or its directory for a relative path */
	int type;                    /* SO_TYPE */
	bool blocks;                 /* the caller would wait */
	char path[sizeof((struct sockaddr_un *)0)->sun_path + 1]; /* "": no path */
	struct connect_result *result;
};

static int finish(struct attempt *attempt, enum connect_outcome outcome, int errnum)
{
	attempt->result->outcome = outcome;
	attempt->result->errnum = errnum;
	return errnum;
}

static bool is_unix(const struct connect_address *address)
{
	return address->size >= sizeof(sa_family_t) && address->any.sa_family == AF_UNIX;
}

/* All 108 bytes may be path: then no NUL ends it. */
static void copy_path(struct attempt *attempt)
{
	const struct connect_address *address = &attempt->call->address;
	size_t offset = offsetof(struct sockaddr_un, sun_path);

	attempt->path[0] = 0;
	if (!is_unix(address) || address->size <= offset || address->size > sizeof(struct sockaddr_un))
		return;
	memcpy(attempt->path, (const char *)&address->storage + offset, address->size - offset);
	attempt->path[address->size - offset] = 0;
}

/* The process of a thread, from the "Tgid:" line. No malloc(): the heap is also that of who waits for us. */
static pid_t find_process(pid_t thread)
{
	char path[48], text[1024], *at;
	cleanup_fd int fd = FD_NONE;
	ssize_t size;

	if (str_format(path, sizeof path, "/proc/%d/status", thread) == 0)
		fd = fd_open_at(AT_FDCWD, path, O_RDONLY, 0);
	size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (size < 0)
		return -1;
	text[size] = 0;
	at = strstr(text, "\nTgid:");
	return at ? (pid_t)strtol(at + strlen("\nTgid:"), NULL, 10) : -1;
}

int connect_open_caller(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, PIDFD_THREAD);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_pidfd_open, find_process(pid), 0);
	return fd;
}

static int open_start(const struct attempt *attempt)
{
	char path[48];
	const char *what = attempt->path[0] == '/' ? "root" : "cwd";
	int r = str_format(path, sizeof path, "/proc/%d/%s", attempt->call->pid, what);

	return r < 0 ? r : fd_open_at(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
}

/* Takes everything that the caller's pid names, then makes sure that it was the caller's. An errno. */
static int take_from_caller(struct attempt *attempt)
{
	cleanup_fd int pidfd = connect_open_caller(attempt->call->pid);

	if (pidfd < 0)
		return EACCES;
	attempt->socket_fd = (int)syscall(SYS_pidfd_getfd, pidfd, attempt->call->fd, 0);
	if (attempt->socket_fd < 0)
		return errno == EBADF ? EBADF : EACCES;
	if (attempt->path[0]) {
		attempt->root_fd = open_start(attempt);
		if (attempt->root_fd < 0)
			return EACCES;
	}
	return ioctl(attempt->connector->listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &attempt->call->id) < 0 ? ESRCH : 0;
}

/*
 * Raw calls: those of a libc change every thread, or record what this one did in memory that is not only ours. No uid 0
 * is left behind, so all capabilities go as well.
 */
static int take_identity(const struct watch_options *options)
{
	if (options->uid == geteuid() && options->gid == getegid())
		return 0;
	if (syscall(SYS_setgroups, 0, NULL) < 0 ||
	    syscall(SYS_setresgid, options->gid, options->gid, options->gid) < 0 ||
	    syscall(SYS_setresuid, options->uid, options->uid, options->uid) < 0)
		return EACCES;
	return 0;
}

static bool is_private(const struct watch_options *options, dev_t device)
{
	for (size_t i = 0; i < options->private_device_count; i++)
		if (options->private_devices[i] == device)
			return true;
	return false;
}

/*
 * Finds the socket; *ret_fd is an O_PATH fd of it. From a directory links are not followed at all, for an absolute one
 * would start at our root; magic links never, as they leave the tree.
 */
static int resolve(struct attempt *attempt, int *ret_fd)
{
	uint64_t links = attempt->path[0] == '/' ? RESOLVE_IN_ROOT : RESOLVE_NO_SYMLINKS;
	struct stat status;
	int fd = path_open2(attempt->root_fd, attempt->path, O_PATH, 0, links | RESOLVE_NO_MAGICLINKS);

	if (fd == -ELOOP || fd == -EXDEV || fd == -EAGAIN)
		return finish(attempt, CONNECT_REFUSED, EACCES);
	if (fd < 0)
		return finish(attempt, CONNECT_DONE, -fd);
	if (fstat(fd, &status) < 0)
		return finish(attempt, CONNECT_DONE, errno);
	if (!S_ISSOCK(status.st_mode))
		return finish(attempt, CONNECT_DONE, ECONNREFUSED);
	if (!is_private(attempt->connector->options, status.st_dev) &&
	    !own_mounts_has(attempt->connector->options, attempt->call->pid, fd))
		return finish(attempt, CONNECT_REFUSED, EACCES);
	*ret_fd = fd;
	return 0;
}

static int get_option(int fd, int option)
{
	int value = -1;
	socklen_t size = sizeof value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &size) < 0 ? -1 : value;
}

static int connect_once(int fd, const struct connect_address *address)
{
	return connect(fd, &address->any, address->size) < 0 ? errno : 0;
}

static void read_timeout(const struct attempt *attempt, bool is_local)
{
	struct timeval limit = { 0 };
	socklen_t size = sizeof limit;

	if (getsockopt(attempt->socket_fd, SOL_SOCKET, SO_SNDTIMEO, &limit, &size) < 0)
		return;
	attempt->result->timeout_ns = (uint64_t)limit.tv_sec * 1000000000u + (uint64_t)limit.tv_usec * 1000;
	attempt->result->timeout_errnum = is_local ? EAGAIN : EINPROGRESS;
}

/*
 * A stream is made non-blocking for this moment. It is the caller's own open file, so that another of its threads
 * that reads or writes it right now can get an EAGAIN; on a socket that is not connected yet there is nothing to read.
 * FIONBIO changes this one flag, where F_SETFL would write back all of them.
 */
static int connect_socket(struct attempt *attempt, const struct connect_address *address, bool is_local)
{
	int fd = attempt->socket_fd, errnum;

	if (!attempt->blocks)
		return finish(attempt, CONNECT_DONE, connect_once(fd, address));
	ioctl(fd, FIONBIO, &(int){ 1 });
	errnum = connect_once(fd, address);
	/* Over loopback the connection stands as soon as the call has returned. */
	if (errnum == EINPROGRESS)
		errnum = connect_once(fd, address);
	ioctl(fd, FIONBIO, &(int){ 0 });
	if (errnum != EALREADY && errnum != EINPROGRESS && errnum != EINTR && !(is_local && errnum == EAGAIN))
		return finish(attempt, CONNECT_DONE, errnum);
	read_timeout(attempt, is_local);
	return finish(attempt, CONNECT_WAITS, EAGAIN);
}

/* The gate's door as this socket can name it: an IPv6 socket that means an IPv4 address by its mapped form. */
static bool find_door(const struct attempt *attempt, int domain, struct connect_address *ret_door)
{
	const struct connect_address *address = &attempt->call->address;
	const struct watch_gate *gate = &attempt->connector->options->gate;
	struct sockaddr_in6 *mapped = (void *)&ret_door->storage;

	if (address->any.sa_family != domain || attempt->type != SOCK_STREAM)
		return false;
	*ret_door = (struct connect_address){ 0 };
	if (domain == AF_INET) {
		memcpy(&ret_door->storage, &gate->door4, sizeof gate->door4);
		ret_door->size = sizeof gate->door4;
		return true;
	}
	ret_door->size = sizeof gate->door6;
	if (gate->has_ipv6 && !IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)&address->storage)->sin6_addr)) {
		memcpy(&ret_door->storage, &gate->door6, sizeof gate->door6);
		return true;
	}
	mapped->sin6_family = AF_INET6;
	mapped->sin6_port = gate->door4.sin_port;
	mapped->sin6_addr.s6_addr[10] = mapped->sin6_addr.s6_addr[11] = 0xff;
	memcpy(mapped->sin6_addr.s6_addr + 12, &gate->door4.sin_addr, 4);
	return true;
}

static bool has_peer(int fd)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof peer;

	return getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
}

static int connect_gated(struct attempt *attempt, int domain)
{
	struct connect_address door, *source = &attempt->result->source;
	/* Whoever asks by a second call how the first is doing has made no other connection. */
	bool is_new = attempt->call->is_again || !has_peer(attempt->socket_fd);
	int errnum;

	if (!find_door(attempt, domain, &door))
		return connect_socket(attempt, &attempt->call->address, false);
	errnum = connect_socket(attempt, &door, false);
	source->size = sizeof source->storage;
	/* Of a socket that does not block, too, the source is settled now. */
	if (!is_new || attempt->result->outcome != CONNECT_DONE || (errnum && errnum != EINPROGRESS) ||
	    getsockname(attempt->socket_fd, &source->any, &source->size) < 0)
		source->size = 0;
	return errnum;
}

static void look_at_socket(struct attempt *attempt)
{
	int flags = fcntl(attempt->socket_fd, F_GETFL);

	attempt->type = get_option(attempt->socket_fd, SO_TYPE);
	attempt->blocks = flags >= 0 && !(flags & O_NONBLOCK) &&
			  (attempt->type == SOCK_STREAM || attempt->type == SOCK_SEQPACKET);
}

static int connect_path(struct attempt *attempt)
{
	struct connect_address address = { .any.sa_family = AF_UNIX };
	char *path = (char *)&address.storage + offsetof(struct sockaddr_un, sun_path);
	int fd = FD_NONE, errnum = resolve(attempt, &fd), length;

	if (errnum)
		return errnum;
	length = str_format(path, sizeof((struct sockaddr_un *)0)->sun_path, "/proc/self/fd/%d", fd);
	if (length < 0)
		return finish(attempt, CONNECT_DONE, EACCES);
	address.size = sizeof(struct sockaddr_un);
	return connect_socket(attempt, &address, true);
}

/* The kernel's own half of netlink only: to name another port or a group may ask for a capability, and ours is not
 * the caller's. */
static bool is_for_kernel(const struct connect_address *address)
{
	const struct sockaddr_nl *netlink = (const void *)&address->storage;

	return address->any.sa_family != AF_NETLINK || address->size < sizeof *netlink ||
	       (!netlink->nl_pid && !netlink->nl_groups);
}

static int run_attempt(struct attempt *attempt)
{
	const struct connect_address *address = &attempt->call->address;
	int errnum;

	copy_path(attempt);
	errnum = take_from_caller(attempt);
	if (!errnum)
		errnum = take_identity(attempt->connector->options);
	if (errnum)
		return finish(attempt, CONNECT_DONE, errnum);
	look_at_socket(attempt);
	if (get_option(attempt->socket_fd, SO_DOMAIN) != AF_UNIX)
		return is_for_kernel(address) ? connect_socket(attempt, address, false)
					      : finish(attempt, CONNECT_REFUSED, EPERM);
	if (attempt->path[0])
		return connect_path(attempt);
	/* Abstract names are those of the network namespace: with the host's the host's. */
	if (is_unix(address) && !attempt->connector->options->network_is_empty)
		return finish(attempt, CONNECT_REFUSED, EACCES);
	return connect_socket(attempt, address, true);
}

static void try_in_child(struct attempt *attempt)
{
	int status = 0;
	pid_t pid = vfork();

	if (pid == 0) {
		clone_bound_life(CHILD_MAX_MS);
		run_attempt(attempt);
		_exit(0);
	}
	if (pid < 0)
		attempt->result->errnum = errno;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	/* It took too long: a thread that makes the socket blocking behind us, a file system that does not answer. */
	if (WIFSIGNALED(status))
		*attempt->result = (struct connect_result){ .outcome = CONNECT_WAITS, .errnum = EAGAIN };
}

/* ---- in our own process ---- */

static bool is_internet(int family)
{
	return family == AF_INET || family == AF_INET6;
}

static void set_ticks(const struct connector *connector, long first_ms)
{
	struct itimerspec when = {
		.it_value = { .tv_nsec = first_ms * 1000000 },
		.it_interval = { .tv_nsec = TICK_NEXT_MS * 1000000 },
	};

	timer_settime(connector->ticks, 0, &when, NULL);
}

/* False: this is no socket of the internet; nothing was done. */
static bool try_here(struct attempt *attempt)
{
	int errnum, domain;

	set_ticks(attempt->connector, TICK_FIRST_MS);
	errnum = take_from_caller(attempt);
	domain = errnum ? -1 : get_option(attempt->socket_fd, SO_DOMAIN);
	if (is_internet(domain))
		look_at_socket(attempt);
	if (errnum)
		finish(attempt, CONNECT_DONE, errnum);
	else if (is_internet(domain) && attempt->call->is_gated)
		connect_gated(attempt, domain);
	else if (is_internet(domain))
		connect_socket(attempt, &attempt->call->address, false);
	close_fd(&attempt->socket_fd);
	set_ticks(attempt->connector, 0);
	return errnum || is_internet(domain);
}

void connect_try(const struct connector *connector, const struct connect_call *call, struct connect_result *ret_result)
{
	struct connect_result result = { .outcome = CONNECT_DONE, .errnum = EAGAIN };
	struct attempt attempt = {
		.call = call, .connector = connector, .socket_fd = FD_NONE, .root_fd = FD_NONE, .result = &result,
	};
	bool is_by_number = call->address.size >= sizeof(sa_family_t) && is_internet(call->address.any.sa_family);

	if (!is_by_number || !try_here(&attempt))
		try_in_child(&attempt);
	*ret_result = result;
}

static void on_tick(int number)
{
	(void)number;
}

int connector_init(struct connector *connector, int listener_fd, const struct watch_options *options)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	struct sigaction interrupt = { .sa_handler = on_tick }; /* no SA_RESTART */
	sigset_t set;

	*connector = (struct connector){ .listener_fd = listener_fd, .options = options };
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	if (sigaction(SIGRTMIN, &interrupt, NULL) < 0 || sigprocmask(SIG_UNBLOCK, &set, NULL) < 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &connector->ticks) < 0)
		return -errno;
	return 0;
}

void connector_done(struct connector *connector)
{
	timer_delete(connector->ticks);
}
