/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Has atoll-stage look at what a session staged, and tell how many files became noise. Reads none of them itself. Run
 * by atoll-box.
 */

#include "base/cleanup.h"
#include "monitor/noise.h"
#include "session/run-request.h"

/* When nothing runs any more. Waits two seconds at most. -errno: nobody can tell. */
int noise_look(const struct run_request *request, struct noise_count *ret_count) MUST_USE;
