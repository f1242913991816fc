/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/doctor/self-test-targets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/str.h"
#include "os/fd.h"

enum { STREAM, DATAGRAM, ABSTRACT, TCP, TCP6, BACKLOG = 64 };

static const char content[] = "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv";

void self_test_targets_init(struct self_test_targets *targets)
{
	*targets = (struct self_test_targets){ 0 };
	for (size_t i = 0; i < POSTURE_SOCKETS; i++)
		targets->fds[i] = FD_NONE;
}

/*
 * A file, which has an attribute to be removed, and a directory beside it. Everybody may write them, so that it is the
 * boundary that refuses: what root starts runs as another user. The directory above lets nobody else in.
 */
static int make_victim(int dir_fd, const char *name)
{
	char victim[96], directory[100], path[64];
	cleanup_fd int fd = FD_NONE;
	int r = str_format(victim, sizeof victim, "victim-%s", name);

	if (r == 0)
		r = str_format(directory, sizeof directory, "%s.d", victim);
	if (r == 0)
		r = fd = fd_open_at(dir_fd, victim, O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (r >= 0 && fchmod(fd, 0666) < 0)
		r = -errno;
	if (r >= 0)
		r = fd_write_full(fd, content, sizeof content - 1);
	if (r == 0)
		r = str_format(path, sizeof path, "/proc/self/fd/%d", fd);
	/* Where the file system has no attributes, the attempt on this one finds none. */
	if (r == 0 && setxattr(path, "user.atollset", "x", 1, 0) < 0 && errno != ENOTSUP && errno != EPERM)
		r = -errno;
	return r == 0 && mkdirat(dir_fd, directory, 0755) < 0 ? -errno : r;
}

/* One for each name that begins with the directory's own and a dot. */
static int make_victims(const char *directory, const char *names)
{
	const char *own = strrchr(directory, '/') + 1;
	size_t length = strlen(own);
	cleanup_fd int fd = FD_NONE;
	char name[80];
	int r = mkdir(directory, 0755) < 0 || chmod(directory, 0777) < 0 ? -errno : 0;

	if (r == 0)
		r = fd = fd_open_at(AT_FDCWD, directory, O_DIRECTORY | O_RDONLY, 0);
	for (const char *at = names; r >= 0 && *at; at += strcspn(at, "\n"), at += *at == '\n') {
		size_t size = strcspn(at, "\n");

		if (size <= length || memcmp(at, own, length) != 0 || at[length] != '.')
			continue;
		r = str_format(name, sizeof name, "%.*s", (int)size, at);
		if (r == 0)
			r = make_victim(fd, name);
	}
	return r < 0 ? r : 0;
}

/* Connections wait in the backlog and datagrams in the buffer: nobody has to serve them. */
static int listen_on(int *ret_fd, int type, const void *address, socklen_t size)
{
	const struct sockaddr *any = address;
	int fd = socket(any->sa_family, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, any, size) < 0 || (type == SOCK_STREAM && listen(fd, BACKLOG) < 0)) {
		int r = -errno;

		close(fd);
		return r;
	}
	*ret_fd = fd;
	return 0;
}

static int listen_unix(int *ret_fd, int type, const char *path, bool is_abstract)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(path);

	if (length + is_abstract >= sizeof address.sun_path)
		return -ENAMETOOLONG;
	memcpy(address.sun_path + is_abstract, path, length);
	return listen_on(ret_fd, type, &address,
			 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + is_abstract + length));
}

static int listen_tcp(struct self_test_targets *targets)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	socklen_t size = sizeof address;
	int r = listen_on(&targets->fds[TCP], SOCK_STREAM, &address, size);

	if (r == 0 && getsockname(targets->fds[TCP], (struct sockaddr *)&address, &size) < 0)
		r = -errno;
	if (r < 0)
		return r;
	/* A machine without IPv6, or with this port taken there, has the first one. */
	six.sin6_port = address.sin_port;
	(void)!listen_on(&targets->fds[TCP6], SOCK_STREAM, &six, sizeof six);
	return str_format(targets->port, sizeof targets->port, "%u", ntohs(address.sin_port));
}

static int make_shared_memory(struct self_test_targets *targets)
{
	int r = str_format(targets->shm_path, sizeof targets->shm_path, "/dev/shm/atoll-doctor-%d", (int)getpid());
	cleanup_fd int fd = r < 0 ? r : fd_open_at(AT_FDCWD, targets->shm_path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd >= 0)
		return fd_write_full(fd, "host", 4);
	targets->shm_path[0] = 0;
	return fd == -ENOENT || fd == -EACCES || fd == -EROFS ? 0 : fd;
}

int self_test_targets_make(struct self_test_targets *targets, const char *directory, const char *project,
			 const char *names, struct err *err)
{
	int r = str_format(targets->readonly, sizeof targets->readonly, "%s/readonly", directory);

	if (r == 0)
		r = str_format(targets->hidden, sizeof targets->hidden, "%s/hidden", directory);
	if (r == 0)
		r = str_format(targets->stream, sizeof targets->stream, "%s/host.sock", project);
	if (r == 0)
		r = str_format(targets->datagram, sizeof targets->datagram, "%s/host.dgram", project);
	if (r == 0)
		r = str_format(targets->abstract_name, sizeof targets->abstract_name, "atoll-doctor-%d", (int)getpid());
	if (r == 0)
		r = make_victims(targets->readonly, names);
	if (r == 0)
		r = make_victims(targets->hidden, names);
	if (r == 0)
		r = listen_unix(&targets->fds[STREAM], SOCK_STREAM, targets->stream, false);
	if (r == 0)
		r = listen_unix(&targets->fds[DATAGRAM], SOCK_DGRAM, targets->datagram, false);
	if (r == 0)
		r = listen_unix(&targets->fds[ABSTRACT], SOCK_STREAM, targets->abstract_name, true);
	if (r == 0)
		r = listen_tcp(targets);
	if (r == 0)
		r = make_shared_memory(targets);
	return r < 0 ? err_set(err, ERR_STATE, -r, "doctor", "the targets of the self-test cannot be made in %s: %s",
			       directory, strerror(-r))
		     : 0;
}

void self_test_targets_remove(struct self_test_targets *targets)
{
	for (size_t i = 0; i < POSTURE_SOCKETS; i++)
		close_fd(&targets->fds[i]);
	if (targets->shm_path[0])
		unlink(targets->shm_path);
	targets->shm_path[0] = 0;
}
