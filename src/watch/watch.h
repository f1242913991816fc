/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The seccomp-notify supervisor of atoll-box. It answers four kinds of notification:
 * refused calls (answered with their errno, reported), network calls (reported; connect is made on the caller's
 * behalf, connect.c), file calls where the policy has them mediated (judged, and made on the caller's behalf, files.c)
 * and execs (reported, then continued). No decision
 * here rests on memory that the sandbox can change: what is continued is harmless by topology or
 * mounts, what is refused is refused by number, and what is connected is a copy.
 */

#include "watch/call/events.h"

enum { WATCH_ENV_BYTES_MAX = 96 << 10 };
enum { WATCH_LEFT_OUT_MAX = 4096, WATCH_LEFT_OUT_BYTES_MAX = 256 << 10 };

struct watch;

/*
 * Takes listener_fd (SECCOMP_IOCTL_NOTIF_*), also on failure; sets the sync wake-up flag where the kernel has it.
 * Copies options and handlers.
 */
int watch_new(struct watch **ret_watch, int listener_fd, const struct watch_options *options,
	      const struct watch_handlers *handlers, struct err *err) MUST_USE;
void watch_free(struct watch *watch);
/*
 * When nothing more is served: ends the programs that are held at their start, and sees their end, for which their
 * parents and their namespace wait. Takes two seconds at most.
 */
void watch_end_held(struct watch *watch);

/* For epoll (borrowed): an epoll fd itself, over the listener and a timer. */
int watch_fd(const struct watch *watch);

/*
 * From now on the owner polls the listener itself, which it gets in *ret_listener_fd (borrowed), and calls
 * watch_serve() when it or watch_fd(), which no longer tells of it, is ready. Where files are mediated, watch_serve()
 * then also stays for some milliseconds, while calls follow upon one another and beside_fd (borrowed: whatever else the
 * owner waits for) is not readable. 0 or -errno.
 */
int watch_attend(struct watch *watch, int beside_fd, int *ret_listener_fd) MUST_USE;

/* The question that a file call waited for is answered: it is judged again, by on_file(). Negative as watch_serve(). */
int watch_file_retry(struct watch *watch, uint64_t id) MUST_USE;

/*
 * Sends the calls that wait back to their callers, to be made again (ERESTARTSYS): a caller that waits for our
 * answer can be killed, but not frozen. Only when every caller has been told to freeze, because the kernel
 * starts a call again only on the way through that; a program would see the number 512 otherwise.
 */
int watch_release_waiting(struct watch *watch) MUST_USE;

/* Whether they are told so by SIGSTOP, and not by a freezer. */
void watch_set_signalled(struct watch *watch, bool is_signalled);

/*
 * Serves at most max notifications without blocking (but see watch_attend()). 0; 1: nobody lives under the filter any
 * more (take the fd out of epoll, it stays readable); or the negative value a handler returned (that call was refused),
 * or -errno of the listener. Reads the callers' memory: needs what process_vm_readv(2) asks for, which the creator of
 * the sandbox's user namespace has, as long as it did not enter a Landlock domain of its own afterwards.
 */
int watch_serve(struct watch *watch, unsigned max) MUST_USE;

/*
 * The answer to an exec that had to wait (is_later). 0: it was given, or the caller is gone, and then the token is
 * over; negative: a handler's.
 */
int watch_answer_exec(struct watch *watch, uint64_t id, pid_t pid, const struct watch_exec_answer *answer) MUST_USE;

/*
 * The variables that an exec which still waits gives to its program: *ret_env is NAME=VALUE…, NULL-terminated, owned
 * (strv_free()). -E2BIG beyond WATCH_ENV_BYTES_MAX; -EFAULT, -ESRCH … as the caller's memory has it.
 */
int watch_exec_environment(const struct watch_exec *exec, char ***ret_env) MUST_USE;

/*
 * The arguments of an exec which still waits that argv does not have, and the last that it has, which may be cut, as a
 * whole: NULL-terminated, owned (strv_free()). They are what they are now. -E2BIG beyond WATCH_LEFT_OUT_MAX or
 * WATCH_LEFT_OUT_BYTES_MAX; -EFAULT, -ESRCH … as the caller's memory has it.
 */
int watch_exec_left_out(const struct watch_exec *exec, char ***ret_argv) MUST_USE;

/* Whether the caller of a notification still waits for its answer. */
bool watch_is_awaited(const struct watch *watch, uint64_t id);

/* Sends it back to make its call again; only as in watch_release_waiting(). */
int watch_restart_exec(struct watch *watch, uint64_t id, pid_t pid) MUST_USE;
