/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a process gives up for good: capabilities, new privileges, speculation, shared cores, the keyring.
 * Each call is for the calling process and all that come from it. Used by the child of jail/ before it executes init.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

/*
 * Empties the effective, permitted, inheritable and ambient sets, and locks the securebits so that neither uid 0
 * nor a file brings anything back. Behind caps_bound(), which still needs what this takes away. Needs CAP_SETPCAP in
 * the own user namespace.
 */
int caps_drop_all(void) MUST_USE;

#define CAPS_BIT(cap) (1ULL << (cap))

/*
 * Empties the ambient set, and drops from the bounding set all capabilities but these (a mask of CAPS_BIT()), so that
 * no exec gives others: none for what runs inside, a few for a program that root starts. Needs CAP_SETPCAP.
 */
int caps_bound(uint64_t kept) MUST_USE;

/* prctl(PR_SET_NO_NEW_PRIVS): from here on no exec gains anything, set-ID bits included, and nothing undoes it. */
int caps_no_new_privs(void) MUST_USE;

/*
 * Indirect-branch speculation off for this process and its descendants, irrevocably, where the processor is
 * affected. 1: nothing to do (not affected, or off already), 0: done, -EOPNOTSUPP: neither kernel nor processor
 * has a control, else -errno. Speculative store bypass is left as the kernel has it: it reads across no
 * process boundary, and switching it off slows all programs (the kernel's own reasons since 5.16).
 */
int caps_limit_speculation(void) MUST_USE;

/*
 * A core-scheduling cookie of its own: no foreign task runs on the sibling thread meanwhile. 1: no SMT here, 0: done,
 * -EOPNOTSUPP: the kernel has no core scheduling, else -errno.
 */
int caps_core_cookie(void) MUST_USE;

/* An anonymous session keyring in place of the inherited one; 0 also where the kernel has no keys. */
int caps_new_keyring(void) MUST_USE;
