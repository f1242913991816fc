/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The tables of what Python's and JavaScript's libraries do (library.h), and of how the grammars' nodes are
 * called (syntax.h). Data, sorted by name, looked at by the tests too.
 */

#include "verify/library/library.h"

extern const struct effect python_effects[], javascript_effects[];
extern const size_t python_effect_count, javascript_effect_count;

extern const struct name_alias python_aliases[], javascript_aliases[];
extern const size_t python_alias_count, javascript_alias_count;

extern const struct syntax_kind_name python_kinds[], javascript_kinds[];
extern const size_t python_kind_count, javascript_kind_count;

/* For struct walker. */
void walk_python(struct walk *walk, TSNode root);
void walk_javascript(struct walk *walk, TSNode root);
