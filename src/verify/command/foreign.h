/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Languages that are not parsed: perl, ruby, php, lua, julia and others. What their texts call is looked for by the
 * names that such languages give to a shell, a connection and a file, wherever these stand: also in comments and in
 * texts, so that nothing is hidden by what is no comment to the one that runs it. What a call is given is known where
 * it is written beside it. Nothing found is not the same as nothing there.
 */

#include "verify/parse/walk.h"

/* Makes the operations of walk->text; the tree is none. */
void walk_foreign(struct walk *walk, TSNode root);
