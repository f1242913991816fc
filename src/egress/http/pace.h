/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * When the bytes that are held back of a body go on (scan.h), though no more have come behind them: once nothing has
 * come for a moment, so that no stream stands still. The rule knows times and sizes alone, and nothing of content.
 *
 * Of an answer a secret could come in, in two pieces, where a moment passes in the middle of it. A server writes it in
 * one piece, but packets, windows and buffers cut where they are full, and a client may choose how much stands before
 * it. So after more bytes than any of those is full with a moment is much longer, even where a client fills the line so
 * that packets wait, or get lost. Pure. Runs in atoll-egress.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PACE_MOMENT_US = 500,
	PACE_LONG_MOMENT_MS = 3000,
	PACE_BURST_MAX = 512,           /* fewer bytes than a packet of TCP or a record of TLS is full with */
};

/* Of one body. All zero: nothing has come. */
struct pace {
	uint64_t last_ns;               /* the look that saw bytes come, or found them held up */
	uint64_t burst;                 /* bytes that came without a moment between them */
	uint64_t came;                  /* since the last look */
	bool was_held_up;
};

static inline void pace_add(struct pace *pace, size_t size)
{
	pace->came += size;
}

/* Whether so many bytes came without a moment between them that a buffer may have been full in the middle. */
static inline bool pace_is_burst(const struct pace *pace)
{
	return pace->burst + pace->came > PACE_BURST_MAX;
}

/*
 * A look, after each time that bytes may have come, and when the last one said. is_patient: after many bytes it takes
 * a long moment. is_held_up: it is us who take nothing more at present. 0: what is held goes on now; else look again
 * after so many nanoseconds.
 */
static inline uint64_t pace_look(struct pace *pace, bool is_patient, bool is_held_up, uint64_t now_ns)
{
	const uint64_t moment_ns = PACE_MOMENT_US * UINT64_C(1000);
	const uint64_t long_moment_ns = PACE_LONG_MOMENT_MS * UINT64_C(1000000);
	uint64_t wait_ns;

	if (pace->came) {
		pace->burst = pace->came + (pace->was_held_up || now_ns - pace->last_ns < moment_ns ? pace->burst : 0);
		pace->came = 0;
		pace->last_ns = now_ns;
	}
	if (is_held_up || pace->was_held_up)
		pace->last_ns = now_ns;
	pace->was_held_up = is_held_up;
	wait_ns = is_held_up || (is_patient && pace->burst > PACE_BURST_MAX) ? long_moment_ns : moment_ns;
	return now_ns - pace->last_ns >= wait_ns ? 0 : pace->last_ns + wait_ns - now_ns;
}
