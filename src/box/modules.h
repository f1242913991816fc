/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The parts of a sandbox that its loop drives, in one table (supervise/module.h). Inside box/ only: their
 * states stand in struct box, which is one block of fresh zero pages.
 */

#include <stdint.h>

#include "base/cleanup.h"

struct box;

/* What is due in each of them, in the order of the table; when the run has ended, in those that go on.
 * Negative: the log failed. */
int modules_check(struct box *box) MUST_USE;

/* How long nothing is due in any of them, in ms; -1: for ever. now_ns: CLOCK_MONOTONIC. */
int modules_timeout_ms(const struct box *box, uint64_t now_ns);

/* Gives back what all of them hold, the last one first. */
void modules_done(struct box *box);
