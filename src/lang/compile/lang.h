/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Policy text becomes a policy. Each file of a chain is parsed (yaml/), bound by tables of keys to a draft (bind/), and
 * the drafts are merged, tightened by the project's own file, sorted and reduced to a plan (resolve/); this folder
 * does that in order, and once more for a narrowing. print/ makes text of it again. Used by atoll-policy alone, which
 * confines itself first; files are reached only through the reader that it gives, so everything here is pure.
 */

#include "base/buf.h"
#include "base/json.h"
#include "lang/resolve/request.h"
#include "policy/policy.h"

struct lang;

/*
 * 0 with a policy, 1 when the text has errors (lang_put_errors tells), -ENOMEM. *ret_lang is owned by the
 * caller in the first two cases; everything got from it lives as long as it.
 */
int lang_compile(const struct lang_request *request, struct lang **ret_lang) MUST_USE;
void lang_free(struct lang *lang);
static inline void cleanup_lang_(struct lang **lang)
{
	lang_free(*lang);
}
#define cleanup_lang __attribute__((cleanup(cleanup_lang_)))

/* NULL after errors. */
const struct policy *lang_policy(const struct lang *lang);

/* The same without the narrowing; NULL: there was none, or there are errors. */
const struct policy *lang_policy_before(const struct lang *lang);

/* Every file that was read, or looked for and missing. */
const struct snapshot_source *lang_sources(const struct lang *lang, size_t *ret_count);

/* Lines "file:line:column: message", all errors at once; or the same as a JSON array "errors". */
void lang_put_errors(const struct lang *lang, struct buf *out);
void lang_put_errors_json(const struct lang *lang, struct json *json);

/*
 * Of a policy that is valid: lines "file:line:column: warning: message" about what is allowed more widely than it
 * looks; or the same as a JSON array "warnings".
 */
void lang_put_warnings(const struct lang *lang, struct buf *out);
void lang_put_warnings_json(const struct lang *lang, struct json *json);
