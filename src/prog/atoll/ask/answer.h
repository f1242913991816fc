/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One answer to one question, which is shown, and to nothing else: what `atoll approve` and `atoll deny` do. It finds
 * the session that has the question; whether the answer still counts, the box says.
 */

#include <stdbool.h>

#include "base/err.h"
#include "prog/atoll/verb/cmd.h"

/* The struct that both verbs' tables of options fill. */
struct answer_options {
	bool session, forever, json;
	const char *uses, *time;
};


/* The whole verb: options and words of the command line, the answer, and what it came to. As struct cmd's run. */
int answer_run(const struct cmd *cmd, bool is_allowed, int argc, char **argv, struct err *err);
