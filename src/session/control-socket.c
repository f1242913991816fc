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

/* sun_path holds 107 bytes and a run-time directory can be longer: the socket is reached through its
 * directory's fd. */
static int connect_in(const char *directory, const char *id)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	cleanup_fd int dir_fd = fd_open_at(AT_FDCWD, directory, O_PATH | O_DIRECTORY, 0);
	cleanup_fd int fd = FD_NONE;
	int r;

	if (dir_fd < 0)
		return dir_fd;
	r = str_format(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s.sock", dir_fd, id);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	do
		r = connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 ? -errno : 0;
	while (r == -EINTR);
	return r < 0 ? r : take_fd(&fd);
}

int control_socket_connect(const char *session, struct err *err)
{
	char runtime[PATH_MAX];
	uid_t uid;
	gid_t gid;
	pid_t pid;
	int fd, r = session_runtime_dir(runtime, sizeof runtime, false, err);

	if (r < 0)
		return r;
	fd = connect_in(runtime, session);
	if (fd < 0) {
		err_set(err, ERR_STATE, -fd, "session", "session %s does not answer: %s", session,
			strerror(-fd));
		if (fd == -ENOENT)
			err_hint(err,
				 "its control socket is not in %s; sessions started by `atoll run` without "
				 "-d have none",
				 runtime);
		return fd;
	}
	/* What the box answers decides what we tell the user and where our descriptors go. */
	if (fd_peer_credentials(fd, &uid, &gid, &pid) < 0 || (uid != geteuid() && uid != 0)) {
		close(fd);
		return err_set(err, ERR_STATE, EPERM, "session",
			       "the control socket of session %s belongs to somebody else", session);
	}
	return fd;
}
