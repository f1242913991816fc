/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Policy text becomes a policy: the files of a chain are read, bound, merged, tightened by the project's own
 * file, sorted and reduced to a plan. Used by atoll-policy alone, which confines itself first; files
 * are reached only through the reader that it gives, so everything here is pure.
 */

#include "base/buf.h"
#include "base/json.h"
#include "policy/policy.h"
#include "policy/snapshot.h"

struct lang_reader {
	/*
	 * The whole file (freed with free()) and how it looks, for freshness. -ENOENT when there is none:
	 * then only the path and exists = 0 are set in *ret_source.
	 */
	int (*read)(void *context, const char *path, char **ret_bytes, size_t *ret_size,
		    struct snapshot_source *ret_source);
	/* The real path of path (links resolved), -ENOENT and so on. */
	int (*real)(void *context, const char *path, char *out, size_t size);
	void *context;
};

struct lang_request {
	const char *level;		 /* -t, or NULL */
	/*
	 * level stands in the place of a higher one, for an agent that is trusted less now (trust/rules.h). What the
	 * policy and the project say of rules that this level does not have is passed over then, never the other way.
	 */
	bool is_lowered;
	const char *policy;		 /* -p: a name or a path, or NULL */
	const char *project;		 /* absolute, normalised; "" when there is none */
	const char *home;		 /* "" when there is none */
	const char *config_home;	 /* "" when there is none */
	const char *policies_dir;	 /* what atoll ships */
	const char *cwd;		 /* what a relative -p is relative to */
	const char *const *private_dirs; /* more directories of atoll's own, NULL-terminated; NULL: none */
	bool without_project_file;	 /* for diff and show of a policy as such */
	const char *narrowing;		 /* what is to be taken away for this run, hostile; NULL: nothing */
	size_t narrowing_size;
	struct lang_reader reader;
};

struct arena;
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

/*
 * A host as rules hold it: in lower case, an international name in its xn-- form. What is no name stays one that no
 * rule has. In arena; NULL as arena_alloc().
 */
char *lang_host(struct arena *arena, const char *text);

/* The names of shipped policies, NULL-terminated. */
extern const char *const lang_shipped_names[];
