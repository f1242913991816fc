/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What calls of libraries do: one row a function, and one handler a kind of effect, which makes the
 * operations. The rows are struct effect of tables.h; the handlers know no language.
 */

#include "verify/script/script.h"

typedef const struct value *(*library_handler)(struct script *script, struct call *call,
					       const struct effect *effect);

/* What the interpreter is given. */
extern const struct library_ops library_ops;

/* A call of a library that no row knows: OP_CALL, or OPERATION_NONE where it is of no interest. */
uint32_t library_other_call(struct script *script, const struct call *call);

/* A variable of the environment that is read; "*": all of them. */
const struct value *library_environment(struct script *script, const char *name, uint32_t node);

/* A method of an open connection that no row knows: what it is given that is from somewhere is sent. */
void library_take_in(struct script *script, const struct call *call);

/* A module, an attribute or an item is asked for by a name that was put together so that nobody finds it. */
void library_hidden_name(struct script *script, const struct value *name, uint32_t node);

/* Paths among the arguments, which the operation reads. */
void library_named_files(struct script *script, const struct call *call, uint32_t operation);

/* The texts that conditions around the call compare something with, as words of the operation. */
void library_add_conditions(struct script *script, const struct call *call, uint32_t operation);

/* For the handlers. */

/* The row of a qualified name in the language of the script; NULL: none. */
const struct effect *library_find(const struct script *script, const char *name);

/* Whether anything may be called of the module, so that a name that nobody can read is a finding. */
bool library_is_grave(const struct script *script, const char *module, size_t size);

/* The row's target, and its second; value_nothing where the call has none. */
const struct value *library_target(const struct call *call, const struct effect *effect);
const struct value *library_second(const struct call *call, const struct effect *effect);

/* OP_CALL of name with all that the call is given, from where its object is. */
uint32_t library_add_call(struct script *script, const struct call *call, const char *name, uint32_t traits);

/* What comes back from an operation: unknown, from there, known as "name()", made from subject. */
const struct value *library_result(struct script *script, const struct call *call, uint32_t operation,
				   const struct value *subject);

/* Code of a language that is run by the call. */
const struct value *library_nested(struct script *script, const struct call *call,
				   enum verify_language language, const struct value *code);

/* A list or a map as a text that rules can look at: keys and values one after the other, unknown ones as such. */
const struct value *library_flatten(struct script *script, const struct value *value);

/* What is written into a file, for rules that look at texts. */
void library_keep_content(struct script *script, const struct value *content, uint32_t operation);

/* file.c */
extern const library_handler library_file_handlers[EFFECT_KIND_COUNT];
/* code.c */
extern const library_handler library_code_handlers[EFFECT_KIND_COUNT];
/* process.c */
extern const library_handler library_process_handlers[EFFECT_KIND_COUNT];
/* network.c */
extern const library_handler library_network_handlers[EFFECT_KIND_COUNT];
