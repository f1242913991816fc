/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The code interpreter of the service: contexts in which code of a language runs cell by cell and keeps its state, each
 * with a driver (runtimes/) that is a command of its sandbox. It serves the routes of port 49999; no server runs
 * inside, and no token gets there. What a driver says harms the answers of its own sandbox alone: lines are bounded,
 * read by a library, and written anew. Run by atoll-front.
 */

#include "service/front/extension.h"

/* What atoll-front adds to the front. */
extern const struct front_extension interpreter_extension;
