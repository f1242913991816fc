/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/processes.h"

#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "os/clock.h"

/*
 * A pidfd is readable when its process has ended and hangs up when it was reaped; only then does the kernel
 * tell the status to somebody who is not the parent. Kernels before 6.15 do not: there the end is told
 * without one.
 */

struct process {
	struct processes *owner;
	struct process *next;
	pid_t pid;
	int fd;
	uint64_t started_ns;
	struct loop_source source;
};

/* struct pidfd_info of <linux/pidfd.h>, first version; Debian 12's headers are older. */
struct exit_info {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
	int32_t exit_code;
};

enum { INFO_EXIT = 1 << 3 };

#define GET_EXIT_INFO _IOWR(0xff, 11, struct exit_info)

static struct process **bucket_of(struct processes *processes, pid_t pid)
{
	return &processes->buckets[(unsigned)pid % PROCESSES_BUCKETS];
}

static void forget(struct process *process)
{
	struct processes *owner = process->owner;
	struct process **at = bucket_of(owner, process->pid);

	while (*at != process)
		at = &(*at)->next;
	*at = process->next;
	owner->count--;
	loop_remove(owner->loop, &process->source);
	close_fd(&process->fd);
	free(process);
}

/* Whether this kernel tells; the end is filled as far as it is known. */
static bool ask_status(const struct process *process, struct process_end *end)
{
	struct exit_info info = { .mask = INFO_EXIT };

	if (ioctl(process->fd, GET_EXIT_INFO, &info) < 0)
		return errno != ENOTTY && errno != EINVAL;
	if (!(info.mask & INFO_EXIT))
		return false;
	end->has_status = true;
	end->code = WIFEXITED(info.exit_code) ? WEXITSTATUS(info.exit_code) : -1;
	end->signal_number = WIFSIGNALED(info.exit_code) ? WTERMSIG(info.exit_code) : 0;
	return true;
}

static int tell_end(struct process *process)
{
	struct processes *owner = process->owner;
	struct process_end end = { .pid = process->pid, .code = -1 };

	(void)ask_status(process, &end);
	end.wall_us = (clock_monotonic_ns() - process->started_ns) / 1000;
	forget(process);
	return owner->on_end(owner->context, &end);
}

static int has_ended(void *context, uint32_t events)
{
	struct process *process = context;
	struct process_end ignored;

	if (events & EPOLLHUP || !process->source.events)
		return tell_end(process);
	/* Ended but not reaped: wait for the hang-up, if this kernel knows it. */
	if (ask_status(process, &ignored))
		return tell_end(process);
	return loop_change(process->owner->loop, &process->source, 0);
}

int processes_follow(struct processes *processes, pid_t pid)
{
	struct process **bucket = bucket_of(processes, pid), *process;
	int r;

	for (process = *bucket; process; process = process->next)
		if (process->pid == pid)
			return 0;
	if (processes->count == PROCESSES_MAX)
		return 0;
	process = calloc(1, sizeof *process);
	if (!process)
		return -ENOMEM;
	process->fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (process->fd < 0) { /* a thread that is not its leader, or no fd left: its end will not be told */
		free(process);
		return 0;
	}
	*process = (struct process){ .owner = processes,
				     .next = *bucket,
				     .pid = pid,
				     .fd = process->fd,
				     .started_ns = clock_monotonic_ns() };
	process->source = (struct loop_source){
		.fd = process->fd, .events = EPOLLIN, .ready = has_ended, .context = process
	};
	*bucket = process;
	processes->count++;
	if (processes->count > processes->peak)
		processes->peak = processes->count;
	r = loop_add(processes->loop, &process->source);
	if (r < 0)
		forget(process);
	return r;
}

int processes_done(struct processes *processes)
{
	int r = 0;

	for (size_t i = 0; i < PROCESSES_BUCKETS; i++)
		while (processes->buckets[i]) {
			int told = tell_end(processes->buckets[i]);

			r = r < 0 ? r : told;
		}
	return r;
}
