/* SPDX-License-Identifier: Apache-2.0 */
#include "client/narrow-case.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "os/fd.h"
#include "policy/decide.h"
#include "policy/scalars.h"

/*
 * Bounded in every list, with a count of what was left out. What the policy masks is not told: it is taken away
 * already, and its names are nobody's business. Names in the project may be an agent's choice, and long lists of them.
 */

enum { RULES_MAX = 128, NAMES_MAX = 256, NAMES_SEEN_MAX = 8192 };

static void put_text(struct json *json, const char *key, const char *text)
{
	json_bytes(json, key, text, strlen(text));
}

/* ---- what the policy gives ---- */

static size_t put_paths(struct json *json, const char *key, const struct policy *policy, uint32_t classes)
{
	size_t told = 0, left_out = 0;

	json_array_begin(json, key);
	for (size_t i = 0; i < policy->files.count; i++) {
		if (!(classes >> policy->files.rules[i].class & 1))
			continue;
		if (told < RULES_MAX)
			put_text(json, NULL, policy->files.rules[i].pattern);
		told++;
	}
	json_array_end(json);
	left_out = told > RULES_MAX ? told - RULES_MAX : 0;
	return left_out;
}

static void put_files(struct json *json, const struct policy *policy)
{
	size_t left_out = 0;

	json_object_begin(json, "files");
	left_out += put_paths(json, "change", policy, 1u << FILE_STAGE | 1u << FILE_WRITE);
	left_out += put_paths(json, "read", policy, 1u << FILE_READ);
	json_u64(json, "left_out", left_out);
	json_object_end(json);
}

/* The rules of one section, each by put_rule(); more than a verifier is shown are counted. */
static void put_rules(struct json *json, const char *section, enum verdict by_default, size_t count,
		      void (*put_rule)(struct json *json, const struct policy *policy, size_t at),
		      const struct policy *policy)
{
	json_object_begin(json, section);
	json_string(json, "default", verdict_names[by_default]);
	json_array_begin(json, "rules");
	for (size_t i = 0; i < count && i < RULES_MAX; i++) {
		json_object_begin(json, NULL);
		put_rule(json, policy, i);
		json_object_end(json);
	}
	json_array_end(json);
	json_u64(json, "left_out", count > RULES_MAX ? count - RULES_MAX : 0);
	json_object_end(json);
}

static void put_host(struct json *json, const struct policy *policy, size_t at)
{
	const struct net_rule *rule = &policy->network.rules[at];

	json_string(json, "verdict", verdict_names[rule->verdict]);
	put_text(json, rule->host ? "host" : "cidr", rule->host ? rule->host : rule->cidr);
	json_array_begin(json, "ports");
	for (size_t p = 0; p < rule->port_count && p < RULES_MAX; p++)
		json_u64(json, NULL, rule->ports[p]);
	json_array_end(json);
}

static void put_program(struct json *json, const struct policy *policy, size_t at)
{
	const struct exec_rule *rule = &policy->exec.rules[at];

	json_string(json, "verdict", verdict_names[rule->verdict]);
	json_string(json, "program", rule->program);
	json_array_begin(json, "argv");
	for (const char *const *word = rule->argv; word && *word; word++)
		put_text(json, NULL, *word);
	json_array_end(json);
}

static void put_limits(struct json *json, const struct policy *policy)
{
	json_object_begin(json, "limits");
	for (size_t i = 0; i < RESOURCE_COUNT; i++) {
		char text[32];

		scalar_value_to_text(SCALAR_RESOURCES + i, policy->limits[i].value, text);
		json_string(json, resource_name(i), text);
	}
	json_object_end(json);
}

static void put_policy(struct json *json, const struct policy *policy)
{
	json_object_begin(json, "policy");
	put_text(json, "name", policy->name);
	json_string(json, "level", trust_level_names[policy->level]);
	put_files(json, policy);
	put_rules(json, "network", policy->network.default_verdict, policy->network.count, put_host, policy);
	put_rules(json, "exec", policy->exec.default_verdict, policy->exec.count, put_program, policy);
	put_limits(json, policy);
	json_object_end(json);
}

/* ---- what lies in the project ---- */

struct names {
	char *list[NAMES_MAX];
	size_t count, left_out;
};

static bool is_shown(const struct policy *policy, const char *project, const char *name)
{
	char path[PATH_MAX];
	size_t rule;

	return str_format(path, sizeof path, "%s/%s", str_equal(project, "/") ? "" : project, name) == 0 &&
	       policy_classify(policy, path, &rule) > FILE_MASK;
}

static void add_name(struct names *names, const struct dirent *entry)
{
	char *name = names->count < NAMES_MAX ?
			     str_printf("%s%s", entry->d_name, entry->d_type == DT_DIR ? "/" : "") : NULL;

	if (name)
		names->list[names->count++] = name;
	else
		names->left_out++;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A directory that cannot be read has no names to tell. */
static void read_names(const char *project, const struct policy *policy, struct names *names)
{
	DIR *dir = opendir(project);
	struct dirent *entry;

	for (size_t seen = 0; dir && seen < NAMES_SEEN_MAX && (entry = readdir(dir)); seen++)
		if (!str_equal(entry->d_name, ".") && !str_equal(entry->d_name, "..") &&
		    is_shown(policy, project, entry->d_name))
			add_name(names, entry);
	if (dir)
		closedir(dir);
	qsort(names->list, names->count, sizeof *names->list, compare_names);
}

static void put_names(struct json *json, const char *project, const struct policy *policy)
{
	struct names names = { 0 };

	read_names(project, policy, &names);
	json_array_begin(json, "names");
	for (size_t i = 0; i < names.count; i++) {
		put_text(json, NULL, names.list[i]);
		free(names.list[i]);
	}
	json_array_end(json);
	json_u64(json, "names_left_out", names.left_out);
}

void narrow_case_put(struct buf *out, const struct narrow_request *request, const struct policy *policy)
{
	struct json json;

	json_init(&json, out);
	json_object_begin(&json, NULL);
	json_u64(&json, "v", 1);
	json_string(&json, "kind", "narrow");
	json_string(&json, "session", request->session);
	put_text(&json, "project", request->dirs->project);
	put_text(&json, "task", request->task);
	json_array_begin(&json, "argv");
	for (char **word = request->argv; *word; word++)
		put_text(&json, NULL, *word);
	json_array_end(&json);
	put_policy(&json, policy);
	put_names(&json, request->dirs->project, policy);
	json_object_end(&json);
}
