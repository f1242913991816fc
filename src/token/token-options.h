/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The options of `atoll token` that it passes on to atoll-token: both parse them by these rows. AT(member): where a
 * member of this name lies in what is filled in.
 */

#include "base/options.h"

#define TOKEN_OPTIONS(AT)                                                                                              \
	{ 0, "allow", "KIND=SUBJECT", "mint, narrow: let this happen where a policy would ask", OPTION_LIST,           \
	  AT(allow) },                                                                                                 \
	{ 0, "limit", "NAME=AMOUNT", "mint, narrow: leave so much of memory, processes, disk, wall, cpu,               \
	  network", OPTION_LIST, AT(limit) },                                                                          \
	{ 0, "expires", "TIME", "mint, narrow: how long it holds (mint: 1h)", OPTION_TEXT, AT(expires) },              \
	{ 0, "not-before", "TIME", "mint, narrow: it holds only after so long", OPTION_TEXT, AT(not_before) },         \
	{ 0, "uses", "N", "mint, narrow: how often it can be presented", OPTION_TEXT, AT(uses) },                      \
	{ 0, "project", "DIR", "mint, narrow: only for this project; verify: as there", OPTION_TEXT, AT(project) },    \
	{ 0, "agent", "NAME", "mint, narrow: only for this policy or session; verify: as it", OPTION_LIST,             \
	  AT(agent) },                                                                                                 \
	{ 0, "seal", NULL, "mint, narrow: nobody can narrow it further", OPTION_FLAG, AT(seal) },                      \
	{ 0, "remove", NULL, "trust: do so no longer", OPTION_FLAG, AT(remove) },                                      \
	{ 0, "json", NULL, "show, verify, list, trust: JSON", OPTION_FLAG, AT(json) }
