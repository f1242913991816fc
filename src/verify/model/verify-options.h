/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The options of `atoll verify` that it passes on to atoll-verify: both parse them by these rows. AT(member): where a
 * member of this name lies in what is filled in.
 */

#include "base/options.h"

#define VERIFY_OPTIONS(AT)                                                                                             \
	{ 0, "command", NULL, "the words are a command, not a file", OPTION_FLAG, AT(command) },                       \
	{ 0, "fail-on", "SEVERITY", "exit 1 from this severity on: low, medium, high (default) or critical",           \
	  OPTION_TEXT, AT(fail_on) },                                                                                  \
	{ 0, "json", NULL, "print one JSON object", OPTION_FLAG, AT(json) },                                           \
	{ 'l', "language", "LANGUAGE", "shell, python or javascript (default: by name and content)",                   \
	  OPTION_TEXT, AT(language) },                                                                                 \
	{ 0, "no-own-rules", NULL, "without the rules in ~/.config/atoll/verify", OPTION_FLAG, AT(no_own) },           \
	{ 0, "operations", NULL, "show what the text does, as rules see it", OPTION_FLAG, AT(operations) },            \
	{ 'r', "rules", "FILE", "these rules as well", OPTION_LIST, AT(rules) },                                       \
	{ 0, "sarif", NULL, "print SARIF 2.1.0", OPTION_FLAG, AT(sarif) },                                             \
	{ 0, "test-rules", NULL, "try the examples of all rules", OPTION_FLAG, AT(test_rules) }
