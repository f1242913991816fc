/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The verbs of `atoll`: one cmd-*.c each, one row each in the sorted table of verbs.c. A verb parses its
 * options with options.h, does its work and returns an exit status; it never calls exit().
 */

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/options.h"

struct cmd {
	const char *name;        /* "run" */
	const char *arguments;   /* "[-p POLICY] [-t LEVEL] [--] CMD…" */
	const char *summary;     /* one line for `atoll help` */
	const struct option *options; /* for parsing, help and completion alike */
	size_t option_count;
	bool runs_command;       /* the first word that is no option begins a command, whose options are its own */
	/*
	 * argv[0] is the verb. The exit status (>= 0), CMD_HELP, or negative with *err filled: main prints it as
	 * one line "atoll: what, why; what to do" and exits with err_exit_status().
	 */
	int (*run)(int argc, char **argv, struct err *err);
};
#define CMD_OPTIONS(rows) .options = (rows), .option_count = ARRAY_SIZE(rows)

/* The verbs, sorted by name. */
extern const struct cmd *const cmd_table[];
extern const size_t cmd_count;

/* NULL when there is none; used by `atoll help VERB` too. */
const struct cmd *cmd_find(const char *name);

/* Fills *err for a name that is no verb, with the nearest one. -EINVAL. */
int cmd_set_unknown(const char *stage, const char *name, struct err *err) MUST_USE;

/* What a verb returns for its --help, below every -errno: main shows it. */
enum { CMD_HELP = -4096 };

/*
 * Parses a verb's words into its own struct (options_parse() in base/options.h). *ret_rest: the first word that is no
 * option. CMD_HELP; -EINVAL with *err.
 */
static inline int cmd_parse(const struct cmd *cmd, void *given, int argc, char **argv, int *ret_rest, struct err *err)
{
	int r = options_parse(cmd->options, cmd->option_count, given, argc, argv, !cmd->runs_command, ret_rest, err);

	return r == 1 ? CMD_HELP : r;
}

/* Shows the help of one verb on stdout. The exit status. */
int cmd_show_help(const struct cmd *cmd);

/* Each in its own cmd-*.c. */
extern const struct cmd cmd_alerts;
extern const struct cmd cmd_apply;
extern const struct cmd cmd_approve;
extern const struct cmd cmd_ask;
extern const struct cmd cmd_attach;
extern const struct cmd cmd_baseline;
extern const struct cmd cmd_checkpoints;
extern const struct cmd cmd_cp;
extern const struct cmd cmd_deny;
extern const struct cmd cmd_diff;
extern const struct cmd cmd_discard;
extern const struct cmd cmd_doctor;
extern const struct cmd cmd_dry_run;
extern const struct cmd cmd_exec;
extern const struct cmd cmd_fork;
extern const struct cmd cmd_function;
extern const struct cmd cmd_gc;
extern const struct cmd cmd_grants;
extern const struct cmd cmd_help;
extern const struct cmd cmd_log;
extern const struct cmd cmd_policy;
extern const struct cmd cmd_ps;
extern const struct cmd cmd_restore;
extern const struct cmd cmd_review;
extern const struct cmd cmd_run;
extern const struct cmd cmd_secret;
extern const struct cmd cmd_serve;
extern const struct cmd cmd_snapshot;
extern const struct cmd cmd_stop;
extern const struct cmd cmd_template;
extern const struct cmd cmd_token;
extern const struct cmd cmd_top;
extern const struct cmd cmd_trust;
extern const struct cmd cmd_undo;
extern const struct cmd cmd_verify;
extern const struct cmd cmd_version;
