/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Variables. Each holds what it was given last in every part of the text that may not run: a value given in a
 * branch is one more that the variable may have, one given where the branch itself stands takes the place of
 * all of them. What is read in a branch was given in it, or else in the nearest one around.
 */

#include <string.h>

#include "base/str.h"
#include "verify/script/script.h"

enum { HIDDEN_NAMES_MIN = 3 };

enum { TABLE_BITS = 12, BINDINGS_MAX = VALUE_OTHERS_MAX };

/* Where methods are kept by name alone. */
#define SCOPE_METHODS UINT32_MAX

struct binding {
	uint32_t branch;
	const struct value *value;
};

struct variable {
	struct variable *next;
	const char *name;
	uint32_t scope;
	bool is_shared;
	uint32_t count;
	struct binding bindings[BINDINGS_MAX];
};

uint32_t script_scope_new(struct script *script, uint32_t parent)
{
	struct scope *scope = vec_add(script->arena, &script->scopes, sizeof *scope);

	if (!scope)
		return parent;
	scope->parent = parent;
	return (uint32_t)script->scopes.count;
}

static uint32_t hash_name(const char *name, uint32_t scope)
{
	uint32_t hash = 2166136261u ^ scope;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash;
}

/* More variables than places: twice as many places. */
static bool grow(struct script *script)
{
	size_t size = script->variables.size ? script->variables.size * 4 : (size_t)1 << TABLE_BITS;
	struct variable **table = arena_alloc(script->arena, size * sizeof *table);

	if (!table)
		return false;
	for (size_t i = 0; i < script->variables.size; i++) {
		struct variable *next;

		for (struct variable *v = script->variables.table[i]; v; v = next) {
			struct variable **place = &table[hash_name(v->name, v->scope) & (size - 1)];

			next = v->next;
			v->next = *place;
			*place = v;
		}
	}
	script->variables.table = table;
	script->variables.size = size;
	return true;
}

static struct variable *find(struct script *script, const char *name, uint32_t scope)
{
	if (!script->variables.size)
		return NULL;
	for (struct variable *v = script->variables.table[hash_name(name, scope) & (script->variables.size - 1)]; v;
	     v = v->next)
		if (v->scope == scope && strcmp(v->name, name) == 0)
			return v;
	return NULL;
}

static struct variable *make(struct script *script, const char *name, uint32_t scope)
{
	struct variable **place, *made = find(script, name, scope);

	if (made)
		return made;
	if (script->variables.count >= SCRIPT_VARIABLES_MAX) {
		if (!script->bounds.was_long)
			operations_doubt(script->walk->operations, DOUBT_SIZE, script->walk->outer);
		script->bounds.was_long = true;
		return NULL;
	}
	if (script->variables.count >= script->variables.size && !grow(script))
		return NULL;
	made = arena_alloc(script->arena, sizeof *made);
	if (!made)
		return NULL;
	made->name = arena_text(script->arena, name);
	if (!made->name)
		return NULL;
	made->scope = scope;
	place = &script->variables.table[hash_name(name, scope) & (script->variables.size - 1)];
	made->next = *place;
	*place = made;
	script->variables.count++;
	return made;
}

static uint32_t scope_parent(const struct script *script, uint32_t scope)
{
	return scope ? ((const struct scope *)script->scopes.items)[scope - 1].parent : 0;
}

static uint32_t branch_parent(const struct script *script, uint32_t branch)
{
	return branch ? ((const uint32_t *)script->branches.items)[branch - 1] : 0;
}

/* Whether branch is around, or the same as, inner. Inner ones have higher numbers. */
static bool is_within(const struct script *script, uint32_t inner, uint32_t branch)
{
	while (inner > branch)
		inner = branch_parent(script, inner);
	return inner == branch;
}

static void set_value(struct script *script, struct variable *variable, const struct value *value)
{
	uint32_t kept = 0;

	if (!variable)
		return;
	for (uint32_t i = 0; i < variable->count; i++)
		if (!is_within(script, variable->bindings[i].branch, script->branch))
			variable->bindings[kept++] = variable->bindings[i];
	/* The oldest goes where there are too many: what was given last matters most. */
	if (kept == BINDINGS_MAX) {
		memmove(variable->bindings, variable->bindings + 1,
			(BINDINGS_MAX - 1) * sizeof variable->bindings[0]);
		kept--;
	}
	variable->bindings[kept++] = (struct binding){ script->branch, value };
	variable->count = kept;
}

/* The variable that a name means in a scope: its own, or one of those around. */
static struct variable *resolve(struct script *script, const char *name, uint32_t scope)
{
	for (unsigned i = 0; i < SCRIPT_DEPTH_MAX; i++) {
		struct variable *variable = find(script, name, scope);

		if (variable && !variable->is_shared)
			return variable;
		if (!scope)
			return NULL;
		scope = scope_parent(script, scope);
	}
	return NULL;
}

/* _0x3f2a: what programs that hide other programs call their variables. */
static void note_hidden_name(struct script *script, const char *name)
{
	uint32_t index;

	if (!str_has_prefix(name, "_0x") || ++script->hidden_names != HIDDEN_NAMES_MIN)
		return;
	index = walk_add(script->walk, OP_EVALUATE, script_span(script, 0), script->context);
	operations_add_word(script->walk->operations, index,
			    &(struct word){ .text = name, .size = (uint32_t)strlen(name), .flags = WORD_OBSCURED });
}

void script_declare(struct script *script, const char *name, const struct value *value)
{
	struct variable *own = find(script, name, script->scope);

	note_hidden_name(script, name);

	if (own && own->is_shared)
		script_assign(script, name, value);
	else
		set_value(script, make(script, name, script->scope), value);
}

void script_assign(struct script *script, const char *name, const struct value *value)
{
	struct variable *variable = resolve(script, name, script->scope);

	/* What nobody declared is everybody's. */
	set_value(script, variable ? variable : make(script, name, 1), value);
}

void script_share(struct script *script, const char *name)
{
	struct variable *variable;

	if (script->scope <= 1)
		return;
	variable = make(script, name, script->scope);
	if (variable)
		variable->is_shared = true;
}

/* The nearest branch around in which the variable was given something; UINT32_MAX: none, it may be any of
 * them. */
static uint32_t nearest(const struct script *script, const struct variable *variable)
{
	for (uint32_t branch = script->branch;; branch = branch_parent(script, branch)) {
		for (uint32_t i = 0; i < variable->count; i++)
			if (variable->bindings[i].branch == branch)
				return branch;
		if (!branch)
			return UINT32_MAX;
	}
}

static const struct value *value_of(struct script *script, const struct variable *variable)
{
	const struct value *value = NULL;
	uint32_t branch;

	if (!variable || !variable->count)
		return NULL;
	branch = nearest(script, variable);
	for (uint32_t i = variable->count; i > 0; i--) {
		const struct binding *binding = &variable->bindings[i - 1];

		if (branch != UINT32_MAX && !is_within(script, binding->branch, branch))
			continue;
		value = value ? value_either(script->arena, value, binding->value) : binding->value;
	}
	return value;
}

const struct value *script_lookup(struct script *script, const char *name)
{
	return value_of(script, resolve(script, name, script->scope));
}

void script_declare_method(struct script *script, const char *name, const struct value *function)
{
	struct variable *variable = make(script, name, SCOPE_METHODS);
	const struct value *old = value_of(script, variable);

	set_value(script, variable, old ? value_either(script->arena, old, function) : function);
}

const struct value *script_method(struct script *script, const char *name)
{
	return value_of(script, find(script, name, SCOPE_METHODS));
}
