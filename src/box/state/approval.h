/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Questions of a sandbox, who answers them, and what came into view by that.
 * A part of struct box (sandbox.h): the states of these modules, which box/ alone sees side by side.
 */

#include "approve/notifier.h"
#include "approve/prompt.h"
#include "approve/queue.h"
#include "approve/reviewer.h"
#include "grant/runtime-mount.h"

struct box_approval {
	struct queue queue;           /* of questions; and grants */
	struct prompt prompt;         /* of a question, on the terminal */
	struct notifier notifier;     /* of questions, on the desktop and at a webhook */
	struct reviewer reviewer;     /* who gives a second opinion */
	struct runtime_mounts mounts; /* what was granted and brought in */
};
