/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The life of a container, one function for each operation of the specification (runtime.md). What a command line
 * says is the program's own matter. Used by atoll-oci.
 */

#include "oci/container-state.h"

struct oci_create {
	const char *root, *id, *bundle; /* bundle: absolute */
	const char *pid_file;           /* NULL: none */
	int console_socket;             /* FD_NONE: none */
	unsigned kept_fds;
	bool keeps_keyring;
};

/* Reads the bundle and builds everything up to the program. A failure leaves nothing behind. */
int oci_container_create(const struct oci_create *create, struct oci_state *ret_state, struct err *err) MUST_USE;

/* Runs the program. Only from "created": else "cannot start a container that has stopped" and so on. */
int oci_container_start(const struct oci_state *state, struct err *err) MUST_USE;

/* To its first process, or with is_all to all processes. "container not running" where there is none. */
int oci_container_kill(const struct oci_state *state, int signal_number, bool is_all, struct err *err) MUST_USE;

/* Removes what it has; is_forced: kills it first where it runs. */
int oci_container_delete(struct oci_state *state, const char *root, bool is_forced, struct err *err) MUST_USE;

/* Writes a process number for others to read: whole, or not at all. NULL: nothing. */
int oci_container_write_pid(const char *path, pid_t pid, struct err *err) MUST_USE;
