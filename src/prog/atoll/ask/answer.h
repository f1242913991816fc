/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One answer to one question, which is shown, and to nothing else: what `atoll approve` and `atoll deny` do. It finds
 * the session that has the question; whether the answer still counts, the box says.
 */

#include <stdbool.h>

#include "base/err.h"
#include "prog/atoll/verb/cmd.h"
#include "wire/asking.h"

/* The struct that both verbs' tables of options fill. */
struct answer_options {
	bool session, forever, json;
	const char *uses, *time;
};


/*
 * Answers "SESSION:3", or "3" where one session alone has a question of that number, and says on stdout what it came
 * to. reply is borrowed. -ENOENT and other negatives with *err: nothing was answered.
 */
int answer_named(const char *word, struct asking_reply *reply, bool json, struct err *err);

/* The whole verb: options and words of the command line, the answer, and what it came to. As struct cmd's run. */
int answer_run(const struct cmd *cmd, bool is_allowed, int argc, char **argv, struct err *err);
