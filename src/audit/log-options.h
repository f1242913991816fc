/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The options of `atoll log` that it passes on to atoll-log: both parse them by these rows. AT(member): where a
 * member of this name lies in what is filled in.
 */

#include "base/options.h"

#define LOG_OPTIONS(AT)                                                                                                \
	{ 'f', "follow", NULL, "go on until the session ends", OPTION_FLAG, AT(follow) },                              \
	{ 0, "json", NULL, "the records as they are", OPTION_FLAG, AT(json) },                                         \
	{ 't', "type", "TYPE", "only this type or family (exec, net.dns, …)", OPTION_LIST, AT(types) },                \
	{ 's', "since", "WHEN", "only what came later: 10m, or a time in UTC", OPTION_TEXT, AT(since) },               \
	{ 0, "denied", NULL, "only what was refused", OPTION_FLAG, AT(denied) },                                       \
	{ 'n', "lines", "N", "only the last N records", OPTION_TEXT, AT(lines) },                                      \
	{ 0, "head", "HASH", "verify: the head that a report names (sha256:…)", OPTION_TEXT, AT(head) }
