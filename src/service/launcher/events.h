/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What happens in a sandbox, as its handle tells it: it lives, it has ended, a command began or ended, something that
 * was asked for is done. Runs in atolld.
 */

#include <stdint.h>

struct sandbox;

/* Of the loop: context is the struct sandbox, which may be gone afterwards. */
int events_ready(void *context, uint32_t events);

/* What READY has follow, for a new sandbox that was ready before it was taken (warm.h). It may be gone afterwards. */
void events_begun(struct sandbox *sandbox);
