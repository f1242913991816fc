/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The start: sandboxes that are there already. Those that a client was told of are taken on, with their time; those
 * that were being made or ended when the last daemon died are ended. Nothing is left without an owner. Runs in atolld.
 */

#include "service/launcher/call/daemon.h"

/* Reads the database and finds the sandboxes. Negative with *err. */
int recover_all(struct daemon *daemon, struct err *err) MUST_USE;

/*
 * Looks again for those that were just being started when the last daemon died: they may come into being only now. When
 * to call it the next time (CLOCK_MONOTONIC); UINT64_MAX: never.
 */
uint64_t recover_late(struct daemon *daemon);
