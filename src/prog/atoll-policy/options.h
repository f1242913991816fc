/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the command line gives to every subcommand of atoll-policy, and the files as the compiler sees them.
 * Called by `atoll`, which passes what it knows; started by hand, the environment answers instead.
 */

#include <limits.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/options.h"
#include "lang/compile/lang.h"

struct policy_options {
	const char *level, *policy, *project, *home, *config_home, *policies, *output_fd, *snapshot;
	struct option_list private_dirs, unmask;
	bool json, is_lowered;
	char cwd[PATH_MAX], policies_default[PATH_MAX], config_default[PATH_MAX];
	char project_normal[PATH_MAX], policies_normal[PATH_MAX];
	char private_paths[3][PATH_MAX];
	const char *private_list[OPTION_LIST_MAX + 4];
};

/* Parses argv[1…]; *ret_rest as options_parse(). 1 after --help was printed. */
int policy_options_parse(struct policy_options *given, int argc, char **argv, int *ret_rest, struct err *err) MUST_USE;

/* The request of -p and -t; borrows from given. */
struct lang_request policy_options_request(const struct policy_options *given);

/* The same for another policy, without the project's own file: what `diff` compares. */
struct lang_request policy_options_request_for(const struct policy_options *given, const char *policy);

/* Compiles; errors go to stderr (or stdout as JSON). 0, 1 after errors, or -errno with *err. */
int policy_options_compile(const struct policy_options *given, const struct lang_request *request,
			   struct lang **ret_lang,
		  struct err *err) MUST_USE;

/* The snapshot of what was compiled to --output-fd. */
int policy_options_write_snapshot(const struct policy_options *given, const struct lang *lang,
				  struct err *err) MUST_USE;

/* Writes all of buf to stdout. */
int policy_options_print(struct buf *buf, struct err *err) MUST_USE;

/* The subcommands: the exit status, or -errno with *err. argv are the words behind the options. */
int cmd_amend(struct policy_options *given, int argc, char **argv, struct err *err);
int cmd_check(struct policy_options *given, int argc, char **argv, struct err *err);
int cmd_compile(struct policy_options *given, int argc, char **argv, struct err *err);
int cmd_diff(struct policy_options *given, int argc, char **argv, struct err *err);
int cmd_explain(struct policy_options *given, int argc, char **argv, struct err *err);
int cmd_narrow(struct policy_options *given, int argc, char **argv, struct err *err);
int cmd_show(struct policy_options *given, int argc, char **argv, struct err *err);
