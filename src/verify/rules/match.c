/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/rules/compiled.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

#include "base/str.h"
#include "os/clock.h"
#include "policy/decide.h"
#include "verify/model/argv.h"
#include "verify/model/words.h"
#include "verify/rules/above.h"
#include "verify/rules/pattern.h"

/*
 * One operation against one condition: everything that the condition has must hold. How sure a finding is follows from
 * the words that it rests on: the least exact of them counts.
 */
struct matcher {
	const struct rules *rules;
	struct operations *operations;
	enum confidence confidence;
	struct filter_hits *hits; /* of each operation, made when they are asked for */
	struct above *above; /* the same of all that flows into each, once a flow was asked for */
	bool is_above_made;
	uint32_t steps;      /* of all searches of flows so far */
	bool is_cut; /* a search of flows was given up */
};

struct findings {
	struct finding *items;
	size_t count, max;
	bool is_full;
};

enum { MATCH_TIME_MS = 1000, PATH_SIZE = 1024, HOST_SIZE = 256, SAME_RULE_MAX = 20 };

/* A path as rules name it: one "~" for all homes, no "//", "/./", "..", no slash at the end. */
static bool normal_path(const char *text, char out[PATH_SIZE])
{
	char joined[PATH_SIZE];
	const char *rest = text;
	bool is_below = strncmp(text, "./", 2) == 0 && text[2];

	if (strncmp(text, "file://", 7) == 0)
		rest = text += 7;
	if (text[0] != '/' && text[0] != '~')
		return str_copy(out, PATH_SIZE, is_below ? text + 2 + strspn(text + 2, "/") : text) == 0;
	if (text[0] == '~') {
		/* "/~/x" so that ".." behind it is worked out; "~user" is a home as well. */
		rest = text + 1 + strcspn(text + 1, "/");
		if (str_format(joined, sizeof joined, "/~%s", rest) < 0)
			return false;
	} else if (str_copy(joined, sizeof joined, text) < 0) {
		return false;
	}
	if (path_normalise(out, PATH_SIZE, joined) < 0)
		return false;
	rest = NULL;
	if (strncmp(out, "/~", 2) == 0 && (out[2] == '/' || !out[2]))
		rest = out + 2;
	else if (strncmp(out, "/root", 5) == 0 && (out[5] == '/' || !out[5]))
		rest = out + 5;
	else if (strncmp(out, "/home/", 6) == 0 && out[6])
		rest = out + 6 + strcspn(out + 6, "/");
	return !rest || (str_copy(joined, sizeof joined, rest) == 0 && str_format(out, PATH_SIZE, "~%s", joined) == 0);
}

static bool is_meta(char c)
{
	return c == '*' || c == '?' || c == '[' || c == '\\';
}

/* Most patterns are told not to match by how they begin. */
static bool may_match(const char *pattern, const char *text)
{
	for (; *pattern && !is_meta(*pattern); pattern++, text++)
		if (*pattern != *text)
			return false;
	return true;
}

/* A word, and as a path once that is asked for. */
struct compared {
	const struct word *word;
	enum { NOT_YET, IS_PATH, IS_NONE } state;
	char path[PATH_SIZE];
};

static bool match_path(const char *pattern, struct compared *compared)
{
	const char *path = compared->path;

	if (compared->state == NOT_YET)
		compared->state = normal_path(compared->word->text, compared->path) ? IS_PATH : IS_NONE;
	if (compared->state == IS_NONE)
		return false;
	/* What stands before a "/" and two stars matches too, so the beginning is compared without them. */
	if (strncmp(pattern, path, 2) != 0 && !is_meta(pattern[0]) && pattern[1] && !is_meta(pattern[1]) &&
	    !(compared->word->flags & WORD_GLOB) && strcmp(path, "/") != 0 && strcmp(path, "~") != 0)
		return false;
	if (glob_match(pattern, path))
		return true;
	/* /etc/sh?dow: a glob of the shell that may become what the pattern names. */
	if (!(compared->word->flags & WORD_GLOB) || strpbrk(pattern, "*?["))
		return false;
	/* One that begins with a wildcard finds nothing but what lies here. */
	return (*path == *pattern || !strchr("/~", *pattern)) && fnmatch(path, pattern, FNM_PATHNAME) == 0;
}

static bool match_compared(const char *pattern, struct compared *compared)
{
	if (is_path_pattern(pattern))
		return match_path(pattern, compared);
	return may_match(pattern, compared->word->text) && pattern_match(pattern, compared->word->text, false);
}

static bool match_word(const char *pattern, const struct word *word)
{
	struct compared compared;

	compared.word = word;
	compared.state = NOT_YET;
	return match_compared(pattern, &compared);
}

static void rest_on(struct matcher *matcher, const struct word *word)
{
	enum confidence confidence = CONFIDENCE_CERTAIN;

	if (!(word->flags & WORD_EXACT) || word->flags & WORD_GLOB)
		confidence = CONFIDENCE_LIKELY;
	if (word->size == 1 && word->text[0] == WORD_UNKNOWN)
		confidence = CONFIDENCE_POSSIBLE;
	if (confidence < matcher->confidence)
		matcher->confidence = confidence;
}

static const char *const *patterns_of(const struct vec *vec)
{
	return vec->items;
}

static bool match_any(const struct vec *patterns, const struct word *word)
{
	struct compared compared;

	compared.word = word;
	compared.state = NOT_YET;
	for (size_t i = 0; i < patterns->count; i++) {
		if (match_compared(patterns_of(patterns)[i], &compared))
			return true;
	}
	return false;
}

/* What patterns of programs are compared with: the base name of a command's program, all of a call's. */
static const char *name_of(const struct operation *operation, const struct word *word)
{
	const char *slash = operation->kind == OP_CALL ? NULL : strrchr(word->text, '/');

	return slash ? slash + 1 : word->text;
}

/* A glob of the shell may become any name that it fits. One of stars alone fits all, and so says nothing of any. */
static bool is_glob_name(const struct operation *operation, const struct word *word)
{
	const char *name = name_of(operation, word);

	return word->flags & WORD_GLOB && operation->kind == OP_COMMAND && name[strspn(name, "*")];
}

/* The host of a URL, "host:port", "user@host:path", "/dev/tcp/host/port"; lower case. */
static void host_of(const char *text, char out[HOST_SIZE])
{
	const char *scheme = strstr(text, "://"), *at;
	size_t size;

	if (scheme)
		text = scheme + 3;
	else if (strncmp(text, "/dev/tcp/", 9) == 0 || strncmp(text, "/dev/udp/", 9) == 0)
		text += 9;
	size = strcspn(text, "/?#");
	at = memchr(text, '@', size);
	if (at) {
		size -= (size_t)(at + 1 - text);
		text = at + 1;
	}
	if (text[0] == '[')
		size = strcspn(++text, "]");
	else if (memchr(text, ':', size))
		size = (size_t)((const char *)memchr(text, ':', size) - text);
	if (size >= HOST_SIZE)
		size = HOST_SIZE - 1;
	for (size_t i = 0; i < size; i++)
		out[i] = (char)tolower((unsigned char)text[i]);
	out[size] = '\0';
}

/* A path that begins so may be, or become, one that a rule names in full. */
static bool may_become_path(const char *path)
{
	return strchr("/~.*?[\\", *path);
}

static void note_word(struct matcher *matcher, const struct operation *operation, size_t at, struct filter_hits *hits)
{
	const struct filter *filter = &matcher->rules->filter;
	const struct word *word = operation_word(operation, at);
	const char *path = word->text;
	char normal[PATH_SIZE];

	filter_note(filter, word->text, hits);
	/* Another path's is a part of the text. */
	if (strchr("/~", *path) || strncmp(path, "file://", 7) == 0) {
		path = normal_path(path, normal) ? normal : "";
		filter_note(filter, path, hits);
	} else if (strncmp(path, "./", 2) == 0) {
		path += 2;
		filter_note_whole(filter, path, hits);
	}
	if (word->flags & WORD_GLOB && may_become_path(path))
		filter_note_globs(filter, hits);
}

static void note_name(struct matcher *matcher, const struct operation *operation, struct filter_hits *hits)
{
	const struct word *word = operation_word(operation, 0);
	char host[HOST_SIZE];

	if (is_glob_name(operation, word))
		filter_note_all(hits);
	filter_note_whole(&matcher->rules->filter, name_of(operation, word), hits);
	if (operation->kind == OP_NETWORK) {
		host_of(word->text, host);
		filter_note_whole(&matcher->rules->filter, host, hits);
	}
}

/* The vectors of patterns that may match something of it: all but what it takes in. */
static const struct filter_hits *hits_of(struct matcher *matcher, uint32_t index)
{
	const struct operation *operation = operations_get(matcher->operations, index);
	struct filter_hits *hits = &matcher->hits[index];

	if (hits->is_made)
		return hits;
	hits->is_made = true;
	hits->bits[0] |= 1ULL << FILTER_ALWAYS;
	for (size_t i = 0; i < operation_word_count(operation); i++)
		note_word(matcher, operation, i, hits);
	if (operation_word_count(operation))
		note_name(matcher, operation, hits);
	return hits;
}

static bool may_hold(const uint16_t needs[CONDITION_NEEDS], const struct filter_hits *hits,
		     const struct operation *operation)
{
	return filter_may_match(hits, needs[NEED_PROGRAM]) && filter_may_match(hits, needs[NEED_ARGUMENT]) &&
	       filter_may_match(hits, needs[NEED_OPERAND]) && filter_may_match(hits, needs[NEED_VALUE]) &&
	       filter_may_match(hits, needs[NEED_HOST]) &&
	       (operation->document || filter_may_match(hits, needs[NEED_TEXT]));
}

static bool match_program(struct matcher *matcher, const struct condition *condition,
			  const struct operation *operation)
{
	const struct vec *programs = &condition->programs;
	const struct word *word = operation_word(operation, 0);
	bool is_glob, has_slash;
	const char *name;

	if (!programs->count)
		return true;
	if (!word)
		return false;
	is_glob = is_glob_name(operation, word);
	has_slash = strchr(word->text, '/') || word->text[0] == '~';
	name = name_of(operation, word);
	for (size_t i = 0; i < programs->count; i++) {
		const char *pattern = patterns_of(programs)[i];

		if ((may_match(pattern, name) && pattern_match(pattern, name, false)) ||
		    (is_glob && pattern_match(name, pattern, false)) ||
		    (has_slash && strchr(pattern, '/') && match_word(pattern, word))) {
			rest_on(matcher, word);
			return true;
		}
	}
	return false;
}

static bool match_arguments(struct matcher *matcher, const struct vec *patterns, const struct operation *operation)
{
	bool skips_first = operation->kind == OP_COMMAND || operation->kind == OP_CALL;
	size_t count = operation_word_count(operation);

	if (!patterns->count)
		return true;
	/* Where a link leads is its value: what is written is the link. */
	if (operation->kind == OP_WRITE && count > 1)
		count = 1;
	for (size_t i = skips_first; i < count; i++) {
		if (match_any(patterns, operation_word(operation, i))) {
			rest_on(matcher, operation_word(operation, i));
			return true;
		}
	}
	return false;
}

/* A text of another language (SQL, a script of a database's shell) that is given as a word, or comes in. */
static bool match_text(struct matcher *matcher, const struct vec *patterns, const struct operation *operation)
{
	size_t count = operation_word_count(operation);

	for (size_t i = 1; i <= count; i++) {
		const struct word *word = i < count ? operation_word(operation, i) : operation->document;

		for (size_t at = 0; word && at < patterns->count; at++) {
			if (pattern_match(patterns_of(patterns)[at], word->text, true)) {
				rest_on(matcher, word);
				return true;
			}
		}
	}
	return false;
}

/*
 * Options with a value that stand before a program's verb: `git -C x push`. Else the value would be taken for the verb.
 */
static const struct {
	const char *program, *valued;
} verbs[] = {
	{ "aws", "--profile --region --endpoint-url --output" }, { "docker", "H c --host --context --config" },
	{ "gh", "R --repo" }, { "git", "C c --git-dir --work-tree" }, { "helm", "n --namespace --kube-context" },
	{ "kubectl", "n --namespace --context --cluster --kubeconfig" }, { "npm", "C w --prefix --workspace" },
	{ "pip", "" }, { "systemctl", "H M --root" }, { "terraform", "" },
};

static const char *verb_options(const struct operation *operation)
{
	const char *name = operation->kind == OP_COMMAND ? program_name(operation->words.items, 1) : "";

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (str_equal(verbs[i].program, name))
			return verbs[i].valued;
	}
	return "";
}

static bool match_operands(struct matcher *matcher, const struct vec *patterns, const struct operation *operation)
{
	const char *valued = patterns->count ? verb_options(operation) : "";
	size_t wanted = 0, count = operation_word_count(operation);

	for (size_t i = 1; i < count && wanted < patterns->count; i++) {
		const struct word *word = operation_word(operation, i);

		if (word->text[0] == '-' && word->size > 1) {
			i += option_size(operation->words.items, count, i, valued) - 1;
			continue;
		}
		if (!match_word(patterns_of(patterns)[wanted], word))
			return false;
		rest_on(matcher, word);
		wanted++;
	}
	return wanted == patterns->count;
}

static bool has_flag(const struct operation *operation, const char *spellings)
{
	/* What a wrapper starts has options of its own: `sudo pacman -S` is no `sudo -S`. */
	size_t count = operation->own_words ? operation->own_words : operation_word_count(operation);

	while (*spellings) {
		size_t size = strcspn(spellings, "|");
		char spelling[64];

		if (size && size < sizeof spelling) {
			bool found;

			memcpy(spelling, spellings, size);
			spelling[size] = '\0';
			if (size == 1)
				found = option_given(operation->words.items, count, spelling[0], NULL);
			else
				found = option_given(operation->words.items, count, 0, spelling);
			for (size_t i = 1; i < count && !found && size > 1; i++)
				found = str_equal(operation_word(operation, i)->text, spelling);
			if (found)
				return true;
		}
		spellings += size + (spellings[size] == '|');
	}
	return false;
}

static bool match_flags(const struct condition *condition, const struct operation *operation)
{
	for (size_t i = 0; i < condition->flags.count; i++) {
		if (!has_flag(operation, patterns_of(&condition->flags)[i]))
			return false;
	}
	for (size_t i = 0; i < condition->without_flags.count; i++) {
		if (has_flag(operation, patterns_of(&condition->without_flags)[i]))
			return false;
	}
	return true;
}

static bool match_host(const struct vec *patterns, const struct operation *operation)
{
	char host[HOST_SIZE];

	if (operation->kind != OP_NETWORK || !operation_word(operation, 0))
		return false;
	host_of(operation_word(operation, 0)->text, host);
	for (size_t i = 0; i < patterns->count; i++) {
		if (pattern_match(patterns_of(patterns)[i], host, false))
			return true;
	}
	return false;
}

static bool match_word_flags(const struct condition *condition, const struct operation *operation)
{
	bool found = !condition->words, found_unknown = !condition->is_unknown;

	for (size_t i = 0; i < operation_word_count(operation); i++) {
		const struct word *word = operation_word(operation, i);

		found |= (word->flags & condition->words) == condition->words;
		found_unknown |= !(word->flags & WORD_EXACT);
		if (word->flags & condition->without_words)
			return false;
	}
	return found && found_unknown;
}

static bool match_local(struct matcher *matcher, const struct condition *condition, const struct operation *operation,
			const struct filter_hits *hits)
{
	const struct word *value = operation_word(operation, 1);

	if (condition->kinds && !(condition->kinds & 1U << operation->kind))
		return false;
	if ((operation->context & condition->context) != condition->context ||
	    operation->context & condition->without_context ||
	    (operation->traits & condition->traits) != condition->traits ||
		operation->traits & condition->without_traits || !may_hold(condition->needs, hits, operation))
		return false;
	if (!match_program(matcher, condition, operation) || !match_flags(condition, operation) ||
	    !match_operands(matcher, &condition->operands, operation) ||
	    !match_arguments(matcher, &condition->arguments, operation) || !match_word_flags(condition, operation))
		return false;
	if ((condition->text.count && !match_text(matcher, &condition->text, operation)) ||
	    (condition->without_text.count && match_text(matcher, &condition->without_text, operation)))
		return false;
	if (condition->values.count) {
		if (!value || !match_any(&condition->values, value))
			return false;
		rest_on(matcher, value);
	}
	for (size_t i = 0; i < operation_word_count(operation) && condition->without_arguments.count &&
			   filter_may_match(hits, condition->need_not); i++) {
		if (match_any(&condition->without_arguments, operation_word(operation, i)))
			return false;
	}
	if (condition->hosts.count && !match_host(&condition->hosts, operation))
		return false;
	return !condition->without_hosts.count || !match_host(&condition->without_hosts, operation);
}

static bool match_condition(struct matcher *matcher, const struct condition *condition, uint32_t index);

static bool match_one_of(struct matcher *matcher, const struct vec *conditions, uint32_t index)
{
	const struct condition *items = conditions->items;

	for (size_t i = 0; i < conditions->count; i++) {
		if (match_condition(matcher, &items[i], index))
			return true;
	}
	return false;
}

/* False: nothing that flows in meets any of the conditions, for certain. */
static bool may_come_in(const struct above *above, const struct vec *conditions)
{
	const struct condition *items = conditions->items;

	for (size_t i = 0; i < conditions->count; i++) {
		const uint16_t *needs = items[i].needs;
		bool may = !items[i].kinds || items[i].kinds & above->kinds;

		for (size_t need = 0; need < CONDITION_NEEDS && may; need++)
			may = filter_may_match(&above->hits, needs[need]) || (need == NEED_TEXT && above->has_document);
		if (may)
			return true;
	}
	return false;
}

/* Backwards over the flows: does something that comes in here meet one of the conditions? */
static bool match_from(struct matcher *matcher, const struct vec *conditions, uint32_t index)
{
	uint32_t waiting[RULE_FLOW_STEPS_MAX], count = 0, done = 0;
	const struct flow *flows = matcher->operations->flows.items;
	uint8_t seen[OPERATIONS_MAX / 8 + 1];

	if (!operations_get(matcher->operations, index)->first_flow)
		return false;
	if (!matcher->is_above_made) {
		matcher->is_above_made = true;
		for (uint32_t i = 0; i < operations_count(matcher->operations); i++)
			hits_of(matcher, i);
		above_find(matcher->above, matcher->operations, matcher->hits);
	}
	if (!may_come_in(&matcher->above[index], conditions))
		return false;
	memset(seen, 0, operations_count(matcher->operations) / 8 + 1);
	waiting[count++] = index;
	seen[index / 8] |= (uint8_t)(1U << index % 8);
	while (done < count) {
		const struct operation *operation = operations_get(matcher->operations, waiting[done++]);

		for (uint32_t at = operation->first_flow; at; at = flows[at - 1].next) {
			uint32_t from = flows[at - 1].from;

			if (seen[from / 8] & 1U << from % 8)
				continue;
			seen[from / 8] |= (uint8_t)(1U << from % 8);
			if (match_one_of(matcher, conditions, from))
				return true;
			/* The nearest come first, so that what is far away is what is given up. */
			if (count == (matcher->steps < RULE_FLOW_STEPS_ALL ? RULE_FLOW_STEPS_MAX
									   : RULE_FLOW_STEPS_LATE)) {
				matcher->is_cut = true;
				return false;
			}
			matcher->steps++;
			waiting[count++] = from;
		}
	}
	return false;
}

static bool match_within(struct matcher *matcher, const struct vec *conditions, uint32_t index)
{
	const struct operation *operation = operations_get(matcher->operations, index);

	for (unsigned level = 0; level < 64 && operation && operation->parent != OPERATION_NONE; level++) {
		if (match_one_of(matcher, conditions, operation->parent))
			return true;
		operation = operations_get(matcher->operations, operation->parent);
	}
	return false;
}

static bool match_condition(struct matcher *matcher, const struct condition *condition, uint32_t index)
{
	const struct operation *operation = operations_get(matcher->operations, index);
	enum confidence before = matcher->confidence;

	if (operation && match_local(matcher, condition, operation, hits_of(matcher, index)) &&
	    (!condition->from.count || match_from(matcher, &condition->from, index)) &&
	    (!condition->within.count || match_within(matcher, &condition->within, index)) &&
	    (!condition->without_from.count || !match_from(matcher, &condition->without_from, index)))
		return true;
	matcher->confidence = before;
	return false;
}

/* In a container of its own nothing of this machine is meant, unless the rule says that it is. */
static bool is_elsewhere(const struct rule *rule, const struct operation *operation)
{
	return operation->context & CONTEXT_CONTAINED && !rule->is_contained;
}

static bool is_told(const struct finding *findings, size_t count, const struct rule *rule, struct span span)
{
	unsigned same = 0;

	for (size_t i = 0; i < count; i++) {
		if (findings[i].id != rule->id)
			continue;
		if (findings[i].span.start == span.start && findings[i].span.end == span.end)
			return true;
		same++;
	}
	return same >= SAME_RULE_MAX;
}

/* A rule that matched one operation, and how sure that is. */
struct matched {
	const struct rule *rule;
	enum confidence confidence;
};

enum { MATCHED_MAX = 32 };

/*
 * Whether another rule says the same of the same deed, at least as surely, and that it is worse: then a policy decides
 * by the worse one, also where it asks about what is milder.
 */
static bool is_outdone(const struct matched *all, size_t count, const struct matched *one)
{
	for (size_t i = 0; i < count; i++)
		if (all[i].rule->class == one->rule->class && all[i].rule->severity > one->rule->severity &&
		    all[i].confidence >= one->confidence && (all[i].rule->leaves || !one->rule->leaves))
			return true;
	return false;
}

static void add_finding(struct matcher *matcher, const struct matched *matched, const struct operation *operation,
			struct findings *found)
{
	const struct rule *rule = matched->rule;

	if (is_told(found->items, found->count, rule, operation->span))
		return;
	if (found->count == found->max) {
		matcher->is_cut = found->is_full = true;
		return;
	}
	found->items[found->count++] = (struct finding){
		.id = rule->id, .class = rule->class, .severity = rule->severity, .span = operation->span,
		.confidence = matched->confidence, .reason = rule->reason, .instead = rule->instead,
		.leaves = rule->leaves || operation->kind == OP_NETWORK || operation->context & CONTEXT_REMOTE,
	};
}

/* The rules that match it and are not excepted. More than max are not listed: found has them at once. */
static size_t list_matched(struct matcher *matcher, uint32_t index, struct matched *out, size_t max,
			   struct findings *found)
{
	const struct operation *operation = operations_get(matcher->operations, index);
	const struct filter_hits *hits = hits_of(matcher, index);
	const struct vec *chosen = &matcher->rules->by_kind[operation->kind];
	const struct rule_entry *entries = chosen->items;
	const struct rule *rules = matcher->rules->rules.items;
	uint32_t last = UINT32_MAX;
	size_t count = 0;

	for (size_t i = 0; i < chosen->count && !found->is_full; i++) {
		const struct rule_entry *entry = &entries[i];
		struct matched matched = { .rule = &rules[entry->rule] };

		/* The first condition of a rule that holds decides. */
		if (!filter_may_match(hits, entry->need) || entry->rule == last)
			continue;
		matcher->confidence = CONFIDENCE_CERTAIN;
		if (is_elsewhere(matched.rule, operation) || !match_condition(matcher, entry->condition, index))
			continue;
		last = entry->rule;
		matched.confidence = matcher->confidence < matched.rule->confidence_max ? matcher->confidence
											: matched.rule->confidence_max;
		if (match_one_of(matcher, &matched.rule->except, index))
			continue;
		if (count < max)
			out[count++] = matched;
		else
			add_finding(matcher, &matched, operation, found);
	}
	return count;
}

static void match_operation(struct matcher *matcher, uint32_t index, struct findings *found)
{
	const struct operation *operation = operations_get(matcher->operations, index);
	struct matched all[MATCHED_MAX];
	size_t count;

	if (operation->traits & TRAIT_SHOWN)
		return;
	count = list_matched(matcher, index, all, ARRAY_SIZE(all), found);
	for (size_t i = 0; i < count && !found->is_full; i++)
		if (!is_outdone(all, count, &all[i]))
			add_finding(matcher, &all[i], operation, found);
}

size_t rules_match(const struct rules *rules, struct operations *operations, struct finding *findings, size_t max,
		   bool *ret_is_cut)
{
	cleanup_free struct filter_hits *hits = calloc(operations_count(operations) + 1, sizeof *hits);
	cleanup_free struct above *above = calloc(operations_count(operations) + 1, sizeof *above);
	struct matcher matcher = { .rules = rules, .operations = operations, .hits = hits, .above = above };
	struct findings found = { .items = findings, .max = max };
	uint64_t deadline_ns = clock_computed_ns() + MATCH_TIME_MS * 1000000ULL;

	/* What could not be looked at is not harmless. */
	*ret_is_cut = !hits || !above;
	if (!hits || !above)
		return 0;
	for (uint32_t i = 0; i < operations_count(operations); i++) {
		found.is_full = false;
		match_operation(&matcher, i, &found);
		if (i % 16 == 0 && clock_computed_ns() > deadline_ns) {
			matcher.is_cut = true;
			break;
		}
	}
	*ret_is_cut = matcher.is_cut;
	return found.count;
}
