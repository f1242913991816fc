/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages on a session's control socket, between `atoll exec|ps|stop|snapshot`, atoll-stage and atoll-box. The
 * box accepts the session's owner and root only (SO_PEERCRED). One connection carries one exec, one question or the
 * records of one review.
 */

#include <stdint.h>

#include "wire/frame.h"

enum control_message {
	/* client -> box */
	CONTROL_EXEC = 1,        /* struct control_exec; fds: 0, 1, 2 */
	CONTROL_SIGNAL,          /* u32 signal: to the command of this connection */
	CONTROL_CONTINUE,        /* SIGCONT after CONTROL_STOPPED */
	CONTROL_STATUS,          /* -> CONTROL_STATUS_JSON */
	CONTROL_STOP,            /* u32 grace_ms: SIGTERM to all commands, then the end; -> CONTROL_DONE */
	CONTROL_FREEZE,          /* string what for: stops every process inside; -> CONTROL_DONE 0 when all are */
	CONTROL_THAW,            /* -> CONTROL_DONE 0: they stood still until now; 1: they did not */
	CONTROL_REVIEW,          /* session/review-log.h: a record; -> CONTROL_DONE once it is written */
	CONTROL_POLICY,          /* fd: a snapshot, sealed: the network goes by it; -> CONTROL_CHANGED */
	CONTROL_ASKS,            /* u64 after, u32 asking_look; -> CONTROL_QUESTIONS, with FOLLOW once there is one */
	CONTROL_ANSWER,          /* struct asking_reply (wire/asking.h); -> CONTROL_ANSWERED */
	CONTROL_GRANTS,          /* u32 after which number; -> CONTROL_GRANTED */
	CONTROL_REVOKE,          /* u32 number of a grant; -> CONTROL_DONE */
	CONTROL_TOKEN,           /* as TOKEN_HOLDS (wire/token.h): a token was presented; -> CONTROL_DONE, then EXEC */
	/* box -> client */
	CONTROL_STARTED = 64,    /* fd: the pty master where a terminal was asked for */
	CONTROL_EXITED,          /* u32 exit status as `atoll run` has it, u32 errno (not started, or output lost) or 0,
				    string ended, or with lost output the stream: "stdout", "stderr" */
	CONTROL_STOPPED,         /* u32 signal */
	CONTROL_STATUS_JSON,     /* bytes */
	CONTROL_DONE,            /* u32 0; of CONTROL_THAW see there */
	CONTROL_ERROR,           /* bytes: struct err */
	CONTROL_CHANGED,         /* u32 connections that the new policy ended */
	CONTROL_QUESTIONS,       /* u64 to ask after the next time, then struct asking_question: all that changed */
	CONTROL_ANSWERED,        /* u32 number of the grant that came of it; 0: none */
	CONTROL_GRANTED,         /* struct asking_grant, as many as fit; none: these were all */
};

enum { CONTROL_EXEC_TTY = 1 << 0 };

/*
 * A freeze belongs to its connection. It ends with CONTROL_THAW, with the connection, when the sandbox is stopped, or
 * after this long, so that no client can hold a sandbox for ever.
 */
enum { CONTROL_FREEZE_MAX_MS = 60000, CONTROL_FREEZE_NAME_MAX = 256 };

struct control_exec {
	uint32_t flags;
	uint16_t rows, columns;
	const char *cwd;         /* NULL: the project */
	char **argv;
	char **env;              /* the caller's NAME=value, filtered by the policy's env.pass */
	char **env_added;        /* -e NAME=value: set whatever the policy passes; may be NULL when put */
};

/*
 * The whole frame into out, which is reset. 0, or the buffer's error. The descriptors go beside it, by frame_send().
 */
int control_exec_put(struct buf *out, const struct control_exec *exec) MUST_USE;
/*
 * 0: the arrays are the caller's (free()), the strings are borrowed from frame, and env_added is an array even where
 * the sender had none. -EBADMSG for a malformed frame or one without a program, -ENOMEM: *ret_exec is untouched. flags,
 * cwd and the size of the terminal are the client's words and not checked here.
 */
int control_exec_get(struct frame *frame, struct control_exec *ret_exec) MUST_USE;
