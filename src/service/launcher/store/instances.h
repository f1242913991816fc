/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The names of sandboxes that run for functions: one is written down before its sandbox is made, and taken away when
 * that has ended, so that the next start of atolld finds what a killed one has left. No client has a right to one.
 */

#include "service/launcher/store/database.h"

/* 0; -ENOSPC: the disk is full; -EIO: database_problem() says why. */
int instances_put(struct database *store, const char *id) MUST_USE;

/* 0 also where there is none of this name. */
int instances_remove(struct database *store, const char *id) MUST_USE;

/* Calls `row` for each until that is negative, and returns this, or 0. */
int instances_each(struct database *store, int (*row)(void *context, const char *id), void *context) MUST_USE;
