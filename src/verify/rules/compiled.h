/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rules as the engine has them: between load.c, which makes them from YAML, form.c, which makes
 * them from what was compiled, and match.c, which reads them.
 * Everything lives in the arena of the rules.
 */

#include "lang/yaml/node.h"
#include "verify/model/tables.h"
#include "verify/rules/filter.h"
#include "verify/rules/rule.h"

enum {
	RULE_LISTS_MAX = 200,
	RULE_PATTERNS_MAX = 4000,      /* of one vector */
	RULE_DEPTH_MAX = 3,            /* of conditions in conditions */
	CONDITION_PATTERNS = 11,
	CONDITION_NESTED = 3,
};

/* By what filter.h tells that a condition cannot hold: bits of its vectors. FILTER_ALWAYS: not by this one. */
enum condition_need {
	NEED_PROGRAM, NEED_OPERAND, NEED_ARGUMENT, NEED_TEXT, NEED_VALUE, NEED_HOST,
	CONDITION_NEEDS,
};

/* A condition on one operation. What is empty holds. */
struct condition {
	/* What tells most operations that it is not about them stands together: it is looked at for each of them. */
	uint32_t kinds;                /* bits of enum operation_kind; 0: any */
	uint32_t context, without_context;
	uint32_t traits, without_traits;
	uint16_t needs[CONDITION_NEEDS]; /* NEED_OPERAND: of the first operand */
	uint16_t need_not;             /* of without_arguments */
	/* of const char *: base name of words[0] (OP_CALL: the dotted name), one of them */
	struct vec programs;
	struct vec operands;           /* words that are no options, one after the other from the first on */
	/* one of the words but the first (of a path or a URL: words[0]) is one of them */
	struct vec arguments;
	struct vec without_arguments;  /* none of the words is one of them */
	/* what it is told, in a word but the first or on its standard input, is one of them; case does not matter */
	struct vec text, without_text;
	struct vec values;             /* words[1] is one of them: mode, owner, value of a variable, target of a link */
	struct vec hosts;              /* OP_NETWORK: the host of words[0] is one of them */
	struct vec without_hosts;
	struct vec flags;              /* "r|R|--recursive": each of them is given in one of its spellings */
	struct vec without_flags;      /* none of them is */
	uint32_t words, without_words; /* WORD_*: of a word (without: of all words) */
	bool is_unknown;               /* a word is not exact */
	struct vec from;               /* of struct condition: something that flows into it meets one of them */
	struct vec without_from;
	struct vec within;             /* of struct condition: what started it meets one of them */
};

struct rule {
	const char *id, *reason, *instead;
	enum finding_class class;
	enum severity severity;
	enum confidence confidence_max;
	struct vec match, except;      /* of struct condition: one of them */
	bool leaves;                   /* what it is about happens elsewhere, where no sandbox holds it */
	bool is_contained;             /* it says itself that it is about what happens in a container */
	struct place place;
};

/* A condition of a rule as operations of one kind find it: what rules most of them out, side by side. */
struct rule_entry {
	uint16_t need;                 /* the first one that tells something */
	uint32_t rule;
	const struct condition *condition;
};

struct named_list {
	const char *name;
	struct vec patterns;           /* of const char * */
	struct place place;
};

struct rules {
	struct arena arena;
	struct vec rules;              /* of struct rule */
	struct vec lists;              /* of struct named_list */
	struct vec examples;           /* of struct rule_example */
	struct tables tables;
	struct vec by_kind[OPERATION_KIND_COUNT]; /* of struct rule_entry, in the order of the rules */
	struct filter filter;
};

/* The list that "@name" stands for, of any file that was added; NULL: none has it (yet). */
struct named_list *rules_find_list(struct rules *rules, const char *name);

/* A vector of patterns of a condition, one of conditions in it: by number, for what is done with each of them alike. */
struct vec *condition_patterns(struct condition *condition, size_t at);
struct vec *condition_nested(struct condition *condition, size_t at);

/* Everything that follows from the rules themselves, once their lists are resolved. Once. */
void rules_index(struct rules *rules);
