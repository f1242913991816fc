/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A capability token that something inside presents at ask.sock. The box reads nothing of it: atoll-token does, in a
 * process of its own, and counts it; what it lets happen is granted as with `atoll exec --token`. One at a time. Run by
 * atoll-box.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct access_gate;

/* Before anything else: nothing is looked at yet. */
void access_token_init(struct access_gate *gate);

/* The request id is answered now or later, by DESK_ANSWER. Negative: the log failed. */
int access_token_present(struct access_gate *gate, uint32_t id, const void *text, size_t size) MUST_USE;

/* Kills the atoll-token at work, whose request is not answered any more; the next token waits half a second. */
void access_token_done(struct access_gate *gate);
