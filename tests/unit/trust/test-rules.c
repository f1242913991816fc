/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The rules of trust over their whole input space: every level, event and bound, with strains and times on both sides
 * of everything that could make a difference.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "trust/rules.h"

enum { NOW_S = 1000000, DAY_S = 86400, STATES_MAX = 4096, SETTINGS_MAX = 1024 };

/* Sanitizers see what the code does in any policy: the whole space is the other builds'. */
#ifdef ATOLL_SANITIZED
enum { STRIDE = 7 };
#else
enum { STRIDE = 1 };
#endif

static const uint32_t strains[] = { 0,	    1,	    19999,  20000,  20001,  59999,  60000,  79999,  80000,
				    119999, 120000, 139999, 140000, 180000, 199999, 240000, 300000 };
static const uint64_t times[] = { 0, NOW_S - 1, NOW_S, NOW_S + 1, NOW_S + DAY_S / 2, NOW_S + DAY_S - 1, NOW_S + DAY_S,
				  NOW_S + 3 * DAY_S, NOW_S + 31ULL * DAY_S, NOW_S + 33ULL * DAY_S, UINT64_MAX / 2 };

static struct trust_state states[STATES_MAX];
static struct trust_settings settings[SETTINGS_MAX];
static size_t state_count, settings_count;

/* Every policy that atoll-policy would write: floor <= start <= ceiling, with and without probation. */
static void make_settings(void)
{
	for (int floor = 0; floor < TRUST_COUNT; floor++)
		for (int start = floor; start < TRUST_COUNT; start++)
			for (int ceiling = start; ceiling < TRUST_COUNT; ceiling++)
				for (int at = -1; at < ceiling; at++) {
					assert_true(settings_count < SETTINGS_MAX);
					settings[settings_count++] = (struct trust_settings){
						.floor = floor, .start = start, .ceiling = ceiling,
						.probation_sessions = at < 0 ? 0 : at % 2 ? 1 : 3,
						.probation_at = at < 0 ? 0 : at,
						.half_life_ms = TRUST_HALF_LIFE_MS, .is_given = true, .has_level = true,
					};
				}
}

static void make_states(void)
{
	states[state_count++] = (struct trust_state){ .strain_s = NOW_S };
	for (int granted = 0; granted < TRUST_COUNT; granted++)
		for (uint32_t drop = 0; drop < TRUST_COUNT; drop++)
			for (size_t i = 0; i < ARRAY_SIZE(strains); i++)
				for (uint32_t clean = 0; clean < 4; clean++) {
					assert_true(state_count < STATES_MAX);
					states[state_count++] = (struct trust_state){
						.has_grant = true, .granted = granted, .drop = drop,
						.strain = strains[i], .strain_s = NOW_S, .clean = clean,
					};
				}
}

static int make(void **state)
{
	make_settings();
	make_states();
	return 0;
}

static bool is_bad(int event)
{
	return trust_rules[event].is_bad;
}

/* Whether it lowered. */
static bool check_bad(const struct trust_state *at, const struct trust_settings *with, int event, uint64_t now_s)
{
	struct trust_state next = trust_step(at, with, event, TRUST_FULL, now_s);
	enum trust_level before = trust_level_of(at, with), after = trust_level_of(&next, with);

	if (after > before || after < with->floor)
		fail_msg("%s: %d -> %d", trust_rules[event].name, before, after);
	return after < before;
}

static void a_bad_event_never_raises(void **state)
{
	size_t lowered = 0;

	for (size_t i = 0; i < settings_count; i += STRIDE)
		for (size_t s = 0; s < state_count; s++)
			for (int event = 0; event < TRUST_EVENT_END; event++)
				for (size_t t = 0; is_bad(event) && t < ARRAY_SIZE(times); t++)
					lowered += check_bad(&states[s], &settings[i], event, times[t]);
	/* The control: they do lower. */
	assert_true(lowered > 100000 / STRIDE);
}

static void nothing_but_the_named_events_raises(void **state)
{
	size_t raised[TRUST_EVENT_END] = { 0 };

	for (size_t i = 0; i < settings_count; i += STRIDE)
		for (size_t s = 0; s < state_count; s++)
			for (int event = 0; event < TRUST_EVENT_END; event++)
				for (size_t t = 0; t < ARRAY_SIZE(times); t++) {
					struct trust_state next =
						trust_step(&states[s], &settings[i], event, TRUST_FULL, times[t]);

					raised[event] += trust_level_of(&next, &settings[i]) >
							 trust_level_of(&states[s], &settings[i]);
				}
	for (int event = 0; event < TRUST_EVENT_END; event++) {
		/* A reset goes back to the policy's start, which may be higher. */
		bool may = event == TRUST_BEGUN || event == TRUST_CLEAN || event == TRUST_RAISED ||
			   event == TRUST_RESET;

		if (may != (raised[event] > 0))
			fail_msg("%s raised %zu times", trust_rules[event].name, raised[event]);
	}
}

/* Of the two, the first stands no better in anything: what was granted, clean sessions towards more, strain, drop. */
static bool is_no_better(const struct trust_state *a, const struct trust_state *b)
{
	bool is_grant = a->granted < b->granted || (a->granted == b->granted && a->clean <= b->clean);

	return a->has_grant && b->has_grant && is_grant && a->strain >= b->strain && a->drop >= b->drop;
}

static void check_pair(const struct trust_state *a, const struct trust_state *b, const struct trust_settings *with,
		       int event, enum trust_level level, uint64_t now_s)
{
	struct trust_state worse = trust_step(a, with, event, level, now_s);
	struct trust_state better = trust_step(b, with, event, level, now_s);

	if (trust_level_of(&worse, with) > trust_level_of(&better, with) ||
	    (event != TRUST_RESET && !is_no_better(&worse, &better)))
		fail_msg("%s: (%d,%u,%u,%u) passes (%d,%u,%u,%u)", trust_rules[event].name, a->granted, a->clean,
			 a->strain, a->drop, b->granted, b->clean, b->strain, b->drop);
}

static int levels_named(int event)
{
	return event == TRUST_RAISED || event == TRUST_LOWERED ? TRUST_COUNT : 1;
}

static void check_neighbours(const struct trust_state *a, const struct trust_state *b,
			     const struct trust_settings *with)
{
	/* Time has its own test (each_strain_is_like_the_next). */
	for (int event = 1; event < TRUST_EVENT_END; event++)
		for (int level = 0; level < levels_named(event); level++)
			check_pair(a, b, with, event, (enum trust_level)level, NOW_S + (event % 2) * (DAY_S + 7));
}

/*
 * Who stands better does so by steps in what was granted, in clean sessions, in drop and in strain. So it is enough
 * that of each two neighbours the better one stands no worse after any event: under every policy, with every level.
 * By induction it holds for every pair, and for every sequence of events.
 */
static void who_stood_better_stands_no_worse(void **state)
{
	static const size_t last_strain = ARRAY_SIZE(strains) - 1;
	size_t compared = 0;

	for (size_t i = 0; i < settings_count; i += STRIDE)
		for (size_t s = 1; s < state_count; s++, compared++) {
			const struct trust_state *worse = &states[s];
			struct trust_state better = *worse;

			better.clean++;
			check_neighbours(worse, &better, &settings[i]);
			better = *worse;
			better.drop -= better.drop > 0;
			check_neighbours(worse, &better, &settings[i]);
			better = *worse;
			for (size_t at = last_strain; at > 0 && better.strain == worse->strain; at--)
				better.strain = strains[at] == worse->strain ? strains[at - 1] : worse->strain;
			check_neighbours(worse, &better, &settings[i]);
			/* A higher grant is better with however few clean sessions. */
			better = *worse;
			better.clean = 0;
			better.granted += better.granted < TRUST_FULL;
			if (better.granted > worse->granted)
				check_neighbours(worse, &better, &settings[i]);
		}
	assert_int_equal(compared, (settings_count + STRIDE - 1) / STRIDE * (state_count - 1));
}

/* The grid of strains leaves none out: each of them against the next one, after every event and at several times. */
static void each_strain_is_like_the_next(void **state)
{
	static const uint64_t when[] = { NOW_S, NOW_S + 1, NOW_S + DAY_S / 3, NOW_S + DAY_S, NOW_S + 3 * DAY_S + 5 };
	static const struct trust_settings one = { .start = TRUST_LOW, .ceiling = TRUST_FULL, .floor = TRUST_NONE,
						   .probation_sessions = 3, .probation_at = TRUST_MEDIUM,
						   .half_life_ms = TRUST_HALF_LIFE_MS };
	struct trust_state worse = { .has_grant = true, .granted = TRUST_FULL, .strain_s = NOW_S, .clean = 2 }, better;

	for (worse.strain = 1; worse.strain <= TRUST_STRAIN_MAX; worse.strain++) {
		better = worse;
		better.strain--;
		worse.drop = better.drop = worse.strain % TRUST_COUNT;
		for (int event = 1; event < TRUST_EVENT_END; event++)
			check_pair(&worse, &better, &one, event, TRUST_MEDIUM, when[worse.strain / 7 % 5]);
	}
}

static void every_pair_under_one_policy(void **state)
{
	static const struct trust_settings one = { .start = TRUST_LOW, .ceiling = TRUST_HIGH, .floor = TRUST_NONE,
						   .probation_sessions = 3, .probation_at = TRUST_LOW,
						   .half_life_ms = TRUST_HALF_LIFE_MS };

	for (size_t a = 0; a < state_count; a += STRIDE)
		for (size_t b = 0; b < state_count; b++)
			for (int event = 1; is_no_better(&states[a], &states[b]) && event < TRUST_EVENT_END; event++)
				for (int level = 0; level < levels_named(event); level++)
					check_pair(&states[a], &states[b], &one, event, level, NOW_S + 100);
}

static void later_is_never_worse(void **state)
{
	for (size_t s = 0; s < state_count; s++)
		for (size_t t = 0; t + 1 < ARRAY_SIZE(times); t++)
			assert_true(trust_strain_at(&states[s], &settings[0], times[t]) >=
				    trust_strain_at(&states[s], &settings[0], times[t + 1]));
	for (uint64_t at = 0; at < 3 * DAY_S; at += 61) {
		struct trust_state full = { .has_grant = true, .strain = TRUST_STRAIN_MAX, .strain_s = NOW_S };

		assert_true(trust_strain_at(&full, &settings[0], NOW_S + at) >=
			    trust_strain_at(&full, &settings[0], NOW_S + at + 61));
	}
}

static void strain_halves_and_no_time_passes_backwards(void **state)
{
	struct trust_state at = { .has_grant = true, .strain = 80000, .strain_s = NOW_S };

	assert_int_equal(trust_strain_at(&at, &settings[0], NOW_S + DAY_S), 40000);
	assert_int_equal(trust_strain_at(&at, &settings[0], NOW_S + DAY_S / 2), 56569); /* 80000 / sqrt(2) */
	assert_int_equal(trust_strain_at(&at, &settings[0], NOW_S + 2 * DAY_S), 20000);
	assert_int_equal(trust_strain_at(&at, &settings[0], 0), 80000);
	assert_int_equal(trust_strain_at(&at, &settings[0], UINT64_MAX), 0);
	/* A clock that was set back does not let it fade twice. */
	at = trust_step(&at, &settings[0], TRUST_BEGUN, 0, NOW_S + DAY_S);
	at = trust_step(&at, &settings[0], TRUST_BEGUN, 0, 5);
	at = trust_step(&at, &settings[0], TRUST_BEGUN, 0, NOW_S + DAY_S);
	assert_int_equal(trust_strain_at(&at, &settings[0], NOW_S + DAY_S), 40000);
}

/* Sessions that begin and end every minute, or none at all: the same is left. */
static void how_often_somebody_looks_makes_no_difference(void **state)
{
	static const int looks[] = { TRUST_BEGUN, TRUST_CLEAN, TRUST_ENDED, TRUST_CARRIED, TRUST_RECALLED, TRUST_LENT };

	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
		struct trust_state at = { .has_grant = true, .granted = TRUST_LOW, .strain = 80000, .strain_s = NOW_S };

		for (uint64_t s = NOW_S; s <= NOW_S + DAY_S; s += 60)
			at = trust_step(&at, &settings[0], looks[i], TRUST_LOW, s);
		assert_int_equal(trust_strain_at(&at, &settings[0], NOW_S + DAY_S), 40000);
		assert_int_equal(trust_strain_at(&at, &settings[0], NOW_S + 2 * DAY_S), 20000);
	}
}

static const struct trust_settings usual = { .start = TRUST_LOW, .ceiling = TRUST_MEDIUM, .floor = TRUST_NONE,
					     .probation_sessions = 3, .probation_at = TRUST_LOW,
					     .half_life_ms = TRUST_HALF_LIFE_MS, .is_given = true, .has_level = true };

static enum trust_level after(struct trust_state *at, int event, uint64_t now_s)
{
	*at = trust_step(at, &usual, event, TRUST_MEDIUM, now_s);
	return trust_level_of(at, &usual);
}

static void a_raise_lowers_nobody_and_the_other_way_round(void **state)
{
	for (size_t i = 0; i < settings_count; i += STRIDE)
		for (size_t s = 0; s < state_count; s++)
			for (int to = 0; to < TRUST_COUNT; to++) {
				const struct trust_state *at = &states[s];
				struct trust_state up = trust_step(at, &settings[i], TRUST_RAISED, to, NOW_S);
				struct trust_state down = trust_step(at, &settings[i], TRUST_LOWERED, to, NOW_S);
				enum trust_level before = trust_level_of(at, &settings[i]);

				assert_true(trust_level_of(&up, &settings[i]) >= before);
				assert_true(trust_level_of(&down, &settings[i]) <= before);
			}
}

static void probation_takes_clean_sessions_in_a_row(void **state)
{
	struct trust_state at = { 0 };

	assert_int_equal(trust_level_of(&at, &usual), TRUST_LOW);
	assert_int_equal(after(&at, TRUST_CLEAN, NOW_S), TRUST_LOW);
	assert_int_equal(after(&at, TRUST_CLEAN, NOW_S), TRUST_LOW);
	assert_int_equal(after(&at, TRUST_LIMIT, NOW_S), TRUST_LOW);
	assert_int_equal(after(&at, TRUST_CLEAN, NOW_S), TRUST_LOW);
	assert_int_equal(after(&at, TRUST_ENDED, NOW_S), TRUST_LOW);
	assert_int_equal(after(&at, TRUST_CLEAN, NOW_S), TRUST_LOW);
	assert_int_equal(after(&at, TRUST_CLEAN, NOW_S), TRUST_MEDIUM);
	for (int i = 0; i < 50; i++)
		assert_int_equal(after(&at, TRUST_CLEAN, NOW_S), TRUST_MEDIUM);
}

static void a_fall_comes_back_late_and_only_when_a_session_begins(void **state)
{
	struct trust_state at = { .has_grant = true, .granted = TRUST_MEDIUM, .strain_s = NOW_S };
	uint64_t back_s;

	assert_int_equal(after(&at, TRUST_DENIALS, NOW_S), TRUST_MEDIUM);
	assert_int_equal(after(&at, TRUST_DENIALS, NOW_S), TRUST_MEDIUM);
	assert_int_equal(after(&at, TRUST_DENIALS, NOW_S), TRUST_LOW);
	back_s = trust_recovers_at(&at, &usual, NOW_S);
	/* 75 points are below the threshold of 60 soon, and below 20 after nearly two half-lives. */
	assert_in_range(back_s, NOW_S + 1.7 * DAY_S, NOW_S + 2 * DAY_S);
	assert_int_equal(after(&at, TRUST_BEGUN, NOW_S + DAY_S), TRUST_LOW);
	assert_int_equal(after(&at, TRUST_BEGUN, back_s - DAY_S / 2), TRUST_LOW);
	assert_int_equal(after(&at, TRUST_CLEAN, back_s + DAY_S), TRUST_LOW);
	assert_int_equal(after(&at, TRUST_ENDED, back_s + DAY_S), TRUST_LOW);
	assert_int_equal(after(&at, TRUST_BEGUN, back_s + DAY_S), TRUST_MEDIUM);
	assert_int_equal(trust_recovers_at(&at, &usual, NOW_S), 0);
}

static void a_canary_is_forgiven_by_people_alone(void **state)
{
	struct trust_state at = { .has_grant = true, .granted = TRUST_MEDIUM, .strain_s = NOW_S };

	assert_int_equal(after(&at, TRUST_CANARY, NOW_S), TRUST_NONE);
	assert_int_equal(after(&at, TRUST_BEGUN, NOW_S + 100ULL * DAY_S), TRUST_NONE);
	assert_int_equal(trust_recovers_at(&at, &usual, NOW_S), 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(after(&at, TRUST_CLEAN, NOW_S + 100ULL * DAY_S), TRUST_NONE);
	assert_int_equal(after(&at, TRUST_RAISED, NOW_S), TRUST_MEDIUM);
}

static void what_would_change_it_is_what_changes_it(void **state)
{
	for (size_t s = 0; s < state_count; s += 3)
		for (int event = 1; event < TRUST_EVENT_END; event++) {
			enum trust_level to, before = trust_level_of(&states[s], &usual);
			unsigned count;
			struct trust_state at = states[s];

			if (event == TRUST_RESET || event == TRUST_RAISED || event == TRUST_LOWERED)
				continue;
			count = trust_count_until(&at, &usual, event, NOW_S, &to);
			for (unsigned i = 0; i < (count ? count : 5); i++) {
				assert_int_equal(trust_level_of(&at, &usual), before);
				at = trust_step(&at, &usual, event, 0, NOW_S);
			}
			assert_int_equal(trust_level_of(&at, &usual), count ? to : before);
		}
}

/* One of the three bounds, one level less; false: it is the least already. */
static bool lower_bound(struct trust_bounds *bounds, size_t which)
{
	enum trust_level *const levels[] = { &bounds->policy, &bounds->lent, &bounds->confidence };

	if (*levels[which] == TRUST_NONE)
		return false;
	--*levels[which];
	return true;
}

static void check_bounds_below(const struct trust_settings *with, enum trust_level level,
			       const struct trust_bounds *bounds)
{
	for (size_t which = 0; which < 3; which++) {
		struct trust_bounds less = *bounds;

		if (lower_bound(&less, which))
			assert_true(trust_effective(with, level, &less) <= trust_effective(with, level, bounds));
	}
}

/* More of anything that trusts is never less in the end: record, policy, loan and confidence, each against one less. */
static void bounds_only_bound(void **state)
{
	for (size_t i = 0; i < settings_count; i += STRIDE)
		for (int level = 0; level < TRUST_COUNT; level++)
			for (unsigned bits = 0; bits < 125; bits++) {
				const struct trust_bounds bounds = { bits % 5, bits / 5 % 5, bits / 25 };
				enum trust_level got = trust_effective(&settings[i], level, &bounds);

				assert_true(got <= bounds.policy && got <= bounds.confidence);
				assert_true(got <= settings[i].ceiling);
				assert_true(got <= (enum trust_level)level || got <= bounds.lent);
				if (level)
					assert_true(trust_effective(&settings[i], level - 1, &bounds) <= got);
				check_bounds_below(&settings[i], level, &bounds);
			}
}

/* A policy that trusts more, in floor, start or ceiling, gives no record less. */
static void a_policy_that_trusts_more_gives_no_less(void **state)
{
	static const struct trust_bounds bounds = { TRUST_FULL, TRUST_NONE, TRUST_FULL };

	for (size_t i = 0; i < settings_count; i += STRIDE)
		for (size_t s = 0; s < state_count; s++)
			for (int which = 0; which < 3; which++) {
				struct trust_settings more = settings[i];
				enum trust_level less_level = trust_level_of(&states[s], &settings[i]), level;

				more.floor += which == 0 && more.floor < more.start;
				more.start += which == 1 && more.start < more.ceiling;
				more.ceiling += which == 2 && more.ceiling < TRUST_FULL;
				level = trust_level_of(&states[s], &more);
				assert_true(level >= less_level);
				assert_true(trust_effective(&more, level, &bounds) >=
					    trust_effective(&settings[i], less_level, &bounds));
			}
}

/*
 * What a session has after something bad, where what was lent has ended: never more than before, whatever its policy,
 * its loan and its caller's confidence. Of each level that states come to one state is enough for the bounds, which see
 * nothing else.
 */
static void a_bad_event_raises_no_session(void **state)
{
	size_t lowered = 0;

	for (size_t i = 0; i < settings_count; i += STRIDE)
		for (size_t s = i % 25; s < state_count; s += 25)
			for (int event = 0; event < TRUST_EVENT_END; event++)
				for (unsigned bits = 0; is_bad(event) && bits < 125; bits++) {
					struct trust_bounds bounds = { bits % 5, bits / 5 % 5, bits / 25 };
					struct trust_state next = trust_step(&states[s], &settings[i], event, 0, NOW_S);
					enum trust_level before = trust_effective(
						&settings[i], trust_level_of(&states[s], &settings[i]), &bounds);
					enum trust_level now;

					bounds.lent = TRUST_NONE;
					now = trust_effective(&settings[i], trust_level_of(&next, &settings[i]),
							      &bounds);
					assert_true(now <= before);
					lowered += now < before;
				}
	assert_true(lowered > 10000 / STRIDE);
}

static void confidence_only_tightens(void **state)
{
	static const char *const wrong[] = { "", "1.1", "-1", "sure", "unlimited", "0.5x", "2", "1e-1", "Low" };
	uint32_t confidence, before = 0;

	for (uint32_t i = 0; i < 1000; i++)
		assert_true(trust_confidence_level(i) <= trust_confidence_level(i + 1));
	assert_int_equal(trust_confidence_level(0), TRUST_NONE);
	assert_int_equal(trust_confidence_level(1000), TRUST_FULL);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_int_equal(trust_confidence_parse(wrong[i], &confidence), -EINVAL);
	for (size_t i = 0; i < 6; i++) {
		static const char *const right[] = { "0", "low", "0.5", "medium", "high", "1" };

		assert_int_equal(trust_confidence_parse(right[i], &confidence), 0);
		assert_true(confidence >= before);
		before = confidence;
	}
}

static void every_event_has_its_row(void **state)
{
	for (int event = 0; event < TRUST_EVENT_END; event++) {
		assert_non_null(trust_rules[event].name);
		assert_non_null(trust_rules[event].words);
		assert_int_equal(trust_rules[event].is_bad, trust_rules[event].weight > 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bad_event_never_raises),
		cmocka_unit_test(nothing_but_the_named_events_raises),
		cmocka_unit_test(who_stood_better_stands_no_worse),
		cmocka_unit_test(each_strain_is_like_the_next),
		cmocka_unit_test(every_pair_under_one_policy),
		cmocka_unit_test(later_is_never_worse),
		cmocka_unit_test(a_raise_lowers_nobody_and_the_other_way_round),
		cmocka_unit_test(strain_halves_and_no_time_passes_backwards),
		cmocka_unit_test(how_often_somebody_looks_makes_no_difference),
		cmocka_unit_test(probation_takes_clean_sessions_in_a_row),
		cmocka_unit_test(a_fall_comes_back_late_and_only_when_a_session_begins),
		cmocka_unit_test(a_canary_is_forgiven_by_people_alone),
		cmocka_unit_test(what_would_change_it_is_what_changes_it),
		cmocka_unit_test(bounds_only_bound),
		cmocka_unit_test(a_policy_that_trusts_more_gives_no_less),
		cmocka_unit_test(a_bad_event_raises_no_session),
		cmocka_unit_test(confidence_only_tightens),
		cmocka_unit_test(every_event_has_its_row),
	};

	return cmocka_run_group_tests(tests, make, NULL);
}
