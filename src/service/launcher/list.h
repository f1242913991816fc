/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The list of sandboxes that a key may see, by filters and in pages. A page is known by the last row before it, so that
 * what comes and goes meanwhile moves no other row. Runs in atolld.
 */

#include "service/launcher/call/call.h"

/* SERVICE_LIST: those that match the filters, the newest first where nothing else is said, as one page of rows. */
void list_sandboxes(struct call *call);
