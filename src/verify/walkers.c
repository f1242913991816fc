/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/walkers.h"

#include "verify/command/foreign.h"
#include "verify/library/languages.h"
#include "verify/shell/grammar.h"
#include "verify/shell/shell.h"

const TSLanguage *tree_sitter_bash(void);
const TSLanguage *tree_sitter_python(void);
const TSLanguage *tree_sitter_javascript(void);

const struct walker verify_walkers[LANGUAGE_COUNT] = {
	[LANGUAGE_SHELL] = { tree_sitter_bash, walk_shell, shell_mend },
	[LANGUAGE_PYTHON] = { tree_sitter_python, walk_python },
	[LANGUAGE_OTHER] = { NULL, walk_foreign },
	[LANGUAGE_JAVASCRIPT] = { tree_sitter_javascript, walk_javascript },
};
