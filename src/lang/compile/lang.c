/* SPDX-License-Identifier: Apache-2.0 */
#include "lang/compile/lang.h"

#include "lang/compile/narrow.h"
#include "lang/print/print.h"
#include "lang/resolve/chain.h"
#include "lang/resolve/worktree.h"

static int finish(struct lang *lang)
{
	if (lang->diags.count) {
		finish_contradictions(lang);
		return 1;
	}
	lang->policy = finish_policy(lang);
	if (lang->diags.count)
		return 1;
	return lang->policy ? 0 : -ENOMEM;
}

/* What is in lang->project is judged by the policy without it. */
static int tighten(struct lang *lang, const char *tighter)
{
	lang->tighter = tighter;
	tighten_check(lang, lang->policy);
	if (lang->diags.count)
		return 1;
	tighten_merge(lang);
	return finish(lang);
}

/*
 * The second look is at decisions and not at lines, by samples: what the check of lines should not know has another
 * chance to come to light.
 */
static int narrow(struct lang *lang)
{
	size_t widened;
	int r;

	lang->before = lang->policy;
	lang->project = (struct draft){ 0 };
	lang->left_out.count = 0;
	lang->is_narrowing = true;
	narrow_load(lang);
	r = lang->diags.count ? 1 : tighten(lang, "a narrowing");
	if (r != 0)
		return r;
	widened = print_diff_allows(lang->before, lang->policy, NULL);
	if (widened)
		diag_add(&lang->diags, (struct place){ NARROW_FILE, 0, 0 },
			 "it would let happen what the policy does not; a narrowing may only tighten it");
	return widened ? 1 : 0;
}

static int compile(struct lang *lang)
{
	int r;

	chain_load(lang);
	chain_load_project(lang);
	lang->repository = worktree_repository(lang);
	r = finish(lang);
	if (r == 0 && lang->has_project)
		r = tighten(lang, "a project's .atoll.yaml");
	return r == 0 && lang->request.narrowing ? narrow(lang) : r;
}

int lang_compile(const struct lang_request *request, struct lang **ret_lang)
{
	struct lang *lang = calloc(1, sizeof *lang);
	int r;

	if (!lang)
		return -ENOMEM;
	lang->request = *request;
	lang->diags.arena = lang->warnings.arena = &lang->arena;
	r = compile(lang);
	diags_sort(&lang->diags);
	diags_sort(&lang->warnings);
	if (lang->arena.has_failed)
		r = -ENOMEM;
	if (r < 0) {
		lang_free(lang);
		return r;
	}
	if (r > 0)
		lang->policy = lang->before = NULL;
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

const struct policy *lang_policy_before(const struct lang *lang)
{
	return lang->before;
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
	diags_put_json(&lang->diags, "errors", json);
}

void lang_put_warnings(const struct lang *lang, struct buf *out)
{
	if (lang->policy)
		diags_put_warnings(&lang->warnings, out);
}

void lang_put_warnings_json(const struct lang *lang, struct json *json)
{
	static const struct diags none;

	diags_put_json(lang->policy ? &lang->warnings : &none, "warnings", json);
}
