/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `create`, `run` and `exec` of atoll-oci share: the console socket, and the way from options to a container.
 * Nothing here waits for a container.
 */

#include "prog/atoll-oci/job.h"

/* Connects to a console socket; *ret_fd is the caller's. */
int life_connect(const char *path, int *ret_fd, struct err *err) MUST_USE;

/* Creates the container of the job's first word; console_socket FD_NONE: none. */
int life_create(struct job *job, int console_socket, struct oci_state *ret_state) MUST_USE;
