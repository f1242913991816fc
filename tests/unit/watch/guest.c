/* SPDX-License-Identifier: Apache-2.0 */
#include "guest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "os/fd.h"
#include "os/seccomp.h"

enum { CALLS_MAX = 32 };

static int load_filter(const int *calls, size_t count)
{
	struct sock_filter program[2 * CALLS_MAX + 2];
	size_t at = 0;

	program[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	for (size_t i = 0; i < count; i++) {
		program[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
		program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	}
	program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return seccomp_load_with_listener(program, at);
}

static _Noreturn void child(int socket_fd, int wait_fd, const int *calls, size_t count, int (*run)(void *),
			    void *argument)
{
	char byte = 0;
	int listener;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	listener = load_filter(calls, count);
	if (listener < 0 || fd_send_message(socket_fd, &byte, 1, &listener, 1) != 1)
		_exit(99);
	close(listener);
	close(socket_fd);
	(void)!read(wait_fd, &byte, 1);
	_exit(run(argument));
}

struct guest guest_start(const int *calls, size_t count, int (*run)(void *argument), void *argument)
{
	struct guest guest = { .listener_fd = FD_NONE };
	int sockets[2], pipes[2];
	size_t received;
	char byte;

	assert_true(count <= CALLS_MAX);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	assert_int_equal(pipe(pipes), 0);
	guest.pid = fork();
	assert_true(guest.pid >= 0);
	if (guest.pid == 0) {
		close(sockets[0]);
		close(pipes[1]);
		child(sockets[1], pipes[0], calls, count, run, argument);
	}
	close(sockets[1]);
	close(pipes[0]);
	guest.start_fd = pipes[1];
	assert_int_equal(fd_receive_message(sockets[0], &byte, 1, &guest.listener_fd, 1, &received), 1);
	assert_int_equal(received, 1);
	close(sockets[0]);
	return guest;
}

static int handled(struct seen *seen)
{
	if (seen->kill_pid) {
		kill(seen->kill_pid, SIGKILL);
		/* Until it is dead: then its notification is gone. */
		waitid(P_PID, (id_t)seen->kill_pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	}
	return seen->fail_with;
}

static int see_exec(void *context, const struct watch_exec *event, struct watch_exec_answer *answer)
{
	struct seen *seen = context;

	seen->execs++;
	snprintf(seen->exe, sizeof seen->exe, "%s", event->exe);
	seen->first[0] = seen->last[0] = 0;
	for (seen->argc = 0; event->argv[seen->argc]; seen->argc++)
		snprintf(seen->argc ? seen->last : seen->first, sizeof seen->last, "%s", event->argv[seen->argc]);
	seen->left_out = event->argv_left_out;
	return handled(seen);
}

static int see_refusal(void *context, const struct watch_refusal *event)
{
	struct seen *seen = context;

	seen->refusals++;
	snprintf(seen->syscall, sizeof seen->syscall, "%s", event->syscall);
	seen->argument = event->arguments[0];
	seen->errnum = event->errnum;
	return handled(seen);
}

static int see_network(void *context, const struct watch_network *event)
{
	struct seen *seen = context;

	seen->networks++;
	seen->network = *event;
	return handled(seen);
}

const struct watch_handlers seen_handlers = {
	.on_exec = see_exec, .on_refusal = see_refusal, .on_network = see_network,
};

struct watch_options guest_options;
int (*guest_on_gate)(void *context, const struct watch_network *event);
int (*guest_on_gated)(void *context, pid_t pid, const struct sockaddr *source, const struct sockaddr *target);

int (*guest_on_file)(void *context, const struct watch_file *event);
int (*guest_on_file_done)(void *context, const struct watch_file *event);
void (*guest_on_file_gone)(void *context, uint64_t id);

int guest_supervise(struct guest *guest, bool network_is_empty, struct seen *seen, int *ret_served)
{
	struct watch_handlers handlers = seen_handlers;
	struct watch_options options = guest_options;
	struct watch *watch;
	int listener_fd, status, r = 0;

	handlers.on_gate = guest_on_gate;
	handlers.on_gated = guest_on_gated;
	handlers.on_file = guest_on_file;
	handlers.on_file_done = guest_on_file_done;
	handlers.on_file_gone = guest_on_file_gone;
	options.network_is_empty = network_is_empty;
	if (!options.uid && !options.gid) {
		options.uid = geteuid();
		options.gid = getegid();
	}

	handlers.context = seen;
	*ret_served = 0;
	assert_int_equal(watch_new(&watch, guest->listener_fd, &options, &handlers, NULL), 0);
	assert_int_equal(watch_attend(watch, watch_fd(watch), &listener_fd), 0);
	close(guest->start_fd);
	/* A watch that blocks, or a caller left without an answer, ends the test here. */
	alarm(60);
	while (r != 1) {
		struct pollfd polled[] = { { .fd = listener_fd, .events = POLLIN },
					   { .fd = watch_fd(watch), .events = POLLIN } };

		assert_true(poll(polled, 2, -1) >= 1);
		r = watch_serve(watch, 16);
		if (r < 0)
			*ret_served = r;
	}
	assert_int_equal(waitpid(guest->pid, &status, 0), guest->pid);
	alarm(0);
	watch_free(watch);
	return status;
}

int guest_run(const int *calls, size_t count, int (*run)(void *argument), void *argument, struct seen *seen)
{
	struct guest guest = guest_start(calls, count, run, argument);
	int served, status = guest_supervise(&guest, true, seen, &served);

	assert_true(WIFEXITED(status));
	assert_int_equal(served, 0);
	return WEXITSTATUS(status);
}
