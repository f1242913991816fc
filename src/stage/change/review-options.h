/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The options of the review verbs that `atoll` passes on to atoll-stage as they were given: both parse them by these
 * rows. AT(member): where a member of the struct lies in what is filled in.
 */

#include "base/options.h"

struct apply_options {
	struct option_list excluded, allowed;
	const char *branch, *patch, *message;
	bool interactive, ours, theirs, merge, markers, commit, dry_run, quiet, json, resume;
};

#define APPLY_OPTIONS(AT)                                                                                              \
	{ 'i', "interactive", NULL, "ask about each change, and about each hunk of a text", OPTION_FLAG,               \
	  AT(interactive) },                                                                                           \
	{ 'x', "exclude", "GLOB", "leave what matches", OPTION_LIST, AT(excluded) },                                   \
	{ 0, "allow-flagged", "PATH", "apply this protected path too", OPTION_LIST, AT(allowed) },                     \
	{ 0, "ours", NULL, "in conflicts keep what the host has (yours), not the session's", OPTION_FLAG, AT(ours) },  \
	{ 0, "keep-host", NULL, "the same as --ours", OPTION_FLAG, AT(ours) },                                         \
	{ 0, "theirs", NULL, "in conflicts take what the session made (the agent's), over the host's", OPTION_FLAG,    \
	  AT(theirs) },                                                                                                \
	{ 0, "take-session", NULL, "the same as --theirs", OPTION_FLAG, AT(theirs) },                                  \
	{ 0, "merge", NULL, "in conflicts of texts take both, where they agree", OPTION_FLAG, AT(merge) },             \
	{ 0, "markers", NULL, "with --merge: where they do not agree, both between markers", OPTION_FLAG,              \
	  AT(markers) },                                                                                               \
	{ 0, "commit", NULL, "also commit it on the checked-out branch of git", OPTION_FLAG, AT(commit) },             \
	{ 0, "branch", "NAME", "make it a commit on a new branch of git instead, and leave the project as it is",      \
	  OPTION_TEXT, AT(branch) },                                                                                   \
	{ 'm', "message", "TEXT", "with --commit or --branch: what the commit says", OPTION_TEXT, AT(message) },       \
	{ 0, "patch", "FILE", "write it as a patch for git apply instead; - for stdout", OPTION_TEXT, AT(patch) },     \
	{ 0, "dry-run", NULL, "say what would be done, and do nothing", OPTION_FLAG, AT(dry_run) },                    \
	{ 'q', "quiet", NULL, "say only what was left", OPTION_FLAG, AT(quiet) },                                      \
	{ 0, "json", NULL, "one JSON object, with exact names", OPTION_FLAG, AT(json) },                               \
	{ 0, "resume", NULL, "only finish what a crash interrupted", OPTION_FLAG, AT(resume) }

struct undo_options {
	const char *number;
	bool list, dry_run, rehearse, quiet, json;
};

#define UNDO_OPTIONS(AT)                                                                                               \
	{ 'n', "apply", "N", "the apply with this number, instead of the newest", OPTION_TEXT, AT(number) },           \
	{ 0, "list", NULL, "list what was applied", OPTION_FLAG, AT(list) },                                           \
	{ 0, "dry-run", NULL, "say what would be done, and do nothing", OPTION_FLAG, AT(dry_run) },                    \
	{ 0, "rehearse", NULL, "say whether it can be taken back, and change nothing at all", OPTION_FLAG,             \
	  AT(rehearse) },                                                                                              \
	{ 'q', "quiet", NULL, "say only what was left", OPTION_FLAG, AT(quiet) },                                      \
	{ 0, "json", NULL, "one JSON object, with exact names", OPTION_FLAG, AT(json) }

struct diff_options {
	bool patch, stat, json, flagged;
};

#define DIFF_OPTIONS(AT)                                                                                               \
	{ 'p', "patch", NULL, "show the lines that differ", OPTION_FLAG, AT(patch) },                                  \
	{ 0, "stat", NULL, "show a line for each path (the default)", OPTION_FLAG, AT(stat) },                         \
	{ 0, "json", NULL, "one JSON object, with exact names", OPTION_FLAG, AT(json) },                               \
	{ 0, "flagged", NULL, "only what is flagged", OPTION_FLAG, AT(flagged) }

struct discard_options {
	bool quiet;
};

#define DISCARD_OPTIONS(AT) { 'q', "quiet", NULL, "say nothing when it worked", OPTION_FLAG, AT(quiet) }
