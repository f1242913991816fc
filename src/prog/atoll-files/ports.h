/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Connections to servers on the sandbox's own loopback. Part of atoll-files, which runs it inside; it sends and reads
 * nothing.
 */

#include "inside.h"

/* An operation, behind the judgement of its paths: 0, or a positive errno; what is told of it goes into inside->out. */
int ports_connect(struct inside *inside, const char *path, const char *to);
