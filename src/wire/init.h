/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages between atoll-box and atoll-init (PID 1 inside). atoll-init is trusted code in a hostile
 * place: the box checks all that it says and believes nothing that would widen anything.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/frame.h"

enum { INIT_WIRE_FD = 3, INIT_RULES_FD }; /* in atoll-init; close-on-exec there */

enum init_message {
	/* box -> init */
	INIT_SPAWN = 1,          /* struct init_spawn; fds: 0, 1, 2 (with INIT_SPAWN_TTY: see its flags) */
	INIT_SIGNAL,             /* u32 id, u32 signal: to the command's process group */
	INIT_CONTINUE,           /* u32 id: SIGCONT after a stop */
	/* init -> box */
	INIT_READY = 64,         /* fds: the seccomp listener, the root of what is inside (O_PATH), and where there is
				    Landlock its rules */
	INIT_STARTED,            /* u32 id, u32 inner pid; fd: pty master with INIT_SPAWN_TTY */
	INIT_FAILED,             /* u32 id, u32 errno, u32 enum init_failure */
	INIT_EXITED,             /* struct init_exit */
	INIT_STOPPED,            /* u32 id, u32 signal: the command's process group stopped (job control) */
	INIT_BROKEN,             /* u32 errno, string: init could not build its own wall; it exits */
};

/*
 * With INIT_SPAWN_TTY the streams are on a new pty, but for those that an INIT_SPAWN_PIPE_… bit names: their fds come
 * with the message, in the order 0, 1, 2. INIT_SPAWN_BACKGROUND leaves the pty's foreground empty, so that
 * the first read from it stops the command (SIGTTIN, INIT_STOPPED) until INIT_CONTINUE: the box takes the user's
 * keyboard only from then on (`atoll run -- git log | less`). The sandbox ends with an INIT_SPAWN_LAST: when init has
 * told its end it goes itself, and the box, which ends the sandbox all the same, need not wake it to do so.
 */
enum {
	INIT_SPAWN_TTY = 1 << 0,
	INIT_SPAWN_PIPE_IN = 1 << 1,
	INIT_SPAWN_PIPE_OUT = 1 << 2,
	INIT_SPAWN_PIPE_ERR = 1 << 3,
	INIT_SPAWN_BACKGROUND = 1 << 4,
	INIT_SPAWN_LAST = 1 << 5,
};

enum init_failure { INIT_FAILED_EXEC, INIT_FAILED_CWD, INIT_FAILED_SETUP };

struct init_spawn {
	uint32_t id;             /* chosen by the box; unique in the session */
	uint32_t flags;
	uint32_t umask;
	uint16_t rows, columns;  /* INIT_SPAWN_TTY */
	const char *cwd;
	char **argv;             /* argv[0] without a slash is looked for in PATH of env, inside */
	char **env;              /* the whole environment */
};

struct init_exit {
	uint32_t id;
	int32_t code;            /* exit code, or -1 */
	int32_t signal;          /* signal number, or 0 */
	uint64_t user_us, system_us, max_rss_bytes;
};

/*
 * put: the whole frame into out, which is reset; 0, or the buffer's error. get: 0, or -EBADMSG (also without cwd or
 * program) or -ENOMEM, which leave *ret_spawn untouched. argv and env arrays are owned by the caller (free()), the
 * strings are borrowed from frame.
 */
int init_spawn_put(struct buf *out, const struct init_spawn *spawn) MUST_USE;
int init_spawn_get(struct frame *frame, struct init_spawn *ret_spawn) MUST_USE;

/* The same; -EBADMSG, and all fields zero, for a code that is not -1 to 255 or a signal above 64. */
int init_exit_put(struct buf *out, const struct init_exit *event) MUST_USE;
int init_exit_get(struct frame *frame, struct init_exit *ret_event) MUST_USE;
