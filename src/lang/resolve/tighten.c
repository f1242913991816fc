/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "lang/bind/bind-external.h"
#include "lang/resolve/chain.h"
#include "policy/decide-net.h"
#include "policy/decide.h"
#include "policy/glob.h"

/*
 * A project's own .atoll.yaml comes from whoever wrote the project, which may be the agent of the last
 * run; a narrowing from a model that has read names which it chose. So each of their lines must only take away: it is
 * compared with what the policy without it decides.
 */

/*
 * Under a lower level than the policy was written for the same line may widen what it tightens there. It goes without
 * a word: that it tightens the policy itself was seen when that was compiled.
 */
static bool leave_out(struct lang *lang, struct place place)
{
	bool is_left_out = lang->request.is_lowered && !lang->is_narrowing;
	struct place *kept = is_left_out ? vec_add(&lang->arena, &lang->left_out, sizeof *kept) : NULL;

	if (kept)
		*kept = place;
	return is_left_out;
}

static void refuse(struct lang *lang, struct place place, const char *id, const char *text, const char *why)
{
	if (leave_out(lang, place))
		return;
	diag_add(&lang->diags, place,
		 "%s \"%.80s\" widens the policy: %s; %s may only tighten it", id, text, why, lang->tighter);
}

/* Whether a path of class b may become a: nothing is readable or reaches the host that did not before. */
static bool class_is_within(enum file_class a, enum file_class b)
{
	static const uint8_t within[FILE_CLASS_COUNT] = {
		[FILE_READ] = 1 << FILE_READ,
		[FILE_SCRATCH] = 1 << FILE_SCRATCH,
		[FILE_STAGE] = 1 << FILE_READ | 1 << FILE_SCRATCH | 1 << FILE_STAGE,
		[FILE_WRITE] = 1 << FILE_READ | 1 << FILE_SCRATCH | 1 << FILE_STAGE | 1 << FILE_WRITE,
	};

	return a == FILE_MASK || within[b] >> a & 1;
}

static void check_files(struct lang *lang, const struct policy *base)
{
	DRAFT_EACH(struct draft_file, file, &lang->project.files)
	{
		enum file_class class;
		size_t rule;

		if (!file->pattern || (file->class == FILE_MASK && !file->from.except.count))
			continue;
		if (file->flags & FILE_GLOB) {
			if (file->class != FILE_MASK)
				refuse(lang, file->from.place, file->from.id, file->from.text,
				       "a pattern cannot be compared with it");
			continue;
		}
		class = policy_classify(base, file->pattern, &rule);
		if (!class_is_within(file->class, class) && !leave_out(lang, file->from.place))
			diag_add(&lang->diags, file->from.place,
				 "%s \"%.80s\" widens the policy: the path is %s there and would be %s; %s may only "
				 "tighten it",
				 file->from.id, file->from.text, file_class_names[class],
				 file_class_names[file->class], lang->tighter);
	}
	DRAFT_EACH(struct draft_path, ask, &lang->project.asks)
	{
		size_t rule;

		/* ask turns a refusal into a question where nothing is listed. */
		if (ask->pattern &&
		    (ask->flags & FILE_GLOB || policy_classify(base, ask->pattern, &rule) <= FILE_MASK))
			refuse(lang, ask->from.place, ask->from.id, ask->from.text,
			       "the path is not one that it allows");
	}
}

/*
 * Addresses by number: an open default means public ones only, so that these are within it where no rule says anything
 * else, and any other is only where a rule for it is there already. Narrower ones are not compared.
 */
static bool cidr_is_within(const struct policy *base, const struct draft_net *net)
{
	for (size_t i = 0; i < base->network.count; i++)
		if (base->network.rules[i].verdict == VERDICT_ALLOW && !base->network.rules[i].port_count &&
		    !base->network.rules[i].http_count && str_equal(base->network.rules[i].cidr, net->cidr))
			return true;
	if (base->network.default_verdict == VERDICT_ALLOW && !base->network.count && net_cidr_is_public(net->cidr))
		return true;
	return base->network.mode == NETWORK_HOST;
}

/*
 * Whether base allows every request there, and not those alone that a rule lists: rules of allow add up, so that one
 * more would let the others through. What it denies, it goes on to deny.
 */
static bool allows_all_requests(const struct policy *base, const char *host, uint16_t port)
{
	struct action any = { .kind = ACTION_HTTP_REQUEST, .subject = host, .port = port, .method = "", .path = "/",
			      .path_kind = REQUEST_PATH_BEGINS };

	for (size_t i = 0; i < base->network.count; i++)
		if (base->network.rules[i].verdict == VERDICT_ALLOW &&
		    policy_rule_covers(&base->network.rules[i], &any))
			return true;
	return policy_decide(base, &any).verdict == VERDICT_ALLOW;
}

/* Whether base allows all that the rule names: its ports, or every port. */
static bool net_is_within(const struct policy *base, const struct draft_net *net)
{
	const uint16_t *ports = net->ports.items;

	if (net->cidr)
		return cidr_is_within(base, net);
	for (size_t i = 0; i < base->network.count; i++)
		if (base->network.rules[i].host && net->host && str_equal(base->network.rules[i].host, net->host) &&
		    !net->ports.count && !base->network.rules[i].port_count && !base->network.rules[i].http_count &&
		    base->network.rules[i].verdict == VERDICT_ALLOW)
			return true;
	if (!net->host || net->host[0] == '*' || !net->ports.count)
		return base->network.default_verdict == VERDICT_ALLOW && !base->network.count;
	for (size_t i = 0; i < net->ports.count; i++) {
		struct action action = { .kind = ACTION_NET_CONNECT, .subject = net->host, .port = ports[i] };

		if (policy_decide(base, &action).verdict != VERDICT_ALLOW ||
		    !allows_all_requests(base, net->host, ports[i]))
			return false;
	}
	return true;
}

/* Whether base has a rule of its own about what it allows of the host, which stays, and is then all that is allowed. */
static bool has_own_rule(const struct policy *base, const struct draft_net *net)
{
	for (size_t i = 0; i < base->network.count; i++)
		if (net->host && base->network.rules[i].host && base->network.rules[i].verdict == VERDICT_ALLOW &&
		    str_equal(base->network.rules[i].host, net->host))
			return true;
	return false;
}

/* True: the rule adds nothing to what base says of the host, and goes. Else it is one like any other. */
static bool is_said_by_base(struct lang *lang, const struct policy *base, struct draft_net *net)
{
	struct place *kept = NULL;

	if (net->is_listed && net->verdict == VERDICT_ALLOW && !net->inject.is_given && has_own_rule(base, net))
		kept = vec_add(&lang->arena, &lang->left_out, sizeof *kept);
	net->is_listed = 0;
	if (kept)
		*kept = net->from.place;
	return kept != NULL;
}

static void check_network(struct lang *lang, const struct policy *base)
{
	const struct draft_scalar *host = &lang->project.scalars[SCALAR_NETWORK_HOST];

	DRAFT_EACH(struct draft_net, net, &lang->project.network)
	{
		if (is_said_by_base(lang, base, net))
			continue;
		if (net->inject.is_given)
			refuse(lang, net->from.place, net->from.id, net->from.text, "a secret would be used");
		else if (net->verdict == VERDICT_SIMULATE)
			refuse(lang, net->from.place, net->from.id, net->from.text,
			       "it would answer in a server's place");
		else if (net->verdict == VERDICT_DENY && net->from.except.count == 0)
			continue;
		else if (net->verdict != VERDICT_DENY && !net_is_within(base, net))
			refuse(lang, net->from.place, net->from.id, net->from.text,
			       "the host is not one that it allows, or not every request to it");
	}
	DRAFT_EACH(struct draft_publish, publish, &lang->project.publish)
	refuse(lang, publish->from.place, publish->from.id, publish->from.text, "a port would be open to the host");
	DRAFT_EACH(struct draft_host_port, port, &lang->project.host_ports)
	if (!policy_host_port(base, port->port.port))
		refuse(lang, port->from.place, port->from.id, port->from.text,
		       "a port of this machine would be reached");
	if (host->is_set && host->value && base->network.mode != NETWORK_HOST)
		refuse(lang, host->place, host->id, host->text, "the host's network is not shared");
}

/* Smaller is tighter; 0 of base means that there is no limit. */
static void check_limit(struct lang *lang, unsigned kind, uint64_t base)
{
	const struct draft_scalar *scalar = &lang->project.scalars[kind];

	if (scalar->is_set && base && scalar->value > base)
		refuse(lang, scalar->place, scalar->id, scalar->text, "the limit is smaller there");
}

/* amount per period, compared without division. */
static void check_rate(struct lang *lang, unsigned kind, uint64_t amount, uint64_t period)
{
	const struct draft_scalar *scalar = &lang->project.scalars[kind];

	if (scalar->is_set && amount &&
	    (unsigned __int128)scalar->value * period > (unsigned __int128)amount * scalar->value2)
		refuse(lang, scalar->place, scalar->id, scalar->text, "the rate is smaller there");
}

/* Earlier and longer is tighter. first: of three scalars, denials, within and pause. */
static void check_cooldown(struct lang *lang, unsigned first, const struct cooldown_rule *base)
{
	const struct draft_scalar *within = &lang->project.scalars[first + 1],
				  *pause = &lang->project.scalars[first + 2];

	if (!base->denials)
		return;
	check_limit(lang, first, base->denials);
	if (within->is_set && within->value < base->within_ms)
		refuse(lang, within->place, within->id, within->text, "refusals are counted for longer there");
	if (pause->is_set && pause->value < base->pause_ms)
		refuse(lang, pause->place, pause->id, pause->text, "the pause is longer there");
}

/* The limits of a rule need no look: they count beside those of every other rule, and so only take away. */
static void check_net_limits(struct lang *lang, const struct policy *base)
{
	for (size_t i = 0; i < NET_LIMIT_COUNT; i++) {
		const struct net_amount *amount = &base->network.limits.of[i];

		if (net_limit_has_period[i])
			check_rate(lang, SCALAR_NETWORK_LIMITS + i, amount->amount, amount->period_ms);
		else
			check_limit(lang, SCALAR_NETWORK_LIMITS + i, amount->amount);
	}
	check_cooldown(lang, SCALAR_COOLDOWN_DENIALS, &base->network.cooldown);
}

/* What rows say of themselves; who is asked, and that he is, is among it: to be asked less refuses more. */
static void check_rows(struct lang *lang, const struct policy *base)
{
	for (enum scalar_id id = 0; id < SCALAR_ROW_COUNT; id++) {
		const struct draft_scalar *scalar = &lang->project.scalars[id];
		bool takes_less = scalar_rows[id].tighter == SCALAR_TIGHTER_LESS;
		uint64_t there = scalar_get(id, base);

		if (scalar_rows[id].why && scalar->is_set &&
		    (takes_less ? scalar->value > there : scalar->value < there))
			refuse(lang, scalar->place, scalar->id, scalar->text, scalar_rows[id].why);
	}
}

static void check_others(struct lang *lang)
{
	const struct draft_scalar *webhook = &lang->project.scalars[SCALAR_ASK_WEBHOOK];

	if (lang->project.external)
		refuse(lang, lang->project.external->place, "verify.external", "",
		       "what it names would be started, or told of what you do");
	if (webhook->is_set)
		refuse(lang, webhook->place, webhook->id, webhook->text ? webhook->text : "",
		       "whoever has that address would answer");
}

static void check_trust(struct lang *lang, const struct trust_settings *base)
{
	const struct draft_scalar *agent = &lang->project.scalars[SCALAR_TRUST_AGENT],
				  *sessions = &lang->project.scalars[SCALAR_TRUST_SESSIONS],
				  *at = &lang->project.scalars[SCALAR_TRUST_AT];

	if (agent->is_set && !str_equal(agent->text, base->agent))
		refuse(lang, agent->place, agent->id, agent->text, "another agent's record would count");
	if (sessions->is_set && (!base->probation_sessions || sessions->value < base->probation_sessions))
		refuse(lang, sessions->place, sessions->id, sessions->text, "it takes more than that there");
	if (at->is_set && base->probation_sessions && at->value != base->probation_at)
		refuse(lang, at->place, at->id, at->text, "the probation is at another level there");
}

static void check_verify(struct lang *lang, const struct verify_settings *base)
{
	for (size_t row = 0; row < VERIFY_ROW_COUNT; row++) {
		const struct draft_scalar *scalar = &lang->project.scalars[SCALAR_VERIFY + row];
		bool is_weaker = false;

		for (unsigned sureness = 0; sureness < VERIFY_SURENESS_COUNT; sureness++)
			is_weaker |= verify_unpacked(scalar->value, sureness) < base->of[row][sureness];
		if (scalar->is_set && is_weaker)
			refuse(lang, scalar->place, scalar->id, scalar->text, "a finding leads to more there");
	}
}

static void check_scalars(struct lang *lang, const struct policy *base)
{
	check_rows(lang, base);
	check_net_limits(lang, base);
	check_others(lang);
	check_trust(lang, &base->trust);
	check_verify(lang, &base->verify);
	for (size_t i = 0; i < RATE_KIND_COUNT; i++)
		check_rate(lang, SCALAR_RATES + i, base->rates[i].amount, base->rates[i].period_ms);
	check_cooldown(lang, SCALAR_TIME_COOLDOWN_DENIALS, &base->cooldown);
}

static void check_exec(struct lang *lang, const struct policy *base)
{
	DRAFT_EACH(struct draft_exec, exec, &lang->project.exec)
	{
		struct action action = { .kind = ACTION_EXEC, .subject = exec->program };

		if (exec->verdict == VERDICT_DENY)
			continue;
		if (!exec->program || exec->flags & FILE_GLOB ||
		    policy_decide(base, &action).verdict != VERDICT_ALLOW)
			refuse(lang, exec->from.place, exec->from.id, exec->from.text,
			       "the program is not one that it allows");
	}
}

static bool env_is_passed(const struct policy *base, const char *name)
{
	for (size_t i = 0; i < base->env.pass_count; i++)
		if (str_equal(base->env.pass[i].pattern, name))
			return true;
	if (strchr(name, '*'))
		return false;
	return policy_decide(base, &(struct action){ .kind = ACTION_ENV, .subject = name }).verdict ==
	       VERDICT_ALLOW;
}

/* The project could come from the agent of the last run. */
static void check_agent(struct lang *lang)
{
	DRAFT_EACH(struct draft_named, word, &lang->project.agent_command)
	refuse(lang, word->from.place, word->from.id, word->from.text, "it would say what is started");
	DRAFT_EACH(struct draft_agent_file, file, &lang->project.agent_state)
	refuse(lang, file->from.place, file->from.id, file->from.text, "it would be made in your home");
	DRAFT_EACH(struct draft_agent_file, file, &lang->project.agent_settings)
	refuse(lang, file->from.place, file->from.id, file->from.text, "what the sandbox sees is said by your policy");
}

static void check_named(struct lang *lang, const struct policy *base)
{
	DRAFT_EACH(struct draft_named, pass, &lang->project.env_pass)
	if (!env_is_passed(base, pass->name))
		refuse(lang, pass->from.place, pass->from.id, pass->from.text,
		       "the variable is not passed there");
	DRAFT_EACH(struct draft_named, set, &lang->project.env_set)
	refuse(lang, set->from.place, set->from.id, set->from.text, "a variable changes what programs do");
	DRAFT_EACH(struct draft_named, device, &lang->project.devices)
	{
		struct action action = { .kind = ACTION_DEVICE, .subject = device->name };

		if (policy_decide(base, &action).verdict != VERDICT_ALLOW)
			refuse(lang, device->from.place, device->from.id, device->from.text,
			       "the device is not one that it lists");
	}
	DRAFT_EACH(struct draft_named, wall, &lang->project.degrade)
	for (unsigned i = 0; i < WALL_COUNT; i++)
		if (str_equal(wall_names[i], wall->name) && !(base->degrade >> i & 1))
			refuse(lang, wall->from.place, wall->from.id, wall->from.text,
			       "the wall must stand there");
	DRAFT_EACH(struct draft_named, canary, &lang->project.canaries)
	refuse(lang, canary->from.place, canary->from.id, canary->from.text, "a secret would be used");
	DRAFT_EACH(struct draft_path, file, &lang->project.canary_files)
	refuse(lang, file->from.place, file->from.id, file->from.text, "what the sandbox sees is said by your policy");
	check_agent(lang);
	DRAFT_EACH(struct draft_named, parent, &lang->project.extends)
	refuse(lang, parent->from.place, "extends", parent->from.text, "it would add rules");
	DRAFT_EACH(struct draft_named, drop, &lang->project.drop)
	refuse(lang, drop->from.place, "drop", drop->from.text,
	       "it would take rules away; mask or deny instead");
}

static bool is_left_out(const struct lang *lang, struct place place)
{
	DRAFT_EACH(struct place, left_out, &lang->left_out)
	if (left_out->line == place.line && left_out->column == place.column)
		return true;
	return false;
}

#define LEAVE_OUT(vec, type)                                                                                           \
	do {                                                                                                           \
		type *out = (vec)->items;                                                                              \
		DRAFT_EACH(type, item, vec)                                                                            \
		if (!is_left_out(lang, item->from.place))                                                              \
			*out++ = *item;                                                                                \
		(vec)->count = (vec)->count ? (size_t)(out - (type *)(vec)->items) : 0;                                \
	} while (0)

/* All places are of the project's file. */
static void drop_left_out(struct lang *lang)
{
	struct draft *project = &lang->project;

	LEAVE_OUT(&project->files, struct draft_file);
	LEAVE_OUT(&project->asks, struct draft_path);
	LEAVE_OUT(&project->network, struct draft_net);
	LEAVE_OUT(&project->publish, struct draft_publish);
	LEAVE_OUT(&project->host_ports, struct draft_host_port);
	LEAVE_OUT(&project->exec, struct draft_exec);
	LEAVE_OUT(&project->env_pass, struct draft_named);
	LEAVE_OUT(&project->env_set, struct draft_named);
	LEAVE_OUT(&project->devices, struct draft_named);
	LEAVE_OUT(&project->degrade, struct draft_named);
	LEAVE_OUT(&project->canaries, struct draft_named);
	LEAVE_OUT(&project->canary_files, struct draft_path);
	LEAVE_OUT(&project->agent_command, struct draft_named);
	LEAVE_OUT(&project->agent_state, struct draft_agent_file);
	LEAVE_OUT(&project->agent_settings, struct draft_agent_file);
	for (size_t i = 0; i < SCALAR_COUNT; i++)
		project->scalars[i].is_set &= !is_left_out(lang, project->scalars[i].place);
}

void tighten_check(struct lang *lang, const struct policy *base)
{
	check_files(lang, base);
	check_network(lang, base);
	check_exec(lang, base);
	check_scalars(lang, base);
	check_named(lang, base);
	if (lang->left_out.count)
		drop_left_out(lang);
}

/* What other rules leave out below the path stays left out: a nearer rule would cover it again. */
static void keep_excepts(struct lang *lang, struct draft_file *file)
{
	DRAFT_EACH(struct draft_file, other, &lang->draft.files)
	{
		if (other->class == FILE_MASK)
			continue;
		DRAFT_EACH(const char *, except, &other->from.except)
		vec_add_text(&lang->arena, &file->from.except, *except);
	}
}

/* The rule of the policy about the very same path gives way to the tighter one. */
static void replace_same_path(struct lang *lang, const char *pattern)
{
	struct draft_file *out = lang->draft.files.items;

	DRAFT_EACH(struct draft_file, file, &lang->draft.files)
	if (file->class == FILE_MASK || !str_equal(file->pattern, pattern))
		*out++ = *file;
	lang->draft.files.count = (size_t)(out - (struct draft_file *)lang->draft.files.items);
}

/* A place where no program may be executed stays one, however little else may be done there. */
static uint32_t noexec_of(const struct policy *base, size_t rule)
{
	const struct file_rule *above = rule == SIZE_MAX ? NULL : &base->files.rules[rule];
	bool is_barred = above && (above->flags & FILE_NOEXEC ||
				   (!base->exec.new_binaries && above->class >= FILE_SCRATCH));

	return is_barred ? FILE_NOEXEC : 0;
}

void tighten_merge(struct lang *lang)
{
	struct vec kept = { 0 };

	DRAFT_EACH(struct draft_file, file, &lang->project.files)
	{
		struct draft_file *copy;
		enum file_class class;
		size_t rule = SIZE_MAX;

		/* A rule that gives what the policy gives anyway changes nothing, and is not let near it. */
		class = file->pattern && !(file->flags & FILE_GLOB)
				? policy_classify(lang->policy, file->pattern, &rule)
				: FILE_HIDDEN;
		if (!file->pattern || (class == file->class && class != FILE_MASK && !file->stands))
			continue;
		copy = vec_add(&lang->arena, &kept, sizeof *copy);
		if (!copy)
			return;
		*copy = *file;
		copy->from.only_tightens = true;
		if (copy->class == FILE_MASK)
			continue;
		copy->flags |= noexec_of(lang->policy, rule);
		keep_excepts(lang, copy);
		replace_same_path(lang, copy->pattern);
	}
	lang->project.files = kept;
	/* An allow that base has already must not stand beside a narrower one of it. */
	lang->project.env_pass.count = 0;
	lang->project.degrade.count = 0;
	lang->project.devices.count = 0;
	/* What is left of them base has, with a name of its own. */
	lang->project.host_ports.count = 0;
	draft_merge(&lang->arena, &lang->draft, &lang->project);
}
