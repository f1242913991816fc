/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a sandbox is driven and watched by: the loop, who listens, clocks, counts, the log.
 * A part of struct box (sandbox.h): the states of these modules, which box/ alone sees side by side.
 */

#include "audit/writer.h"
#include "supervise/clocks.h"
#include "supervise/freeze.h"
#include "supervise/hub.h"
#include "supervise/loop.h"
#include "supervise/processes.h"
#include "supervise/refusals.h"

struct box_supervision {
	struct loop loop;
	struct hub hub;
	struct audit_writer audit;
	struct clocks clocks;
	struct freeze freeze;
	struct refusals refusals;
	struct processes processes;   /* who exec'd, until they end */
};
