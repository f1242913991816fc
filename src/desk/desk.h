/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The desk of one sandbox: who connects to ask.sock, the lines that they write, and the answers that they get. It
 * decides nothing. Runs in atoll-desk.
 */

#include "base/err.h"
#include "base/cleanup.h"

enum {
	DESK_CONNECTIONS_MAX = 32,
	DESK_OPEN_MAX = 8,           /* requests of one connection that have no answer yet */
	DESK_OUT_MAX = 64 << 10,     /* bytes that one does not read; more, and it is closed */
	DESK_LINES_BURST = 100,      /* lines of all together, and */
	DESK_LINES_REFILL_MS = 20,   /* one more each */
	DESK_QUIET_MS = 60000,       /* a line that is not finished by then never is */
	DESK_IDLE_MS = 5000,         /* with nobody connected the program ends after so long */
};

/* Confines itself, then serves box_fd until nobody is connected any more or the box has gone. 0, or negative. */
int desk_run(int box_fd, struct err *err) MUST_USE;
