/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What comes from `atoll` (wire/top.h) into the rows, and what is asked of it. Never waits. Run by atoll-top, once it
 * has confined itself.
 */

#include "base/cleanup.h"
#include "base/err.h"
#include "prog/atoll-top/rows.h"

enum { INBOX_NOTICE_SIZE = TOP_NOTICE_MAX * 4 };

struct inbox {
	struct rows rows;
	struct buf out, scratch;
	unsigned rounds;                     /* that are complete */
	char notice[INBOX_NOTICE_SIZE];      /* escaped; "": nothing new. The reader empties it */
	int events_fd;                       /* lines of a log; owned by the reader, who sets FD_NONE; FD_NONE: none */
	char events_id[SESSION_ID_SIZE];     /* whose */
};

int inbox_init(struct inbox *inbox) MUST_USE;
void inbox_done(struct inbox *inbox);

/* Takes all that lies in the socket. 1; 0: `atoll` has gone. Negative: what it says cannot be understood. */
int inbox_read(struct inbox *inbox) MUST_USE;

/* -EAGAIN: it is busy, and the request is not made. id NULL for those that have none. */
int inbox_ask(struct inbox *inbox, enum top_message what, const char *id) MUST_USE;
int inbox_set_pace(struct inbox *inbox, uint32_t ms) MUST_USE;
