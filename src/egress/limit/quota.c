/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/limit/quota.h"

#include <stdlib.h>
#include <string.h>

#include "base/bucket.h"
#include "base/buf.h"
#include "base/str.h"

enum { MS_NS = 1000000, EPISODE_MS = 60000, KEY_MAX = 512 << 10 };

struct meter {
	struct net_limits limits;
	const char *rule;                /* borrowed from the policy; NULL: the session's */
	char *key;                       /* what the rule is about, for quota_change(); NULL as above */
	struct bucket buckets[NET_LIMIT_COUNT];
	uint64_t used_bytes[QUOTA_WAY_COUNT];
	uint64_t open;                   /* connections */
	char **hosts;                    /* sorted; NET_LIMIT_HOSTS of them at most */
	size_t host_count;
	uint64_t quiet_ns[NET_LIMIT_COUNT]; /* until then a hit belongs to the episode that was told */
};

struct quota {
	struct meter *meters;            /* the session's, then in the order of policy->network_limited */
	size_t count;
	void (*on_hit)(void *context, const struct quota_hit *hit);
	void *context;
};

/* ---- buckets ---- */

/* At most so much is saved up: a fifth of a second's worth of bytes, else a period's. */
static struct bucket_limit bucket_limit_of(const struct meter *meter, enum net_limit kind)
{
	const struct net_amount *limit = &meter->limits.of[kind];
	double capacity = (double)limit->amount;

	if (net_limit_is_bytes[kind])
		capacity = capacity * 200.0 / (double)limit->period_ms;
	return (struct bucket_limit){ limit->amount, limit->period_ms, capacity };
}

static double fill(struct meter *meter, enum net_limit kind, uint64_t now_ns)
{
	struct bucket_limit limit = bucket_limit_of(meter, kind);

	return bucket_fill(&meter->buckets[kind], &limit, now_ns);
}

/* ---- meters ---- */

/* The next meter of a share from *at on, NULL at the end. */
static struct meter *next_meter(const struct quota_share *share, size_t *at)
{
	struct quota *quota = share->quota;

	for (; *at < quota->count; ++*at)
		if (!*at || share->rules >> (*at - 1) & 1)
			return &quota->meters[(*at)++];
	return NULL;
}

static struct quota_hit hit_of(const struct meter *meter, enum net_limit kind)
{
	return (struct quota_hit){ meter->rule, kind, meter->limits.of[kind].amount };
}

static void report_hit(struct quota *quota, struct meter *meter, enum net_limit kind, uint64_t now_ns)
{
	uint64_t period_ms = meter->limits.of[kind].period_ms;
	bool has_end = net_limit_has_period[kind] || kind == NET_LIMIT_CONNECTIONS;
	bool is_new = now_ns >= meter->quiet_ns[kind];
	struct quota_hit hit = hit_of(meter, kind);

	if (period_ms < EPISODE_MS)
		period_ms = EPISODE_MS;
	meter->quiet_ns[kind] = has_end ? now_ns + period_ms * MS_NS : UINT64_MAX;
	if (is_new)
		quota->on_hit(quota->context, &hit);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What the limits of bytes leave for one way; *ret_kind is the one that leaves the least. */
static uint64_t bytes_left(const struct meter *meter, enum quota_way way, enum net_limit *ret_kind)
{
	const struct {
		enum net_limit kind;
		uint64_t used;
	} totals[] = {
		{ NET_LIMIT_TOTAL, meter->used_bytes[QUOTA_IN] + meter->used_bytes[QUOTA_OUT] },
		{ way == QUOTA_IN ? NET_LIMIT_IN : NET_LIMIT_OUT, meter->used_bytes[way] },
	};
	uint64_t left = UINT64_MAX;

	*ret_kind = NET_LIMIT_TOTAL;
	for (size_t i = 0; i < ARRAY_SIZE(totals); i++) {
		uint64_t amount = meter->limits.of[totals[i].kind].amount;
		uint64_t here = amount - least(totals[i].used, amount);

		if (amount && here < left) {
			left = here;
			*ret_kind = totals[i].kind;
		}
	}
	return left;
}

size_t quota_ask(const struct quota_share *share, enum quota_way way, size_t wanted, uint64_t now_ns)
{
	struct meter *meter;
	enum net_limit kind;
	double tokens;

	for (size_t at = 0; (meter = next_meter(share, &at));) {
		wanted = (size_t)least(wanted, bytes_left(meter, way, &kind));
		if (!meter->limits.of[NET_LIMIT_RATE].amount)
			continue;
		tokens = fill(meter, NET_LIMIT_RATE, now_ns);
		if (tokens < 1)
			report_hit(share->quota, meter, NET_LIMIT_RATE, now_ns);
		wanted = (size_t)least(wanted, tokens > 0 ? (uint64_t)tokens : 0);
	}
	return wanted;
}

bool quota_has_rate(const struct quota_share *share)
{
	struct meter *meter;

	for (size_t at = 0; (meter = next_meter(share, &at));)
		if (meter->limits.of[NET_LIMIT_RATE].amount)
			return true;
	return false;
}

void quota_use(const struct quota_share *share, enum quota_way way, size_t bytes)
{
	struct meter *meter;

	for (size_t at = 0; (meter = next_meter(share, &at));) {
		meter->used_bytes[way] += bytes;
		meter->buckets[NET_LIMIT_RATE].tokens -= (double)bytes;
	}
}

int quota_spend(const struct quota_share *share, enum quota_way way, size_t bytes, uint64_t now_ns,
		struct quota_hit *ret_hit)
{
	struct meter *meter;
	enum net_limit kind;

	for (size_t at = 0; (meter = next_meter(share, &at));)
		if (bytes_left(meter, way, &kind) < bytes) {
			*ret_hit = hit_of(meter, kind);
			report_hit(share->quota, meter, kind, now_ns);
			return 1;
		}
	quota_use(share, way, bytes);
	return 0;
}

uint64_t quota_used(const struct quota *quota, enum quota_way way)
{
	return quota->meters[0].used_bytes[way];
}

bool quota_is_used_up(const struct quota_share *share, enum quota_way way, uint64_t now_ns)
{
	struct meter *meter;
	enum net_limit kind;

	for (size_t at = 0; (meter = next_meter(share, &at));)
		if (!bytes_left(meter, way, &kind)) {
			report_hit(share->quota, meter, kind, now_ns);
			return true;
		}
	return false;
}

/* ---- connections and requests ---- */

/* Where host stands, or would stand. */
static size_t find_host(const struct meter *meter, const char *host, bool *ret_is_there)
{
	size_t low = 0, high = meter->host_count;

	*ret_is_there = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int r = strcmp(meter->hosts[middle], host);

		*ret_is_there |= r == 0;
		if (r < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool has_room_for_host(const struct meter *meter, const char *host)
{
	uint64_t amount = meter->limits.of[NET_LIMIT_HOSTS].amount;
	bool is_there;

	if (!amount || meter->host_count < amount)
		return true;
	(void)find_host(meter, host, &is_there);
	return is_there;
}

static int remember_host(struct meter *meter, const char *host)
{
	bool is_there;
	size_t at = find_host(meter, host, &is_there);

	if (!meter->limits.of[NET_LIMIT_HOSTS].amount || is_there)
		return 0;
	if (!meter->hosts)
		meter->hosts = calloc(NET_HOSTS_MAX, sizeof *meter->hosts);
	host = meter->hosts ? str_dup(host) : NULL;
	if (!host)
		return -ENOMEM;
	memmove(meter->hosts + at + 1, meter->hosts + at, (meter->host_count - at) * sizeof *meter->hosts);
	meter->hosts[at] = (char *)host;
	meter->host_count++;
	return 0;
}

/* The limit that keeps a connection to host from beginning; NET_LIMIT_COUNT: none. */
static enum net_limit connection_limit(struct meter *meter, const char *host, uint64_t now_ns)
{
	const struct net_amount *of = meter->limits.of;
	enum net_limit kind;

	for (int way = 0; way < QUOTA_WAY_COUNT; way++)
		if (!bytes_left(meter, (enum quota_way)way, &kind))
			return kind;
	if (of[NET_LIMIT_CONNECTIONS].amount && meter->open >= of[NET_LIMIT_CONNECTIONS].amount)
		return NET_LIMIT_CONNECTIONS;
	if (!has_room_for_host(meter, host))
		return NET_LIMIT_HOSTS;
	if (of[NET_LIMIT_NEW_CONNECTIONS].amount && fill(meter, NET_LIMIT_NEW_CONNECTIONS, now_ns) < 1)
		return NET_LIMIT_NEW_CONNECTIONS;
	return NET_LIMIT_COUNT;
}

int quota_connect(const struct quota_share *share, const char *host, uint64_t now_ns, struct quota_hit *ret_hit)
{
	struct meter *meter;

	for (size_t at = 0; (meter = next_meter(share, &at));) {
		enum net_limit kind = connection_limit(meter, host, now_ns);

		if (kind == NET_LIMIT_COUNT)
			continue;
		*ret_hit = hit_of(meter, kind);
		report_hit(share->quota, meter, kind, now_ns);
		return 1;
	}
	for (size_t at = 0; (meter = next_meter(share, &at));)
		if (remember_host(meter, host) < 0)
			return -ENOMEM;
	for (size_t at = 0; (meter = next_meter(share, &at));) {
		meter->open++;
		meter->buckets[NET_LIMIT_NEW_CONNECTIONS].tokens -= 1;
	}
	return 0;
}

void quota_hold(const struct quota_share *share)
{
	struct meter *meter;

	for (size_t at = 0; (meter = next_meter(share, &at));)
		meter->open++;
}

void quota_disconnect(const struct quota_share *share)
{
	struct meter *meter;

	for (size_t at = 0; (meter = next_meter(share, &at));)
		meter->open--;
}

int quota_request(const struct quota_share *share, uint64_t now_ns, struct quota_hit *ret_hit, uint64_t *ret_wait_ms)
{
	const enum net_limit kind = NET_LIMIT_REQUESTS;
	struct meter *meter;

	for (size_t at = 0; (meter = next_meter(share, &at));) {
		struct bucket_limit limit = bucket_limit_of(meter, kind);

		if (!limit.amount || bucket_fill(&meter->buckets[kind], &limit, now_ns) >= 1)
			continue;
		*ret_hit = hit_of(meter, kind);
		*ret_wait_ms = bucket_wait_ms(&meter->buckets[kind], &limit);
		report_hit(share->quota, meter, kind, now_ns);
		return 1;
	}
	for (size_t at = 0; (meter = next_meter(share, &at));)
		meter->buckets[kind].tokens -= 1;
	return 0;
}

/* ---- policies ---- */

static void meter_done(struct meter *meter)
{
	for (size_t i = 0; i < meter->host_count; i++)
		free(meter->hosts[i]);
	free(meter->hosts);
	free(meter->key);
}

static void meters_free(struct meter *meters, size_t count)
{
	for (size_t i = 0; meters && i < count; i++)
		meter_done(&meters[i]);
	free(meters);
}

/* "a.org:443,8443": rules that say the same about different things have different keys. */
static char *make_key(const struct net_rule *rule)
{
	struct buf out;
	char *key;

	buf_init(&out, KEY_MAX);
	buf_put_text(&out, rule->host ? rule->host : rule->cidr);
	for (size_t i = 0; i < rule->port_count; i++)
		buf_printf(&out, "%c%u", i ? ',' : ':', rule->ports[i]);
	key = str_dup(buf_text(&out));
	buf_done(&out);
	return key;
}

static void meter_start(struct meter *meter, const struct net_limits *limits, uint64_t now_ns)
{
	meter->limits = *limits;
	for (int kind = 0; kind < NET_LIMIT_COUNT; kind++) {
		struct bucket_limit limit = bucket_limit_of(meter, (enum net_limit)kind);

		if (net_limit_has_period[kind] && limit.amount)
			meter->buckets[kind] = bucket_start(&limit, now_ns);
	}
}

static int meters_new(struct meter **ret_meters, const struct policy *policy, uint64_t now_ns)
{
	size_t count = policy->network.limited_count + 1;
	struct meter *meters = calloc(count, sizeof *meters);

	if (!meters)
		return -ENOMEM;
	meter_start(&meters[0], &policy->network.limits, now_ns);
	for (size_t i = 1; i < count; i++) {
		const struct net_rule *rule = &policy->network.rules[policy->network.limited[i - 1]];

		meter_start(&meters[i], rule->limits, now_ns);
		meters[i].rule = rule->origin.id;
		meters[i].key = make_key(rule);
		if (!meters[i].key) {
			meters_free(meters, count);
			return -ENOMEM;
		}
	}
	*ret_meters = meters;
	return 0;
}

int quota_new(struct quota **ret_quota, const struct policy *policy, uint64_t now_ns,
	      void (*on_hit)(void *context, const struct quota_hit *hit), void *context)
{
	struct quota *quota = calloc(1, sizeof *quota);

	if (!quota)
		return -ENOMEM;
	if (meters_new(&quota->meters, policy, now_ns) < 0) {
		free(quota);
		return -ENOMEM;
	}
	quota->count = policy->network.limited_count + 1;
	quota->on_hit = on_hit;
	quota->context = context;
	*ret_quota = quota;
	return 0;
}

void quota_free(struct quota *quota)
{
	if (!quota)
		return;
	meters_free(quota->meters, quota->count);
	free(quota);
}

/* What a meter has counted goes on under other limits. A rate that stays as it is gives no second burst. */
static void carry_over(struct meter *to, struct meter *from)
{
	for (int kind = 0; kind < NET_LIMIT_COUNT; kind++) {
		const struct net_amount *a = &from->limits.of[kind], *b = &to->limits.of[kind];

		if (a->amount && b->amount && from->buckets[kind].tokens < to->buckets[kind].tokens)
			to->buckets[kind] = from->buckets[kind];
		if (a->amount == b->amount && a->period_ms == b->period_ms)
			to->quiet_ns[kind] = from->quiet_ns[kind];
	}
	memcpy(to->used_bytes, from->used_bytes, sizeof to->used_bytes);
	to->hosts = take_ptr(from->hosts);
	to->host_count = from->host_count;
	from->host_count = 0;
}

int quota_change(struct quota *quota, const struct policy *policy, uint64_t now_ns)
{
	size_t count = policy->network.limited_count + 1;
	struct meter *meters;
	int r = meters_new(&meters, policy, now_ns);

	if (r < 0)
		return r;
	carry_over(&meters[0], &quota->meters[0]);
	for (size_t i = 1; i < count; i++)
		for (size_t old = 1; old < quota->count; old++)
			if (quota->meters[old].key && str_equal(meters[i].key, quota->meters[old].key)) {
				carry_over(&meters[i], &quota->meters[old]);
				free(take_ptr(quota->meters[old].key));
				break;
			}
	meters_free(quota->meters, quota->count);
	quota->meters = meters;
	quota->count = count;
	return 0;
}
