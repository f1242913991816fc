/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The walkers of Python and JavaScript, and how the nodes of their grammars are called (syntax.h): data that the tests
 * look at too. What their libraries do is in the tables that are read with the rules (model/tables.h).
 */

#include "verify/library/library.h"

extern const struct syntax_kind_name python_kinds[], javascript_kinds[];
extern const size_t python_kind_count, javascript_kind_count;

/* For struct walker: the operations of a tree of their grammar. */
void walk_python(struct walk *walk, TSNode root);
void walk_javascript(struct walk *walk, TSNode root);
