/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What comes from `atoll` (wire/top.h) into the rows, and what is asked of it. Never waits. Run by atoll-top, once it
 * has confined itself.
 */

#include "base/cleanup.h"
#include "base/err.h"
#include "prog/atoll-top/rows.h"
#include "wire/asking.h"

enum { INBOX_NOTICE_SIZE = TOP_NOTICE_MAX * 4, INBOX_QUESTION_SIZE = 1024 };

/* The first question that a sandbox has open. */
struct inbox_question {
	char id[SESSION_ID_SIZE];            /* whose; "": none */
	uint32_t number;
	uint8_t hash[ASKING_HASH_SIZE];
	uint64_t since_ns;                   /* since when it is the one that is shown */
	bool is_whole;                       /* all of what it asks is in text */
	char text[INBOX_QUESTION_SIZE];      /* escaped */
};

struct inbox {
	struct rows rows;
	struct buf out, scratch;
	unsigned rounds;                     /* that are complete */
	char notice[INBOX_NOTICE_SIZE];      /* escaped; "": nothing new. The reader empties it */
	struct inbox_question question;
	int events_fd;                       /* lines of a log; owned by the reader, who sets FD_NONE; FD_NONE: none */
	char events_id[SESSION_ID_SIZE];     /* whose */
};

int inbox_init(struct inbox *inbox) MUST_USE;
void inbox_done(struct inbox *inbox);

/* Takes all that lies in the socket. 1; 0: `atoll` has gone. Negative: what it says cannot be understood. */
int inbox_read(struct inbox *inbox) MUST_USE;

/* -EAGAIN: it is busy, and the request is not made. id NULL for those that have none. */
int inbox_ask(struct inbox *inbox, enum top_message what, const char *id) MUST_USE;
int inbox_answer(struct inbox *inbox, bool is_allowed) MUST_USE;   /* to the question */
int inbox_set_pace(struct inbox *inbox, uint32_t ms) MUST_USE;
