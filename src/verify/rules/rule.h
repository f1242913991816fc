/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rules over operations: data, read from YAML (doc/man/atoll-verify-rules.5.scd) and compiled once. Pure but for
 * memory. Rule files are the user's own and the shipped ones: they are trusted, but read strictly.
 */

#include "base/buf.h"
#include "lang/yaml/diag.h"
#include "verify/model/finding.h"
#include "verify/model/tables.h"

enum {
	RULES_MAX = 2000,
	RULE_FLOW_STEPS_MAX = 4096, /* operations that one search of a flow looks at; beyond it is a doubt */
	RULE_FLOW_STEPS_ALL = 400000, /* of all searches together; then one looks at the nearest alone: */
	RULE_FLOW_STEPS_LATE = 32,
};

struct rules;

/* Empty, with an arena of its own in which all that is added lives; NULL without memory. NULL can be freed. */
struct rules *rules_new(void) MUST_USE;
void rules_free(struct rules *rules);

/* Adds the rules of one file (a name for messages). False with at least one error in diags: then none is added. */
bool rules_add(struct rules *rules, struct diags *diags, const char *file, const void *bytes, size_t size) MUST_USE;

/* All files are there: resolves what they name of one another. False with errors in diags. */
bool rules_finish(struct rules *rules, struct diags *diags) MUST_USE;

/* How many there are by now; lists and tables are not counted. */
size_t rules_count(const struct rules *rules);

/* What the files of rules say of programs and functions; lives as long as the rules. */
const struct tables *rules_tables(const struct rules *rules);

/*
 * Whether there are rules, and tables of all that is looked at. Without either nothing would be found, and nothing said
 * of it: what is shipped is refused then.
 */
bool rules_are_whole(const struct rules *rules);

/*
 * Finished rules as one frame (doc/format/verify-rules.md), without their examples and places. 0; -ENOMEM, or the
 * buffer's error where its bound is too small.
 */
int rules_store(const struct rules *rules, struct buf *out) MUST_USE;

/*
 * The same rules again, finished. bytes are borrowed and must stay as they are as long as the rules. NULL where they
 * are anything but rules of this version, or memory is short.
 */
struct rules *rules_restore(void *bytes, size_t size) MUST_USE;

/*
 * All findings in what a text does, at most max, in the order of the operations; texts are the rules' own. Returns
 * how many there are; *ret_is_cut where there were more.
 */
size_t rules_match(const struct rules *rules, struct operations *operations, struct finding *findings, size_t max,
		   bool *ret_is_cut);

/* An example of a rule: a text that it must find, or must not. */
struct rule_example {
	const char *rule;   /* id */
	const char *text;
	const char *language; /* "shell", "python", "javascript" */
	bool is_harmless;
	struct place place;
};

/* Those of all files, in their order; none where the rules were restored from bytes. at is below the count. */
size_t rules_example_count(const struct rules *rules);
struct rule_example rules_example(const struct rules *rules, size_t at);
