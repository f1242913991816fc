/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/file/wait.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/identity.h"
#include "watch/call/remote.h"
#include "watch/file/path.h"

enum { LOOK_MS = 50 };

int file_wait_init(struct file_wait *wait, int epoll_fd, const struct reply *reply,
		   const struct watch_handlers *handlers)
{
	struct epoll_event event = { .events = EPOLLIN };

	*wait = (struct file_wait){ .reply = reply, .handlers = handlers };
	wait->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (wait->timer_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, wait->timer_fd, &event) < 0)
		return -errno;
	return 0;
}

static void end_child(struct file_waiting *waiting)
{
	if (!waiting->child)
		return;
	kill(waiting->child, SIGKILL);
	while (waitpid(waiting->child, NULL, 0) < 0 && errno == EINTR)
		;
	waiting->child = 0;
}

void file_wait_done(struct file_wait *wait)
{
	for (size_t i = 0; i < wait->count; i++)
		end_child(&wait->waiting[i]);
	close_fd(&wait->timer_fd);
	free(wait->waiting);
	wait->waiting = NULL;
	wait->count = 0;
}

static void set_timer(const struct file_wait *wait)
{
	long interval = wait->count ? LOOK_MS * 1000000L : 0;
	struct itimerspec when = { .it_value.tv_nsec = interval, .it_interval.tv_nsec = interval };

	timerfd_settime(wait->timer_fd, 0, &when, NULL);
}

static void drop(struct file_wait *wait, size_t index)
{
	end_child(&wait->waiting[index]);
	wait->waiting[index] = wait->waiting[--wait->count];
	if (!wait->count)
		set_timer(wait);
}

/* What waited for an answer needs none any more. */
static void abandon(struct file_wait *wait, size_t index)
{
	const struct file_waiting *waiting = &wait->waiting[index];

	if (!waiting->is_opening)
		wait->handlers->on_file_gone(wait->handlers->context, waiting->id);
	drop(wait, index);
}

/* NULL: too many wait, or no memory. */
static struct file_waiting *add(struct file_wait *wait, uint64_t id, pid_t pid)
{
	struct file_waiting *waiting;

	if (!wait->waiting)
		wait->waiting = calloc(WATCH_FILES_WAITING_MAX, sizeof *wait->waiting);
	if (!wait->waiting || wait->count == WATCH_FILES_WAITING_MAX)
		return NULL;
	waiting = &wait->waiting[wait->count++];
	*waiting = (struct file_waiting){ .id = id, .pid = pid };
	if (wait->count == 1)
		set_timer(wait);
	return waiting;
}

/* The death signal comes after the change of ids, which clears it; an end before it the parent's id alone tells. */
static bool bind_to(pid_t box)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == box;
}

/* In the child, which ends with the box and holds nothing up but itself. */
static _Noreturn void open_and_answer(const struct file_wait *wait, const struct file_wait_open *open, pid_t box)
{
	char link[FILE_LINK_SIZE];
	sigset_t all;
	int fd, r;

	/* Those of the box's terminal are the box's to hear. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	if (fd_keep_only((const int[]){ wait->reply->listener_fd, open->object_fd }, 2) < 0 ||
	    identity_take(open->uid, open->gid) < 0 || !bind_to(box))
		_exit(1);
	fd = fd_open_at(AT_FDCWD, file_link(open->object_fd, link), open->flags, 0);
	r = fd < 0 ? reply_error(wait->reply, open->id, -fd) : reply_fd(wait->reply, open->id, fd, open->is_cloexec);
	_exit(r < 0);
}

int file_wait_add_open(struct file_wait *wait, const struct file_wait_open *open)
{
	struct file_waiting *waiting = add(wait, open->id, open->pid);
	pid_t box = getpid();

	if (!waiting)
		return -ENFILE;
	waiting->is_opening = true;
	waiting->child = fork();
	if (waiting->child == 0)
		open_and_answer(wait, open, box);
	if (waiting->child < 0) {
		waiting->child = 0;
		drop(wait, wait->count - 1);
		return -ENFILE;
	}
	return 0;
}

int file_wait_add_again(struct file_wait *wait, const struct seccomp_notif *request, bool is_patient)
{
	struct file_waiting *waiting = add(wait, request->id, (pid_t)request->pid);

	if (!waiting)
		return -ENFILE;
	waiting->request = *request;
	waiting->is_patient = is_patient;
	return 0;
}

bool file_wait_take(struct file_wait *wait, uint64_t id, struct seccomp_notif *ret_request)
{
	for (size_t i = 0; i < wait->count; i++)
		if (wait->waiting[i].id == id && !wait->waiting[i].is_opening) {
			*ret_request = wait->waiting[i].request;
			drop(wait, i);
			return true;
		}
	return false;
}

/* 1: it waits no longer. */
static int look_at(struct file_wait *wait, struct file_waiting *waiting)
{
	int status;

	if (waiting->child && waitpid(waiting->child, &status, WNOHANG) == waiting->child) {
		waiting->child = 0;
		/* It could not even answer. */
		return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 :
			       reply_error(wait->reply, waiting->id, EIO) < 0 ? -EIO : 1;
	}
	if (reply_is_awaited(wait->reply, waiting->id) == 0)
		return 1;
	if (waiting->is_patient || !remote_is_interrupted(waiting->pid))
		return 0;
	end_child(waiting);
	return reply_error(wait->reply, waiting->id, EINTR) < 0 ? -EIO : 1;
}

int file_wait_look(struct file_wait *wait)
{
	uint64_t expired;
	int r = 0;

	if (!wait->count)
		return 0;
	(void)!read(wait->timer_fd, &expired, sizeof expired);
	for (size_t i = wait->count; r >= 0 && i-- > 0;) {
		r = look_at(wait, &wait->waiting[i]);
		if (r == 1)
			abandon(wait, i);
	}
	return r < 0 ? r : 0;
}

int file_wait_release(struct file_wait *wait)
{
	int result = 0;

	while (wait->count) {
		struct file_waiting *waiting = &wait->waiting[wait->count - 1];
		int r;

		end_child(waiting);
		r = reply_restart(wait->reply, waiting->id, waiting->pid);
		result = r < 0 ? r : result;
		abandon(wait, wait->count - 1);
	}
	return result;
}
