/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which file of the host a command means: what the caller's shell would run. It says nothing of whether the sandbox
 * shows that file. Run by atoll and atoll-box.
 */

#include <limits.h>

struct run_request;

/* The real path of what command means to the caller of the run, by its PATH and working directory; "": nothing. */
void host_program_find(const struct run_request *request, const char *command, char out[PATH_MAX]);

/* The directory of the caller's PATH where a command without a slash is found, as it stands there; "": none. */
void host_program_directory(const struct run_request *request, const char *command, char out[PATH_MAX]);
