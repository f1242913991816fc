/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/address-block.h"
#include "base/str.h"
#include "lang/resolve/chain.h"
#include "policy/decide.h"

/* What is allowed more widely than it looks, in policies that are valid. */

/*
 * The first word is what the caller says that it is called, and a file can have any name: whoever can bring a program
 * along has it run. What atoll ships cannot be mended where it is used.
 */
void warn_of_names(struct lang *lang, const struct draft_exec *exec)
{
	const char *name = exec->argv.count ? ((const char *const *)exec->argv.items)[0] : NULL;
	bool is_plain = name && *name && !strpbrk(name, "*?[\\/");

	if (exec->verdict != VERDICT_ALLOW || exec->program || !name || exec->from.is_shipped)
		return;
	if (is_plain)
		diag_add(&lang->warnings, exec->from.place,
			 "without \"program\" any file that is called \"%.60s\" may run; name the program by its "
			 "path: {program: /usr/bin/%.60s, argv: [...]}", name, name);
	else
		diag_add(&lang->warnings, exec->from.place,
			 "without \"program\" any file whose name matches \"%.60s\" may run; name the program by its "
			 "path: {program: ..., argv: [...]}", name);
}

/* The rule that lets all requests through where from lists some; NULL: there is none. */
static const struct net_rule *find_open_rule(const struct policy *policy, const struct draft_net *from,
					     const char *host)
{
	const uint16_t *ports = from->ports.items;

	for (size_t i = 0; i < policy->network.exact_count; i++) {
		const struct net_rule *rule = &policy->network.rules[i];
		struct action action = { .kind = ACTION_NET_CONNECT, .subject = host };

		if (rule->verdict != VERDICT_ALLOW || rule->http_count)
			continue;
		for (size_t p = 0; p < from->ports.count || p == 0; p++) {
			/* A rule without ports is about each that the other names. */
			action.port = from->ports.count ? ports[p] : rule->port_count ? rule->ports[0] : 443;
			if (policy_rule_covers(rule, &action))
				return rule;
		}
	}
	return NULL;
}

/* Whether each of the rule's ports is one that leads to this machine. */
static bool is_of_host_ports(const struct policy *policy, const struct draft_net *from)
{
	const uint16_t *ports = from->ports.items;

	for (size_t i = 0; i < from->ports.count; i++)
		if (!policy_host_port(policy, ports[i]))
			return false;
	return from->ports.count > 0;
}

/* What people write who want a server of this machine, and what it means instead. */
void warn_of_loopback(struct lang *lang, const struct policy *policy)
{
	DRAFT_EACH(struct draft_net, from, &lang->draft.network)
	{
		bool gives = from->verdict == VERDICT_ALLOW || from->verdict == VERDICT_ASK;
		const char *number = from->cidr
			? arena_format(&lang->arena, "%.*s", (int)strcspn(from->cidr, "/"), from->cidr) : NULL;

		if (gives && from->host && str_equal(from->host, "localhost") && !is_of_host_ports(policy, from))
			diag_add(&lang->warnings, from->from.place,
				 "inside, localhost is the sandbox's own and always open; for a server of this "
				 "machine write host_ports: [PORT] under network");
		if (gives && number && address_host_is_loopback(number))
			diag_add(&lang->warnings, from->from.place,
				 "this opens no port at localhost: it lets allowed names lead to loopback addresses "
				 "of this machine; for a server of this machine write host_ports: [PORT] under "
				 "network");
	}
}

void warn_of_open_hosts(struct lang *lang, const struct policy *policy)
{
	DRAFT_EACH(struct draft_net, from, &lang->draft.network)
	{
		const struct net_rule *open = NULL;
		const char *host = from->host;

		if (host && host[0] == '*')
			host = arena_format(&lang->arena, "x%s", from->host + 1);
		if (host && from->http.count && from->verdict == VERDICT_ALLOW)
			open = find_open_rule(policy, from, host);
		if (open)
			diag_add(&lang->warnings, from->from.place,
				 "this lists requests of \"%.80s\", but %s (%s:%u) lets all of them through; drop that "
				 "rule, or give it http as well", from->host, open->origin.id, open->origin.file,
				 open->origin.line);
	}
}
