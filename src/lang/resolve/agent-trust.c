/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "lang/resolve/chain.h"

/* The section `trust:` of all texts together: what is not said, and what contradicts itself. */

static const struct draft_scalar *given(const struct lang *lang, unsigned kind)
{
	const struct draft_scalar *scalar = &lang->draft.scalars[kind];

	return scalar->is_set ? scalar : NULL;
}

static uint64_t value_of(const struct draft_scalar *scalar, uint64_t otherwise)
{
	return scalar ? scalar->value : otherwise;
}

/*
 * Nothing may be above what bounds it. Where one text says both, that is an error; where they come from two, the lower
 * one of them counts: a policy that lowers the ceiling means all of what is below.
 */
static enum trust_level bounded(struct lang *lang, const struct draft_scalar *scalar, enum trust_level level,
				const struct draft_scalar *bound, enum trust_level most)
{
	if (level <= most)
		return level;
	if (scalar && bound && str_equal(scalar->place.file, bound->place.file))
		diag_add(&lang->diags, scalar->place, "%s is %s, above %s, which is %s (line %u)", scalar->id,
			 trust_level_names[level], bound->id, trust_level_names[most], bound->place.line);
	return most;
}

static void check_level(struct lang *lang, const struct draft_scalar *ceiling)
{
	const struct draft_scalar *first = NULL;

	for (unsigned i = SCALAR_TRUST_AGENT; i <= SCALAR_TRUST_AT && !first; i++)
		first = given(lang, i);
	if (first && !lang->has_level)
		diag_add(&lang->diags, first->place,
			 "the policy extends no trust level, so that there is none to lower; say `extends: medium` or "
			 "another one");
	else if (ceiling && ceiling->value > lang->natural)
		diag_add(&lang->diags, ceiling->place, "the ceiling is %s, and the policy extends %s",
			 trust_level_names[ceiling->value], trust_level_names[lang->natural]);
}

struct trust_settings trust_finish(struct lang *lang)
{
	const struct draft_scalar *agent = given(lang, SCALAR_TRUST_AGENT), *start = given(lang, SCALAR_TRUST_START);
	const struct draft_scalar *ceiling = given(lang, SCALAR_TRUST_CEILING);
	const struct draft_scalar *floor = given(lang, SCALAR_TRUST_FLOOR);
	const struct draft_scalar *sessions = given(lang, SCALAR_TRUST_SESSIONS), *at = given(lang, SCALAR_TRUST_AT);
	struct trust_settings trust = {
		.agent = agent ? agent->text : NULL,
		.ceiling = (enum trust_level)value_of(ceiling, lang->natural),
		.raise = (enum trust_level)value_of(given(lang, SCALAR_TRUST_RAISE), TRUST_NONE),
		.probation_sessions = (uint32_t)value_of(sessions, 0),
		.probation_at = (enum trust_level)value_of(at, value_of(start, TRUST_LOW)),
		.on_fall = (enum trust_on_fall)value_of(given(lang, SCALAR_TRUST_ON_FALL), TRUST_FALL_NOTE),
		.half_life_ms = value_of(given(lang, SCALAR_TRUST_HALF_LIFE), TRUST_HALF_LIFE_MS),
		.has_level = lang->has_level,
	};

	for (unsigned i = SCALAR_TRUST_AGENT; i <= SCALAR_TRUST_AT; i++)
		trust.is_given |= given(lang, i) != NULL;
	check_level(lang, ceiling);
	/* Who has a probation begins with it, and who has none stands where the policy puts him. */
	trust.start = (enum trust_level)value_of(start, sessions ? trust.probation_at : trust.ceiling);
	trust.start = bounded(lang, start, trust.start, ceiling, trust.ceiling);
	trust.floor = (enum trust_level)value_of(floor, TRUST_NONE);
	trust.floor = bounded(lang, floor, trust.floor, start, trust.start);
	if (sessions && ceiling && trust.probation_at >= trust.ceiling &&
	    str_equal(sessions->place.file, ceiling->place.file))
		diag_add(&lang->diags, sessions->place, "the probation is at %s, and leads nowhere: the ceiling is %s",
			 trust_level_names[trust.probation_at], trust_level_names[trust.ceiling]);
	return trust;
}
