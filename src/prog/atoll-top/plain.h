/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One look at the sandboxes as a plain table or as JSON, for pipes and scripts. Knows no terminal.
 * Run by atoll-top.
 */

#include "base/cleanup.h"
#include "base/err.h"
#include "prog/atoll-top/columns.h"

/* To stdout. 0, or -errno with *err. */
int plain_show(const struct rows *rows, const struct columns_order *order, bool as_json, struct err *err) MUST_USE;
