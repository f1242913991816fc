/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The arguments of an exec, as they are judged: those that were asked for, those that the kernel makes of them for the
 * interpreter of a script, and those that the new program was given. All strings are borrowed. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "gate-exec/file.h"
#include "watch/watch.h"

enum { EXEC_WORDS_MAX = WATCH_ARGV_MAX + 3 * EXEC_FILES_MAX };

struct exec_words {
	const char *list[EXEC_WORDS_MAX + 1];
	size_t count;
	bool is_cut;                 /* there are more */
};

/* argv: as execve(2) was given it, at most WATCH_ARGV_MAX. An empty one gets an empty name, as Linux does. */
void exec_words_take(struct exec_words *words, const char *const *argv, bool is_cut);

/* The arguments that the kernel gives to the interpreter of a script that was called by this path (execve(2)). */
void exec_words_interpret(struct exec_words *words, const struct exec_file *script, const char *called);

/*
 * What the process was given, cut as at the first judgement; words point into memory. -ESRCH: it is gone, or its
 * arguments cannot be read.
 */
int exec_words_read(pid_t pid, char memory[WATCH_TEXT_MAX], struct exec_words *words) MUST_USE;
