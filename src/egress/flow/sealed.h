/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A policy snapshot as it comes to the gate: a sealed memfd, mapped and validated. Runs in atoll-egress, before and
 * after it confines itself.
 */

#include "policy/snapshot/snapshot.h"

/*
 * Maps fd (borrowed) and loads it. The mapping stays for as long as the process: what borrowed from a policy may
 * outlive its being in force. -EPERM where it could still be changed, -EFBIG, -EBADMSG and what mmap(2) says.
 */
int sealed_snapshot_load(int fd, struct snapshot **ret_snapshot) MUST_USE;
