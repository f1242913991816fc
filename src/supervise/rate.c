/* SPDX-License-Identifier: Apache-2.0 */
#include "supervise/rate.h"

#include "base/num.h"
#include "base/str.h"
#include "os/clock.h"
#include "policy/limit-text.h"
#include "session/run-request.h"
#include "supervise/hub.h"
#include "supervise/refusals.h"
#include "supervise/run.h"

/* Refusals this close to one another are one episode: a record, and a line for the agent. */
enum { MS_NS = 1000000, EPISODE_MS = 60000, REASON_SIZE = 128 };

const char rate_cooldown_rule[] = "time.cooldown";

static const struct {
	const char *rule;
	enum action_kind action;
} kinds[RATE_KIND_COUNT] = {
	[RATE_EXEC] = { "time.rate.exec", ACTION_EXEC },
	[RATE_FILE_READ] = { "time.rate.file.read", ACTION_FILE_READ },
	[RATE_FILE_WRITE] = { "time.rate.file.write", ACTION_FILE_WRITE },
};

static struct bucket_limit bucket_limit_of(const struct net_amount *rate)
{
	return (struct bucket_limit){ rate->amount, rate->period_ms, (double)rate->amount };
}

bool rate_is_limited(const struct run *run, enum rate_kind kind)
{
	const struct policy *policy = run->policy->policy;

	return policy->rates[kind].amount || policy->cooldown.denials;
}

/* Whole seconds, and none too few. */
static void format_wait(uint64_t ms, char out[32])
{
	num_format_duration((ms + 999) / 1000 * 1000, out);
}

/* The agent hears of it once an episode: a loop would fill its file with the same line. */
static int tell_agent(struct run *run, enum rate_kind kind, const char *rule, const char *reason, uint32_t episode)
{
	struct action action = { .kind = kinds[kind].action, .subject = rate_kind_names[kind] };
	struct decision decision = { VERDICT_DENY, { rule, "", 0 }, reason,
				     "wait until then: more tries are refused as well", NULL };

	return denials_add(&run->refusals->denials, &action, &decision, episode);
}

static int refuse_for_pause(struct run *run, enum rate_kind kind, uint64_t left_ms)
{
	char reason[REASON_SIZE], left[32];
	int r;

	format_wait(left_ms, left);
	if (str_format(reason, sizeof reason, "too much was refused: nothing is let through for another %s", left) < 0)
		reason[0] = 0;
	run->refusals->denied++;
	r = tell_agent(run, kind, rate_cooldown_rule, reason, run->refusals->rates.cooldown.episodes);
	return r < 0 ? r : 1;
}

static int refuse_for_rate(struct run *run, enum rate_kind kind, uint64_t now_ns)
{
	const struct net_amount *rate = &run->policy->policy->rates[kind];
	struct bucket_limit limit = bucket_limit_of(rate);
	struct rates *rates = &run->refusals->rates;
	bool is_new = now_ns >= rates->quiet_ns[kind];
	char reason[REASON_SIZE], allowed[NET_LIMIT_TEXT_SIZE], left[32];
	int r = 0;

	rates->quiet_ns[kind] = now_ns + (rate->period_ms > EPISODE_MS ? rate->period_ms : EPISODE_MS) * MS_NS;
	rates->episodes[kind] += is_new;
	rate_to_text(rate, allowed);
	format_wait(bucket_wait_ms(&rates->buckets[kind], &limit), left);
	if (str_format(reason, sizeof reason, "more than %s: there is room for the next in %s", allowed, left) < 0)
		reason[0] = 0;
	run->refusals->denied++;
	if (is_new)
		r = run_limit_episode(run, kinds[kind].rule, rate->amount);
	if (r == 0)
		r = tell_agent(run, kind, kinds[kind].rule, reason, rates->episodes[kind]);
	return r < 0 ? r : 1;
}

int rate_take(struct run *run, enum rate_kind kind)
{
	const struct net_amount *rate = &run->policy->policy->rates[kind];
	struct bucket *bucket = &run->refusals->rates.buckets[kind];
	struct bucket_limit limit = bucket_limit_of(rate);
	uint64_t now_ns, left_ms;

	if (!rate_is_limited(run, kind))
		return 0;
	now_ns = clock_monotonic_ns();
	left_ms = cooldown_left_ms(&run->refusals->rates.cooldown, now_ns);
	if (left_ms)
		return refuse_for_pause(run, kind, left_ms);
	if (!rate->amount)
		return 0;
	if (!bucket->filled_ns)
		*bucket = bucket_start(&limit, now_ns);
	if (bucket_fill(bucket, &limit, now_ns) < 1)
		return refuse_for_rate(run, kind, now_ns);
	bucket->tokens -= 1;
	return 0;
}

int rate_refused(struct run *run)
{
	const struct cooldown_rule *rule = &run->policy->policy->cooldown;
	int r = hub_publish(run->hub, EVENT_REFUSED, NULL);

	if (r < 0)
		return r;
	if (!cooldown_count(&run->refusals->rates.cooldown, rule, clock_monotonic_ns()))
		return 0;
	r = run_limit_episode(run, rate_cooldown_rule, rule->denials);
	return r < 0 ? r : hub_publish(run->hub, EVENT_PAUSED, NULL);
}

uint64_t rate_pause_left_ms(const struct run *run)
{
	return cooldown_left_ms(&run->refusals->rates.cooldown, clock_monotonic_ns());
}
