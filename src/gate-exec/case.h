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

#include "approve/queue.h"
#include "base/hash.h"
#include "gate-exec/file.h"
#include "gate-exec/verifier.h"
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

/* What an exec goes through, in this order. */
enum exec_stage {
	EXEC_VERIFY,                 /* atoll-verify says what the command would do */
	EXEC_DRY_RUN,                /* where that leads to it: the command is tried */
	EXEC_JUDGE,                  /* the policy */
	EXEC_REVIEW,                 /* the external verifier */
	EXEC_ASK,                    /* people */
	EXEC_DECIDED,                /* the answer is known */
	EXEC_HELD,                   /* it is given; what starts is judged again when the new program is there */
};

/* The external verifier's part. */
struct exec_review {
	char *path, **argv;  /* owned: what the external verifier is shown */
	char opinion[320];   /* why it refuses it, or a person is asked */
	bool has_opinion;    /* it was asked */
	bool is_denied;      /* and refused it */
};

/* A script that is started. */
struct exec_script {
	char *path, *called; /* itself, and its own name for itself; owned */
	size_t first_argument; /* where its arguments begin */
};

struct exec_case {
	struct exec_case *next;
	uint64_t token;
	uint64_t id;                 /* of the notification */
	pid_t pid;
	char *exe;                   /* owned: as the caller gave it */
	enum exec_stage stage;
	bool is_waiting;             /* for the outcome of that stage */
	int errnum;                  /* EXEC_DECIDED: it fails so, whatever the policy says; 0: by the decision */
	struct decision decision;    /* so far; borrowed from the policy, the case, or the outcome at EXEC_DECIDED */

	struct exec_verified *verified; /* owned: what atoll-verify is asked about and says; NULL: it is not */
	uint32_t trial;              /* what was tried before (dry-run.h); 0: nothing */

	struct exec_review review;
	bool is_verifier_refusal;    /* it, or atoll-verify, found something: that counts against the agent */

	struct exec_want wants[EXEC_FILES_MAX + 1];
	size_t want_count, granted_count;
	struct queue_outcome outcome; /* of the last question; its texts are gone when the case waits */
	bool is_answered;            /* by somebody who was waited for */

	/* What it is expected to execute, and with which arguments; of an unknown path nothing is. */
	bool is_known;
	struct stat st;
	struct hash argv_hash;       /* only where something is wanted */
	char *cwd;                   /* owned: as people are shown it; NULL: nothing is wanted, or nobody can tell */

	struct exec_script script;   /* where arguments are judged */
};

struct exec_cases {
	struct exec_case *first;
	uint64_t last_token;
};

/* In this stage, with nothing decided; owned by the list, until exec_case_free(). NULL: out of memory. */
struct exec_case *exec_case_new(struct exec_cases *cases, const struct watch_exec *exec, enum exec_stage stage);

/* The one with this token, still the list's; NULL: it is over. */
struct exec_case *exec_case_find(const struct exec_cases *cases, uint64_t token);

/* Takes it from its list, with all that it owns. */
void exec_case_free(struct exec_cases *cases, struct exec_case *exec_case);

/* A person has to be asked about this. Copies. -ENOMEM. */
int exec_case_want(struct exec_case *exec_case, const char *path, const char *const *argv,
		   const struct decision *decision) MUST_USE;

/* Keeps what is asked for, for when atoll-verify has answered. -ENOMEM. */
int exec_case_keep(struct exec_case *exec_case, const struct watch_exec *exec) MUST_USE;

/* The exec as it was asked for, after exec_case_keep(); its texts are the case's and last as long. */
struct watch_exec exec_case_kept(const struct exec_case *exec_case);

/* What the external verifier is shown. Copies. -ENOMEM. */
int exec_case_set(struct exec_case *exec_case, const char *path, const char *const *argv) MUST_USE;

/* SHA-256 of all words of a NULL-terminated list, each with its NUL, so that no two lists have the same bytes. */
void exec_hash_argv(const char *const *argv, struct hash *ret_hash);

/* Whether the file is the one that was expected, unchanged. */
bool exec_case_is_expected(const struct exec_case *exec_case, const struct stat *st);
