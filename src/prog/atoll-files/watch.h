/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Directories that are watched for their owner, with all that is below them where that is asked for. Bounded in number;
 * what could not be told is said once. Part of atoll-files, which runs it inside.
 */

#include "inside.h"

/* An operation, behind the judgement of its path: 0, or a positive errno. The watch has the number of the request. */
int watch_add(struct inside *inside, const char *path, const char *to);

/* The same, of a number: ENOENT: there is no such watch. */
int watch_remove(struct inside *inside, const char *path, const char *to);

/* What becomes readable when something changed; -1: nothing is watched. */
int watch_fd(void);

/* Tells the box what changed. 0, or -errno: it does not listen any more. */
int watch_tell(struct inside *inside);
