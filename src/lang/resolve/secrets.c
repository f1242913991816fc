/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/str.h"
#include "lang/resolve/chain.h"

/* What rules with secrets mean together: each may be right, and two of them a contradiction. */

struct inject secrets_inject(const struct draft_inject *from)
{
	if (!from->is_given)
		return (struct inject){ .kind = INJECT_NONE };
	return (struct inject){
		.kind = from->is_aws ? INJECT_AWS : from->query ? INJECT_QUERY : from->kind,
		.name = from->query ? from->query : from->header,
		.service = from->service,
		.region = from->region,
		.secret = from->secret,
		.env = from->env,
	};
}

static bool ports_meet(const struct draft_net *a, const struct draft_net *b)
{
	const uint16_t *x = a->ports.items, *y = b->ports.items;

	for (size_t i = 0; i < a->ports.count; i++)
		for (size_t k = 0; k < b->ports.count; k++)
			if (x[i] == y[k])
				return true;
	return false;
}

static const char *header_of(const struct draft_inject *inject)
{
	return inject->is_aws ? "authorization" : inject->header ? inject->header : "";
}

/* What one of them would put in, the other one replaces. */
static bool is_same_place(const struct draft_inject *a, const struct draft_inject *b)
{
	if (a->query || b->query)
		return a->query && b->query && str_equal(a->query, b->query);
	return strcasecmp(header_of(a), header_of(b)) == 0;
}

/* Of rules with methods and paths it is seen at each request whether both are meant. */
static bool contradicts(const struct draft_net *a, const struct draft_net *b)
{
	return (!a->http.count || !b->http.count) && str_equal(a->host, b->host) && ports_meet(a, b) &&
	       is_same_place(&a->inject, &b->inject) && !str_equal(a->inject.secret, b->inject.secret);
}

static void check_pair(struct lang *lang, const struct draft_net *a, const struct draft_net *b)
{
	if (contradicts(a, b))
		diag_add(&lang->diags, b->inject.place,
			 "\"%.80s\" gets another secret in the same place by %s; narrow both by \"http\"",
			 b->from.text, a->from.id);
	if (a->inject.env && b->inject.env && str_equal(a->inject.env, b->inject.env) &&
	    !str_equal(a->inject.secret, b->inject.secret))
		diag_add(&lang->diags, b->inject.place, "\"%.60s\" stands for another secret already, by %s",
			 b->inject.env, a->from.id);
}

static bool is_usable(const struct draft_net *net)
{
	return net->inject.is_given && net->inject.secret && net->host;
}

static void check_pairs(struct lang *lang)
{
	DRAFT_EACH(struct draft_net, b, &lang->draft.network)
	{
		if (!is_usable(b))
			continue;
		for (const struct draft_net *a = lang->draft.network.items; a < b; a++)
			if (is_usable(a))
				check_pair(lang, a, b);
	}
}

static bool is_counted(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (str_equal(names[i], name))
			return true;
	return false;
}

static void check_count(struct lang *lang, const struct policy *policy)
{
	const char *names[POLICY_SECRETS_MAX];
	size_t count = policy_secrets(policy, names);

	DRAFT_EACH(struct draft_net, net, &lang->draft.network)
	if (is_usable(net) && !is_counted(names, count, net->inject.secret))
		diag_add(&lang->diags, net->inject.place, "a policy names at most %d secrets", POLICY_SECRETS_MAX);
	DRAFT_EACH(struct draft_named, canary, &lang->draft.canaries)
	if (!is_counted(names, count, canary->name))
		diag_add(&lang->diags, canary->from.place, "a policy names at most %d secrets", POLICY_SECRETS_MAX);
}

/* Where something of the host is shown in place, a file could only be planted over it, or on the host. */
static const char *canary_problem(const struct lang *lang, const struct draft_path *canary)
{
	enum file_class around = FILE_HIDDEN;
	size_t longest = 0;

	DRAFT_EACH(struct draft_file, file, &lang->draft.files)
	{
		size_t length = strlen(file->pattern);

		if (file->class == FILE_MASK || file->flags & FILE_GLOB || length < longest ||
		    !path_is_below(canary->pattern, file->pattern))
			continue;
		longest = length;
		around = file->class;
		if (str_equal(canary->pattern, file->pattern))
			return "a rule of \"files\" shows this very path";
	}
	if (around == FILE_READ || around == FILE_WRITE)
		return "the host's files are shown there in place; a canary can be where they are hidden, staged or "
		       "scratch";
	return path_is_below(canary->pattern, "/run") || path_is_below(canary->pattern, "/proc") ||
	       path_is_below(canary->pattern, "/dev") || path_is_below(canary->pattern, "/sys") ?
		       "this directory is made by the sandbox itself" : NULL;
}

static void finish_canary_files(struct lang *lang, struct policy *policy)
{
	struct vec paths = { 0 };

	DRAFT_EACH(struct draft_path, canary, &lang->draft.canary_files)
	{
		const char *problem = canary_problem(lang, canary);

		if (problem)
			diag_add(&lang->diags, canary->from.place, "no canary can be planted at \"%.80s\": %s",
				 canary->from.text, problem);
		else if (is_counted(paths.items, paths.count, canary->pattern))
			continue;
		else if (paths.count == POLICY_CANARY_FILES_MAX)
			diag_add(&lang->diags, canary->from.place, "a policy plants at most %d canaries",
				 POLICY_CANARY_FILES_MAX);
		else
			vec_add_text(&lang->arena, &paths, canary->pattern);
	}
	policy->data.canary_files = vec_strings(&lang->arena, &paths);
}

void secrets_contradictions(struct lang *lang)
{
	struct policy unused = { 0 };

	check_pairs(lang);
	finish_canary_files(lang, &unused);
}

void secrets_finish(struct lang *lang, struct policy *policy)
{
	const struct draft_scalar *outgoing = &lang->draft.scalars[SCALAR_DATA_OUTGOING];
	const char *names[POLICY_SECRETS_MAX];
	struct vec canaries = { 0 };

	DRAFT_EACH(struct draft_named, canary, &lang->draft.canaries)
	vec_add_text(&lang->arena, &canaries, canary->name);
	policy->data.canaries = vec_strings(&lang->arena, &canaries);
	check_pairs(lang);
	check_count(lang, policy);
	/* Who has secrets wants them kept. */
	finish_canary_files(lang, policy);
	policy->data.outgoing = policy_secrets(policy, names) || policy->data.canary_files ? DATA_DENY : DATA_OFF;
	if (outgoing->is_set)
		policy->data.outgoing = (enum data_action)outgoing->value;
}
