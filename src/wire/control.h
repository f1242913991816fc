/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages on a session's control socket of atoll-stage and whoever reviews, who have one thing to say on a
 * connection: a freeze, or the records of one review. All others, libatoll and `atoll` by it, say wire/link.h. The box
 * accepts the session's owner and root only (SO_PEERCRED). Numbers that are missing once had a meaning: they get none.
 */

#include "wire/frame.h"

enum control_message {
	/* client -> box */
	CONTROL_FREEZE = 6,      /* string what for: stops every process inside; -> CONTROL_DONE 0 when all are */
	CONTROL_THAW,            /* -> CONTROL_DONE 0: they stood still until now; 1: they did not */
	CONTROL_REVIEW,          /* session/review-log.h: a record; -> CONTROL_DONE once it is written */
	/*
	 * u32 number of a staged tree, while the freeze of this connection lasts: -> CONTROL_DONE 0 with the tree as
	 * programs inside see it (O_PATH); CONTROL_ERROR where there is none, or they stand still no longer.
	 */
	CONTROL_TREE = 15,
	/* box -> client */
	CONTROL_DONE = 68,       /* u32 0; of CONTROL_THAW see there */
	CONTROL_ERROR,           /* bytes: struct err */
};

/*
 * A freeze belongs to its connection. It ends with CONTROL_THAW, with the connection, when the sandbox is stopped, or
 * after this long, so that no client can hold a sandbox for ever.
 */
enum { CONTROL_FREEZE_MAX_MS = 60000, CONTROL_FREEZE_NAME_MAX = 256 };
