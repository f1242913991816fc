/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What well-known programs do to files, processes and the network: operations beside the OP_COMMAND, so that a
 * rule about removed files need not know of rm, find -delete and rsync --delete. Which program
 * does what is in tables.h; what is not there is a command and nothing more. Only for command.c.
 */

#include "verify/command/command.h"
#include "verify/model/tables.h"

/* The command is operation index; its effects get it as their parent and flows to and from it. */
void effects_add(struct walk *walk, const struct command *command, uint32_t index);

/*
 * Those of the network: what a program that is like this one does. False where it does nothing: it is any other command
 * then.
 */
bool effects_add_network(struct walk *walk, const struct command *command, uint32_t index, enum program_like like);
