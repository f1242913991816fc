/* SPDX-License-Identifier: Apache-2.0 */
/* I1, I2, I5, I6: sockets, queues and shared memory of the host. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "numbers.h"
#include "probe.h"

static long connect_unix(const char *path, int type, bool is_abstract)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t size = strlen(path);
	long fd = syscall(SYS_socket, AF_UNIX, type, 0);

	if (fd < 0 || size >= sizeof address.sun_path) {
		errno = fd < 0 ? errno : ENAMETOOLONG;
		return -1;
	}
	memcpy(address.sun_path + is_abstract, path, size + !is_abstract);
	size += offsetof(struct sockaddr_un, sun_path) + 1;
	return syscall(SYS_connect, fd, &address, (socklen_t)size);
}

enum { BY_PATH, BY_PROC_ROOT, BY_SYMLINK, BY_RELATIVE, BY_SEND, BY_DATAGRAM, BY_ABSTRACT, BY_SENDMMSG };

static long send_unix(const char *path, bool many)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char byte = 'x';
	struct iovec data = { &byte, 1 };
	struct mmsghdr message = { .msg_hdr = { .msg_name = &address, .msg_namelen = sizeof address, .msg_iov = &data,
		.msg_iovlen = 1 } };
	long fd = syscall(SYS_socket, AF_UNIX, SOCK_DGRAM, 0);

	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	if (fd < 0)
		return -1;
	if (many)
		return syscall(SYS_sendmmsg, fd, &message, 1, 0);
	return syscall(SYS_sendto, fd, "x", 1, 0, &address, sizeof address);
}

static enum outcome try_host_socket(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	bool is_datagram = attempt->number == BY_SEND ||
		attempt->number == BY_DATAGRAM || attempt->number == BY_SENDMMSG;
	const char *path = is_datagram ? targets->datagram : targets->socket;
	const char *link = joined(targets->scratch ? targets->scratch : "/tmp", "/socket-link");

	if (!path)
		return outcome_no_target(note, is_datagram ? "--datagram" : "--socket");
	switch (attempt->number) {
	case BY_PROC_ROOT:
		return outcome_of_call(note, connect_unix(joined("/proc/self/root", path), SOCK_STREAM, false),
			"connected");
	case BY_SYMLINK:
		syscall(SYS_unlinkat, AT_FDCWD, link, 0);
		syscall(SYS_symlinkat, path, AT_FDCWD, link);
		return outcome_of_call(note, connect_unix(link, SOCK_STREAM, false), "connected");
	case BY_RELATIVE:
		return outcome_of_call(note, connect_unix(joined("../../../../../../../..", path), SOCK_STREAM, false),
			"connected");
	case BY_SEND:
	case BY_SENDMMSG:
		return outcome_of_call(note, send_unix(path, attempt->number == BY_SENDMMSG), "sent");
	case BY_DATAGRAM:
		return outcome_of_call(note, connect_unix(path, SOCK_DGRAM, false), "connected");
	default:
		return outcome_of_call(note, connect_unix(path, SOCK_STREAM, false), "connected");
	}
}

static enum outcome try_abstract(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	if (!targets->abstract_name)
		return outcome_no_target(note, "--abstract");
	/* sun_path is not NUL-terminated for abstract names: the length alone counts. */
	return outcome_of_call(note, connect_unix(targets->abstract_name, SOCK_STREAM, true), "connected");
}

/* Sockets that grant power over the machine or the desktop. %u is the uid. */
static enum outcome try_known_socket(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	char path[108];
	long ret;

	snprintf(path, sizeof path, attempt->text, (unsigned)getuid());
	ret = connect_unix(path + (path[0] == '@'), SOCK_STREAM, path[0] == '@');
	if (ret < 0 && errno == ECONNREFUSED && path[0] != '@')
		return outcome(note, OUTCOME_BROKE, "the socket is there, nobody listens");
	return outcome_of_call(note, ret, "connected");
}

static enum outcome try_environment_socket(const struct attempt *attempt, const struct targets *targets,
	struct note *note)
{
	const char *path = getenv(attempt->text);

	if (!path)
		return outcome(note, OUTCOME_HELD, "%s is not set", attempt->text);
	return outcome_of_call(note, connect_unix(path, SOCK_STREAM, false), "connected");
}

static enum outcome try_runtime_directory(const struct attempt *attempt, const struct targets *targets,
	struct note *note)
{
	char path[64];
	cleanup_fd int fd = FD_NONE;

	snprintf(path, sizeof path, "/run/user/%u", (unsigned)getuid());
	fd = raw_open(path, O_RDONLY | O_DIRECTORY, 0);
	return outcome_of_call(note, fd, "visible");
}

static enum outcome try_sysv(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	if (!targets->sysv_key)
		return outcome_no_target(note, "--sysv-key");
	return outcome_of_call(note, syscall(attempt->number, targets->sysv_key, attempt->arguments[0],
		attempt->arguments[1]),
			       "the host's object was found");
}

static enum outcome try_mqueue(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	if (!targets->mqueue)
		return outcome_no_target(note, "--mqueue");
	return outcome_of_call(note, syscall(SYS_mq_open, targets->mqueue + 1, O_RDWR, 0, NULL),
		"the host's queue was opened");
}

static enum outcome try_shm_file(const struct attempt *attempt, const struct targets *targets, struct note *note)
{
	cleanup_fd int fd = FD_NONE;

	if (!targets->shm_file)
		return outcome_no_target(note, "--shm-file");
	fd = raw_open(joined("/dev/shm/", targets->shm_file), O_RDWR, 0);
	return outcome_of_call(note, fd, "the host's file was opened");
}

#define SOCKET(name, cases, path) { "socket." name, cases, "connect to " path, try_known_socket, 0, { 0 }, path }

static const struct attempt attempts[] = {
	{ "unix.path", "I1 I2 I5", "connect to a host's unix socket", try_host_socket, BY_PATH, { 0 }, NULL },
	{ "unix.proc-root", "I5 F18", "the same through /proc/self/root", try_host_socket, BY_PROC_ROOT, { 0 }, NULL },
	{ "unix.symlink", "I5 F1", "the same through an own symbolic link", try_host_socket, BY_SYMLINK, { 0 }, NULL },
	{ "unix.relative", "I5 F29", "the same up from the cwd", try_host_socket, BY_RELATIVE, { 0 }, NULL },
	{ "unix.sendto", "I5", "send to a host's datagram socket", try_host_socket, BY_SEND, { 0 }, NULL },
	{ "unix.sendmmsg", "I5", "the same by sendmmsg", try_host_socket, BY_SENDMMSG, { 0 }, NULL },
	{ "unix.datagram", "I5", "connect to a host's datagram socket", try_host_socket, BY_DATAGRAM, { 0 }, NULL },
	{ "unix.abstract", "I5", "connect to a host's abstract socket", try_abstract, BY_ABSTRACT, { 0 }, NULL },
	SOCKET("docker", "I2", "/var/run/docker.sock"),
	SOCKET("docker-run", "I2", "/run/docker.sock"),
	SOCKET("podman", "I2", "/run/podman/podman.sock"),
	SOCKET("podman-user", "I2", "/run/user/%u/podman/podman.sock"),
	SOCKET("containerd", "I2", "/run/containerd/containerd.sock"),
	SOCKET("crio", "I2", "/run/crio/crio.sock"),
	SOCKET("libvirt", "I2", "/run/libvirt/libvirt-sock"),
	SOCKET("lxd", "I2", "/var/snap/lxd/common/lxd/unix.socket"),
	SOCKET("incus", "I2", "/var/lib/incus/unix.socket"),
	SOCKET("snapd", "I2", "/run/snapd.socket"),
	SOCKET("dbus-system", "I1", "/run/dbus/system_bus_socket"),
	SOCKET("dbus-session", "I1", "/run/user/%u/bus"),
	SOCKET("systemd", "I1", "/run/systemd/private"),
	SOCKET("systemd-user", "I1", "/run/user/%u/systemd/private"),
	SOCKET("journald", "I1", "/run/systemd/journal/stdout"),
	SOCKET("udev", "I1", "/run/udev/control"),
	SOCKET("polkit-abstract", "I1", "@/org/freedesktop/systemd1/notify"),
	SOCKET("wayland", "I5", "/run/user/%u/wayland-0"),
	SOCKET("pipewire", "I5", "/run/user/%u/pipewire-0"),
	SOCKET("pulse", "I5", "/run/user/%u/pulse/native"),
	SOCKET("keyring", "I5", "/run/user/%u/keyring/ssh"),
	SOCKET("gpg-agent", "I5", "/run/user/%u/gnupg/S.gpg-agent"),
	SOCKET("x11", "I5", "/tmp/.X11-unix/X0"),
	SOCKET("x11-abstract", "I5", "@/tmp/.X11-unix/X0"),
	SOCKET("tmux", "I5", "/tmp/tmux-%u/default"),
	SOCKET("postgres", "I5", "/run/postgresql/.s.PGSQL.5432"),
	SOCKET("mysql", "I5", "/run/mysqld/mysqld.sock"),
	SOCKET("nscd", "I5", "/run/nscd/socket"),
	{ "socket.ssh-agent", "I5", "connect to SSH_AUTH_SOCK", try_environment_socket, 0, { 0 }, "SSH_AUTH_SOCK" },
	{ "runtime-directory", "I5", "list /run/user/UID", try_runtime_directory, 0, { 0 }, NULL },
	{ "sysv.shm", "I6", "a host's shared memory segment", try_sysv, SYS_shmget, { 0, 0 }, NULL },
	{ "sysv.sem", "I6", "a host's semaphores", try_sysv, SYS_semget, { 0, 0 }, NULL },
	{ "sysv.msg", "I6", "a host's message queue", try_sysv, SYS_msgget, { 0, 0 }, NULL },
	{ "posix.mqueue", "I6", "a host's POSIX message queue", try_mqueue, 0, { 0 }, NULL },
	{ "posix.shm", "I6", "a host's file in /dev/shm", try_shm_file, 0, { 0 }, NULL },
};

const struct attempt_group probe_ipc = { attempts, ARRAY_SIZE(attempts) };
