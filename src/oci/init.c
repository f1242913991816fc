/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/init.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/str.h"
#include "oci/hook.h"
#include "oci/process.h"
#include "oci/root.h"
#include "os/caps.h"
#include "os/fd.h"
#include "os/pty.h"

int oci_packet_send(int channel, enum oci_packet_kind kind, pid_t pid, const struct err *err)
{
	struct oci_packet packet = { .kind = kind, .pid = pid };

	if (err)
		packet.err = *err;
	return send(channel, &packet, sizeof packet, MSG_NOSIGNAL) == sizeof packet ? 0 : -errno;
}

int oci_packet_receive(int channel, enum oci_packet_kind kind, pid_t *ret_pid, struct err *err)
{
	struct oci_packet packet;
	ssize_t n;

	do
		n = recv(channel, &packet, sizeof packet, 0);
	while (n < 0 && errno == EINTR);
	if (n != sizeof packet)
		return err_set(err, ERR_INTERNAL, EPIPE, "init", "the container's first process ended unexpectedly");
	if (packet.kind == OCI_PACKET_FAILED) {
		*err = packet.err;
		return packet.err.errnum ? -packet.err.errnum : -EINVAL;
	}
	if (packet.kind != kind)
		return err_set(err, ERR_INTERNAL, EPROTO, "init", "the container's first process is out of step");
	if (ret_pid)
		*ret_pid = packet.pid;
	return 0;
}

static int fail(const char *what, struct err *err)
{
	int errnum = errno;

	return err_set(err, ERR_WALL, errnum, "init", "%s: %s", what, strerror(errnum));
}

/* Everything of the runtime's that its child would have of it, but what is the container's. */
static int leave_runtime(const struct oci_init *init, struct err *err)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 1; i < NSIG; i++)
		(void)!sigaction(i, &plain, NULL);
	/* Ids of the new user namespace; without one these are what it has. */
	if (oci_config_namespace(init->config, CLONE_NEWUSER) && (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
		return fail("taking the ids of the user namespace", err);
	/* What enters the container may look at this process, and so at the runtime's own file: not while it is it. */
	(void)!prctl(PR_SET_DUMPABLE, 0);
	if (setsid() < 0)
		return fail("setsid", err);
	if (oci_config_namespace(init->config, CLONE_NEWCGROUP) &&
	    !*(oci_config_namespace(init->config, CLONE_NEWCGROUP)->path ?: "") && unshare(CLONE_NEWCGROUP) < 0)
		return fail("the cgroup namespace", err);
	return init->keeps_keyring ? 0 : caps_new_keyring();
}

static int set_names(const struct oci_config *config, struct err *err)
{
	if (config->hostname && *config->hostname && sethostname(config->hostname, strlen(config->hostname)) < 0)
		return fail("sethostname", err);
	if (config->domainname && *config->domainname &&
	    setdomainname(config->domainname, strlen(config->domainname)) < 0)
		return fail("setdomainname", err);
	return 0;
}

/* The master goes to whoever listens at the console socket, the slave becomes the program's three streams. */
static int take_terminal(const struct oci_init *init, int root_fd, struct err *err)
{
	const struct oci_process *process = &init->config->process;
	cleanup_fd int master = FD_NONE, slave = FD_NONE;
	const char name[] = "/dev/ptmx";
	int r = oci_root_console(root_fd, &master, &slave, err);

	if (r < 0)
		return r;
	if (process->console_height && process->console_width)
		r = pty_set_size(slave, (struct pty_size){ (uint16_t)process->console_height,
							   (uint16_t)process->console_width });
	if (r == 0)
		r = fchown(slave, (uid_t)process->user.uid, (gid_t)-1) < 0 && errno != EPERM && errno != EROFS
			? -errno : 0;
	if (r == 0) {
		ssize_t n = fd_send_message(init->console_socket, name, sizeof name - 1, &master, 1);

		r = n < 0 ? (int)n : 0;
	}
	for (int fd = 0; r == 0 && fd < 3; fd++)
		r = dup2(slave, fd) < 0 ? -errno : 0;
	if (r == 0)
		r = pty_take_control(0);
	return r < 0 ? err_set(err, ERR_WALL, -r, "init", "the terminal: %s", strerror(-r)) : 0;
}

static int run_hooks(const struct oci_init *init, pid_t pid, enum oci_hook_kind kind, enum oci_status status,
		     struct err *err)
{
	struct oci_state known = *init->state;
	cleanup_buf struct buf text = { 0 };
	int r;

	if (!init->config->hooks[kind].count)
		return 0;
	known.pid = pid;
	buf_init(&text, 1 << 20);
	r = oci_state_format(&known, status, false, &text);
	return r == 0 ? oci_hooks_run(init->config, kind, &text, err) : r;
}

static int build(const struct oci_init *init, char program[OCI_PROGRAM_SIZE], pid_t *ret_pid, struct err *err)
{
	const struct oci_config *config = init->config;
	cleanup_fd int root = FD_NONE;
	int r = oci_packet_receive(init->channel, OCI_PACKET_MAPPED, ret_pid, err);

	if (r == 0)
		r = leave_runtime(init, err);
	if (r == 0)
		r = set_names(config, err);
	if (r == 0)
		r = oci_root_build(config, init->state->bundle, &init->state->groups, &root, err);
	if (r == 0)
		r = oci_packet_send(init->channel, OCI_PACKET_BUILT, 0, NULL);
	if (r == 0)
		r = oci_packet_receive(init->channel, OCI_PACKET_HOOKED, NULL, err);
	if (r == 0)
		r = run_hooks(init, *ret_pid, OCI_HOOK_CREATE_CONTAINER, OCI_CREATING, err);
	if (r == 0 && config->process.is_terminal)
		r = take_terminal(init, root, err);
	if (r == 0)
		r = oci_root_enter(config, root, err);
	return r == 0 ? oci_process_find(&config->process, program, err) : r;
}

/* Waits for `start`, which learns by the end of its connection that the program runs. */
static int await_start(const struct oci_init *init, int *ret_starter, struct err *err)
{
	int fd;

	do
		fd = accept4(init->listener, NULL, NULL, SOCK_CLOEXEC);
	while (fd < 0 && errno == EINTR);
	if (fd < 0)
		return fail("waiting for the start", err);
	*ret_starter = fd;
	return 0;
}

void oci_init_run(const struct oci_init *init)
{
	char program[OCI_PROGRAM_SIZE];
	struct err err = { 0 };
	int starter = FD_NONE;
	pid_t pid = 0;
	int r = build(init, program, &pid, &err);

	if (r == 0)
		r = oci_packet_send(init->channel, OCI_PACKET_READY, 0, NULL);
	if (r == 0)
		r = oci_packet_receive(init->channel, OCI_PACKET_KEPT, NULL, &err);
	if (r < 0) {
		if (!err.code)
			err_set(&err, ERR_INTERNAL, -r, "init", "%s", strerror(-r));
		(void)!oci_packet_send(init->channel, OCI_PACKET_FAILED, 0, &err);
		_exit(1);
	}
	close(init->channel);
	r = await_start(init, &starter, &err);
	if (r == 0)
		r = run_hooks(init, pid, OCI_HOOK_START_CONTAINER, OCI_CREATED, &err);
	if (r == 0)
		r = oci_process_exec(&init->config->process, &init->config->linux_part.seccomp, program,
				     init->kept_fds, &err);
	if (!err.code)
		err_set(&err, ERR_INTERNAL, -r, "init", "%s", strerror(-r));
	(void)!oci_packet_send(starter, OCI_PACKET_FAILED, 0, &err);
	_exit(1);
}
