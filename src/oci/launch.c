/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/str.h"
#include "oci/process.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/pty.h"
#include "oci/rooted.h"

/*
 * Namespaces are joined by a process between, the stage: setns(2) of a pid namespace is for children alone, and the
 * runtime itself must stay where it is. The stage makes the first process as its own brother (CLONE_PARENT) and ends.
 */

static int fail(int r, const char *what, const char *name, struct err *err)
{
	return err_set(err, ERR_WALL, -r, "namespace", "%s %s: %s", what, name, strerror(-r));
}

/* The user namespace comes last where the caller has rights over the others by its own, first where by that one. */
static int join_all(const struct oci_config *config, struct err *err)
{
	bool is_joined[OCI_NAMESPACE_COUNT] = { false };
	int r = 0;

	for (int pass = 0; pass < 3; pass++)
		for (size_t i = 0; i < OCI_NAMESPACE_COUNT; i++) {
			const struct oci_namespace_kind *kind = &oci_namespace_kinds[i];
			const struct oci_namespace *namespace = oci_config_namespace(config, kind->flag);
			bool is_user = kind->flag == CLONE_NEWUSER;
			cleanup_fd int fd = FD_NONE;

			if (!namespace || !namespace->path || !*namespace->path || is_joined[i] ||
			    is_user != (pass == 1))
				continue;
			fd = fd_open_at(AT_FDCWD, namespace->path, O_RDONLY, 0);
			r = fd < 0 ? fd : setns(fd, (int)kind->flag) < 0 ? -errno : 0;
			is_joined[i] = r == 0;
			if (r < 0 && !(r == -EPERM && pass == 0))
				return fail(r, "failed to join namespace", namespace->path, err);
		}
	return 0;
}

static uint64_t flags_of_new(const struct oci_config *config)
{
	uint64_t flags = 0;

	for (size_t i = 0; i < OCI_NAMESPACE_COUNT; i++) {
		const struct oci_namespace *namespace = oci_config_namespace(config, oci_namespace_kinds[i].flag);

		/* That of control groups begins where the process is by then: init makes it when it is in its group. */
		if (namespace && !(namespace->path && *namespace->path) &&
		    oci_namespace_kinds[i].flag != CLONE_NEWCGROUP)
			flags |= oci_namespace_kinds[i].flag;
	}
	return flags;
}

static void run_stage(struct oci_init *init)
{
	struct err err = { 0 };
	int pidfd, r = join_all(init->config, &err);
	pid_t pid = 0;

	if (r == 0) {
		pid = clone_process(CLONE_PARENT | flags_of_new(init->config), -1, &pidfd);
		if (pid == 0)
			oci_init_run(init);
		r = pid < 0 ? fail(pid, "failed to make", "the namespaces", &err) : 0;
	}
	(void)!oci_packet_send(init->channel, r < 0 ? OCI_PACKET_FAILED : OCI_PACKET_PID, pid, &err);
	_exit(r < 0);
}

static int reap(pid_t pid)
{
	int r;

	do
		r = waitpid(pid, NULL, __WALL);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int oci_launch(struct oci_init *init, int *ret_channel, pid_t *ret_pid, struct err *err)
{
	cleanup_fd int ours = FD_NONE, theirs = FD_NONE, pidfd = FD_NONE;
	int pair[2], r;
	pid_t stage;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return fail(-errno, "a socket pair", "", err);
	ours = pair[0];
	theirs = pair[1];
	init->channel = theirs;
	stage = clone_process(0, -1, &pidfd);
	if (stage == 0) {
		close_fd(&ours);
		run_stage(init);
	}
	close_fd(&theirs);
	if (stage < 0)
		return fail(stage, "a process", "", err);
	r = oci_packet_receive(ours, OCI_PACKET_PID, ret_pid, err);
	(void)!reap(stage);
	if (r == 0)
		*ret_channel = take_fd(&ours);
	return r;
}

static int write_map(pid_t pid, const char *file, const struct field_list *list)
{
	const struct oci_id_map *maps = list->items;
	char path[64];
	cleanup_buf struct buf text;
	int r = str_format(path, sizeof path, "/proc/%d/%s", (int)pid, file);

	buf_init(&text, 1 << 16);
	for (size_t i = 0; i < list->count; i++)
		buf_printf(&text, "%lld %lld %lld\n", (long long)maps[i].inside, (long long)maps[i].outside,
			   (long long)maps[i].size);
	if (r == 0)
		r = buf_error(&text);
	return r < 0 ? r : fd_write_file_at(AT_FDCWD, path, buf_text(&text));
}

int oci_launch_map(const struct oci_config *config, pid_t pid, struct err *err)
{
	const struct oci_namespace *user = oci_config_namespace(config, CLONE_NEWUSER);
	char path[64];
	int r;

	if (!user || (user->path && *user->path))
		return 0;
	r = str_format(path, sizeof path, "/proc/%d/setgroups", (int)pid);
	if (r == 0 && geteuid() != 0)
		r = fd_write_file_at(AT_FDCWD, path, "deny");
	if (r == 0)
		r = write_map(pid, "uid_map", &config->linux_part.uid_maps);
	if (r == 0)
		r = write_map(pid, "gid_map", &config->linux_part.gid_maps);
	return r < 0 ? fail(r, "failed to map the ids of", "the user namespace", err) : 0;
}

/* ---- another process in a container that runs ---- */

static int take_terminal(const struct oci_exec *exec, struct err *err)
{
	cleanup_fd int root = fd_open_at(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	cleanup_fd int master = root < 0 ? root : rooted_open(root, "/dev/pts/ptmx", O_RDWR | O_NOCTTY),
	slave = FD_NONE;
	const struct oci_process *process = exec->process;
	int r = master < 0 ? master : pty_open_slave(master, &slave);

	if (r == 0 && process->console_height && process->console_width)
		r = pty_set_size(slave, (struct pty_size){ (uint16_t)process->console_height,
							   (uint16_t)process->console_width });
	if (r == 0 && fchown(slave, (uid_t)process->user.uid, (gid_t)-1) < 0 && errno != EPERM)
		r = -errno;
	if (r == 0) {
		ssize_t n = fd_send_message(exec->console_socket, "/dev/ptmx", 9, &master, 1);

		r = n < 0 ? (int)n : 0;
	}
	for (int fd = 0; r == 0 && fd < 3; fd++)
		r = dup2(slave, fd) < 0 ? -errno : 0;
	if (r == 0)
		r = pty_take_control(0);
	return r < 0 ? err_set(err, ERR_WALL, -r, "exec", "the terminal: %s", strerror(-r)) : 0;
}

static void run_exec(const struct oci_exec *exec, int channel)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	char program[OCI_PROGRAM_SIZE];
	struct err err = { 0 };
	int r = oci_packet_receive(channel, OCI_PACKET_MAPPED, NULL, &err);

	for (int i = 1; i < NSIG; i++)
		(void)!sigaction(i, &plain, NULL);
	(void)!prctl(PR_SET_DUMPABLE, 0);
	if (r == 0 && oci_config_namespace(&exec->state->config, CLONE_NEWUSER) &&
	    (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
		r = -errno;
	if (r == 0 && setsid() < 0)
		r = -errno;
	if (r == 0 && exec->process->is_terminal)
		r = take_terminal(exec, &err);
	if (r == 0)
		r = oci_process_find(exec->process, program, &err);
	if (r == 0)
		r = oci_process_exec(exec->process, &exec->state->config.linux_part.seccomp, program, exec->kept_fds,
				     &err);
	if (!err.code)
		err_set(&err, ERR_INTERNAL, -r, "exec", "%s", strerror(-r));
	(void)!oci_packet_send(channel, OCI_PACKET_FAILED, 0, &err);
	_exit(1);
}

/* All of init's namespaces at once; its own user namespace cannot be entered a second time (EINVAL). */
static int enter_container(const struct oci_exec *exec, const struct pidref *init)
{
	int flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

	if (oci_config_namespace(&exec->state->config, CLONE_NEWUSER))
		flags |= CLONE_NEWUSER;
	return setns(init->fd, flags) < 0 ? -errno : 0;
}

static void run_exec_stage(const struct oci_exec *exec, const struct pidref *init, int channel)
{
	struct err err = { 0 };
	int pidfd, r = oci_packet_receive(channel, OCI_PACKET_KEPT, NULL, &err);
	pid_t pid = 0;

	if (r == 0)
		r = enter_container(exec, init);
	if (r == 0) {
		pid = clone_process(CLONE_PARENT, -1, &pidfd);
		if (pid == 0)
			run_exec(exec, channel);
		r = pid < 0 ? pid : 0;
	}
	if (r < 0 && !err.code)
		fail(r, "cannot enter", "the container", &err);
	(void)!oci_packet_send(channel, r < 0 ? OCI_PACKET_FAILED : OCI_PACKET_PID, pid, &err);
	_exit(r < 0);
}

/* The end of the channel without a word is that of exec(2): it is close-on-exec. */
static int await_program(int channel, struct err *err)
{
	struct oci_packet packet;
	ssize_t n;

	do
		n = recv(channel, &packet, sizeof packet, 0);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	if (n == sizeof packet)
		*err = packet.err;
	return n == sizeof packet && err->errnum ? -err->errnum : -EIO;
}

int oci_launch_exec(const struct oci_exec *exec, const struct pidref *init, pid_t *ret_pid, struct err *err)
{
	cleanup_fd int ours = FD_NONE, theirs = FD_NONE, pidfd = FD_NONE;
	int pair[2], r;
	pid_t stage, pid = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return fail(-errno, "a socket pair", "", err);
	ours = pair[0];
	theirs = pair[1];
	stage = clone_process(0, -1, &pidfd);
	if (stage == 0) {
		close_fd(&ours);
		run_exec_stage(exec, init, theirs);
	}
	close_fd(&theirs);
	if (stage < 0)
		return fail(stage, "a process", "", err);
	/* Into the groups before it is inside: nothing that it starts is ever outside of the limits. */
	r = oci_groups_enter(&exec->state->groups, stage, err);
	if (r == 0)
		r = oci_packet_send(ours, OCI_PACKET_KEPT, 0, NULL);
	if (r == 0)
		r = oci_packet_receive(ours, OCI_PACKET_PID, &pid, err);
	if (r < 0)
		close_fd(&ours);
	(void)!reap(stage);
	if (r == 0)
		r = oci_process_limit(exec->process, pid, err);
	if (r == 0)
		r = oci_packet_send(ours, OCI_PACKET_MAPPED, 0, NULL);
	if (r == 0)
		r = await_program(ours, err);
	if (r < 0 && pid) {
		close_fd(&ours);
		(void)!reap(pid);
	}
	*ret_pid = pid;
	return r;
}
