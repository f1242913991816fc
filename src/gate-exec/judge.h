/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The first judgement of an exec: what the policy says of the program, of all that interprets it where it is a script,
 * and of what atoll-verify found in it. Run by atoll-box.
 */

#include "base/cleanup.h"

struct exec_case;
struct exec_gate;
struct watch_exec;

/*
 * Sets the case's decision and what people would be asked, or its errnum, where the exec fails so whatever the policy
 * says. exec: of the case, whose caller stands still. -ENOMEM.
 */
int exec_judge(struct exec_gate *gate, struct exec_case *at, const struct watch_exec *exec) MUST_USE;
