/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a file again and again: the stopwatch of the section mediation, small enough to weigh nothing in what it
 * measures. Static, so that it starts with no opens of its own.
 *
 *   opens time COUNT FILE      prints the median of COUNT opens in ns
 *   opens many COUNT DIRECTORY makes COUNT files in DIRECTORY by opening them; prints the ns of all
 *   opens floor COUNT FILE     what the kernel itself costs: prints the medians of COUNT opens that a supervisor lets
 *                              go on at once, and that it makes itself and hands over, knowing what to open
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SECCOMP_IOCTL_NOTIF_SET_FLAGS
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS SECCOMP_IOW(4, __u64)
#endif

static void die(const char *what)
{
	fprintf(stderr, "opens: %s: %s\n", what, strerror(errno));
	exit(125);
}

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *times, size_t count)
{
	qsort(times, count, sizeof *times, by_value);
	return times[count / 2];
}

static void open_often(uint64_t *times, size_t count, const char *path)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t begin = now_ns();
		int fd = open(path, O_RDONLY);

		times[i] = now_ns() - begin;
		if (fd < 0)
			die(path);
		close(fd);
	}
}

static void open_many(size_t count, const char *directory)
{
	uint64_t begin = now_ns();

	for (size_t i = 0; i < count; i++) {
		char path[256];
		int fd;

		snprintf(path, sizeof path, "%s/%zu", directory, i);
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (fd < 0 || close(fd) < 0)
			die(path);
	}
	printf("%llu\n", (unsigned long long)(now_ns() - begin));
}

/* ---- the floor ---- */

static int load_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		/* musl's open() is this call on x86_64, and openat() elsewhere. */
#ifdef SYS_open
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 1, 0),
#else
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 1, 0),
#endif
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog program = { .len = sizeof code / sizeof *code, .filter = code };
	long fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		die("no_new_privs");
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     SECCOMP_FILTER_FLAG_NEW_LISTENER | 1UL << 5 /* WAIT_KILLABLE_RECV */, &program);
	if (fd < 0)
		die("seccomp");
	return (int)fd;
}

static void send_fd(int socket_fd, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof control };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(header), &fd, sizeof fd);
	if (sendmsg(socket_fd, &message, 0) < 0)
		die("sendmsg");
}

static int receive_fd(int socket_fd)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof control };
	int fd;

	if (recvmsg(socket_fd, &message, 0) <= 0 || !CMSG_FIRSTHDR(&message))
		die("recvmsg");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
	return fd;
}

static void answer(int listener_fd, uint64_t id, const char *made)
{
	struct seccomp_notif_addfd added = { .id = id };
	struct seccomp_notif_resp response = { .id = id };
	int fd = made ? open(made, O_RDONLY | O_CLOEXEC) : -1;

	if (made) {
		added.srcfd = (uint32_t)fd;
		response.val = ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_ADDFD, &added);
	} else {
		response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	}
	if (response.val < 0 || ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &response) < 0)
		die("an answer");
	if (fd >= 0)
		close(fd);
}

/* As atoll answers: polled, woken on the caller's CPU, ADDFD and then SEND. made: NULL lets it go on. */
static uint64_t supervise(size_t count, const char *path, const char *made)
{
	uint64_t *times = mmap(NULL, count * sizeof *times, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int sockets[2], listener_fd;
	pid_t pid;

	if (times == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) < 0)
		die("memory");
	pid = fork();
	if (pid == 0) {
		listener_fd = load_filter();
		send_fd(sockets[1], listener_fd);
		close(listener_fd);
		open_often(times, count, path);
		_exit(0);
	}
	listener_fd = receive_fd(sockets[0]);
	ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_SET_FLAGS, 1UL /* SYNC_WAKE_UP */);
	for (size_t i = 0; i < count; i++) {
		struct pollfd polled = { .fd = listener_fd, .events = POLLIN };
		struct seccomp_notif request = { 0 };

		if (poll(&polled, 1, 10000) != 1 || ioctl(listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
			die("a notification");
		answer(listener_fd, request.id, made);
	}
	waitpid(pid, NULL, 0);
	close(listener_fd);
	return median(times, count);
}

int main(int argc, char **argv)
{
	size_t count = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
	uint64_t *times = calloc(count + 1, sizeof *times);

	if (!count || !times) {
		fprintf(stderr, "opens: usage: opens time|many|floor COUNT PATH\n");
		return 125;
	}
	if (strcmp(argv[1], "time") == 0) {
		open_often(times, count, argv[3]);
		printf("%llu\n", (unsigned long long)median(times, count));
	} else if (strcmp(argv[1], "many") == 0) {
		open_many(count, argv[3]);
	} else {
		printf("%llu %llu\n", (unsigned long long)supervise(count, argv[3], NULL),
		       (unsigned long long)supervise(count, argv[3], argv[3]));
	}
	return 0;
}
