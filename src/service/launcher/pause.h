/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Pauses and resumes: with the memory (everything stands still), or with the files alone (it ends, and begins again
 * from what it staged). Runs in atolld.
 */

#include "service/launcher/call/call.h"

/* SERVICE_PAUSE: 409 where it is paused. */
void pause_call(struct call *call);

/* SERVICE_CONNECT: wakes it where it is paused, and gives it time. */
void pause_connect(struct call *call);

/*
 * Wakes a paused sandbox that was made to wake by itself: the call goes on by operate() when it does. False: it is
 * none, and the call is untouched.
 */
bool pause_wake_for(struct call *call, void (*then)(struct call *call)) MUST_USE;

/* Pauses what has reached the end of its time, and says when the next one does (CLOCK_MONOTONIC; UINT64_MAX: none). */
uint64_t pause_ended(struct daemon *daemon);
