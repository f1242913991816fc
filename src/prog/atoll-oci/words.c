/* SPDX-License-Identifier: Apache-2.0 */
#include "prog/atoll-oci/words.h"

#include <jansson.h>
#include <string.h>

#include "base/num.h"
#include "base/str.h"

static const char *const capability_sets[] = { "bounding", "effective", "permitted" };

static int refuse(const struct job *job, const char *option, const char *value)
{
	char quoted[ERR_QUOTE_SIZE];

	return err_set(job->err, ERR_USAGE, EINVAL, "exec", "--%s %s: must be a number, or UID:GID", option,
		       err_quote(quoted, value));
}

static int put_user(const struct job *job, json_t *process)
{
	const char *colon = job->exec.user ? strchr(job->exec.user, ':') : NULL;
	uint64_t uid, gid = 0;
	char text[16];

	if (!job->exec.user)
		return 0;
	if (str_format(text, sizeof text, "%.*s", (int)(colon ? colon - job->exec.user : 15), job->exec.user) < 0 ||
	    num_parse_u64(text, &uid) < 0 || (colon && num_parse_u64(colon + 1, &gid) < 0))
		return refuse(job, "user", job->exec.user);
	return json_object_set_new(process, "user", json_pack("{s:I, s:I}", "uid", (json_int_t)uid, "gid",
							      (json_int_t)gid));
}

static int put_groups(const struct job *job, json_t *process)
{
	json_t *user = json_object_get(process, "user"), *gids;
	uint64_t gid;

	if (!job->exec.gids.count)
		return 0;
	gids = json_array();
	for (size_t i = 0; i < job->exec.gids.count; i++) {
		if (num_parse_u64(job->exec.gids.values[i], &gid) < 0) {
			json_decref(gids);
			return refuse(job, "additional-gids", job->exec.gids.values[i]);
		}
		(void)!json_array_append_new(gids, json_integer((json_int_t)gid));
	}
	return json_object_set_new(user, "additionalGids", gids);
}

static bool has_name(const char *const *words, size_t count, const char *entry)
{
	const char *equal = strchr(entry, '=');

	for (size_t i = 0; equal && i < count; i++)
		if (strncmp(words[i], entry, (size_t)(equal - entry) + 1) == 0)
			return true;
	return false;
}

/* A new array of what is there and these words; a variable of the same name is taken by its new value alone. */
static json_t *joined(const json_t *there, const char *const *words, size_t count)
{
	json_t *all = json_array();

	for (size_t i = 0; i < json_array_size(there); i++)
		if (!has_name(words, count, json_string_value(json_array_get(there, i))))
			(void)!json_array_append(all, json_array_get(there, i));
	for (size_t i = 0; i < count; i++)
		(void)!json_array_append_new(all, json_pack("s", words[i]));
	return all;
}

static int put_capabilities(const struct job *job, json_t *process)
{
	json_t *capabilities = json_object_get(process, "capabilities"), *all = json_object();
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(capability_sets); i++)
		r = json_object_set_new(all, capability_sets[i],
					joined(json_object_get(capabilities, capability_sets[i]),
					       job->exec.caps.values, job->exec.caps.count));
	(void)!json_object_update_missing(all, capabilities);
	r = r == 0 ? json_object_set(process, "capabilities", all) : r;
	json_decref(all);
	return r;
}

int words_to_process(const struct job *job, const struct oci_state *state, char **ret_text)
{
	json_t *process = json_deep_copy(json_object_get(state->config.json, "process"));
	const struct exec_words *words = &job->exec;
	int r = process ? put_user(job, process) : -EINVAL;

	if (r == 0)
		r = put_groups(job, process);
	if (r == 0 && words->caps.count)
		r = put_capabilities(job, process);
	if (r == 0)
		r = json_object_set_new(process, "args", joined(NULL, (const char *const *)job->words + 1,
								job->word_count - 1));
	if (r == 0)
		r = json_object_set_new(process, "env", joined(json_object_get(process, "env"), words->env.values,
							       words->env.count));
	if (r == 0 && words->cwd)
		r = json_object_set_new(process, "cwd", json_pack("s", words->cwd));
	if (r == 0 && words->no_new_privs)
		r = json_object_set_new(process, "noNewPrivileges", json_pack("b", 1));
	if (r == 0)
		r = json_object_set_new(process, "terminal", json_pack("b", (int)job->is_terminal));
	*ret_text = r == 0 ? json_dumps(process, JSON_COMPACT) : NULL;
	json_decref(process);
	return r < 0 ? (job->err->code ? r : -EINVAL) : *ret_text ? 0 : -ENOMEM;
}
