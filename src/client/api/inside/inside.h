/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a handle asks of the commands and the files of its sandbox: the half of libatoll that a service needs for the
 * programs inside. How a handle speaks with its box is client/api/sandbox.h. Part of libatoll.
 */

#include "client/api/sandbox.h"

/* ATOLL_E_UNSUPPORTED, or why the handle cannot be used. */
int inside_not_yet(const struct atoll_sandbox *sandbox, struct atoll_error *error) MUST_USE;
