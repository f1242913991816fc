/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Completion scripts for bash, zsh and fish, made from the tables of verbs and options, so that they cannot
 * differ from what the program understands. completions/ holds what this prints.
 */

#include "base/cleanup.h"
#include "base/err.h"

/* Prints the script for this shell on stdout. 0, or -errno with *err. */
int completion_print(const char *shell, struct err *err) MUST_USE;
