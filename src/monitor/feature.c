/* SPDX-License-Identifier: Apache-2.0 */
#include "monitor/feature.h"

const struct monitor_feature_text monitor_features[MONITOR_FEATURE_COUNT] = {
	[MONITOR_PROGRAMS] = { "programs", "programs that it never started before", 8, 2048 },
	[MONITOR_HOSTS] = { "hosts", "hosts that it never asked for before", 3, 1024 },
	[MONITOR_SYSCALLS] = { "syscalls", "refused system calls that it never tried before", 3, 256 },
	[MONITOR_SECRETS] = { "secrets", "places of credentials that it never looked at before", 2, 512 },
	[MONITOR_STARTUP] = { "startup-files", "startup files, hooks or protected files written", 2 },
	[MONITOR_DELETES] = { "deletes", "files deleted", 50 },
	[MONITOR_RENAMES] = { "renames", "files renamed", 50 },
	[MONITOR_SCRAMBLED] = { "scrambled", "files whose content became noise", 5 },
	[MONITOR_OUTPUT] = { "output", "of output", 1 << 20, .is_bytes = 1 },
	[MONITOR_EGRESS] = { "egress", "sent out", 1 << 20, .is_bytes = 1 },
	[MONITOR_DENIALS] = { "denials", "refusals", 20 },
	[MONITOR_BURST] = { "denial-burst", "refusals within ten seconds", 10 },
	[MONITOR_DELETED_SHARE] = { "deleted-share", "percent of the files deleted", 50 },
};
