/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What comes out of archives and repositories: a folder that is written as a whole (OP_WRITE with TRAIT_RECURSIVE), so
 * that a program that is started below it is known to come from there. Only for effects.c.
 */

#include "verify/command/command.h"

/* tar: the letter of what it does, -f ARCHIVE, and the files. The command is operation index. */
void effects_add_tar(struct walk *walk, const struct command *command, uint32_t index);

/* unzip ARCHIVE -d DIRECTORY, 7z x ARCHIVE -oDIRECTORY. The command is operation index. */
void effects_add_unpacker(struct walk *walk, const struct command *command, uint32_t index);

/* git clone URL [DIRECTORY]; its other verbs do nothing here. The command is operation index. */
void effects_add_git(struct walk *walk, const struct command *command, uint32_t index);
