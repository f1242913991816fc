/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/walk.h"

uint32_t walk_command(struct walk *walk, struct command *command)
{
	uint32_t index = walk_add(walk, OP_COMMAND, command->span, command->context);

	for (size_t i = 0; i < command->count; i++)
		operations_add_word(walk->operations, index, &command->words[i]);
	operations_add_flows(walk->operations, &command->input, index);
	command->output = (struct origins){ 0 };
	origins_add(&command->output, index);
	return index;
}
