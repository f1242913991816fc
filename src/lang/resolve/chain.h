/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One compilation and its steps: the files of the chain (chain.c), the project's file (tighten.c), the result
 * (finish.c, plan.c, agent-trust.c, secrets.c, warnings.c). Private to lang/; programs use compile/lang.h.
 */

#include "lang/bind/draft.h"
#include "lang/resolve/request.h"
#include "lang/yaml/node.h"

struct source_text {
	const char *path; /* in the arena */
	char *bytes;	  /* owned */
	size_t size;
};

struct lang {
	struct arena arena;
	struct diags diags;
	struct diags warnings; /* of the last finish_policy() */
	struct draft draft;   /* merged */
	struct draft project; /* of .atoll.yaml */
	struct lang_request request;
	const char *name;
	enum trust_level level;
	enum trust_level natural; /* the level that the policy extends, whatever -t says */
	bool has_level, has_project;
	const struct policy *policy;
	const struct policy *before; /* without the narrowing; NULL: there is none */
	const char *tighter; /* whose lines tighten_check() judges: "a narrowing" */
	bool is_narrowing;
	const char *repository; /* whose worktree the project is (worktree.h), or NULL */
	struct vec sources; /* struct snapshot_source */
	struct vec left_out; /* struct place: lines of the project's file that do not count (is_lowered) */
};

/* Reads the chain into lang->draft; errors go to lang->diags. */
void chain_load(struct lang *lang);

/* Reads PROJECT/.atoll.yaml into lang->project where it exists. */
void chain_load_project(struct lang *lang);

/*
 * Reads a file that is no policy and bears on one (ret_text->bytes is freed with free()). It becomes a source where it
 * is there, or nothing is. -errno as lang_reader.read.
 */
int chain_read_aside(struct lang *lang, const char *path, struct source_text *ret_text) MUST_USE;

/* Appends what from says to into; scalars that it sets replace. */
void draft_merge(struct arena *arena, struct draft *into, const struct draft *from);

/*
 * Says every line of lang->project that base does not already allow; with is_lowered: leaves it out. Of a narrowing
 * (lang->is_narrowing) none is left out.
 */
void tighten_check(struct lang *lang, const struct policy *base);

/* Merges lang->project, which tighten_check() found to tighten only, into lang->draft. */
void tighten_merge(struct lang *lang);

/* The draft as a policy in the arena: sorted, planned. NULL after errors, or out of memory. */
struct policy *finish_policy(struct lang *lang);

/*
 * Of a draft that has errors already: says which of its paths, canaries, secrets and bounds of trust contradict one
 * another, so that a person hears of all at once. What could be nothing but a consequence of the other errors is not
 * looked for.
 */
void finish_contradictions(struct lang *lang);

/* What a rule puts in; and what rules with secrets mean together, errors among it. */
struct inject secrets_inject(const struct draft_inject *from);
void secrets_finish(struct lang *lang, struct policy *policy);

/* Of a draft that has errors already: the errors of secrets_finish() but for counts. */
void secrets_contradictions(struct lang *lang);

/* What is allowed more widely than it looks, added to lang->warnings: by one rule; by rules about hosts together. */
void warn_of_names(struct lang *lang, const struct draft_exec *exec);
void warn_of_open_hosts(struct lang *lang, const struct policy *policy);
/* And of what does not mean the machine's own localhost. */
void warn_of_loopback(struct lang *lang, const struct policy *policy);

/* What the section `trust:` of all texts comes to, with what nobody said; contradictions go to lang->diags. */
struct trust_settings trust_finish(struct lang *lang);

/* What `agent:` of all texts comes to; too many files go to lang->diags. agent.c */
struct agent_settings agent_finish(struct lang *lang);

/* Says which rule cannot hold where programs have mounts of their own (exec.namespaces: mounts). own-mounts.c */
void check_own_mounts(struct lang *lang, const struct policy *policy);

/* finish.c's second half: policy->file_plan and policy->unenforced. */
void plan_files(struct lang *lang, struct policy *policy);
void plan_unenforced(struct lang *lang, struct policy *policy);
