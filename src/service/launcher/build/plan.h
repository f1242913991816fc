/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The folder: what building a template consists of, apart from the sandbox that it is built in. plan.h has its steps,
 * settings.h what steps say of commands, log.h what a build says, archives.h the files that clients sent for it.
 *
 * A step is known by the hash of all that was done before it and of itself: the state behind it is taken from the last
 * build that had the same. Pure. Runs in atolld.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/hash.h"

enum { PLAN_STEPS_MAX = 512 };

enum step_type { STEP_RUN, STEP_COPY, STEP_WORKDIR, STEP_USER, STEP_ENV, STEP_TYPE_COUNT };

struct build_step {
	enum step_type type;
	const char *files;               /* of COPY: the hash of them; borrowed */
	bool is_forced;                  /* done again, and all behind it */
	size_t argument_count;
	const char *const *arguments;    /* borrowed */
	char hash[HASH_HEX_SIZE];        /* of all up to here */
};

struct plan {
	struct build_step *steps;        /* owned */
	size_t count;
	char end[HASH_HEX_SIZE];         /* of all, and of the commands that start what was built */
};

/*
 * The steps of a request, as service-table.c has them, on top of a base that is known by a text. strings are borrowed
 * for the plan's life. 0, and plan_done(); -EINVAL with *err naming the step; -ENOMEM.
 */
int plan_read(struct plan *ret_plan, const char *const *strings, const char *base, const char *const commands[2],
	      struct err *err) MUST_USE;
void plan_done(struct plan *plan);

/* Whether a command does it: the others say something of the commands behind them alone. */
bool plan_step_is_done(const struct build_step *step);

/* "RUN make", for the log: bytes of the client's. Fits, or is cut. */
void plan_step_show(const struct build_step *step, char *out, size_t size);
