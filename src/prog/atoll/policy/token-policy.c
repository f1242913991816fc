/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll/policy/token-policy.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "client/compiled.h"
#include "client/dirs.h"
#include "policy/decide.h"
#include "policy/glob.h"

/*
 * A token answers where a policy asks, so what matters is what the named policy lets happen and the level that it
 * extends does not: a sandbox of that level with the token can do what one of the policy could. Rules alone are taken,
 * not defaults: a token that allowed every host would be none.
 */

enum { WORDS_SIZE = 64 << 10 };

struct listing {
	const struct policy *policy, *base;
	struct option_list *allow;
	char *texts;                 /* WORDS_SIZE; never freed, for the words are used until the program is another */
	size_t used;
	bool is_full;
};

static void leave_out(const char *rule, const char *why)
{
	char shown[ERR_QUOTE_SIZE];

	fprintf(stderr, "atoll: token: %s is left out: %s\n", err_quote(shown, rule), why);
}

/* Whether the level lets it happen as it is, so that nobody is asked. */
static bool is_given(const struct listing *listing, const struct action *action)
{
	enum verdict verdict = policy_decide(listing->base, action).verdict;

	return verdict == VERDICT_ALLOW || verdict == VERDICT_STAGE;
}

static void add(struct listing *listing, struct buf *word)
{
	size_t size = word->size + 1;
	char *text = listing->texts + listing->used;

	if (listing->allow->count == OPTION_LIST_MAX || buf_error(word) < 0 || WORDS_SIZE - listing->used < size) {
		listing->is_full = true;
		return;
	}
	memcpy(text, buf_text(word), size);
	for (size_t i = 0; i < listing->allow->count; i++)
		if (str_equal(listing->allow->values[i], text))
			return;
	listing->used += size;
	listing->allow->values[listing->allow->count++] = text;
}

/* ---- files ---- */

static void add_path(struct listing *listing, enum action_kind kind, const char *path, const char *rule)
{
	struct action action = { .kind = kind, .subject = path };
	cleanup_buf struct buf word = { 0 };

	if (is_given(listing, &action))
		return;
	if (policy_decide(listing->base, &action).is_masked) {
		leave_out(rule, "the level masks it");
		return;
	}
	buf_init(&word, PATH_MAX + 64);
	buf_printf(&word, "%s=%s/**", action_kind_names[kind], str_equal(path, "/") ? "" : path);
	add(listing, &word);
}

static void add_files(struct listing *listing)
{
	const struct policy *policy = listing->policy;

	for (size_t i = 0; i < policy->files.count; i++) {
		const struct file_rule *rule = &policy->files.rules[i];
		bool is_read = rule->class == FILE_READ;

		if (!is_read && rule->class != FILE_WRITE && rule->class != FILE_STAGE)
			continue;
		if (rule->flags & FILE_GLOB || rule->except)
			leave_out(rule->origin.id, "a token names paths without patterns and exceptions");
		else
			add_path(listing, is_read ? ACTION_FILE_READ : ACTION_FILE_WRITE, rule->pattern,
				 rule->origin.id);
	}
	for (size_t i = 0; i < policy->files.ask_count; i++) {
		const struct path_rule *rule = &policy->files.asks[i];

		if (rule->flags & FILE_GLOB || rule->except)
			leave_out(rule->origin.id, "a token names paths without patterns and exceptions");
		else
			add_path(listing, ACTION_FILE_WRITE, rule->pattern, rule->origin.id);
	}
}

/* ---- programs ---- */

static bool has_pattern(const char *const *words)
{
	for (size_t i = 0; words && words[i]; i++)
		if (glob_is_pattern(words[i]) || strchr(words[i], ' '))
			return true;
	return false;
}

static void add_programs(struct listing *listing)
{
	for (size_t i = 0; i < listing->policy->exec.count; i++) {
		const struct exec_rule *rule = &listing->policy->exec.rules[i];
		struct action action = { .kind = ACTION_EXEC, .subject = rule->program, .argv = rule->argv };
		cleanup_buf struct buf word = { 0 };

		if (rule->verdict == VERDICT_DENY)
			continue;
		if (!rule->program || rule->program_flags & FILE_GLOB || rule->except || has_pattern(rule->argv)) {
			leave_out(rule->origin.id, "a token names one program, and words without patterns");
			continue;
		}
		if (is_given(listing, &action) && rule->verdict == VERDICT_ALLOW)
			continue;
		buf_init(&word, PATH_MAX * 2);
		buf_printf(&word, "exec=%s", rule->program);
		for (size_t at = 1; rule->argv && rule->argv[0] && rule->argv[at]; at++)
			buf_printf(&word, " %s", rule->argv[at]);
		add(listing, &word);
	}
}

/* ---- hosts ---- */

/* port 0: any. */
static void add_connection(struct listing *listing, const struct net_rule *rule, uint16_t port)
{
	struct action action = { .kind = ACTION_NET_CONNECT, .subject = rule->host, .port = port ? port : 443 };
	cleanup_buf struct buf word = { 0 };

	if (is_given(listing, &action) && port)
		return;
	buf_init(&word, 512);
	buf_printf(&word, "net.connect=%s", rule->host);
	if (port)
		buf_printf(&word, ":%u", port);
	add(listing, &word);
}

/* A path that is plain, or plain with everything below it. */
static bool is_sayable(const char *path)
{
	size_t length = strlen(path);
	char plain[PATH_MAX];

	if (length > 3 && str_equal(path + length - 3, "/**"))
		length -= 3;
	return str_format(plain, sizeof plain, "%.*s", (int)length, path) == 0 && !glob_is_pattern(plain) &&
	       !strchr(plain, ' ');
}

static void add_request(struct listing *listing, const struct net_rule *rule, uint16_t port, const char *method,
			const char *path)
{
	cleanup_buf struct buf word;

	buf_init(&word, PATH_MAX);
	buf_printf(&word, "http.request=%s%s%s", method ? method : "", method ? " " : "", rule->host);
	if (port)
		buf_printf(&word, ":%u", port);
	buf_put_text(&word, path ? path : "");
	add(listing, &word);
}

static void add_requests(struct listing *listing, const struct net_rule *rule, const struct http_rule *http,
			 uint16_t port)
{
	static const char *const any[] = { NULL };
	const char *const *methods = http->methods && http->methods[0] ? http->methods : any;
	const char *const *paths = http->paths && http->paths[0] ? http->paths : any;

	for (size_t m = 0; !m || methods[m]; m++)
		for (size_t p = 0; !p || paths[p]; p++)
			if (paths[p] && !is_sayable(paths[p]))
				leave_out(http->origin.id, "a token names a path, or all below one");
			else
				add_request(listing, rule, port, methods[m], paths[p]);
}

static void add_hosts(struct listing *listing)
{
	for (size_t i = 0; i < listing->policy->network.count; i++) {
		const struct net_rule *rule = &listing->policy->network.rules[i];

		if (rule->verdict != VERDICT_ALLOW && rule->verdict != VERDICT_ASK)
			continue;
		if (!rule->host || rule->except) {
			leave_out(rule->origin.id, rule->host ? "a token has no exceptions"
							      : "a token names hosts and no addresses");
			continue;
		}
		for (size_t p = 0; !p || p < rule->port_count; p++) {
			uint16_t port = rule->port_count ? rule->ports[p] : 0;

			if (!rule->http_count)
				add_connection(listing, rule, port);
			for (size_t h = 0; h < rule->http_count; h++)
				add_requests(listing, rule, &rule->http[h], port);
		}
	}
}

/* ---- all ---- */

static int list(struct listing *listing, const char *name, struct err *err)
{
	size_t before = listing->allow->count;

	add_files(listing);
	add_programs(listing);
	add_hosts(listing);
	if (listing->is_full) {
		err_set(err, ERR_USAGE, E2BIG, "token", "%s allows more than a token can hold: %d rights", name,
			OPTION_LIST_MAX);
		err_hint(err, "write a policy with only what is needed, or name the rights with --allow");
		return -E2BIG;
	}
	if (listing->allow->count > before)
		return 0;
	err_set(err, ERR_USAGE, ENODATA, "token", "%s allows nothing beyond its level, %s",
		name, trust_level_names[listing->policy->level]);
	err_hint(err, "`atoll policy show %s` lists its rules; name the rights with --allow", name);
	return -ENODATA;
}

int token_policy_words(const char *policy, const char *project, struct option_list *allow, struct err *err)
{
	cleanup_compiled struct compiled named = { 0 }, level = { 0 };
	struct listing listing = { .allow = allow, .texts = malloc(WORDS_SIZE) };
	char path[PATH_MAX];
	struct dirs dirs;
	struct compiled_request request = { .policy = policy };
	int r = listing.texts ? dirs_find(&dirs, project, NULL, err) : -ENOMEM;

	if (r == 0 && strchr(policy, '/')) {
		r = dirs_absolute(policy, "policy", path, err);
		request.policy = path;
	}
	if (r < 0)
		return r;
	request.project = dirs.project;
	request.home = dirs.home;
	request.config_home = dirs.config_home;
	request.programs_dir = dirs.programs;
	request.state_dir = dirs.state;
	request.runtime_dir = dirs.runtime;
	r = compiled_get(&request, &named, err);
	if (r != 0)
		return r;
	request.policy = NULL;
	request.level = trust_level_names[snapshot_policy(named.snapshot)->level];
	r = compiled_get(&request, &level, err);
	if (r != 0)
		return r;
	listing.policy = snapshot_policy(named.snapshot);
	listing.base = snapshot_policy(level.snapshot);
	return list(&listing, policy, err);
}
