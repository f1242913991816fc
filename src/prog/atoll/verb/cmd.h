/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The verbs of `atoll`: one cmd-*.c each, one row each in the sorted table of main.c. A verb parses its
 * options with options.h, does its work and returns an exit status; it never calls exit().
 */

#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/options.h"

/* A verb's options, for parsing, help and completion alike. */
struct cmd_options {
	const struct option *rows;
	size_t count;
	bool runs_command;       /* the first word that is no option begins a command, whose options are its own */
};

struct cmd {
	const char *name;        /* "run" */
	const char *arguments;   /* "[-p POLICY] [-t LEVEL] [--] CMD…" */
	const char *summary;     /* one line for `atoll help` */
	const struct cmd_options *options;
	/*
	 * argv[0] is the verb. The exit status (>= 0), CMD_HELP, or negative with *err filled: main prints it as
	 * one line "atoll: what, why; what to do" and exits with err_exit_status().
	 */
	int (*run)(int argc, char **argv, struct err *err);
};

/* The verbs, sorted by name. */
extern const struct cmd *const cmd_table;
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
static inline int cmd_parse(const struct cmd_options *options, void *given, int argc, char **argv, int *ret_rest,
			    struct err *err)
{
	int r = options_parse(options->rows, options->count, given, argc, argv, !options->runs_command, ret_rest, err);

	return r == 1 ? CMD_HELP : r;
}

/* Shows the help of one verb on stdout. The exit status. */
int cmd_show_help(const struct cmd *cmd);

extern const struct cmd_options cmd_alerts_options;
extern const struct cmd_options cmd_apply_options;
extern const struct cmd_options cmd_approve_options;
extern const struct cmd_options cmd_ask_options;
extern const struct cmd_options cmd_baseline_options;
extern const struct cmd_options cmd_deny_options;
extern const struct cmd_options cmd_diff_options;
extern const struct cmd_options cmd_discard_options;
extern const struct cmd_options cmd_doctor_options;
extern const struct cmd_options cmd_dry_run_options;
extern const struct cmd_options cmd_exec_options;
extern const struct cmd_options cmd_fork_options;
extern const struct cmd_options cmd_gc_options;
extern const struct cmd_options cmd_grants_options;
extern const struct cmd_options cmd_help_options;
extern const struct cmd_options cmd_log_options;
extern const struct cmd_options cmd_policy_options;
extern const struct cmd_options cmd_ps_options;
extern const struct cmd_options cmd_restore_options;
extern const struct cmd_options cmd_run_options;
extern const struct cmd_options cmd_secret_options;
extern const struct cmd_options cmd_snapshot_options;
extern const struct cmd_options cmd_stop_options;
extern const struct cmd_options cmd_token_options;
extern const struct cmd_options cmd_top_options;
extern const struct cmd_options cmd_trust_options;
extern const struct cmd_options cmd_undo_options;
extern const struct cmd_options cmd_verify_options;
extern const struct cmd_options cmd_version_options;

/* Every verb's function, defined in its cmd-*.c. */
int cmd_alerts(int argc, char **argv, struct err *err);
int cmd_apply(int argc, char **argv, struct err *err);
int cmd_approve(int argc, char **argv, struct err *err);
int cmd_ask(int argc, char **argv, struct err *err);
int cmd_baseline(int argc, char **argv, struct err *err);
int cmd_deny(int argc, char **argv, struct err *err);
int cmd_diff(int argc, char **argv, struct err *err);
int cmd_discard(int argc, char **argv, struct err *err);
int cmd_doctor(int argc, char **argv, struct err *err);
int cmd_dry_run(int argc, char **argv, struct err *err);
int cmd_exec(int argc, char **argv, struct err *err);
int cmd_fork(int argc, char **argv, struct err *err);
int cmd_gc(int argc, char **argv, struct err *err);
int cmd_grants(int argc, char **argv, struct err *err);
int cmd_help(int argc, char **argv, struct err *err);
int cmd_log(int argc, char **argv, struct err *err);
int cmd_policy(int argc, char **argv, struct err *err);
int cmd_ps(int argc, char **argv, struct err *err);
int cmd_restore(int argc, char **argv, struct err *err);
int cmd_run(int argc, char **argv, struct err *err);
int cmd_secret(int argc, char **argv, struct err *err);
int cmd_snapshot(int argc, char **argv, struct err *err);
int cmd_stop(int argc, char **argv, struct err *err);
int cmd_token(int argc, char **argv, struct err *err);
int cmd_top(int argc, char **argv, struct err *err);
int cmd_trust(int argc, char **argv, struct err *err);
int cmd_undo(int argc, char **argv, struct err *err);
int cmd_verify(int argc, char **argv, struct err *err);
int cmd_version(int argc, char **argv, struct err *err);
