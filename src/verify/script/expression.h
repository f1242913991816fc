/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What each kind of node means to the interpreter (script.h): one handler a kind. It decides nothing about
 * what a call does; that is library.h's. Only in atoll-verify and tests; pure.
 */

#include "verify/script/script.h"

/* By enum syntax_kind; NULL: script_other(). */
extern const script_handler expression_handlers[NODE_KIND_COUNT];

/*
 * Statements (statement.c), each a script_handler of the kind of node that it is called by. Both sides of a condition
 * happen, in parts that may not run; a body of a loop is gone through once, or for each item of a list that is known.
 */
const struct value *statement_if(struct script *script, uint32_t node);
const struct value *statement_branch(struct script *script, uint32_t node);
const struct value *statement_loop(struct script *script, uint32_t node);
const struct value *statement_each(struct script *script, uint32_t node);
const struct value *statement_comprehension(struct script *script, uint32_t node);
const struct value *statement_return(struct script *script, uint32_t node);
const struct value *statement_class(struct script *script, uint32_t node);
const struct value *statement_as(struct script *script, uint32_t node);
const struct value *statement_global(struct script *script, uint32_t node);

/* Assignments (bind.c), as above: the value goes to names, members, items or patterns. The node is worth it too. */
const struct value *statement_assign(struct script *script, uint32_t node);
const struct value *statement_declare(struct script *script, uint32_t node);
const struct value *statement_augment(struct script *script, uint32_t node);
