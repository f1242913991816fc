/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rules that commands are judged by, as the box has them: which files they are, what atoll-verify made of them
 * (kept from one sandbox to the next, doc/format/verify-rules.md), and which commands they can be about at all. The box
 * looks at names and globs and never into a rule. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "os/seen.h"
#include "wire/frame.h"

struct run;

/* Globs that were sorted out: most are names, which are looked up and not compared. */
struct globs {
	const char **names;          /* owned, sorted; the strings are the frame's */
	const char **patterns;       /* owned: those with *, ? or [ */
	size_t name_count, pattern_count;
	bool has_all;                /* "*" is among them */
};

struct rule_source {
	char *path;                  /* owned */
	struct seen seen;
};

struct verifier_rules {
	struct rule_source *sources; /* owned: directories and files, as they were before they were read */
	size_t source_count;
	int compiled_fd;             /* owned: what atoll-verify loads, at offset; FD_NONE: it has to parse */
	uint64_t offset;
	void *bytes;                 /* owned: what the globs are in */
	struct globs programs, words;
	bool is_known;               /* which commands are worth judging; else all are */
};

#define VERIFIER_RULES_NONE ((struct verifier_rules){ .compiled_fd = FD_NONE })

/* What was kept, where it is still of the rules as they are. 0; else -errno, and nothing is known. */
int verifier_rules_find(const struct run *run, struct verifier_rules *rules) MUST_USE;

/*
 * The rule files as they are: a sealed memfd with a frame VERIFY_RULES, owned by the caller. -ENOENT: there are no
 * shipped ones.
 */
int verifier_rules_gather(const struct run *run, struct verifier_rules *rules, int *ret_fd) MUST_USE;

/*
 * What atoll-verify said of the gathered rules, after the string of VERIFY_READY; compiled_fd: the memfd that it was
 * given for them, taken. What it did not seal, or cannot be kept, is not; that costs time. -EBADMSG, -ENOMEM.
 */
int verifier_rules_learn(const struct run *run, struct verifier_rules *rules, struct frame *frame, int compiled_fd)
	MUST_USE;

/* What was kept is of no use: the next sandbox makes it anew. */
void verifier_rules_drop(const struct run *run, struct verifier_rules *rules);

/* Whether the base name of path is one of the programs that rules can be about. False of "*" alone. */
bool verifier_rules_name(const struct verifier_rules *rules, const char *path);

/* Whether they can be about a command with this argument, or a program at this path, whatever its name is. */
bool verifier_rules_word(const struct verifier_rules *rules, const char *word);

/* Frees what was found and closes what was compiled. */
void verifier_rules_done(struct verifier_rules *rules);
