/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll ps --commands`: what runs in sandboxes, as their boxes say it, for people or as JSON. Nothing is read from the
 * sessions' directories. Run by `atoll`.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "base/err.h"

struct ps_commands {
	char **names;            /* NULL-terminated: of these; none: of all that run */
	bool all;                /* also commands that ended in the last 30 s */
	bool json;
};

/* Prints them: the exit status, or negative with *err. One that ends meanwhile is left out where it was not named. */
int ps_commands(const struct ps_commands *given, struct err *err) MUST_USE;
