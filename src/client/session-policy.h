/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A policy as a session's project would have it, for verbs that are about sessions that are there already. (A run
 * has its own way: run-setup.c.)
 */

#include "client/compiled.h"
#include "session/record.h"

/*
 * POLICY (a name, or a path from where we stand) compiled as `atoll run -p POLICY` in the session's project would have
 * it: with the project's own file on top. 0; 1 when it is wrong and atoll-policy has said why; -errno with *err.
 */
int session_policy_compile(const struct session_record *record, const char *policy,
			   struct compiled *ret_compiled, struct err *err) MUST_USE;

/*
 * The same for the level that the session runs at, where its agent is trusted less than the policy would have it: what
 * `atoll run -p POLICY` would compile for an agent of that level.
 */
int session_policy_compile_lowered(const struct session_record *record, const char *policy,
				   struct compiled *ret_compiled, struct err *err) MUST_USE;
