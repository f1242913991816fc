/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What uids and gids are called inside: texts in the form of passwd(5) and group(5), made from the host's. Pure. Runs
 * in atoll-box.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"

/* The name of who works inside, where he has no other. */
extern const char accounts_agent[];

/* Who works inside. */
struct accounts_user {
	const char *name;            /* NULL: accounts_agent; his group has the same */
	uid_t uid;
	gid_t gid;
	const char *home;
};

/* The number is the third field of a line in both files. */
bool accounts_have(const char *text, unsigned id);

/*
 * The system's own accounts of the host's file (below 1000, and nobody's), without passwords and, of groups, without
 * members, and behind them a line for who works inside. The other people of this machine are left out. Each text is
 * owned by the caller; NULL: out of memory.
 */
char *accounts_passwd(const char *host, const struct accounts_user *user) MUST_USE;
char *accounts_group(const char *host, const struct accounts_user *user) MUST_USE;

/* The whole of the host's file with that line behind it, for somebody whom another service than these files knows. */
char *accounts_passwd_with(const char *host, const struct accounts_user *user) MUST_USE;
char *accounts_group_with(const char *host, const struct accounts_user *user) MUST_USE;
