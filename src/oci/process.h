/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the process of a bundle becomes last: its program, ids, capabilities and filters. For a child of one thread that
 * is in the container's namespaces and root; it ends where one of these fails.
 */

#include "oci/config/config.h"

enum { OCI_PROGRAM_SIZE = 4096 };

/*
 * Goes to the working directory (made where it is missing) and finds the program by the process's own PATH. *err as
 * clients know it: "executable file not found in $PATH" (-ENOENT), "permission denied" (-EACCES).
 */
int oci_process_find(const struct oci_process *process, char program[OCI_PROGRAM_SIZE], struct err *err) MUST_USE;

/* All of the rest, and executes. Only back with -errno. kept_fds: so many behind 2 stay open. */
int oci_process_exec(const struct oci_process *process, const struct oci_seccomp *seccomp, const char *program,
		     unsigned kept_fds, struct err *err) MUST_USE;

/* Sets the limits and the OOM score of another process, before it has become less than the caller. */
int oci_process_limit(const struct oci_process *process, pid_t pid, struct err *err) MUST_USE;
