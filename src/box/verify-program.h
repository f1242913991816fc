/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Inside box/ only: starting atoll-verify, and handing it the rules. The box reads the files and looks into none of
 * them. For verify-gate.c.
 */

#include "os/pidref.h"

struct box;

/* Starts it with one end of a socket pair; *ret_fd is the other. -errno. */
int verify_program_start(const struct box *box, struct pidref *process, int *ret_fd) MUST_USE;

/* A sealed memfd with all rule files, shipped ones and the user's own (a frame VERIFY_RULES). -errno. */
int verify_program_rules(const struct box *box, int *ret_fd) MUST_USE;
