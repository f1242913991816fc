/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a session used, from its report (doc/format/report.md). The report is the box's own, but names in it are
 * hostile, so it is read where the log is. Run by atoll-learn.
 */

#include "learn/propose.h"

/* What the report does not say for sure is 0, so that the limit stays as it was. -EBADMSG: no report. */
int usage_parse(const char *bytes, size_t size, struct propose_usage *ret_usage) MUST_USE;
