/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A proposal as a policy file that a person reads, changes and keeps: one line for each thing that was used, with
 * its evidence behind it. Used by propose.c alone.
 */

#include "learn/propose-state.h"

/* 0, or the buffer's error. */
int propose_put(const struct proposal *proposal, struct buf *out) MUST_USE;
