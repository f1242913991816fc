/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a program of ours ends: one line for an error, and the exit status. For the end of main() in the programs that
 * people or scripts may start by themselves; no library prints.
 */

#include "base/err.h"

/*
 * What main() returns: r itself unless it is negative; else *err has been written to stderr as "atoll: STAGE: WHAT;
 * WHAT TO DO", and it is err_exit_status(). An *err that nobody filled says what the errno -r means.
 */
int program_status(int r, const struct err *err);
