/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "lang/print/diff.h"
#include "lang/print/print.h"
#include "policy/compare/network.h"
#include "policy/compare/parts.h"
#include "policy/decide.h"
#include "policy/glob.h"
#include "policy/limit-text.h"
#include "policy/order.h"
#include "policy/scalars.h"

/*
 * Two policies are compared where either of them says something: every path, host, program, variable and
 * device that a rule of one names is put to both. Between two named paths decisions do not change, so this
 * finds every difference; a pattern is put as a sample of what it matches and shown as itself.
 */

static void add_change(struct differ *differ, const char *dimension, const char *subject, const char *from,
		       const char *to, bool allows)
{
	struct change *change = vec_add(&differ->arena, &differ->changes, sizeof *change);

	if (change)
		*change = (struct change){ dimension, subject, from, to, allows };
}

/*
 * What a verdict means outside: a private place that stands in for a file neither shows nor changes it,
 * so for files it is worth as much as a refusal.
 */
static int worth(enum action_kind kind, enum verdict verdict)
{
	return kind <= ACTION_FILE_APPLY && verdict == VERDICT_SIMULATE ? VERDICT_DENY : (int)verdict;
}

/* shown is what is printed for the action. */
static void compare_action(struct differ *differ, const struct action *action, const char *shown)
{
	enum verdict from = policy_decide(differ->a, action).verdict,
		     to = policy_decide(differ->b, action).verdict;

	if (worth(action->kind, from) == worth(action->kind, to))
		return;
	add_change(differ, action_kind_names[action->kind], shown, verdict_names[from], verdict_names[to],
		   worth(action->kind, to) > worth(action->kind, from));
}

static bool is_same_answer(const struct net_answer *a, const struct net_answer *b)
{
	size_t i = 0;

	if (a->status != b->status || a->body_size != b->body_size || !a->fields != !b->fields ||
	    (a->body_size && memcmp(a->body, b->body, a->body_size) != 0))
		return false;
	while (a->fields && a->fields[i] && b->fields[i] && str_equal(a->fields[i], b->fields[i]))
		i++;
	return !a->fields || str_equal(a->fields[i], b->fields[i]);
}

/* What a request is answered by either policy, where both answer it themselves. */
static void compare_answer(struct differ *differ, const struct action *action, const char *shown)
{
	const struct net_answer *from = policy_decide(differ->a, action).answer,
				*to = policy_decide(differ->b, action).answer;

	if (from && to && !is_same_answer(from, to))
		add_change(differ, "http.answer", shown,
			   arena_format(&differ->arena, "status %u, %zu bytes", from->status, from->body_size),
			   arena_format(&differ->arena, "status %u, %zu bytes", to->status, to->body_size), false);
}

/* A path that the pattern matches. NULL: there is none. */
static const char *sample(struct arena *arena, const char *pattern)
{
	char *out = arena_alloc(arena, strlen(pattern) + 1);

	return out && glob_sample(pattern, out) ? out : NULL;
}

/* A place that both policies show, for patterns that hold everywhere: the project, or some path. */
static const char *shared_place(const struct differ *differ)
{
	const char *place = differ->b->project;
	size_t rule, count = differ->a->files.exact_count;

	for (size_t i = 0; i <= count; i++) {
		if (place[0] && policy_classify(differ->a, place, &rule) > FILE_MASK &&
		    policy_classify(differ->b, place, &rule) > FILE_MASK)
			return place;
		place = i < count ? differ->a->files.rules[i].pattern : "";
	}
	return "";
}

struct probe {
	const char *subject, *shown;
};

static void add_probe(struct differ *differ, struct vec *probes, const char *pattern, bool is_glob)
{
	const char *subject = is_glob ? sample(&differ->arena, pattern) : pattern;
	struct probe *probe;

	if (subject && is_glob && str_has_prefix(pattern, "/**/"))
		subject = arena_format(&differ->arena, "%s%s", shared_place(differ), subject);
	probe = subject ? vec_add(&differ->arena, probes, sizeof *probe) : NULL;
	if (probe)
		*probe = (struct probe){ subject, pattern };
}

static int compare_probes(const void *a, const void *b)
{
	const struct probe *x = a, *y = b;

	return path_compare(x->subject, y->subject);
}

static void gather_files(struct differ *differ, const struct policy *policy, struct vec *probes)
{
	size_t protect_count;
	const struct path_rule *protects = policy_protects(policy, &protect_count);

	for (size_t i = 0; i < policy->files.count; i++) {
		add_probe(differ, probes, policy->files.rules[i].pattern, policy->files.rules[i].flags & FILE_GLOB);
		for (const char *const *except = policy->files.rules[i].except; except && *except; except++)
			add_probe(differ, probes, *except, strpbrk(*except, "*?[\\") != NULL);
	}
	for (size_t i = 0; i < policy->files.ask_count; i++)
		add_probe(differ, probes, policy->files.asks[i].pattern,
			  policy->files.asks[i].flags & FILE_GLOB);
	for (size_t i = 0; i < protect_count; i++)
		add_probe(differ, probes, protects[i].pattern, protects[i].flags & FILE_GLOB);
}

/* A change below a path that changed in the same way is the same change. */
struct covered {
	const char *path;
	int from, to;
};

/* Who can read no program there can start none: that is said by the reading. */
static bool is_of_reading(const struct differ *differ, const struct action *action)
{
	const struct action read = { .kind = ACTION_FILE_READ, .subject = action->subject };

	return action->kind == ACTION_EXEC &&
	       worth(ACTION_FILE_READ, policy_decide(differ->a, &read).verdict) !=
		       worth(ACTION_FILE_READ, policy_decide(differ->b, &read).verdict);
}

static void compare_paths(struct differ *differ, const struct vec *probes, enum action_kind kind)
{
	const struct probe *probe = probes->items;
	struct covered stack[256];
	size_t depth = 0;

	for (size_t i = 0; i < probes->count; i++, probe++) {
		struct action action = { .kind = kind, .subject = probe->subject };
		struct covered now = { probe->subject, worth(kind, policy_decide(differ->a, &action).verdict),
				       worth(kind, policy_decide(differ->b, &action).verdict) };

		if ((i && str_equal(probe->subject, probe[-1].subject)) || is_of_reading(differ, &action))
			continue;
		while (depth && !path_is_below(probe->subject, stack[depth - 1].path))
			depth--;
		if (depth && stack[depth - 1].from == now.from && stack[depth - 1].to == now.to)
			continue;
		if (depth < ARRAY_SIZE(stack))
			stack[depth++] = now;
		compare_action(differ, &action, probe->shown);
	}
}

static void compare_files(struct differ *differ)
{
	static const enum action_kind kinds[] = { ACTION_FILE_READ, ACTION_FILE_WRITE, ACTION_FILE_APPLY,
						  ACTION_EXEC };
	struct vec probes = { 0 };

	gather_files(differ, differ->a, &probes);
	gather_files(differ, differ->b, &probes);
	if (probes.count)
		qsort(probes.items, probes.count, sizeof(struct probe), compare_probes);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		compare_paths(differ, &probes, kinds[i]);
}

static bool is_known(const struct differ *differ, const char *dimension, const char *subject)
{
	const struct change *change = differ->changes.items;

	for (size_t i = 0; i < differ->changes.count; i++)
		if (str_equal(change[i].dimension, dimension) && str_equal(change[i].subject, subject))
			return true;
	return false;
}

static void compare_request(struct differ *differ, const struct action *action, const char *shown)
{
	if (!shown || is_known(differ, action_kind_names[action->kind], shown))
		return;
	compare_action(differ, action, shown);
	compare_answer(differ, action, shown);
}

/* One request for each of the rule's lines about requests, one for all when it has none; and one that none lists. */
static void compare_requests(struct differ *differ, const struct net_rule *rule, struct action action,
			     const char *shown)
{
	action.kind = ACTION_HTTP_REQUEST;
	for (size_t i = 0; i < rule->http_count || i == 0; i++) {
		const struct http_rule *http = rule->http_count ? &rule->http[i] : NULL;
		const char *text = shown;

		action.method = http && http->methods && http->methods[0] ? http->methods[0] : "GET";
		action.path = http && http->paths && http->paths[0] ? sample(&differ->arena, http->paths[0]) : "/";
		if (http && http->paths && http->paths[0])
			text = arena_format(&differ->arena, "%s %s%s", action.method, shown, http->paths[0]);
		if (action.path)
			compare_request(differ, &action, text);
	}
	action.method = "OTHER";
	action.path = "/\x7f";
	if (rule->http_count)
		compare_request(differ, &action, arena_format(&differ->arena, "others of %s", shown));
}

/* Rules about requests, and those that answer: what policy_compare_network() does not look into. */
static void compare_rule_requests(struct differ *differ, const struct net_rule *rule)
{
	static const uint16_t usual[] = { 443, 80, 22 };
	const uint16_t *ports = rule->port_count ? rule->ports : usual;
	size_t count = rule->port_count ? rule->port_count : ARRAY_SIZE(usual);
	const char *name = rule->host ? rule->host : rule->cidr;
	const char *subject = name[0] == '*' ? arena_format(&differ->arena, "x%s", name + 1)
					     : arena_text_n(&differ->arena, name, strcspn(name, "/"));

	if (!rule->http_count && !rule->answer)
		return;
	for (size_t i = 0; subject && i < count; i++) {
		struct action action = { .kind = ACTION_NET_CONNECT, .subject = subject, .port = ports[i] };
		const char *shown = arena_format(&differ->arena, "%s%s%s:%u", str_host_open(name), name,
						 str_host_close(name), ports[i]);

		if (shown)
			compare_requests(differ, rule, action, shown);
	}
}

/* Which secret goes where, as text: a use that reads the same is the same. */
static const char *use_to_text(struct differ *differ, const struct net_rule *rule, uint16_t port)
{
	const struct inject *inject = &rule->inject;
	const char *place = inject->kind == INJECT_AWS
		? arena_format(&differ->arena, "%s in %s", inject->service, inject->region)
		: inject->name;

	return arena_format(&differ->arena, "%s for %s:%u (%s %s)", inject->secret, rule->host, port,
			    inject_kind_names[inject->kind], place ? place : "");
}

static bool has_use(struct differ *differ, const struct policy *policy, const char *use)
{
	for (size_t i = 0; i < policy->network.count; i++) {
		const struct net_rule *rule = &policy->network.rules[i];

		for (size_t p = 0; rule->inject.kind != INJECT_NONE && p < rule->port_count; p++)
			if (str_equal(use_to_text(differ, rule, rule->ports[p]), use))
				return true;
	}
	return false;
}

/* Secrets that one policy uses and the other does not. */
static void compare_uses(struct differ *differ, const struct policy *policy, const struct policy *than, bool allows)
{
	for (size_t i = 0; i < policy->network.count; i++) {
		const struct net_rule *rule = &policy->network.rules[i];

		for (size_t p = 0; rule->inject.kind != INJECT_NONE && p < rule->port_count; p++) {
			const char *use = use_to_text(differ, rule, rule->ports[p]);

			if (use && !has_use(differ, than, use) && !is_known(differ, "net.inject", use))
				add_change(differ, "net.inject", use, allows ? "unused" : "used",
					   allows ? "used" : "unused", allows);
		}
	}
}

static void note_network(void *context, const struct net_difference *difference)
{
	struct differ *differ = context;

	add_change(differ, difference->dimension, arena_text(&differ->arena, difference->subject),
		   arena_text(&differ->arena, difference->from), arena_text(&differ->arena, difference->to),
		   difference->allows);
}

static void compare_network(struct differ *differ)
{
	policy_compare_network(differ->a, differ->b, note_network, differ);
	for (size_t i = 0; i < differ->a->network.count; i++)
		compare_rule_requests(differ, &differ->a->network.rules[i]);
	for (size_t i = 0; i < differ->b->network.count; i++)
		compare_rule_requests(differ, &differ->b->network.rules[i]);
	compare_uses(differ, differ->a, differ->b, false);
	compare_uses(differ, differ->b, differ->a, true);
}

/* A value as a comparison shows it; lives as long as the differ. */
static const char *shown_value(struct differ *differ, enum scalar_id id, const struct policy *policy)
{
	const struct scalar_row *row = &scalar_rows[id];
	char out[SCALAR_TEXT_SIZE];
	const char *text = row->unit == SCALAR_SWITCH && row->names ? row->names[scalar_get(id, policy)]
								    : scalar_to_text(id, policy, out);

	return text == out ? arena_text(&differ->arena, text) : text ? text : "none";
}

/* Of a text: whether there is one, and not which. */
static bool row_allows(enum scalar_id id, uint64_t from, uint64_t to)
{
	bool is_text = scalar_rows[id].unit == SCALAR_TEXT;

	switch (scalar_rows[id].tighter) {
	case SCALAR_TIGHTER_LESS:
		return is_text ? to != 0 : to > from;
	case SCALAR_TIGHTER_MORE:
		return is_text ? to == 0 : to < from;
	default:
		return true;
	}
}

static void compare_rows(struct differ *differ, enum scalar_id first, enum scalar_id last)
{
	for (enum scalar_id id = first; id <= last; id++) {
		const struct scalar_row *row = &scalar_rows[id];
		const char *subject = row->subject;

		if (scalars_equal(id, id, differ->a, differ->b))
			continue;
		if (!subject)
			subject = arena_format(&differ->arena, "%s.%s", row->section, row->name);
		add_change(differ, row->dimension ? row->dimension : row->section,
			   subject ? subject : row->section, shown_value(differ, id, differ->a),
			   shown_value(differ, id, differ->b),
			   row_allows(id, scalar_get(id, differ->a), scalar_get(id, differ->b)));
	}
}

static void compare_programs(struct differ *differ, const struct policy *policy)
{
	for (size_t i = 0; i < policy->exec.count; i++) {
		const struct exec_rule *rule = &policy->exec.rules[i];
		const char *program = rule->program ? rule->program : "/usr/bin/env";
		const char *subject =
			rule->program_flags & FILE_GLOB ? sample(&differ->arena, program) : program;
		struct action action = { .kind = ACTION_EXEC, .subject = subject, .argv = rule->argv };

		/* A pattern's sample is nowhere: what is asked is whether its rule holds where programs are.
		 */
		if (subject && str_has_prefix(program, "/**/"))
			action.subject = arena_format(&differ->arena, "/usr/bin/%s", path_basename(subject));
		if (action.subject && !is_known(differ, action_kind_names[ACTION_EXEC], program))
			compare_action(differ, &action, program);
	}
}

static void compare_exec(struct differ *differ)
{
	compare_programs(differ, differ->a);
	compare_programs(differ, differ->b);
	compare_rows(differ, SCALAR_EXEC_DEFAULT, SCALAR_NAMESPACES);
}

/* Whether `to` lets more through in the same time, compared without division. */
static bool rate_is_wider(const struct net_amount *from, const struct net_amount *to)
{
	return from->amount && (!to->amount || (unsigned __int128)to->amount * from->period_ms >
						       (unsigned __int128)from->amount * to->period_ms);
}

static void compare_rates(struct differ *differ)
{
	char from_text[COOLDOWN_TEXT_SIZE], to_text[COOLDOWN_TEXT_SIZE];

	for (size_t i = 0; i < RATE_KIND_COUNT; i++) {
		const struct net_amount *from = &differ->a->rates[i], *to = &differ->b->rates[i];

		if (from->amount == to->amount && from->period_ms == to->period_ms)
			continue;
		rate_to_text(from, from_text);
		rate_to_text(to, to_text);
		add_change(differ, "rate", rate_kind_names[i], arena_text(&differ->arena, from_text),
			   arena_text(&differ->arena, to_text), rate_is_wider(from, to));
	}
	if (cooldown_rules_equal(&differ->a->cooldown, &differ->b->cooldown))
		return;
	cooldown_to_text(&differ->a->cooldown, from_text);
	cooldown_to_text(&differ->b->cooldown, to_text);
	add_change(differ, "rate", "cooldown", arena_text(&differ->arena, from_text),
		   arena_text(&differ->arena, to_text),
		   cooldown_rule_is_wider(&differ->a->cooldown, &differ->b->cooldown));
}

static void compare_names(struct differ *differ, const struct policy *policy)
{
	for (size_t i = 0; i < policy->env.pass_count + policy->env.set_count; i++) {
		const char *name = i < policy->env.pass_count
					   ? policy->env.pass[i].pattern
					   : policy->env.set[i - policy->env.pass_count].name;
		const char *subject = strchr(name, '*') ? sample(&differ->arena, name) : name;
		struct action action = { .kind = ACTION_ENV, .subject = subject };

		if (subject && !is_known(differ, action_kind_names[ACTION_ENV], name))
			compare_action(differ, &action, name);
	}
	for (size_t i = 0; i < policy->device_count; i++) {
		struct action action = { .kind = ACTION_DEVICE, .subject = policy->devices[i].name };

		if (!is_known(differ, action_kind_names[ACTION_DEVICE], action.subject))
			compare_action(differ, &action, action.subject);
	}
}

static void compare_depth(struct differ *differ, const char *what, const char *const *names, unsigned from,
			  unsigned to)
{
	if (from != to)
		add_change(differ, "watching", what, names[from], names[to], to < from);
}

static void compare_verify(struct differ *differ)
{
	for (size_t row = 0; row < VERIFY_ROW_COUNT; row++)
		for (size_t sureness = 0; sureness < VERIFY_SURENESS_COUNT; sureness++) {
			const char *what = arena_format(&differ->arena, "verify.%s.%s", verify_row_names[row],
							verify_sureness_names[sureness]);

			compare_depth(differ, what ? what : "verify", verify_action_names,
				differ->a->verify.of[row][sureness],
				      differ->b->verify.of[row][sureness]);
		}
}

static void compare_trust(struct differ *differ)
{
	const struct trust_settings *a = &differ->a->trust, *b = &differ->b->trust;
	char from[64], to[64];

	if (!a->is_given && !b->is_given)
		return;
	compare_rows(differ, SCALAR_TRUST_AGENT, SCALAR_TRUST_HALF_LIFE);
	if (scalars_equal(SCALAR_TRUST_SESSIONS, SCALAR_TRUST_AT, differ->a, differ->b))
		return;
	if (str_format(from, sizeof from, "%u at %s", a->probation_sessions, trust_level_names[a->probation_at]) == 0 &&
	    str_format(to, sizeof to, "%u at %s", b->probation_sessions, trust_level_names[b->probation_at]) == 0)
		add_change(differ, "trust", "trust.probation",
			   a->probation_sessions ? arena_text(&differ->arena, from) : "none",
			   b->probation_sessions ? arena_text(&differ->arena, to) : "none",
			   b->probation_sessions && (!a->probation_sessions || a->probation_at != b->probation_at ||
						     b->probation_sessions < a->probation_sessions));
}

static const char *external_text(struct differ *differ, const struct external_verifier *verifier)
{
	cleanup_buf struct buf text;

	buf_init(&text, 1 << 20);
	print_external(&text, verifier);
	return text.size ? arena_text(&differ->arena, buf_text(&text)) : "none";
}

/* One that comes can only refuse more; any other change is another judge. */
static void compare_external(struct differ *differ)
{
	const char *from = external_text(differ, &differ->a->external);
	const char *to = external_text(differ, &differ->b->external);

	if (from && to && !str_equal(from, to))
		add_change(differ, "verify", "verify.external", from, to, external_is_given(&differ->a->external));
}

static const char *agent_text(struct differ *differ, const struct agent_settings *agent)
{
	cleanup_buf struct buf text;

	buf_init(&text, 1 << 20);
	print_agent(&text, agent);
	return arena_text(&differ->arena, buf_text(&text));
}

/* More is made or shown, or something else is started. */
static void compare_agent(struct differ *differ)
{
	const char *from = agent_text(differ, &differ->a->agent), *to = agent_text(differ, &differ->b->agent);

	if (from && to && !str_equal(from, to))
		add_change(differ, "agent", "agent", from, to, true);
}

static void compare_rest(struct differ *differ)
{
	const struct policy *a = differ->a, *b = differ->b;

	compare_names(differ, a);
	compare_names(differ, b);
	compare_rows(differ, SCALAR_DATA_SECRETS, SCALAR_ASK_WEBHOOK_ANSWERS);
	compare_verify(differ);
	compare_rows(differ, SCALAR_MONITOR_BASELINE, SCALAR_MONITOR_CANARY);
	compare_trust(differ);
	compare_external(differ);
	compare_agent(differ);
	for (unsigned i = 0; i < WALL_COUNT; i++)
		if ((a->degrade ^ b->degrade) >> i & 1)
			add_change(differ, "wall", wall_names[i],
				   a->degrade >> i & 1 ? "may be missing" : "required",
				   b->degrade >> i & 1 ? "may be missing" : "required", b->degrade >> i & 1);
}

void diff_compare(struct differ *differ)
{
	compare_files(differ);
	compare_network(differ);
	compare_exec(differ);
	compare_rows(differ, SCALAR_RESOURCES, SCALAR_RESOURCES + RESOURCE_COUNT - 1);
	compare_rates(differ);
	compare_rest(differ);
}
