/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What atoll-probe tried in a sandbox of the doctor's, for people or for programs. What comes out of a sandbox is
 * hostile, even of the doctor's own. Run by atoll.
 */

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * Prints what it wrote (text, changed on the way): the table, with json as it is. status: as of waitpid(2). The exit
 * status: 0 when everything held, 1 when something broke, that of a sandbox that was none; negative with *err.
 */
int self_test_show(struct buf *text, bool json, int status, struct err *err) MUST_USE;
