/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is done when its time has come: the database and the log are brought up to date, sandboxes pause, those that
 * wait in the pool end, a front that is gone is started again. One timer for all of it. Runs in atolld.
 */

#include <stdint.h>

/* daemon_wake_at() has come. context: the daemon. 0. */
int timer_ready(void *context, uint32_t events);
