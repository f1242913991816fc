/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One part of a running sandbox, as its loop drives it: box/modules.c has the table of them. A part whose service is
 * not in use has nothing in its state but what it borrows, and does nothing. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>

struct module {
	const char *name;
	bool checks_when_ended;      /* also while what is inside is dying, and its output is delivered */
	/*
	 * At each turn of the loop, never within a judgement: what is due (now_ns: CLOCK_MONOTONIC). NULL:
	 * nothing ever is. Negative: the log failed, and the sandbox ends.
	 */
	int (*check)(void *state, uint64_t now_ns);
	/* How long nothing is, in ms; -1: for ever. NULL: what makes something due wakes the loop by itself. */
	int (*timeout_ms)(const void *state, uint64_t now_ns);
	/* Gives back what the process holds, where it goes on after the sandbox; nobody is told anything. */
	void (*done)(void *state);
};
