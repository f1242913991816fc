/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/limit-text.h"

#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/str.h"

void net_limit_to_text(enum net_limit kind, const struct net_amount *amount, char out[NET_LIMIT_TEXT_SIZE])
{
	char number[32];
	struct buf text;

	if (net_limit_is_bytes[kind])
		num_format_size(amount->amount ? amount->amount : NUM_UNLIMITED, number);
	else
		num_format_count(amount->amount ? amount->amount : NUM_UNLIMITED, number);
	buf_init_fixed(&text, out, NET_LIMIT_TEXT_SIZE);
	buf_put_text(&text, number);
	if (amount->amount && net_limit_has_period[kind])
		buf_put_text(&text, amount->period_ms == 1000 ? "/s" : amount->period_ms == 60000 ? "/min" : "/h");
	(void)buf_text(&text);
}

void net_limit_key(const char *rule, enum net_limit kind, char out[NET_LIMIT_KEY_SIZE])
{
	if (kind >= NET_LIMIT_COUNT || str_format(out, NET_LIMIT_KEY_SIZE, "%s.limits.%s", rule ? rule : "network",
						  net_limit_names[kind]) < 0)
		memcpy(out, "network.limits", sizeof "network.limits");
}

void rate_to_text(const struct net_amount *rate, char out[NET_LIMIT_TEXT_SIZE])
{
	net_limit_to_text(NET_LIMIT_REQUESTS, rate, out);
}

void cooldown_to_text(const struct cooldown_rule *rule, char out[COOLDOWN_TEXT_SIZE])
{
	char within[32], pause[32];

	num_format_duration(rule->within_ms, within);
	num_format_duration(rule->pause_ms, pause);
	if (!rule->denials || str_format(out, COOLDOWN_TEXT_SIZE, "%llu in %s: %s",
					 (unsigned long long)rule->denials, within, pause) < 0)
		memcpy(out, "none", sizeof "none");
}
