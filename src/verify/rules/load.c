/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/rules/tables.h"

#include <ctype.h>
#include <string.h>

#include "base/names.h"
#include "base/str.h"

static void read_conditions(struct loader *loader, const struct node *node, struct vec *out);

struct named_list *rules_find_list(struct rules *rules, const char *name)
{
	struct named_list *lists = rules->lists.items;

	for (size_t i = 0; i < rules->lists.count; i++) {
		if (str_equal(lists[i].name, name))
			return &lists[i];
	}
	return NULL;
}

/* "@name" stands for a list; lists are found when all files are there, so the name is kept until then. */
static void take_pattern(struct loader *loader, const struct node *item, void *target)
{
	struct vec *patterns = target;

	if (!item->text[0])
		diag_add(loader->diags, item->place, "an empty pattern matches nothing");
	else if (patterns->count >= RULE_PATTERNS_MAX)
		diag_add(loader->diags, item->place, "more than %d patterns", RULE_PATTERNS_MAX);
	else
		vec_add_text(&loader->rules->arena, patterns, read_copy(loader, item->text));
}

static void read_patterns(struct loader *loader, const struct node *node, void *target)
{
	read_each(loader, node, target, take_pattern);
}

static void take_kind(struct loader *loader, const struct node *item, void *target)
{
	int kind = read_choice(loader, item, "kind of operation", operation_kind_names, OPERATION_KIND_COUNT);

	if (kind >= 0)
		*(uint32_t *)target |= (uint32_t)1 << kind;
}

static void read_kinds(struct loader *loader, const struct node *node, void *target)
{
	read_each(loader, node, target, take_kind);
}

static void take_word_flag(struct loader *loader, const struct node *item, void *target)
{
	static const char *const names[] = { "exact", "glob", "decoded", "input", "environment", "obscured" };

	read_bit(loader, item, target, "property of words", names, ARRAY_SIZE(names));
}

static void read_words(struct loader *loader, const struct node *node, void *target)
{
	read_each(loader, node, target, take_word_flag);
}

static void read_conditions_of(struct loader *loader, const struct node *node, void *target)
{
	read_conditions(loader, node, target);
}

#define KEY(name, field, read) { name, offsetof(struct condition, field), read }

static const struct key condition_keys[] = {
	KEY("arguments", arguments, read_patterns), KEY("context", context, read_context),
	KEY("flags", flags, read_patterns), KEY("from", from, read_conditions_of),
	KEY("hosts", hosts, read_patterns), KEY("kind", kinds, read_kinds),
	KEY("operands", operands, read_patterns), KEY("program", programs, read_patterns),
	KEY("text", text, read_patterns), KEY("without-text", without_text, read_patterns),
	KEY("traits", traits, read_traits), KEY("unknown", is_unknown, read_bool),
	KEY("value", values, read_patterns), KEY("within", within, read_conditions_of),
	KEY("without-arguments", without_arguments, read_patterns), KEY("without-flags", without_flags, read_patterns),
	KEY("without-from", without_from, read_conditions_of), KEY("without-hosts", without_hosts, read_patterns),
	KEY("words", words, read_words),
};

static void read_condition(struct loader *loader, const struct node *node, struct vec *out)
{
	struct condition *condition = vec_add(&loader->rules->arena, out, sizeof *condition);

	if (!condition)
		return;
	if (node->kind == NODE_MAP && !node->first)
		diag_add(loader->diags, node->place, "an empty condition would match everything");
	read_map(loader, node, condition_keys, ARRAY_SIZE(condition_keys), condition);
}

static void read_conditions(struct loader *loader, const struct node *node, struct vec *out)
{
	if (loader->depth >= RULE_DEPTH_MAX) {
		diag_add(loader->diags, node->place, "conditions in conditions are at most %d deep",
			RULE_DEPTH_MAX);
		return;
	}
	loader->depth++;
	if (node->kind == NODE_LIST) {
		for (const struct node *item = node->first; item; item = item->next)
			read_condition(loader, item, out);
	} else {
		read_condition(loader, node, out);
	}
	loader->depth--;
}

/* A rule while it is read. */
struct rule_draft {
	struct rule rule;
	const struct node *examples;
	bool has_severity;
};

static void read_name(struct loader *loader, const struct node *node, void *target)
{
	const char *text = node->kind == NODE_SCALAR ? node->text : "";

	for (const char *at = text; *at; at++) {
		if (!islower((unsigned char)*at) && !isdigit((unsigned char)*at) && !strchr(".-", *at)) {
			text = "";
			break;
		}
	}
	if (!*text || strlen(text) > 80)
		diag_add(loader->diags, node->place, "a name is made of a-z, 0-9, \"-\" and \".\", at most 80");
	else
		*(const char **)target = read_copy(loader, text);
}

static void read_sentence(struct loader *loader, const struct node *node, void *target)
{
	if (!read_want(loader, node, NODE_SCALAR, "a sentence"))
		return;
	if (!node->text[0] || strlen(node->text) > 400)
		diag_add(loader->diags, node->place, "a sentence has 1 to 400 bytes");
	else
		*(const char **)target = read_copy(loader, node->text);
}

static void read_class(struct loader *loader, const struct node *node, void *target)
{
	int class = read_choice(loader, node, "class", class_names, CLASS_COUNT);

	if (class >= 0)
		*(enum finding_class *)target = (enum finding_class)class;
}

static void read_severity(struct loader *loader, const struct node *node, void *target)
{
	int severity = read_choice(loader, node, "severity", severity_names, SEVERITY_COUNT);
	struct rule_draft *draft = target;

	draft->has_severity = true;
	if (severity >= 0)
		draft->rule.severity = (enum severity)severity;
}

static void read_confidence(struct loader *loader, const struct node *node, void *target)
{
	int confidence = read_choice(loader, node, "confidence", confidence_names, CONFIDENCE_COUNT);

	if (confidence >= 0)
		*(enum confidence *)target = (enum confidence)confidence;
}

static void read_examples(struct loader *loader, const struct node *node, void *target)
{
	*(const struct node **)target = node;
}

static const struct key rule_keys[] = {
	{ "class", offsetof(struct rule_draft, rule.class), read_class },
	{ "confidence", offsetof(struct rule_draft, rule.confidence_max), read_confidence },
	{ "examples", offsetof(struct rule_draft, examples), read_examples },
	{ "except", offsetof(struct rule_draft, rule.except), read_conditions_of },
	{ "id", offsetof(struct rule_draft, rule.id), read_name },
	{ "instead", offsetof(struct rule_draft, rule.instead), read_sentence },
	{ "leaves", offsetof(struct rule_draft, rule.leaves), read_bool },
	{ "match", offsetof(struct rule_draft, rule.match), read_conditions_of },
	{ "reason", offsetof(struct rule_draft, rule.reason), read_sentence },
	{ "severity", 0, read_severity },
};

/* One example: a text is shell, `python: TEXT` and `javascript: TEXT` say so. */
static void read_example(struct loader *loader, const char *id, const struct node *item, bool is_harmless)
{
	static const char *const languages[] = { "shell", "python", "javascript" };
	struct rule_example *example;
	const struct node *text = item;
	int language = 0;

	if (item->kind == NODE_MAP && item->first && !item->first->next) {
		language = names_find(languages, ARRAY_SIZE(languages), item->first->text);
		text = item->first->value;
		if (language < 0)
			read_unknown(loader, item->first, "language", languages, ARRAY_SIZE(languages));
	}
	if (language < 0 || !read_want(loader, text, NODE_SCALAR, "a text, or a language with a text"))
		return;
	example = vec_add(&loader->rules->arena, &loader->rules->examples, sizeof *example);
	if (example)
		*example = (struct rule_example){ id, read_copy(loader, text->text), languages[language], is_harmless,
						  item->place };
}

static void add_examples(struct loader *loader, const char *id, const struct node *node)
{
	static const char *const names[] = { "matches", "harmless" };

	if (!read_want(loader, node, NODE_MAP, "a mapping of `matches` and `harmless`"))
		return;
	for (const struct node *key = node->first; key; key = key->next) {
		int which = names_find(names, ARRAY_SIZE(names), key->text);

		if (which < 0) {
			read_unknown(loader, key, "key of examples", names, ARRAY_SIZE(names));
			continue;
		}
		if (key->value && key->value->kind != NODE_LIST) {
			read_example(loader, id, key->value, which == 1);
			continue;
		}
		for (const struct node *item = key->value ? key->value->first : NULL; item; item = item->next)
			read_example(loader, id, item, which == 1);
	}
}

static const struct rule *find_rule(const struct rules *rules, const char *id)
{
	const struct rule *items = rules->rules.items;

	for (size_t i = 0; i < rules->rules.count; i++) {
		if (str_equal(items[i].id, id))
			return &items[i];
	}
	return NULL;
}

static void read_rule(struct loader *loader, const struct node *node, void *target)
{
	struct rule_draft draft = { .rule = { .instead = "", .confidence_max = CONFIDENCE_CERTAIN } };
	struct rule *rule;

	(void)target;
	draft.rule.class = loader->class;
	read_map(loader, node, rule_keys, ARRAY_SIZE(rule_keys), &draft);
	draft.rule.place = node->place;
	if (node->kind != NODE_MAP)
		return;
	if (!draft.rule.id || !draft.rule.reason || !draft.has_severity || !draft.rule.match.count) {
		diag_add(loader->diags, node->place, "a rule needs id, severity, reason and match");
		return;
	}
	if (find_rule(loader->rules, draft.rule.id))
		diag_add(loader->diags, node->place, "there is a rule %s already", draft.rule.id);
	if (loader->rules->rules.count >= RULES_MAX) {
		diag_add(loader->diags, node->place, "more than %d rules", RULES_MAX);
		return;
	}
	rule = vec_add(&loader->rules->arena, &loader->rules->rules, sizeof *rule);
	if (rule)
		*rule = draft.rule;
	if (draft.examples)
		add_examples(loader, draft.rule.id, draft.examples);
}

static void read_rules(struct loader *loader, const struct node *node, void *target)
{
	if (!read_want(loader, node, NODE_LIST, "a list of rules"))
		return;
	for (const struct node *item = node->first; item; item = item->next)
		read_rule(loader, item, target);
}

static void read_lists(struct loader *loader, const struct node *node, void *target)
{
	(void)target;
	if (!read_want(loader, node, NODE_MAP, "a mapping of names to lists"))
		return;
	for (const struct node *key = node->first; key; key = key->next) {
		struct named_list *list = rules_find_list(loader->rules, key->text);

		/* A list of the same name in another file goes on with it. */
		if (!list && loader->rules->lists.count < RULE_LISTS_MAX)
			list = vec_add(&loader->rules->arena, &loader->rules->lists, sizeof *list);
		if (!list) {
			diag_add(loader->diags, key->place, "more than %d lists", RULE_LISTS_MAX);
			return;
		}
		if (!list->name)
			*list = (struct named_list){ .name = read_copy(loader, key->text), .place = key->place };
		if (key->value)
			read_patterns(loader, key->value, &list->patterns);
	}
}

static void read_version(struct loader *loader, const struct node *node, void *target)
{
	if (node->kind != NODE_SCALAR || !str_equal(node->text, "1"))
		diag_add(loader->diags, node->place, "this atoll reads rule files of version 1");
	*(bool *)target = true;
}

static void read_file_class(struct loader *loader, const struct node *node, void *target)
{
	(void)target;
	read_class(loader, node, &loader->class);
}

static const struct key file_keys[] = {
	{ "atoll-verify", 0, read_version },
	{ "class", 0, read_file_class },
	{ "code-options", 0, tables_read_code_options },
	{ "editors", 0, tables_read_editors },
	{ "languages", 0, tables_read_languages },
	{ "lists", 0, read_lists },
	{ "programs", 0, tables_read_programs },
	{ "rules", 0, read_rules },
	{ "transfers", 0, tables_read_transfers },
	{ "trials", 0, tables_read_trials },
	{ "verbs-first", 0, tables_read_verbs_first },
	{ "wrappers", 0, tables_read_wrappers },
};

bool rules_add(struct rules *rules, struct diags *diags, const char *file, const void *bytes, size_t size)
{
	struct loader loader = { .rules = rules, .diags = diags };
	size_t errors = diags->count, kept_rules = rules->rules.count, kept_examples = rules->examples.count;
	struct tables kept_tables = rules->tables;
	const struct node *root = node_parse(diags, file, bytes, size);
	bool has_version = false;

	if (!root)
		return false;
	read_map(&loader, root, file_keys, ARRAY_SIZE(file_keys), &has_version);
	if (!has_version)
		diag_add(diags, root->place, "a rule file begins with `atoll-verify: 1`");
	if (rules->arena.has_failed)
		diag_add(diags, root->place, "out of memory");
	if (diags->count == errors)
		return true;
	rules->rules.count = kept_rules;
	rules->examples.count = kept_examples;
	rules->tables = kept_tables;
	return false;
}

struct rules *rules_new(void)
{
	return calloc(1, sizeof(struct rules));
}

void rules_free(struct rules *rules)
{
	if (!rules)
		return;
	arena_done(&rules->arena);
	free(rules);
}

size_t rules_count(const struct rules *rules)
{
	return rules->rules.count;
}

const struct tables *rules_tables(const struct rules *rules)
{
	return &rules->tables;
}

bool rules_are_whole(const struct rules *rules)
{
	return rules->rules.count && tables_are_whole(&rules->tables);
}

size_t rules_example_count(const struct rules *rules)
{
	return rules->examples.count;
}

struct rule_example rules_example(const struct rules *rules, size_t at)
{
	return ((const struct rule_example *)rules->examples.items)[at];
}
