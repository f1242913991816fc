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
#include "wire/asking.h"

struct forever {
	char path[PATH_MAX];     /* of the policy */
	char *text;              /* as it will be; owned */
	size_t size;
	mode_t mode;
	int lock_fd;             /* owned: the directory of the policy, for which one waits for the other; FD_NONE */
	struct seen seen;        /* what it was when the text was made from it */
};

#define FOREVER_NONE ((struct forever){ .lock_fd = FD_NONE })

void forever_done(struct forever *forever);
#define cleanup_forever __attribute__((cleanup(forever_done)))

/* What is asked as words for forever_prepare(); owned (strv_free); NULL: out of memory. */
char **forever_words(const struct asking_shown *shown);

/*
 * Finds the file of the policy that this session runs under, and has the rule put into its text. Nothing is written.
 * 1: atoll-policy has said why not.
 */
int forever_prepare(const char *session, char **words, struct forever *ret_forever, struct err *err) MUST_USE;

/* -ESTALE: somebody has changed the file since; it stays as they left it. */
int forever_write(const struct forever *forever, struct err *err) MUST_USE;
