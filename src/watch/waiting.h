/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Connects whose callers have to wait: a bounded list with a timer that says when the next is to be tried again.
 * Between two tries nothing of the caller's is held. It answers nobody. Runs in atoll-box.
 */

#include "watch/connect.h"

struct waiting_call {
	struct connect_call call;
	uint64_t next_ns, delay_ns;
	uint64_t deadline_ns;        /* UINT64_MAX: none */
	int timeout_errnum;
};

struct waiting {
	int timer_fd;                /* owned: readable when a call is due */
	size_t count;
	struct waiting_call calls[WATCH_WAITING_MAX];
};

/* An empty list with its timer, which done closes; the calls in it need nothing. 0 or -errno of timerfd_create(2). */
int waiting_init(struct waiting *waiting) MUST_USE;
void waiting_done(struct waiting *waiting);

/* Notes the call for another try. -EAGAIN: the list is full. */
int waiting_add(struct waiting *waiting, const struct connect_call *call, const struct connect_result *result) MUST_USE;

/* The next call that is due, from *position on, or NULL; then the timer is set for what is left. */
struct waiting_call *waiting_next(struct waiting *waiting, size_t *position);

/* After a try: the call stays with a longer delay, or is forgotten (then *position names the next one). */
void waiting_keep(struct waiting_call *call);
void waiting_drop(struct waiting *waiting, size_t *position);
