/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll approve --forever`: what is allowed becomes a dated line in the user's own policy file. The text is made and
 * checked by atoll-policy, which writes nothing; here it takes the place of the old one in one step. Never in the
 * project's file, nor in one that is shipped.
 */

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "os/seen.h"
#include "session/record.h"
#include "wire/asking.h"

struct permanent_grant {
	char path[PATH_MAX];     /* of the policy */
	char *text;              /* as it will be; owned */
	size_t size;
	mode_t mode;
	int lock_fd;             /* owned: the directory of the policy, for which one waits for the other; FD_NONE */
	struct seen seen;        /* what it was when the text was made from it */
};

#define PERMANENT_GRANT_NONE ((struct permanent_grant){ .lock_fd = FD_NONE })

void permanent_grant_done(struct permanent_grant *grant);
#define cleanup_permanent_grant __attribute__((cleanup(permanent_grant_done)))

/* What is asked as words for permanent_grant_prepare(); owned (strv_free); NULL: out of memory. */
char **permanent_grant_words(const struct asking_shown *shown);

/*
 * Finds the file of the policy that this session runs under, and has the rule put into its text. Nothing is written.
 * 1: atoll-policy has said why not.
 */
int permanent_grant_prepare(const struct session_record *session, char **words, struct permanent_grant *ret_grant,
			    struct err *err) MUST_USE;

/* -ESTALE: somebody has changed the file since; it stays as they left it. */
int permanent_grant_write(const struct permanent_grant *grant, struct err *err) MUST_USE;
