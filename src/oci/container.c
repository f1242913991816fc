/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/container.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/str.h"
#include "oci/hook.h"
#include "oci/launch.h"
#include "oci/limit.h"
#include "oci/process.h"
#include "os/fd.h"
#include "os/proc.h"

enum { CONFIG_MAX = 16 << 20, STATE_MAX = 1 << 20, DEATH_MS = 10000 };

static int run_hooks(const struct oci_state *state, enum oci_hook_kind kind, enum oci_status status, struct err *err)
{
	cleanup_buf struct buf text = { 0 };
	int r;

	if (!state->has_config || !state->config.hooks[kind].count)
		return 0;
	buf_init(&text, STATE_MAX);
	r = oci_state_format(state, status, false, &text);
	return r == 0 ? oci_hooks_run(&state->config, kind, &text, err) : r;
}

int oci_container_write_pid(const char *path, pid_t pid, struct err *err)
{
	char text[16];
	int r;

	if (!path)
		return 0;
	(void)!str_format(text, sizeof text, "%d", (int)pid);
	r = fd_replace_file_at(AT_FDCWD, path, text, strlen(text), 0644);
	return r < 0 ? err_set(err, ERR_STATE, -r, "pid file", "%s: %s", path, strerror(-r)) : 0;
}

static int read_bundle(struct oci_state *state, const char *bundle, struct err *err)
{
	cleanup_free char *text = NULL;
	char path[PATH_MAX];
	size_t size;
	int r = str_format(path, sizeof path, "%s/config.json", bundle);

	if (r == 0)
		r = fd_read_file_at(AT_FDCWD, path, CONFIG_MAX, &text, &size);
	if (r < 0)
		return err_set(err, ERR_USAGE, -r, "config", "open %s: %s", path, r == -ENOENT
			       ? "no such file or directory"
											     : strerror(-r));
	state->bundle = str_dup(bundle);
	state->has_config = true;
	r = oci_config_parse(&state->config, text, size, err);
	if (r == 0 && !state->config.process.args.count)
		r = err_set(err, ERR_USAGE, EINVAL, "config", "config.json: process is missing");
	return r == 0 ? oci_state_store_config(state, text, size, err) : r;
}

/* Whether the rules for devices are needed: without root of the machine nobody makes or opens a node. */
static bool has_devices(const struct oci_config *config)
{
	return geteuid() == 0 && !oci_config_namespace(config, CLONE_NEWUSER);
}

/* A user who has no groups of his own to give may do without, where nothing is limited by them. */
static int make_groups(struct oci_state *state, struct err *err)
{
	const struct oci_config *config = &state->config;
	int r = oci_groups_plan(&state->groups, config->linux_part.cgroups_path, state->id, err);

	/* Stored first: whoever cleans up after a kill in between knows of them. */
	if (r == 0)
		r = oci_state_store(state, err);
	if (r == 0)
		r = oci_groups_make(&state->groups, err);
	if ((r == -EACCES || r == -EPERM || r == -EROFS) && geteuid() != 0 &&
	    !oci_limits_are_asked(&config->linux_part.resources)) {
		oci_groups_done(&state->groups);
		*err = (struct err){ 0 };
		return 0;
	}
	if (r == 0)
		r = oci_state_store(state, err);
	return r == 0 ? oci_limits_apply(&state->groups, &config->linux_part.resources, has_devices(config), err) : r;
}

/* From the clone to the last word of init; pid is left for whoever cleans up where it fails. */
static int build(const struct oci_create *create, struct oci_state *state, struct oci_init *init, struct err *err)
{
	cleanup_fd int channel = FD_NONE;
	int r = oci_launch(init, &channel, &state->pid, err);

	if (r == 0)
		r = proc_start_ticks(state->pid, &state->start_ticks);
	if (r == 0)
		r = oci_state_store(state, err);
	if (r == 0)
		r = oci_groups_enter(&state->groups, state->pid, err);
	if (r == 0)
		r = oci_process_limit(&state->config.process, state->pid, err);
	if (r == 0)
		r = oci_launch_map(&state->config, state->pid, err);
	if (r == 0)
		r = oci_packet_send(channel, OCI_PACKET_MAPPED, state->pid, NULL);
	if (r == 0)
		r = oci_packet_receive(channel, OCI_PACKET_BUILT, NULL, err);
	if (r == 0)
		r = run_hooks(state, OCI_HOOK_PRESTART, OCI_CREATING, err);
	if (r == 0)
		r = run_hooks(state, OCI_HOOK_CREATE_RUNTIME, OCI_CREATING, err);
	if (r == 0)
		r = oci_packet_send(channel, OCI_PACKET_HOOKED, 0, NULL);
	if (r == 0)
		r = oci_packet_receive(channel, OCI_PACKET_READY, NULL, err);
	if (r == 0)
		r = oci_container_write_pid(create->pid_file, state->pid, err);
	return r == 0 ? oci_packet_send(channel, OCI_PACKET_KEPT, 0, NULL) : r;
}

static int check_terminal(const struct oci_create *create, const struct oci_state *state, struct err *err)
{
	bool is_terminal = state->config.process.is_terminal;

	if (is_terminal && create->console_socket < 0)
		return err_set(err, ERR_USAGE, EINVAL, "console",
			       "cannot allocate a terminal: no console socket was given");
	if (!is_terminal && create->console_socket >= 0)
		return err_set(err, ERR_USAGE, EINVAL, "console",
			       "a console socket was given, but the process has no terminal");
	return 0;
}

int oci_container_create(const struct oci_create *create, struct oci_state *ret_state, struct err *err)
{
	struct oci_state state = OCI_STATE_NONE;
	cleanup_fd int listener = FD_NONE;
	struct oci_init init = { .config = &state.config, .state = &state, .console_socket = create->console_socket,
				 .kept_fds = create->kept_fds, .keeps_keyring = create->keeps_keyring };
	struct err ignored = { 0 };
	int r = oci_state_make(&state, create->root, create->id, err);

	if (r < 0)
		return r;
	r = read_bundle(&state, create->bundle, err);
	if (r == 0)
		r = check_terminal(create, &state, err);
	if (r == 0)
		r = make_groups(&state, err);
	if (r == 0) {
		listener = oci_state_listen(&state);
		init.listener = listener;
		r = listener < 0 ? listener : build(create, &state, &init, err);
	}
	if (r == 0) {
		*ret_state = state;
		return 0;
	}
	/* What failed is the caller's to know, not what its cleaning-up met. */
	if (state.pid && kill(state.pid, SIGKILL) == 0)
		(void)!waitpid(state.pid, NULL, __WALL);
	state.pid = 0;
	(void)!oci_container_delete(&state, create->root, true, &ignored);
	oci_state_done(&state);
	return r;
}

static int refuse(enum oci_status status, struct err *err)
{
	static const char *const words[OCI_STATUS_COUNT] = {
		[OCI_CREATING] = "cannot start a container that is being created",
		[OCI_RUNNING] = "cannot start an already running container",
		[OCI_PAUSED] = "cannot start a paused container",
		[OCI_STOPPED] = "cannot start a container that has stopped",
	};

	return err_set(err, ERR_STATE, EBUSY, "start", "%s", words[status]);
}

/* Init executes, which ends the connection, or says why not. */
static int let_go(const struct oci_state *state, struct err *err)
{
	cleanup_fd int fd = oci_state_connect(state);
	struct oci_packet packet;
	ssize_t n;

	if (fd < 0)
		return fd == -ECONNREFUSED ? refuse(OCI_RUNNING, err) : fd;
	do
		n = recv(fd, &packet, sizeof packet, 0);
	while (n < 0 && errno == EINTR);
	if (unlinkat(state->dir_fd, "start.sock", 0) < 0 && errno != ENOENT)
		return -errno;
	if (n != sizeof packet)
		return n == 0 ? 0 : -EIO;
	*err = packet.err;
	return packet.err.errnum ? -packet.err.errnum : -EIO;
}

int oci_container_start(const struct oci_state *state, struct err *err)
{
	struct pidref init;
	enum oci_status status = oci_state_status(state, &init);
	struct err why = { 0 };
	int r;

	pidref_done(&init);
	if (status != OCI_CREATED)
		return refuse(status, err);
	r = let_go(state, err);
	if (r == 0) {
		r = run_hooks(state, OCI_HOOK_POSTSTART, OCI_RUNNING, err);
		if (r < 0)
			(void)!oci_container_kill(state, SIGKILL, false, &why);
	}
	return r;
}

int oci_container_kill(const struct oci_state *state, int signal_number, bool is_all, struct err *err)
{
	struct pidref init;
	enum oci_status status = oci_state_status(state, &init);
	int r = 0;

	if (is_all)
		r = oci_groups_signal(&state->groups, signal_number);
	else if (status == OCI_STOPPED || status == OCI_CREATING)
		r = err_set(err, ERR_STATE, ESRCH, "kill", "container not running");
	if (r >= 0 && init.fd >= 0 && (!is_all || !state->groups.count))
		r = pidref_signal(&init, signal_number);
	pidref_done(&init);
	if (r == -ESRCH && !err->code)
		r = err_set(err, ERR_STATE, ESRCH, "kill", "container not running");
	return r < 0 ? r : 0;
}

/* SIGKILL reaches what is frozen only when it thaws (v1). */
static void end_all(const struct oci_state *state, const struct pidref *init)
{
	struct pollfd poll_fd = { .fd = init->fd, .events = POLLIN };
	struct err ignored = { 0 };

	if (init->fd >= 0)
		(void)!pidref_signal(init, SIGKILL);
	(void)!oci_groups_signal(&state->groups, SIGKILL);
	if (oci_groups_is_frozen(&state->groups))
		(void)!oci_groups_freeze(&state->groups, false, &ignored);
	if (init->fd >= 0)
		(void)!poll(&poll_fd, 1, DEATH_MS);
}

int oci_container_delete(struct oci_state *state, const char *root, bool is_forced, struct err *err)
{
	struct pidref init;
	enum oci_status status = oci_state_status(state, &init);
	struct err ignored = { 0 };
	int r = 0;

	if (status != OCI_STOPPED && !is_forced && status != OCI_CREATED)
		r = err_set(err, ERR_STATE, EBUSY, "delete", "cannot delete container %s that is not stopped: %s",
			    state->id, oci_status_names[status]);
	if (r == 0)
		end_all(state, &init);
	pidref_done(&init);
	if (r == 0)
		r = oci_groups_remove(&state->groups, err);
	if (r == 0)
		r = oci_state_remove(state, root, err);
	if (r == 0 && run_hooks(state, OCI_HOOK_POSTSTOP, OCI_STOPPED, &ignored) < 0)
		return 1;
	return r;
}
