/* SPDX-License-Identifier: Apache-2.0 */
#include "session/protects.h"

#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "policy/decide.h"
#include "policy/glob.h"

/*
 * A path can match a pattern only if it has every literal component of the pattern. Of each pattern the last literal
 * one is its key; a path whose components are no key of any pattern cannot match. Patterns without a literal
 * component (such as a star with an ending) have the longest literal run of their last component as a key that
 * must occur somewhere in the path.
 */

enum { BUCKETS = 256 };

struct key {
	const char *text;      /* borrowed from the policy */
	size_t length;
	struct key *next;
};

struct protects {
	const struct policy *policy;
	const struct path_rule *rules;   /* the policy's */
	size_t rule_count;
	struct key *keys;                /* owned */
	struct key *buckets[BUCKETS];    /* whole components, the last literal one of each pattern */
	struct key *inner[BUCKETS];      /* the literal ones before the last component */
	struct key *fragments;           /* parts of components */
	size_t used;
	bool asks_always;                /* a pattern that has no literal at all */
	bool knows_git;
};

static unsigned bucket_of(const char *text, size_t length)
{
	unsigned hash = 2166136261u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)text[i]) * 16777619u;
	return (hash ^ hash >> 8) % BUCKETS;
}

static bool is_literal(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (strchr("*?[\\", text[i]))
			return false;
	return length > 0;
}

/* The last component that is literal; false where there is none. */
static bool find_component(const char *pattern, const char **ret_text, size_t *ret_length)
{
	bool found = false;

	for (const char *at = pattern; *at;) {
		size_t length = strcspn(at, "/");

		if (is_literal(at, length)) {
			*ret_text = at;
			*ret_length = length;
			found = true;
		}
		at += length;
		at += *at == '/';
	}
	return found;
}

/* The longest run without special characters. Sets and quotes make it none: too clever to be worth it. */
static size_t find_fragment(const char *pattern, const char **ret_text)
{
	size_t best = 0;

	if (strpbrk(pattern, "[\\"))
		return 0;
	for (const char *at = pattern; *at;) {
		size_t length = strcspn(at, "*?/");

		if (length > best) {
			best = length;
			*ret_text = at;
		}
		at += length;
		at += *at != 0;
	}
	return best;
}

static void put(struct key **list, struct key *key)
{
	key->next = *list;
	*list = key;
}

static void add_inner(struct protects *protects, const char *pattern)
{
	for (const char *at = pattern; *at;) {
		size_t length = strcspn(at, "/");

		if (at[length] && is_literal(at, length)) {
			struct key *key = &protects->keys[protects->used++];

			*key = (struct key){ .text = at, .length = length };
			put(&protects->inner[bucket_of(at, length)], key);
		}
		at += length;
		at += *at == '/';
	}
}

static void add(struct protects *protects, const struct path_rule *rule)
{
	struct key *key = &protects->keys[protects->used++], **list;

	if (find_component(rule->pattern, &key->text, &key->length)) {
		list = &protects->buckets[bucket_of(key->text, key->length)];
	} else {
		key->length = find_fragment(rule->pattern, &key->text);
		protects->asks_always |= !key->length;
		list = &protects->fragments;
	}
	put(list, key);
}

static size_t count_slashes(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += *text == '/';
	return count;
}

struct protects *protects_new(const struct policy *policy)
{
	struct protects *protects = calloc(1, sizeof *protects);
	size_t keys = policy->files.ask_count + 1;

	if (!protects)
		return NULL;
	protects->policy = policy;
	protects->rules = policy_protects(policy, &protects->rule_count);
	for (size_t i = 0; i < protects->rule_count; i++)
		keys += 1 + count_slashes(protects->rules[i].pattern);
	protects->keys = calloc(keys, sizeof *protects->keys);
	if (!protects->keys) {
		free(protects);
		return NULL;
	}
	for (size_t i = 0; i < protects->rule_count; i++) {
		add(protects, &protects->rules[i]);
		add_inner(protects, protects->rules[i].pattern);
		protects->knows_git |= (protects->rules[i].flags & PATH_GIT) != 0;
	}
	for (size_t i = 0; i < policy->files.ask_count; i++)
		add(protects, &policy->files.asks[i]);
	return protects;
}

void protects_free(struct protects *protects)
{
	if (protects)
		free(protects->keys);
	free(protects);
}

static bool find_key(struct key *const buckets[BUCKETS], const char *text, size_t length)
{
	for (const struct key *key = buckets[bucket_of(text, length)]; key; key = key->next)
		if (key->length == length && memcmp(key->text, text, length) == 0)
			return true;
	return false;
}

static bool has_component(const struct protects *protects, const char *path)
{
	for (const char *at = path; *at;) {
		size_t length = strcspn(at, "/");

		if (find_key(protects->buckets, at, length))
			return true;
		at += length;
		at += *at == '/';
	}
	return false;
}

static bool has_fragment(const struct protects *protects, const char *path)
{
	size_t length = strlen(path);

	for (const struct key *key = protects->fragments; key; key = key->next)
		if (memmem(path, length, key->text, key->length))
			return true;
	return false;
}

enum protects_verdict protects_judge(const struct protects *protects, const char *path, bool is_directory)
{
	struct action action = { .kind = ACTION_FILE_APPLY, .subject = path };
	const struct policy *policy = protects->policy;
	const struct path_rule *rule;
	struct decision decision;
	uint32_t without;

	/* The decision function knows paths that a program can name; what is longer is looked at by a person. */
	if (strlen(path) >= PATH_MAX)
		return PROTECTS_ALWAYS;
	if (!protects->asks_always && !has_component(protects, path) && !has_fragment(protects, path))
		return PROTECTS_NOTHING;
	decision = policy_decide(policy, &action);
	if (decision.verdict == VERDICT_ALLOW)
		return PROTECTS_NOTHING;
	rule = policy_find_protect(policy, path, 0);
	/* By another rule than one of these: asked about, or of a class that nothing reaches the host from. */
	if (!rule || !str_equal(decision.rule.id, rule->origin.id))
		return PROTECTS_ALWAYS;
	without = is_directory ? PATH_FILE : 0;
	if (policy_find_protect(policy, path, without | PATH_GIT | PATH_PACKAGE))
		return PROTECTS_ALWAYS;
	if (policy_find_protect(policy, path, without | PATH_GIT))
		return PROTECTS_PACKAGE;
	return policy_find_protect(policy, path, without) ? PROTECTS_GIT : PROTECTS_NOTHING;
}

bool protects_knows_git(const struct protects *protects)
{
	return protects->knows_git;
}

/* Whether path is what the pattern has up to one of its inner components. */
static bool is_inner_part(const struct path_rule *rule, const char *path, const char *name)
{
	size_t name_length = strlen(name);
	char part[GLOB_SIZE_MAX + 1];

	for (const char *at = rule->pattern; *at;) {
		size_t length = strcspn(at, "/"), part_length = (size_t)(at - rule->pattern) + length;

		if (at[length] && length == name_length && memcmp(at, name, length) == 0 &&
		    part_length < sizeof part) {
			memcpy(part, rule->pattern, part_length);
			part[part_length] = 0;
			if (rule->flags & FILE_GLOB ? glob_match(part, path) : str_equal(part, path))
				return true;
		}
		at += length;
		at += *at == '/';
	}
	return false;
}

bool protects_has_above(const struct protects *protects, const char *path)
{
	const char *name = path_basename(path);

	if (!find_key(protects->inner, name, strlen(name)))
		return false;
	for (size_t i = 0; i < protects->rule_count; i++)
		if (is_inner_part(&protects->rules[i], path, name))
			return true;
	return false;
}
