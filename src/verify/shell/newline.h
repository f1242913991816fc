/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A fault of the shell's grammar (tree-sitter-bash 0.23): behind a pipeline of three, in front of a list, it takes the
 * newline for a blank, so that `sh` and the next line's `ls` are one command. Finds such newlines and has them say what
 * they mean. Only in atoll-verify; pure.
 */

#include <stdbool.h>

#include "verify/parse/walk.h"

/*
 * Whether a command of the tree goes on over the end of a line that nothing continues. Then walk->text is a copy, in
 * the arena, with a semicolon in that place: places stay what they are, and it is to be parsed again.
 */
bool shell_mend_newlines(struct walk *walk, TSNode root);
