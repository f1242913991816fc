/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The orders in which a compiled policy keeps its exact rules, so that a decision is a binary search:
 * the compiler sorts by them, the snapshot loader checks them, decide.c relies on them. Pure.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "policy/policy.h"

/* Byte order, except that "/" stands before every other byte: what lies below a path follows it directly. */
int path_compare(const char *a, const char *b);

/*
 * Of rules in path_compare() order, how many stand at or before path. Goes on in each string where the search knows it
 * to be alike: 10,000 paths of one project are compared from their first differing byte.
 */
size_t path_count_up_to(const struct file_rule *rules, size_t count, const char *path);

/* Hosts by their text behind a leading "*", so that "*.example.org" is found by ".example.org". */
int net_host_compare(const char *a, const char *b);

/*
 * Fills parents[0…count) for rules in path_compare() order (struct policy, file_parents). lengths is room for
 * count numbers that mean nothing afterwards. end, where it is not NULL, is the end of the memory that all
 * patterns lie in: then whole words are compared. 0, or -EINVAL when the rules are out of order or one of
 * them is a glob.
 */
int file_parents_fill(uint32_t *parents, uint32_t *lengths, const struct file_rule *rules, size_t count,
		      const char *end) MUST_USE;

/* The number of components of a normalised absolute path; 0 for "/". */
int path_depth(const char *path);
