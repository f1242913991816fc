/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Asking a person for what must not be seen: on the terminal itself (/dev/tty), so that standard input stays free for
 * a value, and without echo. The settings of the terminal come back however the prompt ends, signals included.
 */

#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

/* What the kernel's line editor holds at most; beyond it silently drops what is typed. */
enum { PROMPT_LINE_MAX = 4094 };

/* The controlling terminal, or -ENXIO where there is none. Before atoll-secret confines itself. */
int prompt_open(void) MUST_USE;

/*
 * Shows "text: " and reads one line into out[PROMPT_LINE_MAX + 2], without its newline and not terminated. Its length
 * (0: an empty line). -ENXIO: there is no terminal; -ECANCELED: it was closed instead (^D); -EMSGSIZE: too long to be
 * typed or pasted whole.
 */
ssize_t prompt_line(int tty_fd, const char *text, char *out, struct err *err) MUST_USE;
