/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/num.h"
#include "base/str.h"
#include "oci/container.h"
#include "oci/launch.h"
#include "os/fd.h"
#include "os/pty.h"
#include "prog/atoll-oci/job.h"
#include "prog/atoll-oci/life.h"
#include "prog/atoll-oci/words.h"

/* run, exec: they stay until the program has ended, unless they are detached. */

enum { PROCESS_MAX = 4 << 20, BLOCK = 16384 };

/* What of the terminal is the runtime's while the container runs. master FD_NONE: the container has none. */
struct relay {
	int master, signals;
	struct termios saved;
	bool is_raw, has_input;
};

/* The console socket of a foreground run is a pair of our own: [0] receives the master. */
static int receive_master(int socket_fd, int *ret_master)
{
	char name[64];
	size_t count = 0;
	ssize_t n = fd_receive_message(socket_fd, name, sizeof name, ret_master, 1, &count);

	return n < 0 ? (int)n : count == 1 ? 0 : -EPROTO;
}

static void fit_size(const struct relay *relay)
{
	struct pty_size size;

	if (relay->master >= 0 && pty_get_size(0, &size) == 0)
		(void)!pty_set_size(relay->master, size);
}

/* False: there is no more. */
static bool pass(int from, int to)
{
	char block[BLOCK];
	ssize_t n = read(from, block, sizeof block);

	return n > 0 ? fd_write_full(to, block, (size_t)n) == 0 : n < 0 && errno == EINTR;
}

static void pass_signal(const struct relay *relay, const struct pidref *process)
{
	struct signalfd_siginfo info;

	if (read(relay->signals, &info, sizeof info) != sizeof info)
		return;
	if (info.ssi_signo == SIGWINCH)
		fit_size(relay);
	else if (info.ssi_signo != SIGCHLD)
		(void)!pidref_signal(process, (int)info.ssi_signo);
}

/* Until the process has ended, and all that it wrote is out. */
static void relay_run(struct relay *relay, const struct pidref *process)
{
	bool is_over = false;

	while (!is_over || relay->master >= 0) {
		struct pollfd polled[] = {
			{ is_over ? -1 : process->fd, POLLIN, 0 }, { relay->signals, POLLIN, 0 },
			{ relay->master, POLLIN, 0 }, { relay->has_input && !is_over ? 0 : -1, POLLIN, 0 },
		};

		if (poll(polled, ARRAY_SIZE(polled), is_over ? 200 : -1) == 0)
			return;
		if (polled[1].revents)
			pass_signal(relay, process);
		if (polled[2].revents && !pass(relay->master, 1))
			close_fd(&relay->master);
		if (polled[3].revents && (relay->master < 0 || !pass(0, relay->master)))
			relay->has_input = false;
		is_over = is_over || polled[0].revents;
	}
}

static int wait_for(struct relay *relay, pid_t pid)
{
	struct pidref process;
	siginfo_t info;
	int r = pidref_open(&process, pid);

	if (r < 0)
		return r;
	relay->has_input = relay->master >= 0;
	if (relay->master >= 0) {
		fit_size(relay);
		relay->is_raw = pty_make_raw(0, &relay->saved) == 0;
	}
	relay_run(relay, &process);
	if (relay->is_raw)
		(void)!pty_restore(0, &relay->saved);
	r = pidref_wait(&process, WEXITED | __WALL, &info, NULL);
	pidref_done(&process);
	if (r < 0)
		return r;
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static int take_signals(struct relay *relay)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGTTOU);
	sigdelset(&all, SIGTTIN);
	if (sigprocmask(SIG_BLOCK, &all, NULL) < 0)
		return -errno;
	relay->signals = signalfd(-1, &all, SFD_CLOEXEC);
	return relay->signals < 0 ? -errno : 0;
}

/* pair[1] is what the container gets in the foreground; else what was named, or nothing. */
static int open_console(const struct job *job, bool is_wanted, int pair[2])
{
	if (job->console_socket)
		return life_connect(job->console_socket, &pair[1], job->err);
	if (job->is_detached || !is_wanted)
		return 0;
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0;
}

/* Only a look: the container is made of what is read then. */
static bool wants_terminal(const struct job *job)
{
	struct oci_config config = { 0 };
	cleanup_free char *text = NULL, *path = str_printf("%s/config.json", job->bundle ? job->bundle : ".");
	struct err ignored = { 0 };
	bool wants = false;
	size_t size;

	if (path && fd_read_file_at(AT_FDCWD, path, PROCESS_MAX, &text, &size) == 0) {
		wants = oci_config_parse(&config, text, size, &ignored) == 0 && config.process.is_terminal;
		oci_config_done(&config);
	}
	return wants;
}

int cmd_run(struct job *job)
{
	struct relay relay = { FD_NONE, FD_NONE };
	struct oci_state state = OCI_STATE_NONE;
	int pair[2] = { FD_NONE, FD_NONE };
	struct err ignored = { 0 };
	int r = open_console(job, wants_terminal(job), pair), status;

	if (r == 0)
		r = life_create(job, pair[1], &state);
	close_fd(&pair[1]);
	if (r == 0 && pair[0] >= 0)
		r = receive_master(pair[0], &relay.master);
	if (r == 0 && !job->is_detached)
		r = take_signals(&relay);
	if (r == 0)
		r = oci_container_start(&state, job->err);
	if (r == 0 && !job->is_detached)
		r = wait_for(&relay, state.pid);
	/* A process that could not start is ours to wait for. */
	if (state.dir_fd >= 0 && (r < 0 || (!job->is_detached && !job->is_kept))) {
		status = oci_container_delete(&state, job->root, true, &ignored);
		r = r >= 0 && status < 0 ? status : r;
		if (ignored.code && !job->err->code)
			*job->err = ignored;
	}
	close_fd(&relay.signals);
	close_fd(&relay.master);
	close_fd(&pair[0]);
	oci_state_done(&state);
	return r;
}

static int read_process(const struct job *job, const struct oci_state *state, struct oci_process *process,
			json_t **json)
{
	cleanup_free char *text = NULL;
	size_t size;
	int r;

	*json = NULL;
	if (!job->process) {
		r = job->word_count > 1 ? words_to_process(job, state, &text)
					: err_set(job->err, ERR_USAGE, EINVAL, "exec", "no program was named");
		return r == 0 ? oci_process_parse(process, json, text, strlen(text), job->err) : r;
	}
	r = fd_read_file_at(AT_FDCWD, job->process, PROCESS_MAX, &text, &size);
	if (r < 0)
		return err_set(job->err, ERR_USAGE, -r, "exec", "%s: %s", job->process, strerror(-r));
	return oci_process_parse(process, json, text, size, job->err);
}

static int run_exec(struct job *job, struct oci_exec *exec, const struct pidref *init)
{
	struct relay relay = { FD_NONE, FD_NONE };
	int pair[2] = { FD_NONE, FD_NONE };
	pid_t pid;
	int r = open_console(job, exec->process->is_terminal, pair);

	exec->console_socket = pair[1];
	if (r == 0 && exec->process->is_terminal && pair[1] < 0)
		r = err_set(job->err, ERR_USAGE, EINVAL, "console",
			    "cannot allocate a terminal: no console socket was given");
	if (r == 0 && !job->is_detached)
		r = take_signals(&relay);
	if (r == 0)
		r = oci_launch_exec(exec, init, &pid, job->err);
	close_fd(&pair[1]);
	if (r == 0 && pair[0] >= 0)
		r = receive_master(pair[0], &relay.master);
	if (r == 0)
		r = oci_container_write_pid(job->pid_file, pid, job->err);
	if (r == 0 && !job->is_detached)
		r = wait_for(&relay, pid);
	close_fd(&relay.signals);
	close_fd(&relay.master);
	close_fd(&pair[0]);
	return r;
}

int cmd_exec(struct job *job)
{
	cleanup_oci_state struct oci_state state = OCI_STATE_NONE;
	struct oci_process process;
	struct oci_exec exec = { &process, &state, FD_NONE, 0 };
	struct pidref init = PIDREF_NONE;
	enum oci_status status;
	json_t *json = NULL;
	uint64_t kept = 0;
	int r = job_open(job, &state);

	if (r < 0)
		return r;
	status = oci_state_status(&state, &init);
	if (status == OCI_PAUSED)
		r = err_set(job->err, ERR_STATE, EBUSY, "exec", "cannot exec in a paused container");
	else if (status != OCI_RUNNING && status != OCI_CREATED)
		r = err_set(job->err, ERR_STATE, ESRCH, "exec",
			    "cannot exec in a stopped container: container not running");
	if (r == 0 && job->preserve_fds && (num_parse_u64(job->preserve_fds, &kept) < 0 || kept > 1000))
		r = err_set(job->err, ERR_USAGE, EINVAL, "exec", "--preserve-fds wants a number up to 1000");
	exec.kept_fds = (unsigned)kept;
	if (r == 0)
		r = read_process(job, &state, &process, &json);
	if (r == 0)
		r = run_exec(job, &exec, &init);
	if (json)
		oci_process_done(&process, &json);
	pidref_done(&init);
	/* As engines expect it: a program that is not there is no failure of the container's. */
	if (r < 0 && (job->err->code == ERR_NOT_FOUND || job->err->code == ERR_NOT_RUNNABLE))
		return -255;
	return r;
}
