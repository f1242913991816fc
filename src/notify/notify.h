/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions of one sandbox, told where people are: as a notification of the desktop, or to a webhook. The box decides
 * whether an answer counts. Run by atoll-notify.
 */

#include "base/cleanup.h"
#include "base/err.h"

/*
 * Serves until box_fd (borrowed, wire/notify.h) is closed. Confines itself before it talks to a webhook, and once the
 * session bus is reached. 0 also where there is nobody to tell, which the box has been told; negative: a wall of its
 * own could not be put up (*err), or the box broke the protocol.
 */
int notify_run(int box_fd, struct err *err) MUST_USE;
