/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/lang.h"

#include "lang/chain.h"

static int finish(struct lang *lang)
{
	if (lang->diags.count)
		return 1;
	lang->policy = finish_policy(lang);
	if (lang->diags.count)
		return 1;
	return lang->policy ? 0 : -ENOMEM;
}

/* The project's file is judged by the policy without it. */
static int compile(struct lang *lang)
{
	int r;

	chain_load(lang);
	chain_load_project(lang);
	r = finish(lang);
	if (r != 0 || !lang->has_project)
		return r;
	tighten_check(lang, lang->policy);
	if (lang->diags.count)
		return 1;
	tighten_merge(lang);
	return finish(lang);
}

int lang_compile(const struct lang_request *request, struct lang **ret_lang)
{
	struct lang *lang = calloc(1, sizeof *lang);
	int r;

	if (!lang)
		return -ENOMEM;
	lang->request = *request;
	lang->diags.arena = &lang->arena;
	r = compile(lang);
	if (lang->arena.has_failed)
		r = -ENOMEM;
	if (r < 0) {
		lang_free(lang);
		return r;
	}
	if (r > 0)
		lang->policy = NULL;
	*ret_lang = lang;
	return r;
}

void lang_free(struct lang *lang)
{
	if (lang)
		arena_done(&lang->arena);
	free(lang);
}

const struct policy *lang_policy(const struct lang *lang)
{
	return lang->policy;
}

const struct snapshot_source *lang_sources(const struct lang *lang, size_t *ret_count)
{
	*ret_count = lang->sources.count;
	return lang->sources.items;
}

void lang_put_errors(const struct lang *lang, struct buf *out)
{
	diags_put(&lang->diags, out);
}

void lang_put_errors_json(const struct lang *lang, struct json *json)
{
	diags_put_json(&lang->diags, json);
}
