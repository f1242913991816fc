/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "os/fd.h"

enum { TIMEOUT_MS = 20000, NOBODY = 65534 };

static const char *default_env[] = { "PATH=/usr/bin:/bin", "TERM=dumb", NULL };

static _Noreturn void become_init(int wire_fd, int program_fd, const char *profile, unsigned oddities)
{
	const char *argv[] = { "atoll-init", profile, NULL };
	int null_fd = open("/dev/null", O_RDWR);

	/* The jail's second process, which lets go of the old root. */
	if (!(oddities & PEER_WITHOUT_SECOND) && fork() == 0)
		_exit(oddities & PEER_FAILED_SECOND ? 1 : 0);

	if (geteuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0))
		_exit(90);
	if (!(oddities & PEER_WITH_PRIVILEGES))
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* What a careless caller leaves behind must not reach the commands. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	for (int fd = 0; fd < 3; fd++)
		dup2(null_fd, fd);
	wire_fd = fcntl(wire_fd, F_DUPFD, 10);
	program_fd = fcntl(program_fd, F_DUPFD_CLOEXEC, 11);
	dup2(wire_fd, INIT_WIRE_FD);
	syscall(SYS_execveat, program_fd, "", argv, &argv[2], AT_EMPTY_PATH);
	_exit(91);
}

struct peer *peer_launch(const char *profile, unsigned oddities)
{
	struct peer *peer = calloc(1, sizeof *peer);
	const char *program = getenv("ATOLL_INIT");
	int sockets[2], program_fd;
	unsigned long flags = CLONE_NEWPID | SIGCHLD | (geteuid() ? CLONE_NEWUSER : 0);

	assert_non_null(peer);
	assert_non_null(program);
	program_fd = open(program, O_PATH | O_CLOEXEC);
	assert_true(program_fd >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
	peer->pid = (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
	assert_true(peer->pid >= 0);
	if (peer->pid == 0)
		become_init(sockets[1], program_fd, profile, oddities);
	close(sockets[1]);
	close(program_fd);
	peer->wire_fd = sockets[0];
	return peer;
}

static int see_exec(void *context, const struct watch_exec *event, struct watch_exec_answer *answer)
{
	struct peer *peer = context;

	peer->execs++;
	snprintf(peer->last_exe, sizeof peer->last_exe, "%s", event->exe);
	return 0;
}

static int see_refusal(void *context, const struct watch_refusal *event)
{
	return 0;
}

static int see_network(void *context, const struct watch_network *event)
{
	return 0;
}

struct peer *peer_start(void)
{
	struct peer *peer = peer_launch("strict", 0);
	struct message message = peer_expect(peer, INIT_READY, 0);
	struct watch_handlers handlers = {
		.on_exec = see_exec, .on_refusal = see_refusal, .on_network = see_network, .context = peer,
	};
	struct watch_options options = { .network_is_empty = true, .uid = geteuid(), .gid = getegid(),
					 .root_fd = FD_NONE };

	assert_true(message.fd >= 0);
	assert_int_equal(watch_new(&peer->watch, message.fd, &options, &handlers, NULL), 0);
	return peer;
}

int peer_end(struct peer *peer)
{
	int status;

	close_fd(&peer->wire_fd);
	watch_free(peer->watch);
	alarm(20);
	assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
	alarm(0);
	free(peer);
	return status;
}

static void decode(struct frame *frame, struct message *message)
{
	const char *wall;

	message->type = frame->type;
	switch (frame->type) {
	case INIT_READY:
		break;
	case INIT_EXITED:
		assert_int_equal(init_exit_get(frame, &message->exit), 0);
		message->id = message->exit.id;
		break;
	case INIT_BROKEN:
		message->value = frame_get_u32(frame);
		wall = frame_get_string(frame);
		snprintf(message->wall, sizeof message->wall, "%s", wall ? wall : "");
		break;
	default:
		message->id = frame_get_u32(frame);
		message->value = frame_get_u32(frame);
		if (frame->type == INIT_FAILED)
			message->failure = frame_get_u32(frame);
	}
	assert_int_equal(frame_finish(frame), 0);
}

static struct message receive(struct peer *peer)
{
	struct message message = { .fd = FD_NONE };
	uint8_t bytes[4096];
	struct frame frame;
	int fds[2] = { FD_NONE, FD_NONE };
	size_t fd_count;
	ssize_t n = fd_receive_message(peer->wire_fd, bytes, sizeof bytes, fds, ARRAY_SIZE(fds), &fd_count);
	struct stat root, ours;

	if (n == -ECONNRESET)
		n = 0;
	assert_true(n >= 0);
	if (n == 0)
		return message;
	assert_int_equal(frame_open(&frame, bytes, (size_t)n), 0);
	decode(&frame, &message);
	message.fd = fds[0];
	/* The second one that READY brings: the root, to find paths by. */
	assert_int_equal(fds[1] >= 0, message.type == INIT_READY);
	if (fds[1] >= 0) {
		assert_int_equal(fcntl(fds[1], F_GETFL) & O_PATH, O_PATH);
		assert_int_equal(fstat(fds[1], &root) | stat("/", &ours), 0);
		assert_int_equal(root.st_ino, ours.st_ino);
		close(fds[1]);
	}
	return message;
}

struct message peer_next(struct peer *peer)
{
	for (;;) {
		struct pollfd polled[] = {
			{ .fd = peer->wire_fd, .events = POLLIN },
			{ .fd = peer->watch ? watch_fd(peer->watch) : FD_NONE, .events = POLLIN },
		};

		if (poll(polled, 2, TIMEOUT_MS) <= 0)
			fail_msg("nothing came in time");
		if (polled[1].revents)
			assert_true(watch_serve(peer->watch, 8) >= 0);
		if (polled[0].revents)
			return receive(peer);
	}
}

struct message peer_expect(struct peer *peer, int type, uint32_t id)
{
	struct message message = peer_next(peer);

	assert_int_equal(message.type, type);
	assert_int_equal(message.id, id);
	return message;
}

void peer_send_raw(struct peer *peer, const void *bytes, size_t size, const int *fds, size_t fd_count)
{
	assert_int_equal(fd_send_message(peer->wire_fd, bytes, size, fds, fd_count), size);
}

void peer_send_numbers(struct peer *peer, uint16_t type, const uint32_t *numbers, size_t count)
{
	uint8_t memory[256];
	struct buf out;

	buf_init_fixed(&out, memory, sizeof memory);
	frame_begin(&out, type);
	for (size_t i = 0; i < count; i++)
		frame_put_u32(&out, numbers[i]);
	assert_int_equal(frame_end(&out), 0);
	peer_send_raw(peer, out.bytes, out.size, NULL, 0);
}

struct init_spawn peer_plan(uint32_t id, const char *const *argv)
{
	return (struct init_spawn){
		.id = id, .umask = 022, .rows = 24, .columns = 80, .cwd = "/",
		.argv = (char **)argv, .env = (char **)default_env,
	};
}

void peer_spawn_some(struct peer *peer, const struct init_spawn *spawn, const int *fds, size_t fd_count)
{
	cleanup_buf struct buf out;

	buf_init(&out, FRAME_MESSAGE_MAX);
	assert_int_equal(init_spawn_put(&out, spawn), 0);
	peer_send_raw(peer, out.bytes, out.size, fds, fd_count);
}

void peer_spawn_full(struct peer *peer, const struct init_spawn *spawn, const int *fds)
{
	peer_spawn_some(peer, spawn, fds, 3);
}

void peer_spawn(struct peer *peer, uint32_t id, const char *const *argv, int output_fd)
{
	struct init_spawn spawn = peer_plan(id, argv);
	cleanup_fd int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	int output = output_fd < 0 ? null_fd : output_fd;

	assert_true(null_fd >= 0);
	peer_spawn_full(peer, &spawn, (int[]){ null_fd, output, output });
}

struct init_exit peer_run(struct peer *peer, const struct init_spawn *spawn, char *output, size_t size)
{
	cleanup_fd int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	cleanup_fd int read_fd = FD_NONE;
	struct message message;
	size_t used = 0;
	int pipes[2];
	ssize_t n;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	read_fd = pipes[0];
	peer_spawn_full(peer, spawn, (int[]){ null_fd, pipes[1], pipes[1] });
	close(pipes[1]);
	peer_expect(peer, INIT_STARTED, spawn->id);
	message = peer_expect(peer, INIT_EXITED, spawn->id);
	/* What the command wrote is there; descendants may hold the pipe for longer. */
	assert_int_equal(fd_set_nonblocking(read_fd, true), 0);
	while (used + 1 < size && (n = read(read_fd, output + used, size - 1 - used)) > 0)
		used += (size_t)n;
	output[used] = 0;
	return message.exit;
}

struct init_exit peer_run_shell(struct peer *peer, const char *script, char *output, size_t size)
{
	static uint32_t id = 100000;
	struct init_spawn spawn = peer_plan(id++, (const char *[]){ "sh", "-c", script, NULL });

	return peer_run(peer, &spawn, output, size);
}
