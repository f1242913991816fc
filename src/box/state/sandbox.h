/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state of the one sandbox of this process, shared by the files of box/ and by nobody else: they each do
 * one job on it, box.c has the order.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "box/state/approval.h"
#include "box/state/build.h"
#include "box/state/command.h"
#include "box/state/detection.h"
#include "box/state/gates.h"
#include "box/state/supervision.h"
#include "owner/owner.h"
#include "session/store.h"
#include "supervise/run.h"

enum {
	BOX_COMMANDS_MAX = 64,
	BOX_ENDED_MAX = 32,       /* commands that are remembered for a while */
	BOX_CLIENTS_SERVED = 64,
	BOX_CLIENTS_MAX = BOX_CLIENTS_SERVED + 8, /* those beyond are told that there are too many */
};

/* Who is heard at the control socket (control.c). */
struct box_control {
	int listen_fd;
	struct loop_source source;
	bool has_name;                /* the socket's name stands, also where nobody listens there any more */
	char name[SESSION_ID_SIZE];   /* the session that it is named after */
	struct client *clients[BOX_CLIENTS_MAX];
	struct exec_snapshot *exec_snapshot; /* owned (exec-snapshot.h); NULL: none was wanted yet */
	struct buf link_out;          /* messages to those that link (control-link.h) */
	uint64_t stop_ns;             /* LINK_STOP: when patience ends; UINT64_MAX: nobody asked */
};

/* What the loop waits for beside that (serve.c). */
struct box_serving {
	int wire_fd;                  /* to init */
	unsigned init_state;          /* enum box_init_state */
	int signal_fd;
	struct loop_source wire_source, watch_source, listener_source, init_source, limit_source, signal_source;
	unsigned terms;               /* SIGTERM received: the second one ends */
	uint64_t rest_ns;             /* when what only the start needed is given back, once nothing happens; 0: now */
	uint64_t looked_ns;           /* when usage was last read where memory is supervised */
	uint64_t flushed_ns;          /* when the log was last written */
	uint64_t heard_ns;            /* when something last happened */
	bool is_resting;              /* nothing runs inside: what is used is looked at now and then */
};

/* While it waits for whom it is (park.c). */
struct box_parking {
	bool is_waiting;              /* from the beginning; it is nobody's: no log, no clocks, no clients */
	bool is_taken;                /* the request is complete */
	int mounts_fd;                /* /proc/self/mountinfo */
	struct loop_source starter_source, mounts_source;
};

/* How it ended. */
struct box_outcome {
	int status;                   /* of the whole, once it has ended: as its starter has it */
	int exit_code, exit_signal;   /* of the main command */
	int failure_status;           /* 126 or 127 when it could not be started, else 0 */
	int failure_errno;
	bool has_no_cwd;              /* it failed since its working directory cannot be entered inside */
	int lost_errno;               /* its output could not be delivered; 0: it was */
	const char *lost_name;        /* which one, where lost_errno is set */
	bool is_interrupted;          /* a signal came while only output was left to deliver */
	struct rusage rusage;         /* of everything inside, once init was reaped */
	uint64_t command_started_ns, command_ended_ns;
};

struct box {
	struct run run;
	struct store store;
	struct box_build build;
	struct box_supervision supervision;
	struct box_gates gates;
	struct box_approval approval;
	struct box_detection detection;
	struct box_serving serving;
	struct box_control control;
	struct box_parking parking;
	struct owner owner;           /* what whoever has the sandbox asks about its files */
	struct box_outcome outcome;
	struct command *commands[BOX_COMMANDS_MAX];
	struct command *ended[BOX_ENDED_MAX];
	uint64_t forget_ns;           /* when the next of them is forgotten; UINT64_MAX: nobody waits for that */
	struct ring_budget rings;     /* of all commands that last */
	uint32_t next_command;
	int report_fd;                /* where --report FILE goes: opened before anything inside could move it */
	int announce_fd;              /* REQUEST_DETACH: gets the id once the sandbox lives */
	bool is_announced;            /* it lives, and who waited for that was told */
};

/* Notes the kills and refusals that the usage as last read counts. */
int box_note_hits(struct box *box) MUST_USE;

/* Whether `atoll apply` follows: the run asked for it, ended well and changed something. */
bool box_will_apply(const struct box *box);
/* The verb of atoll that follows: apply, or review where a person is to be asked; NULL: none. */
const char *box_next_verb(const struct box *box);

/* Reads usage from the limit group into box->run.usage (peaks kept). */
void box_read_usage(struct box *box);
