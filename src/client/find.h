/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The session that a word on the command line means, for verbs that look at what is on record of it. Those that speak
 * to a running one use libatoll.
 */

#include <limits.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "session/record.h"

/*
 * The project of the working directory, for verbs to which no session was named: which one they then mean is never
 * guessed. Fails where the working directory is gone or cannot be read.
 */
int find_project(char out[PATH_MAX], struct err *err) MUST_USE;

/* The session that id_or_name means (NULL: the newest of that project), running or not. Negative with *err. */
int find_session(const char *state, const char *id_or_name, struct session_record *ret_record, struct err *err)
	MUST_USE;
