/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The disk limits that file systems hold for root's sessions (stage/quota.h), for `atoll doctor` and `atoll gc`. A box
 * takes its own away, and a guardian that of a box that was killed; what a power cut left goes here.
 */

#include "prog/atoll/doctor.h"

/* Takes away the limits of sessions that do not run, and those that belong to none. As root; else nothing happens. */
void quotas_collect(const char *state_dir);

/* What holds the disk limit of staged changes here. */
void doctor_disk(struct findings *findings);
