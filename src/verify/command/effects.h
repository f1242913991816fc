/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What well-known programs do to files, processes and the network: operations beside the OP_COMMAND, so that a
 * rule about removed files need not know of rm, find -delete and rsync --delete. A table of programs; what is not in it
 * is a command and nothing more. Only for command.c.
 */

#include "verify/command/command.h"

/* The command is operation index; its effects get it as their parent and flows to and from it. */
void effects_add(struct walk *walk, const struct command *command, uint32_t index);

/* The network programs among them; false for another program. */
bool effects_add_network(struct walk *walk, const struct command *command, uint32_t index);

/* Names of the programs of the two tables, borrowed; at most max. */
size_t effects_programs(const char **names, size_t max);
size_t effects_network_programs(const char **names, size_t max);
