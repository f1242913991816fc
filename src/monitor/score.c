/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/score.h"

#include <math.h>
#include <stdlib.h>

/* COUNT_MEAN_MAX: beyond this mean the spread of a Poisson count is less than SCALE_MIN. */
enum { COUNT_MEAN_MAX = 1000, COUNT_STEPS_MAX = 100000 };

static const double SCALE_MIN = 0.25;   /* in log2: nobody's sessions are more alike than by a fifth */
static const double NUMBER_MAX = 9.0e18;

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double at_quantile(const double *sorted, uint32_t count, double quantile)
{
	double place = quantile * (count - 1);
	uint32_t below = (uint32_t)place;

	if (below + 1 >= count)
		return sorted[below];
	return sorted[below] + (place - below) * (sorted[below + 1] - sorted[below]);
}

void score_row_init(struct score_row *row, const struct baseline *baseline, enum monitor_feature feature)
{
	double logs[BASELINE_SESSIONS], upper, widest;
	uint32_t count = baseline->count;

	*row = (struct score_row){ .count = count, .scale = SCALE_MIN };
	for (uint32_t i = 0; i < count; i++) {
		row->sum += (double)baseline->values[i][feature];
		logs[i] = log2(1 + (double)baseline->values[i][feature]);
	}
	if (!count)
		return;
	qsort(logs, count, sizeof *logs, compare_doubles);
	row->median = at_quantile(logs, count, 0.5);
	row->max = logs[count - 1];
	/*
	 * How flat an exponential tail would be whose ninth decile, and whose second largest of so many, are as these.
	 * Not the largest: one session of its own kind would make everything usual.
	 */
	upper = (at_quantile(logs, count > 1 ? count - 1 : 1, 0.9) - row->median) / log(5);
	widest = count > 5 ? (logs[count - 2] - row->median) / (log(count) - 1.116) : 0;
	row->scale = fmax(row->scale, fmax(upper, widest));
	/* What a few sessions tell about their spread is uncertain itself. */
	row->scale *= 1 + 2 / sqrt(count);
}

/* P(X >= number) of the negative binomial with r = sum + 1/2, p = n / (n + 1): Poisson with Jeffreys' prior. */
static double count_chance(const struct score_row *row, uint64_t number)
{
	double n = row->count, r = row->sum + 0.5, q = 1 / (n + 1);
	double mass = exp(r * log(n / (n + 1))), below = 0;

	for (uint64_t k = 0; k < number; k++) {
		below += mass;
		mass *= (double)(k + r) / (double)(k + 1) * q;
		/* Beyond the middle the rest is less than this, and no longer worth adding up. */
		if (k > r / n && mass < 1e-12)
			return fmax(0, fmin(1 - below, 1e-9));
	}
	return fmax(0, 1 - below);
}

static double tail_chance(const struct score_row *row, uint64_t number)
{
	double beyond = log2(1 + (double)number) - row->max, chance = 1.0 / (row->count + 1);

	/* Half of all sessions lie above the median, one of so many above the largest. */
	if (beyond < 0) {
		double below = row->max - row->median, share = below > 0 ? fmin(1, -beyond / below) : 1;

		return exp(log(chance) * (1 - share) + log(0.5) * share);
	}
	return chance * exp(-beyond / row->scale);
}

double score_chance(const struct score_row *row, enum monitor_feature feature, uint64_t number)
{
	bool is_count = !monitor_features[feature].is_bytes && row->sum <= (double)row->count * COUNT_MEAN_MAX;
	double tail;

	if (!row->count || !number)
		return 1;
	tail = tail_chance(row, number);
	return is_count ? fmax(tail, count_chance(row, number < COUNT_STEPS_MAX ? number : COUNT_STEPS_MAX)) : tail;
}

uint64_t score_limit(const struct score_row *row, enum monitor_feature feature, const struct score_budget *budget)
{
	double chance = 1.0 / ((double)budget->sessions * MONITOR_FEATURE_COUNT), least;
	uint64_t low, high = 1;

	if (row->count < budget->learn || !budget->sessions)
		return UINT64_MAX;
	/* Never at what was there before, however many sessions there were. */
	least = fmin(exp2(row->max) + 0.5, NUMBER_MAX);
	low = (uint64_t)least;
	if (low < monitor_features[feature].least - 1)
		low = monitor_features[feature].least - 1;
	while (high <= low || (score_chance(row, feature, high) > chance && high < UINT64_MAX / 4))
		high *= 2;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (score_chance(row, feature, middle) > chance)
			low = middle;
		else
			high = middle;
	}
	return high;
}

static uint64_t number_of(double logarithm)
{
	return (uint64_t)fmin(exp2(logarithm) - 0.5, NUMBER_MAX);
}

uint64_t score_median(const struct score_row *row)
{
	return number_of(row->median);
}

uint64_t score_max(const struct score_row *row)
{
	return number_of(row->max);
}

uint64_t score_learnt(uint64_t number, uint64_t limit)
{
	uint64_t most = limit > UINT64_MAX / 4 ? UINT64_MAX : limit * 4;

	return number < most ? number : most;
}
