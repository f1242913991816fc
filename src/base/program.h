/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a program of ours begins and ends: main() of the programs that people or scripts may start by themselves. At the
 * end stands one line for an error, and the exit status; no library prints.
 */

#include "base/err.h"

/*
 * What main() returns: r itself unless it is negative; else *err has been written to stderr as "atoll: STAGE: WHAT;
 * WHAT TO DO", and it is err_exit_status(). An *err that nobody filled says what the errno -r means.
 */
int program_status(int r, const struct err *err);

/*
 * All of main(): begin() first (fd_secure_standard(), which is above this folder), then run(), and what the one that
 * failed returned is the end, as by program_status(). *err of run() is empty.
 */
int program_main(int argc, char **argv, int (*begin)(void), int (*run)(int argc, char **argv, struct err *err));
