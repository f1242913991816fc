/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The log of a sandbox as its clients may read it: a line for each record of atoll's own log, with its time, a level,
 * and its type and subject. A page begins behind the record that the one before ended with. Runs in atolld.
 */

#include "service/launcher/call/call.h"

/* SERVICE_LOGS: the oldest first, as a page of rows. */
void logs_show(struct call *call);
