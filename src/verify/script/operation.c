/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/command/effect.h"
#include "verify/script/script.h"

void script_add_word(struct script *script, const struct call *call, uint32_t operation,
		      const struct value *value)
{
	struct word word = value_word(script->arena, value, script_span(script, call->node));

	operations_add_word(script->walk->operations, operation, &word);
}

uint32_t script_add(struct script *script, const struct call *call, enum operation_kind kind,
		     const struct value *value, uint32_t traits)
{
	uint32_t index =
		walk_add(script->walk, kind, script_span(script, call->node), script_context(script, kind));

	if (kind == OP_WRITE)
		script_note_written(script, call->node, 0);
	if (kind == OP_READ || kind == OP_WRITE || kind == OP_REMOVE || kind == OP_PERMISSION) {
		struct word word = value_word(script->arena, value, script_span(script, call->node));

		word = effect_path(script->walk, &word);
		operations_add_word(script->walk->operations, index, &word);
	} else {
		script_add_word(script, call, index, value);
	}
	operations_add_traits(script->walk->operations, index, traits);
	return index;
}

void script_add_flow(struct script *script, const struct value *from, uint32_t operation)
{
	struct origins origins = { 0 };

	value_origins(from, &origins);
	operations_add_flows(script->walk->operations, &origins, operation);
}
