/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The options of `atoll top` that it passes on to atoll-top: both parse them by these rows. AT(member): where a
 * member of this name lies in what is filled in.
 */

#include "base/options.h"

#define TOP_OPTIONS(AT)                                                                                                \
	{ 'd', "delay", "TIME", "from one look to the next (1s)", OPTION_TEXT, AT(delay) },                            \
	{ 's', "sort", "COLUMN", "sort by this column (cpu)", OPTION_TEXT, AT(sort) },                                 \
	{ 'r', "reverse", NULL, "the other way round", OPTION_FLAG, AT(reverse) },                                     \
	{ 'f', "filter", "TEXT", "only sandboxes with this in id, name, project, policy or command",                   \
	  OPTION_TEXT, AT(filter) },                                                                                   \
	{ 0, "once", NULL, "one plain table (as without a terminal)", OPTION_FLAG, AT(once) },                         \
	{ 0, "json", NULL, "one JSON array", OPTION_FLAG, AT(json) }
