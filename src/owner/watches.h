/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Directories inside that clients watch: who hears of which, and when it is over. What is watched is known to
 * atoll-files alone. Only for owner.c; runs in atoll-box.
 */

#include "owner/owner.h"

/* The watch with this number among FILES_WATCHES_MAX; 0: one that is free. NULL: there is none. */
struct owner_watch *watches_find(struct owner_watch *watches, uint64_t number);

/* Whether any of them is in use, so that the process must not be ended for being idle. */
bool watches_has_any(const struct owner_watch *watches);

/* The process is gone, and with it all that it watched: each client hears of the end of its watches. */
void watches_lose(struct owner_watch *watches);

/*
 * Hands the frame of a change to whoever watches; one that says "gone" is the last of its watch. A change of a watch
 * that nobody wants any more is passed over. -EBADMSG: the frame has no number.
 */
int watches_pass_on(struct owner_watch *watches, struct frame *frame) MUST_USE;
