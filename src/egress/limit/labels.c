/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/limit/labels.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "policy/decide.h"

enum { SLOTS_FIRST = 64 };

/* Of one rule, known by its text, so that another policy goes on where the last one was; or of the session ("*"). */
struct meter {
	struct meter *next;
	char *key;                       /* owned */
	uint64_t used_bytes;
	bool is_told;
	uint64_t *slots;                 /* hashes of names, by open addressing; 0: free */
	size_t slot_count, name_count;
	uint64_t last;                   /* hash of the name of the last connection */
	unsigned order_bits;             /* said by the order of known ones, less than a byte */
};

struct labels {
	uint8_t seed[crypto_shorthash_KEYBYTES];
	struct meter *first;
};

/* What one connection says to one meter. */
struct count {
	struct meter *meter;
	const struct net_rule *rule;     /* NULL: the session */
	uint64_t amount;
	size_t bytes;
	bool is_new;
};

struct labels *labels_new(const uint8_t seed[16])
{
	struct labels *labels = calloc(1, sizeof *labels);

	_Static_assert(crypto_shorthash_KEYBYTES == 16, "the seed is the key");
	if (labels)
		memcpy(labels->seed, seed, sizeof labels->seed);
	return labels;
}

void labels_free(struct labels *labels)
{
	struct meter *next;

	for (struct meter *meter = labels ? labels->first : NULL; meter; meter = next) {
		next = meter->next;
		free(meter->key);
		free(meter->slots);
		free(meter);
	}
	free(labels);
}

static struct meter *find_meter(struct labels *labels, const char *key)
{
	struct meter *meter = labels->first;

	while (meter && !str_equal(meter->key, key))
		meter = meter->next;
	if (meter)
		return meter;
	meter = calloc(1, sizeof *meter);
	if (!meter)
		return NULL;
	meter->key = str_dup(key);
	if (!meter->key) {
		free(meter);
		return NULL;
	}
	meter->next = labels->first;
	labels->first = meter;
	return meter;
}

static uint64_t hash_of(const struct labels *labels, const char *host)
{
	uint64_t hash;

	_Static_assert(crypto_shorthash_BYTES == sizeof hash, "a hash is a number");
	crypto_shorthash((unsigned char *)&hash, (const unsigned char *)host, strlen(host), labels->seed);
	return hash ? hash : 1;
}

/* Where it is, or would be; there is always a free slot. */
static uint64_t *slot_of(uint64_t *slots, size_t count, uint64_t hash)
{
	size_t at = hash % count;

	while (slots[at] && slots[at] != hash)
		at = (at + 1) % count;
	return &slots[at];
}

static bool has_name(const struct meter *meter, uint64_t hash)
{
	return meter->slot_count && *slot_of(meter->slots, meter->slot_count, hash);
}

/* Half of them at most are in use. */
static bool make_room(struct meter *meter)
{
	size_t count = meter->slot_count ? 2 * meter->slot_count : SLOTS_FIRST;
	uint64_t *slots;

	if (2 * (meter->name_count + 1) <= meter->slot_count)
		return true;
	slots = calloc(count, sizeof *slots);
	if (!slots)
		return false;
	for (size_t i = 0; i < meter->slot_count; i++)
		if (meter->slots[i])
			*slot_of(slots, count, meter->slots[i]) = meter->slots[i];
	free(meter->slots);
	meter->slots = slots;
	meter->slot_count = count;
	return true;
}

static int measure_name(struct labels *labels, struct count *count, uint64_t hash)
{
	count->meter = find_meter(labels, count->rule ? count->rule->host : "*");
	if (!count->meter)
		return -ENOMEM;
	/* Where there is no end to them, they are not remembered. */
	count->is_new = count->amount == UINT64_MAX || !has_name(count->meter, hash);
	if (!count->is_new || count->amount == UINT64_MAX)
		return 0;
	if (count->meter->used_bytes > count->amount || count->bytes > count->amount - count->meter->used_bytes)
		return 1;
	return make_room(count->meter) ? 0 : -ENOMEM;
}

/* Which of the names that are known comes next is a number: so many bits of one. The same again says nothing. */
static unsigned order_bits(const struct meter *meter, uint64_t hash)
{
	unsigned bits = 0;

	while (hash != meter->last && meter->name_count > 1 && (meter->name_count - 1) >> bits)
		bits++;
	return bits;
}

/* The bytes that are said with it. */
static size_t remember_name(const struct count *count, uint64_t hash)
{
	struct meter *meter = count->meter;
	size_t bytes = count->bytes;

	if (count->amount == UINT64_MAX)
		return bytes;
	if (count->is_new) {
		meter->used_bytes += bytes;
		meter->name_count++;
		*slot_of(meter->slots, meter->slot_count, hash) = hash;
	} else {
		meter->order_bits += order_bits(meter, hash);
		bytes = meter->order_bits / 8;
		meter->order_bits %= 8;
	}
	meter->last = hash;
	return bytes;
}

/* Of each rule, then of the session, if it has a limit. */
static size_t list_counts(const struct policy *policy, const struct action *connection,
			  struct count counts[LABELS_RULES_MAX + 1])
{
	const struct net_rule *rules[LABELS_RULES_MAX];
	size_t count = policy_wildcards(policy, connection, rules, LABELS_RULES_MAX), most = 0;
	uint64_t session = policy->network.limits.of[NET_LIMIT_LABELS].amount;

	for (size_t i = 0; i < count; i++) {
		/* Without the dot that the wildcard's own part begins with. */
		size_t bytes = strlen(connection->subject) - (strlen(rules[i]->host) - 1);

		counts[i] = (struct count){ .rule = rules[i], .amount = policy_label_limit(policy, rules[i]),
					    .bytes = bytes };
		most = bytes > most ? bytes : most;
	}
	if (count && session)
		counts[count++] = (struct count){ .amount = session, .bytes = most };
	return count;
}

int labels_take(struct labels *labels, const struct policy *policy, const struct action *connection, size_t *ret_bytes,
		struct labels_hit *ret_hit)
{
	struct count counts[LABELS_RULES_MAX + 1];
	size_t count = list_counts(policy, connection, counts);
	uint64_t hash = count ? hash_of(labels, connection->subject) : 0;

	*ret_bytes = 0;
	for (size_t i = 0; i < count; i++) {
		int r = measure_name(labels, &counts[i], hash);

		if (r == 1) {
			*ret_hit = (struct labels_hit){ counts[i].rule ? counts[i].rule->origin.id : NULL,
							counts[i].amount, !counts[i].meter->is_told };
			counts[i].meter->is_told = true;
		}
		if (r)
			return r;
	}
	for (size_t i = 0; i < count; i++) {
		size_t bytes = remember_name(&counts[i], hash);

		*ret_bytes = bytes > *ret_bytes ? bytes : *ret_bytes;
	}
	return 0;
}
