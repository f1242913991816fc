/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Makes the first process of a container in its namespaces, and another process in those of a container that runs.
 * Both end up as children of the caller, so of whoever takes over its children when it ends.
 */

#include "oci/init.h"

/*
 * Starts it; init->channel is set to the child's end within. *ret_pid: its number here; *ret_channel (owned): what
 * speaks with it; it waits for OCI_PACKET_MAPPED. The caller has one thread.
 */
int oci_launch(struct oci_init *init, int *ret_channel, pid_t *ret_pid, struct err *err) MUST_USE;

/* Writes the maps of its new user namespace. Nothing where it has none, or has joined one. */
int oci_launch_map(const struct oci_config *config, pid_t pid, struct err *err) MUST_USE;

struct oci_exec {
	const struct oci_process *process;
	const struct oci_state *state;
	int console_socket; /* FD_NONE: there is none */
	unsigned kept_fds;
};

/*
 * Runs a process in the namespaces and control groups of the container whose first process init is. Back when its
 * program runs: *ret_pid is its number here. *err as of oci_process_find().
 */
int oci_launch_exec(const struct oci_exec *exec, const struct pidref *init, pid_t *ret_pid, struct err *err) MUST_USE;
