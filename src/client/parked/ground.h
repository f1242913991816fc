/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a sandbox that waits stands on, and whether it still does when it is taken: what a start would have looked up
 * then was looked up when it was built. It waits for nobody and builds nothing (box/park.c). Run by the box.
 */

#include <limits.h>

#include "base/err.h"
#include "os/seen.h"
#include "policy/snapshot/snapshot.h"

enum { PARKING_PROGRAMS = 2, PARKING_SETTINGS = 6, PARKING_SETTING_SIZE = 32 };

/* As it was when it was built. */
struct parking_ground {
	char project[PATH_MAX];
	char programs[PARKING_PROGRAMS][PATH_MAX]; /* that it consists of */
	struct seen seen[PARKING_PROGRAMS];
	char settings[PARKING_SETTINGS][PARKING_SETTING_SIZE]; /* of the kernel; "": there is no such */
};

/*
 * Whether a sandbox can wait under this policy, and for this project; *ret_ground then. programs: the directory of
 * atoll's. -errno with *err: a start would find something else later, or needs something from whom it is for while its
 * walls are built.
 */
int parking_check(const struct snapshot *snapshot, const char *project, const char *programs,
		  struct parking_ground *ret_ground, struct err *err) MUST_USE;

/* Whether all of it, and the files that the policy was made of, is as it was. -ESTALE with *err. */
int parking_stands(const struct snapshot *snapshot, const struct parking_ground *ground, struct err *err) MUST_USE;
