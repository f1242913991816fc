/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside box/ only: starting atoll-verify, which confines itself. What it is given to read is verify-gate.c's to say.
 * For that file.
 */

#include "os/pidref.h"

struct box;

/* Starts it with one end of a socket pair; *ret_fd is the other. -errno. */
int verify_program_start(const struct box *box, struct pidref *process, int *ret_fd) MUST_USE;
