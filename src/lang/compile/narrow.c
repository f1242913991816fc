/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/compile/narrow.h"

#include <string.h>

#include "base/str.h"
#include "lang/bind/bind.h"
#include "policy/decide.h"

/*
 * Keys are those of a policy, read by the same functions, but only those listed here, and rules are single words: no
 * exceptions, no conditions. The two lists of its own are rewritten: what the policy gives beyond them is denied line
 * by line. That needs no trust either: each line is checked like every other.
 */

enum { PART_KEYS_MAX = 4 };

struct narrower {
	struct binder binder;        /* the first member: what bind() gets */
	struct lang *lang;
	struct vec changes;          /* struct draft_path */
	struct draft reached;        /* its network: the hosts of `reach` */
};

static struct narrower *narrower_of(struct binder *binder)
{
	return (struct narrower *)binder;
}

static const struct key *find_key(const struct key *keys, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_equal(keys[i].name, name))
			return &keys[i];
	return NULL;
}

/* ---- from text ---- */

static void bind_change(struct binder *binder, const struct key *key, const struct node *node)
{
	struct draft_path *rule = bind_add(binder, &narrower_of(binder)->changes, sizeof *rule, node);
	struct pattern pattern = { 0 };
	const char *problem = pattern_resolve(binder->arena, &binder->scope, PATTERN_BELOW_PROJECT, node->text,
					      &pattern);

	if (problem || !pattern.text || pattern.is_glob || !path_is_below(pattern.text, binder->scope.project)) {
		bind_expected(binder, node, "a path in the project, without stars");
		return;
	}
	if (!rule)
		return;
	rule->pattern = pattern.text;
	rule->from.text = node->text;
}

/* A host is read as one of `deny` is. */
static void bind_reach(struct binder *binder, const struct key *key, const struct node *node)
{
	const struct key *deny = find_key(network_keys, network_key_count, "deny");

	binder->draft = &narrower_of(binder)->reached;
	deny->bind(binder, deny, node);
	binder->draft = &narrower_of(binder)->lang->project;
}

static const struct part {
	const char *name;
	const struct key *keys;
	const size_t *count;
	const char *taken[PART_KEYS_MAX]; /* of the policy's section */
	struct key own;
	bool has_rows;               /* of the section: its limits, which stand first in its table */
} parts[] = {
	{ "files", files_keys, &files_key_count, { "read", "mask" }, { "change", KEY_SCALARS, bind_change } },
	{ "network", network_keys, &network_key_count, { "deny" }, { "reach", KEY_SCALARS, bind_reach } },
	{ "exec", exec_keys, &exec_key_count, { "deny" } },
	{ "resources", resources_keys, &resources_key_count, .has_rows = true },
	{ "time", time_keys, &time_key_count, .has_rows = true },
};

static void bind_part(struct binder *binder, const struct key *key, const struct node *node)
{
	const struct part *part = &parts[key->value];
	struct key keys[PART_KEYS_MAX];
	size_t count = 0;

	if (part->has_rows)
		keys[count++] = part->keys[0];
	for (size_t i = 0; i < PART_KEYS_MAX && part->taken[i]; i++) {
		keys[count] = *find_key(part->keys, *part->count, part->taken[i]);
		if (keys[count].kind == KEY_LIST)
			keys[count].kind = KEY_SCALARS;
		count++;
	}
	if (part->own.name)
		keys[count++] = part->own;
	binder->section = part->name;
	bind_map(binder, keys, count, node);
	binder->section = "";
}

/* The list that part.name names, NULL where it is not there: an empty one says a lot. */
static const struct node *list_of(const struct node *root, const char *part, const char *name)
{
	const char *const path[] = { part, name };

	for (size_t i = 0; root && i < ARRAY_SIZE(path); i++) {
		const struct node *at = root->kind == NODE_MAP ? root->first : NULL;

		while (at && !(at->kind == NODE_SCALAR && str_equal(at->text, path[i])))
			at = at->next;
		root = at ? at->value : NULL;
	}
	return root;
}

/* ---- files.change ---- */

static void add_file(struct narrower *narrower, const struct draft_rule *from, enum file_class class,
		     const char *pattern)
{
	struct draft_file *file = vec_add(narrower->binder.arena, &narrower->lang->project.files, sizeof *file);

	if (file)
		*file = (struct draft_file){
			.from = { .place = from->place, .id = from->id, .text = pattern },
			.class = class, .flags = FILE_OPTIONAL, .stands = true, .pattern = pattern,
		};
}

static bool may_change(enum file_class class)
{
	return class == FILE_STAGE || class == FILE_WRITE;
}

static bool is_changed(const struct narrower *narrower, const char *path)
{
	DRAFT_EACH(struct draft_path, change, &narrower->changes)
	if (path_is_below(path, change->pattern))
		return true;
	return false;
}

static bool names_path(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->files.exact_count; i++)
		if (str_equal(policy->files.rules[i].pattern, path))
			return true;
	return false;
}

/* Whatever of the project could be changed is read-only, but for what is listed. */
static void expand_change(struct narrower *narrower, const struct node *list)
{
	const struct policy *base = narrower->lang->policy;
	const char *project = base->project;
	const struct draft_rule whole = { .place = list->place, .id = "files.change" };
	size_t rule;

	if (!project[0])
		return;
	if (!names_path(base, project) && may_change(policy_classify(base, project, &rule)) &&
	    !is_changed(narrower, project))
		add_file(narrower, &whole, FILE_READ, project);
	for (size_t i = 0; i < base->files.count; i++) {
		const struct file_rule *file = &base->files.rules[i];

		if (!may_change(file->class))
			continue;
		if (file->flags & FILE_GLOB)
			diag_add(narrower->binder.diags, list->place,
				 "the policy lets \"%.80s\" be changed, a pattern: files.change cannot narrow it",
				 file->pattern);
		else if (path_is_below(file->pattern, project) && !is_changed(narrower, file->pattern))
			add_file(narrower, &whole, FILE_READ, file->pattern);
	}
	DRAFT_EACH(struct draft_path, change, &narrower->changes)
	{
		enum file_class class = change->pattern ? policy_classify(base, change->pattern, &rule) : FILE_HIDDEN;

		/* Of a path that may not be changed the check says so. */
		if (change->pattern && !(may_change(class) && names_path(base, change->pattern)))
			add_file(narrower, &change->from, may_change(class) ? class : FILE_STAGE, change->pattern);
	}
}

/* ---- network.reach ---- */

/* Whether all hosts of b ("*.x" or a name) are hosts of a. */
static bool covers(const char *a, const char *b)
{
	if (str_equal(a, b))
		return true;
	return a && b && str_has_prefix(a, "*.") && str_has_suffix(b, a + 1);
}

static struct draft_net *add_net(struct narrower *narrower, const struct draft_rule *from, enum verdict verdict)
{
	struct draft_net *net = vec_add(narrower->binder.arena, &narrower->lang->project.network, sizeof *net);

	if (net) {
		net->from = (struct draft_rule){ .place = from->place, .id = from->id, .text = from->text };
		net->verdict = verdict;
	}
	return net;
}

/* A rule that gives something beyond what is listed gives only that any more. */
static void deny_rest(struct narrower *narrower, const struct draft_rule *whole, const struct net_rule *rule)
{
	struct draft_net *deny;

	DRAFT_EACH(struct draft_net, reach, &narrower->reached.network)
	if (rule->host ? covers(reach->host, rule->host) : str_equal(reach->cidr, rule->cidr))
		return;
	deny = add_net(narrower, whole, VERDICT_DENY);
	if (!deny)
		return;
	deny->host = rule->host;
	deny->cidr = rule->cidr;
	deny->from.text = rule->host ? rule->host : rule->cidr;
	DRAFT_EACH(struct draft_net, reach, &narrower->reached.network)
	if (rule->host && covers(rule->host, reach->host))
		vec_add_text(narrower->binder.arena, &deny->from.except, reach->host);
}

static bool is_given(const struct policy *base, const struct draft_net *reach)
{
	for (size_t i = 0; i < base->network.count; i++) {
		const struct net_rule *rule = &base->network.rules[i];

		if (rule->verdict == VERDICT_DENY)
			continue;
		if (rule->host ? covers(reach->host, rule->host) || covers(rule->host, reach->host)
			       : str_equal(reach->cidr, rule->cidr))
			return true;
	}
	return false;
}

/* Not of a rule but of the default, where that allows: for what is usual. Where it does not, the check says so. */
static void add_reach(struct narrower *narrower, const struct draft_net *reach)
{
	static const uint16_t usual[] = { 443, 80 };
	struct draft_net *allow = add_net(narrower, &reach->from, VERDICT_ALLOW);

	if (!allow)
		return;
	allow->host = reach->host;
	allow->cidr = reach->cidr;
	for (size_t i = 0; narrower->lang->policy->network.default_verdict == VERDICT_ALLOW && i < ARRAY_SIZE(usual);
	     i++) {
		uint16_t *port = vec_add(narrower->binder.arena, &allow->ports, sizeof *port);

		if (port)
			*port = usual[i];
	}
}

static void set_scalar(struct narrower *narrower, unsigned kind, const char *id, struct place place)
{
	narrower->lang->project.scalars[kind] = (struct draft_scalar){
		.is_set = true, .value = 0, .place = place, .id = id, .text = "",
	};
}

_Static_assert(VERDICT_DENY == 0, "a default of 0 denies");

static void expand_reach(struct narrower *narrower, const struct node *list)
{
	const struct draft_rule whole = { .place = list->place, .id = "network.reach", .text = "" };
	const struct policy *base = narrower->lang->policy;

	for (size_t i = 0; i < base->network.count; i++)
		if (base->network.rules[i].verdict != VERDICT_DENY)
			deny_rest(narrower, &whole, &base->network.rules[i]);
	DRAFT_EACH(struct draft_net, reach, &narrower->reached.network)
	if ((reach->host || reach->cidr) && !is_given(base, reach))
		add_reach(narrower, reach);
	set_scalar(narrower, SCALAR_NETWORK_DEFAULT, "network.reach", list->place);
	if (base->network.mode == NETWORK_HOST)
		set_scalar(narrower, SCALAR_NETWORK_HOST, "network.reach", list->place);
}

void narrow_load(struct lang *lang)
{
	struct narrower narrower = { .lang = lang };
	struct node *root = node_parse(&lang->diags, NARROW_FILE, lang->request.narrowing,
				       lang->request.narrowing_size);
	const struct node *change = list_of(root, "files", "change"), *reach = list_of(root, "network", "reach");
	struct key keys[ARRAY_SIZE(parts)];

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		keys[i] = (struct key){ parts[i].name, KEY_FREE, bind_part, .value = (int)i };
	narrower.binder = (struct binder){
		.arena = &lang->arena, .diags = &lang->diags, .draft = &lang->project,
		.scalars = lang->project.scalars, .section = "", .list = "",
		.scope = { lang->request.project, lang->request.home },
	};
	if (root)
		bind_map(&narrower.binder, keys, ARRAY_SIZE(keys), root);
	if (lang->diags.count)
		return;
	if (change)
		expand_change(&narrower, change);
	if (reach)
		expand_reach(&narrower, reach);
}
