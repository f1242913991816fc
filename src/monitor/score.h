/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How unusual a number is against a baseline, and from which number on it is told, so that of so many clean sessions
 * about one gives a false alarm, all features together. Pure. A score informs and never kills: what is told is
 * unusual, which is not the same as bad, and what is bad may be usual.
 */

#include <stdbool.h>
#include <stdint.h>

#include "monitor/baseline.h"

struct score_budget {
	uint32_t sessions;     /* one false alarm in so many clean sessions */
	uint32_t learn;        /* while the baseline has fewer sessions nothing is told */
};

/*
 * Two models of what a session like those before would bring; each can only take the other's alarm away:
 *
 *   count   numbers of rare events: Poisson with a rate that the sessions so far tell about (the predictive
 *           distribution is negative binomial), for a rate of zero is not what ten zeros prove
 *   tail    what was never seen is reached, from the largest that was, along a tail that is exponential in the
 *           logarithm (in the number itself a power law), as flat as the sessions so far were spread
 *
 * The budget is shared out evenly over the features, which holds however they hang together (Bonferroni).
 */

/* Sorted once, then asked often. */
struct score_row {
	double median, max, scale; /* of log2(1 + number) */
	double sum;                /* of the numbers */
	uint32_t count;
};

/* Of one feature over all sessions of the baseline (at most BASELINE_SESSIONS); without any nothing is unusual. */
void score_row_init(struct score_row *row, const struct baseline *baseline, enum monitor_feature feature);

/* The chance that a clean session reaches this number, 0 to 1: it never grows with the number. */
double score_chance(const struct score_row *row, enum monitor_feature feature, uint64_t number);

/* The smallest number that is told; UINT64_MAX: none yet. */
uint64_t score_limit(const struct score_row *row, enum monitor_feature feature, const struct score_budget *budget);

/* The middle and the largest of the sessions so far, for people. */
uint64_t score_median(const struct score_row *row);
uint64_t score_max(const struct score_row *row);

/* What of a number is learnt: once more than what is told, and never all of something enormous at once. */
uint64_t score_learnt(uint64_t number, uint64_t limit);
