/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * All handlers of what is done inside of a sandbox, for the table of operations (operate.c); nothing of its own. Runs
 * in atolld.
 */

#include "service/launcher/inside/commands.h"
#include "service/launcher/inside/files.h"
#include "service/launcher/inside/logs.h"
#include "service/launcher/inside/metrics.h"
#include "service/launcher/inside/watches.h"
