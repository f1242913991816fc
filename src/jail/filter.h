/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The seccomp programs, generated at build time from tools/seccomp/NAME.table (see tools/seccomp-gen/)
 * and loaded as they are. Linked into atoll-init.
 */

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "jail/spec.h"

/* base with this mediation; and whether programs may make user namespaces under a profile, and mounts in these. */
enum jail_seccomp_profile jail_seccomp_profile(enum jail_seccomp_profile base, enum jail_mediation mediation);
bool jail_seccomp_is_nested(enum jail_seccomp_profile profile);
bool jail_seccomp_has_mounts(enum jail_seccomp_profile profile);

/* The program of a profile for the architecture that this was built for. Borrowed, static. */
const struct sock_filter *jail_filter_program(enum jail_seccomp_profile profile, size_t *ret_count);

/*
 * Loads the filter with a listener: execve/execveat, connect, bind, listen, mediated file calls and every refused call
 * that is worth a denial record are user notifications; everything unknown is ENOSYS. no_new_privs must be set. The
 * listener fd, or -errno. seccomp(2) SECCOMP_FILTER_FLAG_NEW_LISTENER.
 */
int jail_filter_load(enum jail_seccomp_profile profile) MUST_USE;

/* "strict", "nested", each with "-noexec", "mounts", and all of these with "+moves", "+writes" or "+all". */
extern const char *const jail_seccomp_names[JAIL_SECCOMP_COUNT];

/*
 * For a notified call that is refused: its name and the errno (positive) that the caller gets.
 * NULL and 0 for calls that are judged (execve, execveat, connect, bind, listen) or never notified.
 */
const char *jail_filter_syscall_name(int number);
int jail_filter_syscall_errno(int number);

struct hash;

/* SHA-256 over the instructions of the profile's program, as session.start of the log has it. */
void jail_filter_hash(enum jail_seccomp_profile profile, struct hash *ret_hash);
