/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages between atoll-box and atoll-verify, which judges commands before they run. The box believes nothing
 * of what it says but how bad it finds something: it can make a command be asked about or refused, never be allowed
 * where the policy says otherwise.
 */

#include <stdbool.h>
#include <stdint.h>

#include "wire/frame.h"

/* In atoll-verify. */
enum { VERIFY_FD = 3 };

enum {
	VERIFY_FINDINGS_MAX = 52,    /* told of one command, the worst first, of each kind one at least */
	VERIFY_TEXT_SIZE = 512,      /* of an id, a reason, an instead; with the NUL */
	VERIFY_WORTH_MAX = 4096,     /* globs in one vector of VERIFY_READY */
	VERIFY_RULES_MAX = 4 << 20,  /* bytes of all rule files */
	VERIFY_RULE_FILES_MAX = 256,
	VERIFY_COMPILED_MAX = 16 << 20,
};

enum verify_message {
	/* box -> verify */
	/* fds: a sealed memfd with a frame VERIFY_RULES; an empty one for VERIFY_COMPILED, sealed when READY comes */
	VERIFY_START = 1,
	VERIFY_RULES,            /* only in that memfd: u32 count, then each a string (its name) and bytes */
	VERIFY_JUDGE,            /* struct verify_question; fd: a file, or none; -> VERIFY_WANTS or VERIFY_JUDGED */
	VERIFY_LOAD,             /* instead of VERIFY_START: u64 offset; fd: a file that has VERIFY_COMPILED there */
	VERIFY_COMPILED,         /* only in that file, and in the memfd: doc/format/verify-rules.md */
	VERIFY_INDEX,            /* only in a file of the box: what the compiled rules behind it are of */
	/* verify -> box */
	/*
	 * string: what is wrong with the rules, or NULL; two vectors of globs, empty after VERIFY_LOAD: programs whose
	 * commands are worth judging, and words with which those of any program are
	 */
	VERIFY_READY = 64,
	VERIFY_WANTS,            /* u32 id, string: the script that the command names, to be judged with it */
	VERIFY_JUDGED,           /* struct verify_answer */
};

enum verify_file {
	VERIFY_NO_FILE,          /* nothing was looked for */
	VERIFY_PROGRAM,          /* fd: what is executed, a script */
	VERIFY_SCRIPT,           /* fd: what VERIFY_WANTS named; none: it is not there, or cannot be looked at */
};

struct verify_question {
	uint32_t id;
	char **argv;             /* when received, the array is owned */
	uint32_t is_cut;         /* there are more arguments */
	uint32_t file;           /* enum verify_file */
	const char *path;        /* of the file; "" */
};

/* What of a sandbox may hold the deed that a finding is about. */
enum verify_held {
	VERIFY_HELD_NOT,         /* something leaves, comes in, or nobody knows */
	VERIFY_HELD_FILES,       /* files: removed, overwritten, left to be run later */
	VERIFY_HELD_RIGHTS,      /* rights that nobody inside has */
	VERIFY_HELD_LIMITS,      /* memory, processes, disk */
	VERIFY_HELD_COUNT,
};

struct verify_told {
	uint32_t severity;       /* enum severity */
	uint32_t confidence;     /* enum confidence */
	uint32_t is_unknown;     /* it could not be judged */
	uint32_t held;           /* enum verify_held */
	uint32_t line;           /* 0: of the command itself; else of the script */
	const char *id, *reason, *instead; /* never NULL when received */
};

struct verify_answer {
	uint32_t id;
	uint32_t total;          /* of findings, with those that are not told */
	uint64_t time_us;
	struct verify_told told[VERIFY_FINDINGS_MAX];
	uint32_t count;
};

/*
 * put: the whole frame of its type into out, which is reset; 0, or the buffer's error. get: 0, or -EBADMSG for what is
 * malformed or beyond the limits above, after which nothing is owned. Strings are borrowed from the frame; a question's
 * argv may be empty. A refused answer may have its first findings filled: do not look at it.
 */
int verify_question_put(struct buf *out, const struct verify_question *question) MUST_USE;
int verify_question_get(struct frame *frame, struct verify_question *ret_question) MUST_USE;
int verify_answer_put(struct buf *out, const struct verify_answer *answer) MUST_USE;
int verify_answer_get(struct frame *frame, struct verify_answer *ret_answer) MUST_USE;
