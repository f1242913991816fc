/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Invocations: which instance serves one, how long it may take, and what of it is noted. As many instances wait ahead
 * as were wanted at once lately, within the function's concurrency and the service's pool. Runs in atolld.
 */

#include "service/launcher/function/instance.h"

/* What becomes of the instances of functions that are served. */
extern const struct instance_events invoke_events;

/* Has as many instances wait as are wanted. */
void invoke_fill(struct function *function);
