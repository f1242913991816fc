/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The files that an exec leads to: what a path or an open file of the caller is, what a script names in its first
 * line, and what a process executes. Nothing of it is believed longer than nobody can change it: see gate.c. Run
 * by atoll-box.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct watch_exec;

enum {
	EXEC_LINE_SIZE = 256,        /* of a script that the kernel looks at (BINPRM_BUF_SIZE) */
	EXEC_FILES_MAX = 6,          /* a script, and what interprets what interprets … it: Linux allows five */
};

struct exec_file {
	int fd;                      /* owned, O_PATH */
	struct stat st;
	char path[PATH_MAX];         /* real, inside; of an unnamed one what the kernel calls it */
	bool is_text;                /* no binary, and names no interpreter: a shell may run it all the same */
	bool is_unnamed;             /* given as an open file, or removed */
	char line[EXEC_LINE_SIZE + 1]; /* the path in the first line of a script, NUL, its argument; "": no script */
	const char *argument;        /* in line; NULL: none */
};

#define EXEC_FILE_NONE { .fd = FD_NONE }

/* Closes it; nothing happens where it was never opened. */
void exec_file_done(struct exec_file *file);

/* A link below /proc/PID ("exe", "cwd") of a caller that stands still. -errno. */
int exec_caller_link(pid_t pid, const char *name, char out[PATH_MAX]) MUST_USE;

/*
 * What the caller, which waits, asks for. -ENOENT, -ENOTDIR, -EACCES (no regular file): the exec would fail so.
 * -EOPNOTSUPP: a path that means something else to us (/proc/self); another error: it cannot be looked at.
 */
int exec_file_open(struct exec_file *file, const struct watch_exec *exec) MUST_USE;

/* The same without a look into it: line, argument and is_text are as they were. */
int exec_file_find(struct exec_file *file, const struct watch_exec *exec) MUST_USE;

/* What interprets the script, as the caller's kernel call would find it. As above. */
int exec_file_open_interpreter(struct exec_file *file, const struct exec_file *script, pid_t pid) MUST_USE;

/*
 * What a program of the machine's own kind names as its dynamic loader (PT_INTERP), as the caller's kernel call would
 * find it. 1: none, or nothing that would start. Else as exec_file_open().
 */
int exec_file_open_loader(struct exec_file *file, const struct exec_file *program, pid_t pid) MUST_USE;

/*
 * The real path, inside, of what the kernel mapped beside the program of a process that stands at its first
 * instruction: its dynamic loader, which the program may name as it likes (PT_INTERP). "": there is none. -errno:
 * nobody can tell.
 */
int exec_file_mapped(pid_t pid, char out[PATH_MAX]) MUST_USE;

/* What pid executes. -errno: nobody can tell. */
int exec_file_open_image(struct exec_file *file, pid_t pid) MUST_USE;
