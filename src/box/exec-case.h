/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Execs on their way: what each was let through as, and what a person is asked about it. Each belongs to one caller
 * that stands still meanwhile, so there are never more than processes. Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/hash.h"
#include "box/exec-file.h"
#include "box/verify-gate.h"
#include "policy/decide.h"

/* One question: a program with its arguments. */
struct exec_want {
	char *path, **argv;          /* owned */
	struct decision decision;    /* that asks; borrowed from the policy */
};

/* An exec that had to wait to be judged, as it was asked for, and what was found. */
struct exec_verified {
	int dir_fd;
	bool is_open_file;
	char **argv;                 /* owned */
	size_t argv_left_out;
	uint64_t environment;        /* in its caller's memory */
	struct verify_outcome outcome;
};

struct exec_case {
	struct exec_case *next;
	uint64_t token;
	uint64_t id;                 /* of the notification */
	pid_t pid;
	bool waits;                  /* for a person */
	bool is_verifying;           /* it waits for atoll-verify */
	struct exec_verified *verified; /* owned: what that is about and said; NULL: nothing was found */
	bool is_tried;               /* it waits for its trial */
	uint32_t trial;              /* what was tried before (exec-trial.h); 0: nothing */
	bool is_judged_on;           /* it waits for the external verifier, */
	bool has_opinion;            /* which had nothing against it */
	bool is_denied;              /* or which refused it */
	struct decision judged;      /* by the rules, meanwhile; borrowed from the policy and the case */
	char *path, **argv;          /* owned: what that is about */
	char opinion[320];           /* why a person is asked */
	char *exe;                   /* owned: as the caller gave it */
	struct exec_want wants[EXEC_FILES_MAX + 1];
	size_t want_count, granted_count;

	/* What it is expected to execute, and with which arguments; of an unknown path nothing is. */
	bool is_known;
	struct stat st;
	struct hash argv_hash;       /* only where something is wanted */
	char *cwd;                   /* owned: as people are shown it; NULL: nothing is wanted, or nobody can tell */

	/* Of a script where arguments are judged: itself, its own name for itself, and where its arguments begin. */
	char *script, *called;
	size_t first_argument;
};

struct exec_cases {
	struct exec_case *first;
	uint64_t last_token;
};

/* NULL: out of memory. */
struct exec_case *exec_case_new(struct exec_cases *cases, const char *exe);
struct exec_case *exec_case_find(const struct exec_cases *cases, uint64_t token);
void exec_case_free(struct exec_cases *cases, struct exec_case *exec_case);

/* A person has to be asked about this. Copies. -ENOMEM. */
int exec_case_want(struct exec_case *exec_case, const char *path, const char *const *argv,
		   const struct decision *decision) MUST_USE;

/* Keeps what is asked for, for when atoll-verify has answered. -ENOMEM. */
int exec_case_keep(struct exec_case *exec_case, const struct watch_exec *exec) MUST_USE;

/* As it was kept; borrowed from the case. */
struct watch_exec exec_case_kept(const struct exec_case *exec_case);

/* What the external verifier is shown. Copies. -ENOMEM. */
int exec_case_set(struct exec_case *exec_case, const char *path, const char *const *argv) MUST_USE;

void exec_hash_argv(const char *const *argv, struct hash *ret_hash);

/* Whether the file is the one that was expected, unchanged. */
bool exec_case_is_expected(const struct exec_case *exec_case, const struct stat *st);
