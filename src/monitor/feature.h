/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is counted of a session for its baseline: numbers, and things that are met for the first time. Pure. Which
 * numbers there are is a part of the file's format (doc/format/baseline.md): new ones come at the end.
 */

#include <stdint.h>

enum monitor_feature {
	MONITOR_PROGRAMS,      /* programs never started before */
	MONITOR_HOSTS,         /* hosts never asked for before */
	MONITOR_SYSCALLS,      /* system calls never refused before */
	MONITOR_SECRETS,       /* paths that hold credentials and were never read, or tried, before */
	MONITOR_STARTUP,       /* writes to startup files, hooks and what else is protected */
	MONITOR_DELETES,
	MONITOR_RENAMES,
	MONITOR_SCRAMBLED,     /* files whose content became noise */
	MONITOR_OUTPUT,        /* bytes */
	MONITOR_EGRESS,        /* bytes that went out */
	MONITOR_DENIALS,
	MONITOR_BURST,         /* the most denials within ten seconds */
	MONITOR_DELETED_SHARE, /* of the files of staged trees, in percent; 0 below MONITOR_SHARE_FILES */
	MONITOR_FEATURE_COUNT,
	MONITOR_SET_COUNT = MONITOR_SECRETS + 1, /* the first ones have a set of things that were met */
};

enum {
	MONITOR_FEATURES_FIRST = 12, /* that the first files of a baseline have */
	MONITOR_SHARE_FILES = 5,     /* fewer deleted files are no share worth a look */
};

struct monitor_feature_text {
	const char *name;      /* for machines: "deletes" */
	const char *words;     /* for people: "files deleted" */
	uint64_t least;        /* below this nothing is told, however unusual */
	unsigned set_max;      /* things remembered; 0: it has no set */
	uint8_t is_bytes;
};

extern const struct monitor_feature_text monitor_features[MONITOR_FEATURE_COUNT];
