/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The messages between `atoll top`, which knows where sessions are and speaks with their boxes, and atoll-top, which
 * draws them and can reach nothing but its terminal and this socket. An id is a string of SESSION_ID_SIZE - 1 bytes.
 */

#include "wire/frame.h"

enum { TOP_FD = 3 };                 /* in atoll-top */

enum top_message {
	/* atoll -> atoll-top */
	TOP_SESSION = 1,         /* id, bytes: what `atoll ps --json` says of it */
	TOP_STATUS,              /* id, bytes: what LINK_STATUS brings (doc/format/status.md) */
	TOP_SILENT,              /* id: it has not answered this time */
	TOP_GONE,                /* id: it has ended */
	TOP_ROUND,               /* u32 sessions that are left out: all that there is to tell now is told */
	TOP_EVENTS,              /* id; fd: lines of its log, for people */
	TOP_NOTICE,              /* string: what came of a request */
	TOP_QUESTIONS,           /* id, bytes: a frame of ASKING_QUESTIONS */
	/* atoll-top -> atoll */
	TOP_NOW = 64,            /* ask them all at once */
	TOP_PACE,                /* u32 ms from one round to the next */
	TOP_WATCH,               /* id: -> TOP_EVENTS; NULL: no more of it */
	TOP_STOP,                /* id: end it, as `atoll stop` does; -> TOP_NOTICE */
	TOP_ASK,                 /* id: -> TOP_QUESTIONS */
	TOP_ANSWER,              /* id, then struct asking_reply (wire/asking.h); -> TOP_NOTICE */
};

enum { TOP_PACE_MIN_MS = 100, TOP_PACE_MAX_MS = 3600 * 1000, TOP_NOTICE_MAX = 512, TOP_SESSIONS_MAX = 512 };
