/* SPDX-License-Identifier: Apache-2.0 */
#include "trust/rules.h"

#include <errno.h>
#include <math.h>

#include "base/num.h"
#include "base/str.h"

enum { MS_PER_S = 1000, LEVELS_LOST_MAX = TRUST_COUNT - 1, HALVES_MAX = 32 };

/*
 * The weights: a fall needs three bursts of refusals within a day, or two alerts, or an injection and a limit. A canary
 * is touched by nobody by accident.
 */
const struct trust_rule trust_rules[TRUST_EVENT_END] = {
	[0] = { "none", "nothing" },
	[TRUST_BEGUN] = { "session-begun", "a session began" },
	[TRUST_CLEAN] = { "session-clean", "a clean session" },
	[TRUST_ENDED] = { "session-ended", "a session ended" },
	[TRUST_KILLED] = { "session-killed", "a session was cut off", 20, true },
	[TRUST_DENIALS] = { "deny-burst", "a burst of refusals", 25, true },
	[TRUST_INJECTION] = { "injection", "a prompt injection", 50, true },
	[TRUST_CANARY] = { "canary", "a canary was touched", 120, true, true },
	[TRUST_VERIFIER] = { "verifier-denial", "a verifier refused something", 20, true },
	[TRUST_LIMIT] = { "limit-hit", "a limit was hit", 10, true },
	[TRUST_ALERT] = { "alert", "an alert", 30, true },
	[TRUST_RAISED] = { "raised", "raised by a person" },
	[TRUST_LOWERED] = { "lowered", "lowered by a person" },
	[TRUST_RESET] = { "reset", "reset by a person" },
	[TRUST_LENT] = { "lent", "raised for one session" },
	[TRUST_CARRIED] = { "session-goes-on", "a session goes on" },
	[TRUST_RECALLED] = { "recalled", "before that" },
};

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static enum trust_level lower(enum trust_level a, enum trust_level b)
{
	return a < b ? a : b;
}

static enum trust_level higher(enum trust_level a, enum trust_level b)
{
	return a > b ? a : b;
}

/*
 * More of it stays more, and later is never more: a second changes the power of two by far more than exp2(3) is wrong
 * by.
 */
uint32_t trust_strain_at(const struct trust_state *state, const struct trust_settings *settings, uint64_t now_s)
{
	uint64_t half_s = settings->half_life_ms / MS_PER_S;
	double halves;

	if (now_s <= state->strain_s)
		return state->strain;
	halves = (double)(now_s - state->strain_s) / (double)(half_s ? half_s : TRUST_HALF_LIFE_MS / MS_PER_S);
	/* Upwards: what adds up to a threshold does so within some seconds as well. */
	return halves >= HALVES_MAX ? 0 : (uint32_t)ceil(state->strain * exp2(-halves));
}

/* How many thresholds lie at or below this strain. */
static uint32_t crossed(uint32_t strain)
{
	return smaller(strain / TRUST_STEP, LEVELS_LOST_MAX);
}

/* The same on the way down, where each threshold lies deeper. */
static uint32_t still_crossed(uint32_t strain)
{
	return crossed(strain + TRUST_HYSTERESIS);
}

/* A session begins: what has faded far enough gives its level back. Not during a session, where nobody looks. */
static void recover(struct trust_state *state, uint32_t strain)
{
	state->drop = smaller(state->drop, still_crossed(strain));
}

static void strain_by(struct trust_state *state, const struct trust_settings *settings, const struct trust_rule *rule,
		      uint64_t now_s)
{
	state->strain = smaller(trust_strain_at(state, settings, now_s) + rule->weight * TRUST_POINT, TRUST_STRAIN_MAX);
	state->strain_s = now_s > state->strain_s ? now_s : state->strain_s;
	state->clean = 0;
	if (crossed(state->strain) > state->drop)
		state->drop = crossed(state->strain);
	if (rule->is_lasting)
		state->granted = lower(state->granted, settings->floor);
}

/* N clean sessions, one after the other, at the level of the probation. */
static void count_clean(struct trust_state *state, const struct trust_settings *settings)
{
	uint32_t needed = settings->probation_sessions;

	state->clean = smaller(state->clean + 1, TRUST_SESSIONS_MAX);
	if (!needed || state->granted != settings->probation_at || state->drop || state->clean < needed ||
	    settings->probation_at >= settings->ceiling)
		return;
	state->granted++;
	state->clean = 0;
}

/* Of the strain's making: the policy's bounds are not in it. */
static enum trust_level raw_level(const struct trust_state *state)
{
	return (enum trust_level)(state->granted - smaller(state->granted, state->drop));
}

/* What was held against the agent is forgiven; who stands higher already keeps that. */
static void raise_to(struct trust_state *state, enum trust_level level)
{
	state->granted = higher(level, raw_level(state));
	state->drop = state->strain = state->clean = 0;
}

/* Nothing is forgiven: the levels that the strain has taken are counted from the new grant. */
static void lower_to(struct trust_state *state, enum trust_level level)
{
	uint32_t less = level < state->granted ? state->granted - level : 0;

	state->granted -= less;
	state->drop -= smaller(state->drop, less);
	state->clean = 0;
}

/* Strain is counted from when it last grew: how often somebody looks in between makes no difference. */
struct trust_state trust_step(const struct trust_state *state, const struct trust_settings *settings,
			      enum trust_event event, enum trust_level level, uint64_t now_s)
{
	struct trust_state next = *state;

	if (event == TRUST_RESET)
		return (struct trust_state){ .strain_s = now_s };
	if (!next.has_grant)
		next = (struct trust_state){ .has_grant = true, .granted = settings->start, .strain_s = now_s };
	if ((unsigned)event < TRUST_EVENT_END && trust_rules[event].is_bad)
		strain_by(&next, settings, &trust_rules[event], now_s);
	if (event == TRUST_BEGUN)
		recover(&next, trust_strain_at(&next, settings, now_s));
	if (event == TRUST_CLEAN)
		count_clean(&next, settings);
	if (event == TRUST_RAISED)
		raise_to(&next, level);
	if (event == TRUST_LOWERED)
		lower_to(&next, level);
	return next;
}

enum trust_level trust_level_of(const struct trust_state *state, const struct trust_settings *settings)
{
	enum trust_level level = state->has_grant ? raw_level(state) : settings->start;

	return lower(settings->ceiling, higher(settings->floor, level));
}

enum trust_level trust_effective(const struct trust_settings *settings, enum trust_level level,
				 const struct trust_bounds *bounds)
{
	return lower(lower(bounds->policy, bounds->confidence),
		     lower(settings->ceiling, higher(level, bounds->lent)));
}

enum trust_level trust_confidence_level(uint32_t confidence)
{
	static const uint32_t least[TRUST_COUNT] = { 0, 100, 400, 800, 950 };
	enum trust_level level = TRUST_NONE;

	while (level < TRUST_FULL && confidence >= least[level + 1])
		level++;
	return level;
}

int trust_confidence_parse(const char *text, uint32_t *ret_confidence)
{
	static const struct {
		const char *name;
		uint32_t confidence;
	} words[] = { { "low", 250 }, { "medium", 600 }, { "high", 900 } };
	uint64_t thousandths;

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_equal(words[i].name, text)) {
			*ret_confidence = words[i].confidence;
			return 0;
		}
	if (num_parse_cpus(text, &thousandths) < 0 || thousandths > 1000)
		return -EINVAL;
	*ret_confidence = (uint32_t)thousandths;
	return 0;
}

unsigned trust_count_until(const struct trust_state *state, const struct trust_settings *settings,
			   enum trust_event event, uint64_t now_s, enum trust_level *ret_level)
{
	enum trust_level before = trust_level_of(state, settings);
	struct trust_state at = *state;

	for (unsigned count = 1; count <= TRUST_SESSIONS_MAX; count++) {
		at = trust_step(&at, settings, event, before, now_s);
		*ret_level = trust_level_of(&at, settings);
		if (*ret_level != before)
			return count;
	}
	return 0;
}

static bool is_higher_at(const struct trust_state *state, const struct trust_settings *settings, uint64_t at_s)
{
	struct trust_state then = trust_step(state, settings, TRUST_BEGUN, TRUST_NONE, at_s);

	return trust_level_of(&then, settings) > trust_level_of(state, settings);
}

uint64_t trust_recovers_at(const struct trust_state *state, const struct trust_settings *settings, uint64_t now_s)
{
	uint64_t from = now_s > state->strain_s ? now_s : state->strain_s;
	uint64_t step = 32 * (settings->half_life_ms / MS_PER_S + 1);

	if (!is_higher_at(state, settings, from + step))
		return 0;
	/* The strain only falls with time, so the first such moment can be halved for. */
	for (uint64_t to = from + step; from < to;) {
		uint64_t middle = from + (to - from) / 2;

		if (is_higher_at(state, settings, middle))
			to = middle;
		else
			from = middle + 1;
	}
	return from;
}
