/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Atoll's own programs, which lie in one directory: started beside this one, or in its place. What they say goes to
 * our stderr; what they are handed stands at descriptors that both know.
 */

#include <limits.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/words.h"
#include "os/spawn.h"

struct program {
	const char *name;                /* "atoll-learn" */
	const char *stage;               /* of its errors; NULL: "start" */
	const char *const *argv;         /* NULL-terminated, with argv[0] */
	struct spawn_fd fds[SPAWN_FDS_MAX]; /* borrowed; each from is above every to */
	size_t fd_count;
};

/* Starts it: *ret_pid is a child of ours. Negative with *err. */
int program_start(const struct program *program, pid_t *ret_pid, struct err *err) MUST_USE;

/* Starts it and waits: its exit status, or negative with *err, also where a signal ended it. */
int program_run(const struct program *program, struct err *err) MUST_USE;

/*
 * One that looks at something: it prints, and writes numbers beside that. What it says to stderr is for people.
 * numbers: of a struct that both know; filled where the exit status is 0 or 1.
 */
struct program_look {
	const char *name, *stage;        /* as in struct program */
	const char *const *argv;
	int numbers_to;                  /* the descriptor that it writes them to */
	void *numbers;
	size_t numbers_size;
};

/* Runs it: its exit status, with what it printed in *ret_text_fd (owned by the caller), or negative with *err. */
int program_look(const struct program_look *look, int *ret_text_fd, struct err *err) MUST_USE;

/* Appends all that a program printed into this memory file. -ENOBUFS where it is more than out takes. */
int program_text(int fd, struct buf *out) MUST_USE;

/* Becomes the program that the first word names. Returns only where that fails: negative, with *err of this stage. */
int program_become(const char *stage, const struct words *words, struct err *err) MUST_USE;

/* 0; -E2BIG, -ENOMEM with *err where the words are too many. */
int program_check_words(const struct words *words, struct err *err) MUST_USE;

/* Where one of them lies, absolute. ERR_STATE of this stage where /proc does not tell, or the path is too long. */
int program_path(const char *stage, const char *name, char out[PATH_MAX], struct err *err) MUST_USE;
