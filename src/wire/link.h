/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is said on a session's control socket (wire/control.h) by a client that speaks of more than one thing at a time:
 * libatoll. It says LINK_HELLO first. Every request has a ticket of the client's choice, which its one reply brings
 * back; what happens meanwhile comes as events, as many as the client has given credit for. A box outlives the update
 * of the programs that speak to it, so that numbers here are never used for anything else.
 */

#include <stdint.h>

#include "wire/field.h"

/*
 * Those of a box: from the lowest to this one. Since 2: LINK_ASKS, LINK_STATUS, LINK_HOLD, LINK_OWN_COMMANDS; since 3:
 * what stands behind these, "lasting", "tag" and "user" of LINK_RUN, and the box takes the snapshot that a policy wants
 * before that.
 */
enum { LINK_PROTOCOL_LOWEST = 1, LINK_PROTOCOL = 4 };

/* A bit of LINK_SUBSCRIBE, since protocol 2: of commands those alone that this client runs. */
#define LINK_OWN_COMMANDS (UINT64_C(1) << 63)

/* Events that may be under way to one client; what comes then is counted by its type (LINK_EVENT_LOST). */
enum { LINK_CREDIT_MAX = 64 };

/* Descriptors as the new process of a start finds them: the request, the first client's socket, what it counts. */
enum { LINK_START_FD = 3, LINK_SOCKET_FD, LINK_FIRST_FD, LINK_FDS_MAX = 8, LINK_START_SIZE_MAX = 4 << 20 };

/* argv[0] of `atoll` as the supervisor of one sandbox, and as what runs one verb and sends what came of it. */
#define LINK_BOX_NAME "atoll-box"
#define LINK_JOB_NAME "atoll-job"

enum link_message {
	/* a start, in a sealed memfd */
	LINK_START = 16,         /* fields: of a sandbox, or of a job */
	/* starter -> the box that it had parked */
	LINK_TAKE,               /* fields: what the start left open, and what LINK_HELLO ("lowest", "highest") and
				    LINK_SUBSCRIBE ("events") say; fds: those that they count. READY follows, or the
				    end */
	/* one program of a user -> another, by libatoll: a sandbox that waits */
	LINK_PARKED,             /* string id, string state directory, bytes hash of its policy or none, u64 device and
				    u64 inode of that, u32: 1: it waits; fd: the starter's socket */
	/* client -> box */
	LINK_HELLO = 32,         /* u32 lowest, u32 highest protocol that is spoken; -> LINK_WELCOME, and the end where
				    it is another one */
	LINK_CREDIT,             /* u32 more events */
	LINK_SUBSCRIBE,          /* u64 ticket (0: no reply), u64 bits 1 << enum link_event */
	LINK_RUN,                /* u64 ticket, fields (since 2: "token": TOKEN_HOLDS); fds: 0, 1, 2, or none and "pty",
				    or with "lasting" one, a stream socket; -> "command" */
	LINK_KILL,               /* u64 ticket, u64 command, u64 signal */
	LINK_STOP,               /* u64 ticket, u64 grace ms */
	LINK_FREEZE,             /* u64 ticket */
	LINK_THAW,               /* u64 ticket */
	LINK_POLICY,             /* u64 ticket; fd: a snapshot, sealed; -> "ended": connections */
	LINK_DEADLINE,           /* u64 ticket, u64 ms from now */
	LINK_SAMPLE,             /* u64 ticket; -> what `atoll top` shows */
	LINK_QUESTIONS,          /* u64 ticket; -> "questions": bytes, ASKING_QUESTIONS */
	LINK_ANSWER,             /* u64 ticket, struct asking_reply; -> "grant" */
	LINK_GRANTS,             /* u64 ticket, u64 after which number; -> "grants": bytes, ASKING_GRANTS */
	LINK_REVOKE,             /* u64 ticket, u64 number of a grant */
	LINK_ASKS,               /* u64 ticket, u64 after, u32 enum asking_look; -> "after", "questions": what changed
				    since; with ASKING_FOLLOW once anything has. One at a time */
	LINK_STATUS,             /* u64 ticket; -> "status": doc/format/status.md */
	LINK_HOLD,               /* u64 ticket, fields; as LINK_FREEZE, without a bound: "keep", "timeout_ms" */
	LINK_COMMANDS,           /* u64 ticket, u64 after which number; -> "rows", "kind", "next" */
	LINK_ATTACH,             /* u64 ticket, u64 command, fields: "fresh", "output_only"; -> "stdin", "stdout",
				    "stderr" or "terminal": descriptors; "dropped" */
	LINK_RESIZE,             /* u64 ticket, u64 command, u64 rows << 16 | columns */
	LINK_CLOSE_INPUT,        /* u64 ticket, u64 command */
	LINK_LABELS,             /* u64 ticket, fields: "labels" */
	LINK_ROW,                /* in "rows": fields */
	LINK_FILE,               /* u64 ticket, request of wire/files.h; -> what it says there, "file" or "socket" */
	LINK_HEADERS,            /* u64 ticket, vector of headers.h (since 4) */
	/* box -> client */
	LINK_WELCOME = 96,       /* u32 protocol, fields: "id", "atoll" */
	LINK_REPLY,              /* u64 ticket, u32 enum err_code; where that is 0 fields, else those of an error */
	LINK_EVENT,              /* u64 number, u32 enum link_event, fields */
};

/* The numbers are those of atoll.h. */
enum link_event {
	LINK_EVENT_READY = 1,    /* it lives */
	LINK_EVENT_FAILED,       /* it does not, and the fields of an error say why; of the first client alone */
	LINK_EVENT_STARTED,      /* "command"; fd: the master of its terminal, to whom it belongs */
	LINK_EVENT_OUTPUT,       /* made by the library */
	LINK_EVENT_STOPPED,      /* "command", "signal" */
	LINK_EVENT_EXIT,         /* "command", "status", "exit" or "signal", "errno", "ended" */
	LINK_EVENT_DENIAL,       /* "kind", "subject", "rule", "reason", "hint" */
	LINK_EVENT_QUESTION,     /* this and those below: "type", "subject", "rule", "verdict", "record" */
	LINK_EVENT_ANSWERED,
	LINK_EVENT_ALERT,
	LINK_EVENT_LIMIT,
	LINK_EVENT_FROZEN,       /* "frozen": 1 or 0 */
	LINK_EVENT_POLICY,
	LINK_EVENT_LOG,          /* "seq", "record": a line of the log, without its newline */
	LINK_EVENT_LOST,         /* "event": type, "from", "to": numbers, "count" */
	LINK_EVENT_DONE,         /* made by the library */
	LINK_EVENT_END,          /* "ended", "status"; the last one */
	LINK_EVENT_WATCH,        /* "watch", "change", "path": of LINK_FILE, to who asked, whatever it subscribes to */
	LINK_EVENT_COUNT,
	LINK_EVENT_PARKED = 19,  /* it waits for LINK_TAKE; nobody subscribes to it */
};

struct err;

/*
 * Appends the fields of an error to a frame that was begun: "where", "what", "hint", "errno" (a positive errno, 0 for
 * none). Its code is not among them: LINK_REPLY and LINK_EVENT_FAILED have that elsewhere.
 */
void link_put_error(struct buf *out, const struct err *err);

/* LINK_EVENT_FAILED, from a starter's own process; what nobody hears is lost. */
void link_send_failure(int socket_fd, const struct err *err);

/* LINK_EVENT_PARKED. Negative: nobody hears it. */
int link_send_parked(int socket_fd) MUST_USE;
