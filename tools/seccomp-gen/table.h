/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The tables of tools/seccomp as they are written (base.table explains the language). Part of the build tool
 * seccomp-gen; whatever is wrong with a table ends it with file and line.
 */

#include <stdbool.h>
#include <stdint.h>

enum { RULES_MAX = 1024, DEFINES_MAX = 64, CONDITIONS_MAX = 4, VALUES_MAX = 8, NAME_MAX_SIZE = 32 };

struct condition {
	unsigned word;           /* of the arguments: 2 for each, the lower half first */
	uint32_t mask;
	bool negate;             /* holds when the masked value is none of values */
	unsigned value_count;
	uint32_t values[VALUES_MAX];
};

enum action_kind { ACTION_ALLOW, ACTION_ERRNO, ACTION_NOTIFY, ACTION_WATCH };

struct rule {
	char name[NAME_MAX_SIZE];
	int number;              /* given in the table, or -1 */
	enum action_kind action;
	int errnum;
	unsigned condition_count;
	struct condition conditions[CONDITIONS_MAX];
	int depth;               /* of the file that it stands in */
};

struct table {
	struct rule rules[RULES_MAX];
	unsigned count;
};

/* Says where in the tables and what, and exits with 1. */
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Reads FILE[+FILE…] in this order, and what they include, into *ret_table, which begins empty. Cuts paths up. */
void table_parse(struct table *ret_table, char *paths);
