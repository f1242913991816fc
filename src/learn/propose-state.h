/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was seen of a session for a proposal, counted by kind: between propose.c, which collects it, and
 * propose-text.c, which writes it down. Nobody else includes it.
 */

#include "learn/propose.h"
#include "learn/tally.h"

/* Of a program: it is where the session could write; somebody was asked about it. */
enum program_value { PROGRAM_WRITABLE = 1, PROGRAM_ASKED = 2 };

struct proposal {
	const struct propose_request *request;
	struct observed_log log;
	struct tally reads;                    /* value: how many files a directory stands for; 0: a file */
	struct tally trees[FILE_CLASS_COUNT];  /* what can be written: patterns of its rules */
	struct tally listed;                   /* directories whose entries were read */
	struct tally programs, new_programs;   /* value of programs: enum program_value */
	struct tally hosts;                    /* "HOST PORT"; value: the rule's index, SIZE_MAX: none */
	struct tally names;                    /* looked up; value as of hosts */
	struct tally refused;                  /* as text */
};
