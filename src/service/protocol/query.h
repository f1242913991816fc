/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Query strings (application/x-www-form-urlencoded), and what the E2B clients put into them: signed URLs and filters
 * of lists. Pure, bounded. Run by atoll-front.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum { QUERY_VALUE_SIZE = 8192 };

/* One after the other: at begins as the text behind the question mark. */
struct query_pair {
	char name[256], value[QUERY_VALUE_SIZE];
};

/*
 * The next pair, with escapes undone and "+" as a blank. 1; 0: that was the last (text NULL: there is none); -EINVAL:
 * an escape that is none, a NUL, or longer than fits.
 */
int query_next(const char **at, struct query_pair *pair) MUST_USE;

/* The first value of this name, as query_next(): 1 and it is in out[size]; 0: there is none; -EINVAL. */
int query_get(const char *query, const char *name, char *out, size_t size) MUST_USE;

/* A number: 1, 0, or -EINVAL where it is none from 0 to max. */
int query_get_number(const char *query, const char *name, uint64_t max, uint64_t *ret_number) MUST_USE;

/* A signature as it stands in the query, "v1_…"; what it is worth, the launcher computes. */
struct query_signature {
	bool is_there;
	char text[128];
	uint64_t expires_s;          /* since 1970; 0: never */
};

/* 0, or -EINVAL where it or its end cannot be one. */
int query_get_signature(const char *query, struct query_signature *ret_signature) MUST_USE;

/*
 * "metadata": a query string of its own, whose names and values were escaped once more before. Appends NAME NUL VALUE
 * NUL for each pair, at most max. The number of pairs, or -EINVAL.
 */
int query_read_metadata(const char *text, struct buf *out, size_t max) MUST_USE;

/* Whether a word is in a list that commas separate. */
bool query_list_has(const char *list, const char *word);
