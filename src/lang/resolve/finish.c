/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "lang/bind/bind-external.h"
#include "lang/resolve/chain.h"
#include "policy/order.h"

/* A rule with what is needed to sort it and to say where it stands. */
struct sorted_file {
	struct file_rule rule;
	const struct draft_file *from; /* NULL: built in */
	bool is_alias;		       /* the same rule at the real path behind a symbolic link */
};

static struct rule_origin origin_of(const struct draft_rule *rule)
{
	return (struct rule_origin){ rule->id ? rule->id : "", rule->place.file, rule->place.line };
}

static void add_builtin(struct lang *lang, struct vec *vec, const char *base, const char *below)
{
	struct sorted_file *file;
	char path[PATH_MAX];

	if (!base || base[0] != '/' || path_join(path, sizeof path, base, below) < 0)
		return;
	file = vec_add(&lang->arena, vec, sizeof *file);
	if (file)
		*file = (struct sorted_file){ .rule = { .pattern = arena_text(&lang->arena, path),
							.class = FILE_MASK,
							.flags = FILE_OPTIONAL,
							.origin = { "builtin.state", "", 0 } } };
}

/*
 * atoll's own files: whoever writes the user's policy directory, the cache of compiled policies or the
 * log decides what the next run may do. Masked below, so no rule of any policy reaches them.
 */
static void add_builtins(struct lang *lang, struct vec *vec)
{
	const struct lang_request *request = &lang->request;

	add_builtin(lang, vec, request->home, ".config/atoll");
	add_builtin(lang, vec, request->home, ".local/state/atoll");
	add_builtin(lang, vec, request->home, ".cache/atoll");
	add_builtin(lang, vec, request->config_home, "atoll");
	add_builtin(lang, vec, "/var/lib/atoll", ".");
	add_builtin(lang, vec, "/var/cache/atoll", ".");
	add_builtin(lang, vec, "/run/atoll", ".");
	for (const char *const *dir = request->private_dirs; dir && *dir; dir++)
		add_builtin(lang, vec, *dir, ".");
}

/* The real path of path, also where its last components do not exist yet. */
static bool real_path(struct lang *lang, const char *path, char out[PATH_MAX])
{
	char part[PATH_MAX], real[PATH_MAX];

	if (str_copy(part, sizeof part, path) < 0)
		return false;
	for (;;) {
		char *slash = strrchr(part, '/');
		int r = lang->request.reader.real(lang->request.reader.context, part, real, sizeof real);

		if (r == 0)
			return path_join(out, PATH_MAX, real,
					 path[strlen(part)] ? path + strlen(part) + 1 : ".") == 0;
		if ((r != -ENOENT && r != -ENOTDIR) || slash == part || !slash)
			return false;
		*slash = 0;
	}
}

/*
 * A rule about a symbolic link is also one about what it leads to. Not where the link lies in the project
 * and leads out of it: whoever can write the project could plant a link there that widens the next run. Nor where the
 * rule is one that only tightens: that was seen of the path alone.
 */
static void add_alias(struct lang *lang, struct vec *vec, const struct sorted_file *file)
{
	const char *project = lang->request.project;
	struct sorted_file alias = *file, *copy;
	char real[PATH_MAX];

	if (!real_path(lang, file->rule.pattern, real) || str_equal(real, file->rule.pattern))
		return;
	if (file->rule.class != FILE_MASK && ((file->from && file->from->from.only_tightens) ||
					      (project[0] && path_is_below(file->rule.pattern, project))))
		return;
	alias.rule.pattern = arena_text(&lang->arena, real);
	alias.is_alias = true;
	copy = vec_add(&lang->arena, vec, sizeof *copy);
	if (copy)
		*copy = alias;
}

/* The rule that decides about path; NULL: none. */
static const struct sorted_file *deciding(const struct vec *vec, const char *path)
{
	const struct sorted_file *files = vec->items, *best = NULL;

	for (size_t i = 0; i < vec->count; i++) {
		if (files[i].rule.flags & FILE_GLOB || !path_is_below(path, files[i].rule.pattern))
			continue;
		if (!best || strlen(files[i].rule.pattern) > strlen(best->rule.pattern))
			best = &files[i];
	}
	return best;
}

/* The files that this policy was made from: one that the sandbox could write to would decide about its next run. */
static void protect_sources(struct lang *lang, struct vec *vec)
{
	const struct snapshot_source *sources = lang->sources.items;

	for (size_t i = 0; i < lang->sources.count; i++) {
		const struct sorted_file *rule = deciding(vec, sources[i].path);
		struct sorted_file *file;

		if (!sources[i].exists || !rule || str_equal(rule->rule.pattern, sources[i].path) ||
		    (rule->rule.class != FILE_WRITE && rule->rule.class != FILE_STAGE))
			continue;
		file = vec_add(&lang->arena, vec, sizeof *file);
		if (file)
			*file = (struct sorted_file){ .rule = { .pattern = arena_text(&lang->arena, sources[i].path),
								.class = FILE_READ,
								.flags = FILE_OPTIONAL,
								.origin = { "builtin.policy", "", 0 } } };
	}
}

/*
 * A worktree without its repository is no use to git, so what the policy makes of the project it makes of the
 * repository too, where it says nothing of that; but never to be written in place: no mount covers its hooks there.
 */
static void add_repository(struct lang *lang, struct vec *vec)
{
	const struct sorted_file *project = lang->repository ? deciding(vec, lang->request.project) : NULL;
	const struct sorted_file *said = project ? deciding(vec, lang->repository) : NULL;
	enum file_class class = project ? project->rule.class : FILE_HIDDEN;
	struct sorted_file *file;

	if (class != FILE_READ && class != FILE_STAGE && class != FILE_WRITE)
		return;
	/* A private /tmp says nothing of what lies below it on the host. */
	if (said && (said->rule.class != FILE_SCRATCH || str_equal(said->rule.pattern, lang->repository)))
		return;
	file = vec_add(&lang->arena, vec, sizeof *file);
	if (file)
		*file = (struct sorted_file){ .rule = { .pattern = lang->repository,
							.class = class == FILE_READ ? FILE_READ : FILE_STAGE,
							.flags = FILE_OPTIONAL,
							.origin = { "builtin.worktree", "", 0 } } };
}

static void gather_files(struct lang *lang, struct vec *vec)
{
	size_t count;

	add_builtins(lang, vec);
	DRAFT_EACH(struct draft_file, from, &lang->draft.files)
	{
		struct sorted_file *file = from->pattern ? vec_add(&lang->arena, vec, sizeof *file) : NULL;

		if (file)
			*file = (struct sorted_file){
				.rule = { from->pattern, from->class, from->flags,
					  vec_strings(&lang->arena, &from->from.except),
					  origin_of(&from->from) },
				.from = from,
			};
	}
	add_repository(lang, vec);
	protect_sources(lang, vec);
	count = vec->count;
	for (size_t i = 0; i < count; i++) {
		struct sorted_file file = ((struct sorted_file *)vec->items)[i];

		if (!(file.rule.flags & FILE_GLOB))
			add_alias(lang, vec, &file);
	}
}

/* Paths before globs; among one path's rules the mask first, then as they were written. */
static int compare_files(const void *a, const void *b)
{
	const struct sorted_file *x = a, *y = b;
	int r = (int)(x->rule.flags & FILE_GLOB) - (int)(y->rule.flags & FILE_GLOB);

	if (r == 0)
		r = path_compare(x->rule.pattern, y->rule.pattern);
	if (r == 0)
		r = (y->rule.class == FILE_MASK) - (x->rule.class == FILE_MASK);
	if (r == 0)
		r = x->is_alias - y->is_alias;
	if (r == 0 && x->from && y->from)
		r = x->from < y->from ? -1 : x->from > y->from;
	return r;
}

/*
 * The level that this policy was written for has no such rule, a lower one does. What the policy itself says holds at
 * each level; of two that atoll ships the tighter one.
 */
static struct sorted_file *settle_lowered(struct sorted_file *first, struct sorted_file *second)
{
	if (first->from->from.is_shipped != second->from->from.is_shipped)
		return first->from->from.is_shipped ? second : first;
	return first->rule.class < second->rule.class ? first : second;
}

/*
 * Which of two rules about one path stays. A path that two texts name by accident (the project is the
 * home) belongs to the one that is relative to the project; anything else is a contradiction.
 */
static struct sorted_file *choose_of_two(struct lang *lang, struct sorted_file *first, struct sorted_file *second)
{
	if (first->rule.class == FILE_MASK && !first->rule.except) {
		/* Of two masks the project's own, which no policy and no option takes away, says why. */
		bool is_projects = second->rule.class == FILE_MASK && !second->rule.except && second->from &&
				   second->from->from.only_tightens;

		return is_projects ? second : first;
	}
	if (second->is_alias)
		return first;
	if (!first->from || !second->from || first->rule.class == second->rule.class)
		return first;
	if (first->from->from.is_relative != second->from->from.is_relative &&
	    (first->from->from.is_shipped || second->from->from.is_shipped))
		return first->from->from.is_relative ? first : second;
	if (lang->request.is_lowered)
		return settle_lowered(first, second);
	diag_add(&lang->diags, second->from->from.place,
		 "\"%.80s\" is %s here and %s in %s:%u; drop one of them", second->from->from.text,
		 file_class_names[second->rule.class], file_class_names[first->rule.class],
		 first->from->from.place.file, first->from->from.place.line);
	return first;
}

/* A list that names a path twice was not meant so. */
static void check_repeated(struct lang *lang, const struct sorted_file *first,
			   const struct sorted_file *second)
{
	const struct draft_rule *a = first->from ? &first->from->from : NULL,
				*b = second->from ? &second->from->from : NULL;

	if (!a || !b || first->is_alias || second->is_alias || first->rule.class != second->rule.class)
		return;
	if (str_equal(a->place.file, b->place.file) && str_equal(a->text, b->text))
		diag_add(&lang->diags, b->place,
			 "\"%.80s\" stands in this list twice; the first is in line %u", b->text,
			 a->place.line);
}

static size_t settle_files(struct lang *lang, struct sorted_file *files, size_t count)
{
	size_t out = 0;

	for (size_t i = 0; i < count; i++) {
		struct sorted_file *last = out ? &files[out - 1] : NULL;
		bool is_mask_with_except = last && last->rule.class == FILE_MASK && last->rule.except;

		if (!last || (last->rule.flags & FILE_GLOB) != (files[i].rule.flags & FILE_GLOB) ||
		    !str_equal(last->rule.pattern, files[i].rule.pattern) || is_mask_with_except) {
			files[out++] = files[i];
			continue;
		}
		check_repeated(lang, last, &files[i]);
		*last = *choose_of_two(lang, last, &files[i]);
	}
	return out;
}

static void check_globs(struct lang *lang, size_t count, size_t max, const char *what)
{
	if (count > max)
		diag_add(&lang->diags, (struct place){ lang->name, 0, 0 },
			 "%zu patterns in %s; at most %zu, so that a decision stays fast", count, what, max);
}

static void finish_files(struct lang *lang, struct policy *policy)
{
	struct vec vec = { 0 };
	struct sorted_file *files;
	struct file_rule *rules;
	uint32_t *parents, *lengths;
	size_t count;

	gather_files(lang, &vec);
	files = vec.items;
	if (lang->arena.has_failed)
		return;
	qsort(files, vec.count, sizeof *files, compare_files);
	count = settle_files(lang, files, vec.count);
	rules = arena_alloc(&lang->arena, count * sizeof *rules);
	parents = arena_alloc(&lang->arena, count * sizeof *parents);
	lengths = arena_alloc(&lang->arena, count * sizeof *lengths);
	if (!rules || !parents || !lengths)
		return;
	for (size_t i = 0; i < count; i++) {
		rules[i] = files[i].rule;
		policy->files.exact_count += !(rules[i].flags & FILE_GLOB);
	}
	policy->files.rules = rules;
	policy->files.count = count;
	policy->files.parents = parents;
	check_globs(lang, count - policy->files.exact_count, DRAFT_GLOBS_MAX, "files");
	if (file_parents_fill(parents, lengths, rules, policy->files.exact_count, NULL) < 0)
		lang->arena.has_failed = true;
}

static const struct path_rule *finish_paths(struct lang *lang, const struct vec *vec, size_t max, size_t *ret_count)
{
	struct path_rule *rules = arena_alloc(&lang->arena, vec->count * sizeof *rules);

	*ret_count = 0;
	if (!rules)
		return NULL;
	DRAFT_EACH(struct draft_path, from, vec)
	if (from->pattern)
		rules[(*ret_count)++] = (struct path_rule){ .pattern = from->pattern, .flags = from->flags,
							    .except = vec_strings(&lang->arena, &from->from.except),
							    .origin = origin_of(&from->from), .when = from->when };
	check_globs(lang, *ret_count, max, "files.ask or files.protect");
	return rules;
}

static const struct http_rule *finish_http(struct lang *lang, const struct vec *vec)
{
	struct http_rule *rules = arena_alloc(&lang->arena, vec->count * sizeof *rules), *at = rules;

	if (!rules)
		return NULL;
	DRAFT_EACH(struct draft_http, from, vec)
	*at++ = (struct http_rule){ vec_strings(&lang->arena, &from->methods),
				    vec_strings(&lang->arena, &from->paths), origin_of(&from->from) };
	return rules;
}

static const struct net_answer *finish_answer(struct lang *lang, const struct draft_answer *from)
{
	struct net_answer *answer = from ? arena_alloc(&lang->arena, sizeof *answer) : NULL;

	if (answer)
		*answer = (struct net_answer){ (uint32_t)from->status, vec_strings(&lang->arena, &from->fields),
					       from->body, from->body_size, from->body_file };
	return answer;
}

static int compare_net(const void *a, const void *b)
{
	const struct net_rule *x = a, *y = b;

	if (!x->host || !y->host)
		return !x->host - !y->host;
	return net_host_compare(x->host, y->host);
}

/* "unlimited" takes an inherited limit away. */
static struct net_amount amount_of(const struct draft_scalar *scalar)
{
	bool is_limited = scalar->is_set && scalar->value != NUM_UNLIMITED;

	return is_limited ? (struct net_amount){ scalar->value, scalar->value2 } : (struct net_amount){ 0 };
}

static struct net_limits limits_of(const struct draft_scalar *scalars)
{
	struct net_limits limits;

	for (size_t i = 0; i < NET_LIMIT_COUNT; i++)
		limits.of[i] = amount_of(&scalars[i]);
	return limits;
}

/* scalars: denials, within and pause. */
static struct cooldown_rule cooldown_of(const struct draft_scalar scalars[3])
{
	if (!scalars[0].is_set)
		return (struct cooldown_rule){ 0 };
	return (struct cooldown_rule){ scalars[0].value, scalars[1].value, scalars[2].value };
}

static const struct net_limits *finish_rule_limits(struct lang *lang, const struct draft_net *net)
{
	struct net_limits *limits = net->limits ? arena_alloc(&lang->arena, sizeof *limits) : NULL;

	if (!limits)
		return NULL;
	*limits = limits_of(net->limits);
	/* Who says nothing of it has a limit. */
	if (net->limits[NET_LIMIT_LABELS].is_set && net->limits[NET_LIMIT_LABELS].value == NUM_UNLIMITED)
		limits->of[NET_LIMIT_LABELS].amount = UINT64_MAX;
	return limits;
}

/* The rules with limits of their own, by their places after sorting. */
static void index_limited(struct lang *lang, struct policy *policy)
{
	uint32_t *limited = arena_alloc(&lang->arena, NET_LIMITED_MAX * sizeof *limited);

	policy->network.limited = limited;
	for (size_t i = 0; limited && i < policy->network.count; i++) {
		const struct rule_origin *origin = &policy->network.rules[i].origin;

		if (!policy->network.rules[i].limits)
			continue;
		if (policy->network.limited_count == NET_LIMITED_MAX) {
			diag_add(&lang->diags, (struct place){ origin->file, origin->line, 0 },
				 "at most %d rules can have limits of their own", NET_LIMITED_MAX);
			return;
		}
		limited[policy->network.limited_count++] = (uint32_t)i;
	}
}

static void finish_publish(struct lang *lang, struct policy *policy)
{
	struct publish_rule *rules = arena_alloc(&lang->arena, NET_PUBLISH_MAX * sizeof *rules);

	policy->network.publish = rules;
	DRAFT_EACH(struct draft_publish, from, &lang->draft.publish)
	{
		if (!rules || !from->rule.port)
			continue;
		if (policy->network.publish_count == NET_PUBLISH_MAX) {
			diag_add(&lang->diags, from->from.place, "at most %d ports can be published", NET_PUBLISH_MAX);
			return;
		}
		rules[policy->network.publish_count] = from->rule;
		rules[policy->network.publish_count++].origin = origin_of(&from->from);
	}
}

/* Of a port that two files of a chain name the later one says what it is called. */
static struct host_port *find_host_port(struct host_port *ports, size_t count, uint16_t port)
{
	for (size_t i = 0; i < count; i++)
		if (ports[i].port == port)
			return &ports[i];
	return NULL;
}

static void finish_host_ports(struct lang *lang, struct policy *policy)
{
	struct host_port *ports = arena_alloc(&lang->arena, NET_HOST_PORTS_MAX * sizeof *ports);

	policy->network.host_ports = ports;
	DRAFT_EACH(struct draft_host_port, from, &lang->draft.host_ports)
	{
		struct host_port *into;

		if (!ports || !from->port.port)
			continue;
		into = find_host_port(ports, policy->network.host_port_count, from->port.port);
		if (!into && policy->network.host_port_count == NET_HOST_PORTS_MAX) {
			diag_add(&lang->diags, from->from.place, "at most %d ports of this machine can be listed",
				 NET_HOST_PORTS_MAX);
			return;
		}
		into = into ? into : &ports[policy->network.host_port_count++];
		*into = from->port;
		into->origin = origin_of(&from->from);
	}
}

static void finish_network(struct lang *lang, struct policy *policy)
{
	struct net_rule *rules = arena_alloc(&lang->arena, lang->draft.network.count * sizeof *rules);

	if (!rules)
		return;
	policy->network.rules = rules;
	DRAFT_EACH(struct draft_net, from, &lang->draft.network)
	{
		if (from->is_listed)
			diag_add(&lang->diags, from->from.place,
				 "listed: this is for a project's .atoll.yaml, where a policy lists the host already");
		if (!from->host && !from->cidr)
			continue;
		policy->network.exact_count += from->host != NULL;
		rules[policy->network.count++] = (struct net_rule){
			.verdict = from->verdict,
			.host = from->host,
			.cidr = from->cidr,
			.ports = from->ports.items,
			.port_count = from->ports.count,
			.http = finish_http(lang, &from->http),
			.http_count = from->http.count,
			.inject = secrets_inject(&from->inject),
			.answer = finish_answer(lang, from->answer),
			.except = vec_strings(&lang->arena, &from->from.except),
			.limits = finish_rule_limits(lang, from),
			.origin = origin_of(&from->from),
		};
	}
	qsort(rules, policy->network.count, sizeof *rules, compare_net);
	index_limited(lang, policy);
	finish_publish(lang, policy);
	finish_host_ports(lang, policy);
	check_globs(lang, policy->network.count - policy->network.exact_count, DRAFT_GLOBS_MAX, "network (cidr)");
}

static bool exec_is_exact(const struct exec_rule *rule)
{
	return rule->program && !(rule->program_flags & FILE_GLOB) && !rule->argv;
}

static int compare_exec(const void *a, const void *b)
{
	const struct exec_rule *x = a, *y = b;

	if (!exec_is_exact(x) || !exec_is_exact(y))
		return exec_is_exact(y) - exec_is_exact(x);
	return strcmp(x->program, y->program);
}

static void finish_exec(struct lang *lang, struct policy *policy)
{
	struct exec_rule *rules = arena_alloc(&lang->arena, lang->draft.exec.count * sizeof *rules);

	if (!rules)
		return;
	policy->exec.rules = rules;
	DRAFT_EACH(struct draft_exec, from, &lang->draft.exec)
	{
		struct exec_rule *rule = &rules[policy->exec.count];

		if (!from->program && !from->argv.count)
			continue;
		warn_of_names(lang, from);
		*rule = (struct exec_rule){
			.verdict = from->verdict,
			.program = from->program,
			.program_flags = from->flags,
			.argv = vec_strings(&lang->arena, &from->argv),
			.except = vec_strings(&lang->arena, &from->from.except),
			.origin = origin_of(&from->from),
		};
		policy->exec.count++;
		policy->exec.exact_count += exec_is_exact(rule);
	}
	qsort(rules, policy->exec.count, sizeof *rules, compare_exec);
	check_globs(lang, policy->exec.count - policy->exec.exact_count, DRAFT_GLOBS_MAX, "exec");
}

static struct rule_origin scalar_origin(const struct lang *lang, size_t kind, const char *id)
{
	const struct draft_scalar *value = &lang->draft.scalars[kind];

	if (!value->is_set)
		return (struct rule_origin){ id, "", 0 };
	return (struct rule_origin){ value->id ? value->id : id, value->place.file, value->place.line };
}

/* What cannot be judged is asked about unless the policy says otherwise: silence is no yes. */
static struct verify_settings finish_verify(const struct lang *lang)
{
	struct verify_settings verify = { 0 };
	bool is_on = false;

	for (size_t row = 0; row < VERIFY_ROW_COUNT; row++) {
		const struct draft_scalar *given = &lang->draft.scalars[SCALAR_VERIFY + row];
		uint64_t unsaid = row == VERIFY_CONTAINED ? VERIFY_DENY : is_on && row == VERIFY_UNKNOWN ? VERIFY_ASK
													 : VERIFY_OFF;
		uint64_t packed = given->is_set ? given->value : unsaid * 0x010101;

		for (unsigned sureness = 0; sureness < VERIFY_SURENESS_COUNT; sureness++)
			verify.of[row][sureness] = verify_unpacked(packed, sureness);
		is_on |= packed != 0;
	}
	return verify;
}

static void finish_scalars(struct lang *lang, struct policy *policy)
{
	for (enum scalar_id id = 0; id < SCALAR_ROW_COUNT; id++) {
		const struct draft_scalar *given = &lang->draft.scalars[id];

		if (scalar_rows[id].unit == SCALAR_TEXT)
			scalar_set(id, policy, (uintptr_t)given->text);
		else
			scalar_set(id, policy, given->is_set ? given->value : scalar_rows[id].unsaid);
	}
	policy->network.default_origin = scalar_origin(lang, SCALAR_NETWORK_DEFAULT, "network.default");
	policy->exec.default_origin = scalar_origin(lang, SCALAR_EXEC_DEFAULT, "exec.default");
	policy->network.limits = limits_of(&lang->draft.scalars[SCALAR_NETWORK_LIMITS]);
	policy->network.cooldown = cooldown_of(&lang->draft.scalars[SCALAR_COOLDOWN_DENIALS]);
	policy->cooldown = cooldown_of(&lang->draft.scalars[SCALAR_TIME_COOLDOWN_DENIALS]);
	for (size_t i = 0; i < RATE_KIND_COUNT; i++)
		policy->rates[i] = amount_of(&lang->draft.scalars[SCALAR_RATES + i]);
	policy->verify = finish_verify(lang);
	policy->trust = trust_finish(lang);
	policy->external = external_finish(&lang->arena, lang->draft.external);
	for (size_t i = 0; i < RESOURCE_COUNT; i++)
		policy->limits[i].origin = scalar_origin(lang, SCALAR_RESOURCES + i, i >= RESOURCE_WALL_MS
								? "time.default" : "resources.default");
}

static void finish_env(struct lang *lang, struct policy *policy)
{
	const struct draft *draft = &lang->draft;
	struct env_pass *pass = arena_alloc(&lang->arena, draft->env_pass.count * sizeof *pass);
	struct env_set *set = arena_alloc(&lang->arena, draft->env_set.count * sizeof *set);
	struct device_rule *devices = arena_alloc(&lang->arena, draft->devices.count * sizeof *devices);

	if (!pass || !set || !devices)
		return;
	DRAFT_EACH(struct draft_named, from, &draft->env_pass)
	pass[policy->env.pass_count++] = (struct env_pass){ from->name, origin_of(&from->from) };
	DRAFT_EACH(struct draft_named, from, &draft->env_set)
	{
		size_t i = 0;

		/* A child's value replaces its parent's. */
		while (i < policy->env.set_count && !str_equal(set[i].name, from->name))
			i++;
		set[i] = (struct env_set){ from->name, from->value, origin_of(&from->from) };
		policy->env.set_count += i == policy->env.set_count;
	}
	DRAFT_EACH(struct draft_named, from, &draft->devices)
	devices[policy->device_count++] = (struct device_rule){ from->name, origin_of(&from->from) };
	policy->env.pass = pass;
	policy->env.set = set;
	policy->devices = devices;
	DRAFT_EACH(struct draft_named, from, &draft->degrade)
	for (unsigned wall = 0; wall < WALL_COUNT; wall++)
		if (str_equal(wall_names[wall], from->name))
			policy->degrade |= 1u << wall;
}

/*
 * The host's network is shared only where the text says so twice: `host: true` alone could be one word
 * copied too much.
 */
static void finish_network_mode(struct lang *lang, struct policy *policy)
{
	const struct draft_scalar *host = &lang->draft.scalars[SCALAR_NETWORK_HOST];
	bool wants_gate = policy->network.default_verdict != VERDICT_DENY || policy->network.publish_count ||
			  policy->network.host_port_count;

	/* Refusing more where nothing is reachable needs no gate. */
	for (size_t i = 0; i < policy->network.count; i++)
		wants_gate |= policy->network.rules[i].verdict != VERDICT_DENY;
	for (size_t i = 0; i < NET_LIMIT_COUNT; i++)
		wants_gate |= policy->network.limits.of[i].amount != 0;
	policy->network.mode = wants_gate ? NETWORK_GATE : NETWORK_NONE;
	if (!host->is_set || !host->value)
		return;
	if (policy->network.default_verdict != VERDICT_ALLOW) {
		diag_add(&lang->diags, host->place,
			 "\"host: true\" shares the host's network; it also needs \"default: allow\" in "
			 "words");
		return;
	}
	policy->network.mode = NETWORK_HOST;
}

void finish_contradictions(struct lang *lang)
{
	struct policy unused = { 0 };

	finish_files(lang, &unused);
	secrets_contradictions(lang);
	/* Where `extends` itself is wrong nobody knows what level there is to lower. */
	if (lang->has_level)
		(void)trust_finish(lang);
}

struct policy *finish_policy(struct lang *lang)
{
	struct policy *policy = arena_alloc(&lang->arena, sizeof *policy);

	if (!policy)
		return NULL;
	policy->name = lang->name ? lang->name : "";
	policy->level = lang->level;
	policy->project = lang->request.project;
	policy->home = lang->request.home;
	finish_scalars(lang, policy);
	finish_files(lang, policy);
	policy->files.asks = finish_paths(lang, &lang->draft.asks, DRAFT_GLOBS_MAX, &policy->files.ask_count);
	policy->files.protects = finish_paths(lang, &lang->draft.protects, DRAFT_PROTECTS_MAX,
					      &policy->files.protect_count);
	lang->warnings.count = 0;
	finish_network(lang, policy);
	warn_of_open_hosts(lang, policy);
	warn_of_loopback(lang, policy);
	finish_exec(lang, policy);
	finish_env(lang, policy);
	finish_network_mode(lang, policy);
	policy->agent = agent_finish(lang);
	secrets_finish(lang, policy);
	if (lang->diags.count || lang->arena.has_failed)
		return NULL;
	plan_files(lang, policy);
	plan_unenforced(lang, policy);
	check_own_mounts(lang, policy);
	return lang->diags.count || lang->arena.has_failed ? NULL : policy;
}
