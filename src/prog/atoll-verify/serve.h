/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * atoll-verify beside a sandbox: judges what the box asks, one command after the other, until the box has gone. Of
 * what was open it has one socket (wire/verify.h).
 */

#include "base/cleanup.h"
#include "base/err.h"

/* Confines itself first. The exit status. */
int serve(struct err *err) MUST_USE;
