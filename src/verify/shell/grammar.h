/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What bash understands and the grammar does not, written so that it does: the same bytes, but for the mark that it
 * stumbles over, so that every place in the text stays where it is. Only in atoll-verify; pure.
 */

#include "verify/parse/walk.h"

/* True: walk->text is another one, and is to be parsed again. Looks only at lines where the tree has errors. */
bool shell_mend_grammar(struct walk *walk, TSNode root);

/* That, and newlines (newline.h): a struct walker has it. */
bool shell_mend(struct walk *walk, TSNode root);
