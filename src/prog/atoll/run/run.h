/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * `atoll run` with or without a session that it goes on from; `atoll fork` is the same with one. Parses the
 * options, and leaves the rest to setup.h.
 */

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct fork_origin;

/*
 * Parses the options of `atoll run` and runs. argv[0] is the verb, for its help. origin: borrowed; NULL: what
 * --continue says, or none.
 */
int run_start(int argc, char **argv, const struct fork_origin *origin, uint64_t started_ns, struct err *err) MUST_USE;
