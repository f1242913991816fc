/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The start command of a built template: it runs from the beginning of each sandbox on, and nobody is told of the
 * sandbox before the ready command ends with 0. Runs in atolld.
 */

#include "service/launcher/call/await.h"

/* Whether it was made from a template that has one of them. */
bool start_is_wanted(const struct sandbox *sandbox);

/* Starts it; done is called once it is ready, or cannot be. */
void start_begin(struct sandbox *sandbox, await_done *done);

/* A command of the sandbox has ended: true where it is the one that is waited for, and done was called. */
bool start_ended(struct sandbox *sandbox, const atoll_record *event);
