/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The verbs of atoll-stage: one cmd-*.c each, one row each in the table of main.c. `atoll` finds the session and runs
 * `atoll-stage VERB --state DIR --session ID …`. A verb parses its options, opens what it needs (opened.h), gives up
 * everything else (confine.h), and only then looks at what a sandbox wrote.
 */

#include <stddef.h>

#include "base/err.h"
#include "base/options.h"

enum { EXIT_LEFT = 1 };

/* What every verb is told about the session; the first member of each verb's struct of options. */
struct verb_session {
	const char *state;      /* --state: the state directory */
	const char *id;         /* --session */
	const char *base;       /* --base: paths below it are shown without it; NULL: none is */
	bool colour, escape;    /* --colour, --escape: for a terminal */
};

/* The rows for it; TARGET is the verb's struct, whose member `session` it is. */
#define VERB_SESSION_OPTIONS(target)                                                                          \
	{ 0, "state", "DIR", "the state directory", OPTION_TEXT, offsetof(target, session.state) },           \
	{ 0, "session", "ID", "the session", OPTION_TEXT, offsetof(target, session.id) },                     \
	{ 0, "base", "DIR", "show paths relative to it", OPTION_TEXT, offsetof(target, session.base) },       \
	{ 0, "colour", NULL, "with colours", OPTION_FLAG, offsetof(target, session.colour) },                 \
	{ 0, "escape", NULL, "for a terminal: escape what it would obey", OPTION_FLAG,                        \
	  offsetof(target, session.escape) }

struct verb {
	const char *name;
	/* argv[0] is the verb. The exit status (>= 0), or negative with *err filled. */
	int (*run)(int argc, char **argv, struct err *err);
};

/*
 * The verbs: the program's words without its name. The exit status (0, EXIT_LEFT), or negative with *err; stdout is
 * written, and an answer that could not be written is an error.
 */
int cmd_apply(int argc, char **argv, struct err *err);
int cmd_compare(int argc, char **argv, struct err *err);
int cmd_diff(int argc, char **argv, struct err *err);
int cmd_discard(int argc, char **argv, struct err *err);
int cmd_flagged(int argc, char **argv, struct err *err);
int cmd_flatten(int argc, char **argv, struct err *err);
int cmd_gc(int argc, char **argv, struct err *err);
int cmd_noise(int argc, char **argv, struct err *err);
int cmd_relink(int argc, char **argv, struct err *err);
int cmd_restore(int argc, char **argv, struct err *err);
int cmd_snapshot(int argc, char **argv, struct err *err);
int cmd_undo(int argc, char **argv, struct err *err);
