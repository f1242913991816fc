/* SPDX-License-Identifier: Apache-2.0 */
#include "session/control-socket.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/str.h"
#include "os/fd.h"
#include "session/directories.h"
#include "session/record.h"

/*
 * sun_path holds 107 bytes and a run-time directory can be longer: then the socket is reached through its directory's
 * fd, which is the slower way, since a process that was just started finds its /proc/self empty.
 */
static int name_socket(const char *runtime_dir, const char *session, struct sockaddr_un *address, int *ret_dir_fd)
{
	size_t size = sizeof address->sun_path;

	if (str_format(address->sun_path, size, "%s/%s.sock", runtime_dir, session) == 0)
		return 0;
	*ret_dir_fd = fd_open_at(AT_FDCWD, runtime_dir, O_PATH | O_DIRECTORY, 0);
	return *ret_dir_fd < 0 ? *ret_dir_fd
			       : str_format(address->sun_path, size, "/proc/self/fd/%d/%s.sock", *ret_dir_fd, session);
}

int control_socket_connect_in(const char *runtime_dir, const char *session)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup_fd int dir_fd = FD_NONE, fd = FD_NONE;
	uid_t uid;
	gid_t gid;
	pid_t pid;
	int r = name_socket(runtime_dir, session, &address, &dir_fd);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	do
		r = connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 ? -errno : 0;
	while (r == -EINTR);
	if (r == 0)
		r = fd_peer_credentials(fd, &uid, &gid, &pid);
	/* What it answers decides what people are told and where our descriptors go. */
	if (r == 0 && uid != geteuid() && uid != 0)
		r = -EPERM;
	return r < 0 ? r : take_fd(&fd);
}

int control_socket_connect(const char *session, struct err *err)
{
	char runtime[PATH_MAX];
	int fd, r = session_runtime_dir(runtime, sizeof runtime, false, err);

	if (r < 0)
		return r;
	fd = control_socket_connect_in(runtime, session);
	if (fd == -EPERM)
		return err_set(err, ERR_STATE, EPERM, "session",
			       "the control socket of session %s belongs to somebody else", session);
	if (fd < 0) {
		err_set(err, ERR_STATE, -fd, "session", "session %s does not answer: %s", session,
			strerror(-fd));
		if (fd == -ENOENT)
			err_hint(err, "its control socket is not in %s", runtime);
		return fd;
	}
	return fd;
}
