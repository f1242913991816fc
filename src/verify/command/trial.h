/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Commands that do nothing but tell: how they are used, which version they are, what they would do. Pure; only in
 * atoll-verify.
 */

#include "verify/model/tables.h"

enum shown {
	SHOWN_NOTHING, /* it does what it says */
	SHOWN_USAGE,   /* --help, --version: nothing of its other words happens */
	SHOWN_TRIAL,   /* --dry-run: it may still ask other machines */
};

/* The signal that kill, pkill or killall is told to send: "KILL", "9", without "SIG"; "TERM" where none is said. */
const char *command_signal(const struct word *words, size_t count);

/*
 * Only where the program is known to look at all options before it does anything: what another word would have to be
 * (the command of sudo, the code of sh -c, the operand of the shell's own kill) is never taken for an option.
 */
enum shown command_shown(const struct tables *tables, const struct word *words, size_t count);
