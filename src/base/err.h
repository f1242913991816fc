/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one error value of atoll: what failed, in which stage, why, and what to do about it.
 * It has a fixed size below PIPE_BUF and no pointers, so that a cloned child can send it to its
 * parent in one atomic write. Used by every program; it never prints and never exits.
 */

#include <stdarg.h>
#include <stdbool.h>

enum {
	ERR_STAGE_SIZE = 24,
	ERR_MESSAGE_SIZE = 480,
	ERR_HINT_SIZE = 320,
};

/* What kind of failure this is; it decides the exit status (see err_exit_status). */
enum err_code {
	ERR_NONE = 0,
	ERR_INTERNAL,      /* a system call or an allocation failed where it should not */
	ERR_USAGE,         /* the command line or a file that the user wrote is wrong */
	ERR_POLICY,        /* the policy is wrong, or demands what cannot be enforced yet */
	ERR_WALL,          /* a required wall of the boundary cannot be built here */
	ERR_STATE,         /* a state, cache or run-time directory is missing, full or read-only */
	ERR_NOT_FOUND,     /* the named program, session or file does not exist */
	ERR_NOT_RUNNABLE,  /* the program exists but cannot be executed */
	ERR_CODE_COUNT,
};

struct err {
	enum err_code code;
	int errnum;                      /* positive errno, or 0 where none applies */
	char stage[ERR_STAGE_SIZE];      /* the wall or step: "landlock", "policy", "cgroup", … */
	char message[ERR_MESSAGE_SIZE];  /* one line, without a trailing full stop or newline */
	char hint[ERR_HINT_SIZE];        /* what the user can do; may be empty */
};

/*
 * Fills *err and returns -errnum (or -EINVAL where errnum is 0), so that a failing function can
 * end with `return err_set(…)`. The message is cut at its buffer's end, control bytes are
 * replaced by '?'. err may be NULL: then only the return value is made.
 * Async-signal-safe as long as the format uses only %s %d %u %c %zu %%, which is all it knows.
 */
int err_set(struct err *err, enum err_code code, int errnum, const char *stage,
	    const char *format, ...) __attribute__((format(printf, 5, 6)));

enum { ERR_QUOTE_SIZE = 256 };

/*
 * A path, or another text that nobody has checked, as a message can have it: escaped, and cut to what fits into out,
 * which is returned.
 */
const char *err_quote(char out[ERR_QUOTE_SIZE], const char *text);

/* Fills *err: a program of atoll's cannot be started, and what can be done about this (positive) errno. -errnum. */
int err_not_started(const char *stage, const char *program, int errnum, struct err *err);

/* Sets or replaces the hint of *err (NULL err: nothing). Same formats as err_set(). */
void err_hint(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * What to do about it: the hint, but where what failed is not what is amiss. Too few descriptors fail wherever they
 * run out. "": nothing.
 */
const char *err_advice(const struct err *err);

/* What stands between the message and err_advice(): a question ends by itself. "" where there is no advice. */
const char *err_joint(const struct err *err);

/* A static name for an errno ("EACCES"), or "errno" for one that is not in the table. */
const char *err_errno_name(int errnum);

/* The exit status of `atoll run` for this error: 125, 126 or 127 (design: §6). */
int err_exit_status(const struct err *err);

/*
 * The bounded formatter behind err_set(): %s %d %u %zu %c %x %% only, no allocation, no locale,
 * async-signal-safe. Always terminates out. Returns the length written (cut to size - 1).
 */
unsigned err_vformat(char *out, unsigned size, const char *format, va_list args);
