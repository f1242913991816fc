/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The verbs of `atoll`: one cmd-*.c each, one row each in the sorted table of main.c. A verb parses its
 * options with options.h, does its work and returns an exit status; it never calls exit().
 */

#include <stddef.h>

#include "base/err.h"

struct cmd {
	const char *name;        /* "run" */
	const char *arguments;   /* "[-p POLICY] [-t LEVEL] [--] CMD…" */
	const char *summary;     /* one line for `atoll help` */
	/*
	 * argv[0] is the verb. The exit status (>= 0), or negative with *err filled: main prints it as
	 * one line "atoll: what, why; what to do" and exits with err_exit_status().
	 */
	int (*run)(int argc, char **argv, struct err *err);
};

/* NULL when there is none; used by `atoll help VERB` too. */
const struct cmd *cmd_find(const char *name);

/* Every verb's function, defined in its cmd-*.c. */
int cmd_doctor(int argc, char **argv, struct err *err);
int cmd_exec(int argc, char **argv, struct err *err);
int cmd_help(int argc, char **argv, struct err *err);
int cmd_log(int argc, char **argv, struct err *err);
int cmd_policy(int argc, char **argv, struct err *err);
int cmd_ps(int argc, char **argv, struct err *err);
int cmd_run(int argc, char **argv, struct err *err);
int cmd_stop(int argc, char **argv, struct err *err);
int cmd_version(int argc, char **argv, struct err *err);
