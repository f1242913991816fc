/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The state of the one sandbox of this process, shared by the files of box/ and by nobody else: they each do
 * one job on it, box.c has the order.
 */

#include <stdbool.h>
#include <stdint.h>

#include "approve/notifier.h"
#include "approve/prompt.h"
#include "approve/queue.h"
#include "approve/reviewer.h"
#include "audit/writer.h"
#include "box/box.h"
#include "box/command.h"
#include "build/disk-full.h"
#include "build/fuse.h"
#include "build/guardian.h"
#include "build/staged-count.h"
#include "build/staging.h"
#include "detect/agent-trust.h"
#include "detect/alerts.h"
#include "detect/anomaly.h"
#include "detect/canaries.h"
#include "detect/reactions.h"
#include "gate-exec/gate.h"
#include "gate-file/directory-move.h"
#include "gate-file/gate.h"
#include "gate-net/gate.h"
#include "gate-net/policy-change.h"
#include "gate-net/publish.h"
#include "gate-request/gate.h"
#include "grant/runtime-mount.h"
#include "jail/jail.h"
#include "limit/limit.h"
#include "session/review-log.h"
#include "session/store.h"
#include "supervise/clocks.h"
#include "supervise/freeze.h"
#include "supervise/hub.h"
#include "supervise/loop.h"
#include "supervise/path-search.h"
#include "supervise/processes.h"
#include "supervise/refusals.h"
#include "supervise/run.h"
#include "watch/watch.h"

enum {
	BOX_COMMANDS_MAX = 64,
	BOX_CLIENTS_SERVED = 64,
	BOX_CLIENTS_MAX = BOX_CLIENTS_SERVED + 8, /* those beyond are told that there are too many */
};

struct box {
	struct run run;
	struct store store;
	struct staging staging;
	struct staged_count staged_count; /* for who looks while it runs */
	struct hash filter_hash; /* what session.start binds */
	struct guardian guardian;
	struct audit_writer audit;
	struct jail_enforcement enforcement;
	struct jail *jail;                /* on its way; NULL: built, or not begun */
	int wire_fd;
	unsigned init_state;	 /* enum box_init_state */

	struct loop loop;
	struct hub hub;
	struct loop_source wire_source, watch_source, listener_source, init_source, limit_source, signal_source,
		listen_source;
	struct net_gate gate;
	struct fuse_servers servers; /* of staged trees */
	struct watch_options watch_options; /* filled once the jail stands */
	struct processes processes; /* who exec'd, until they end */
	int signal_fd, listen_fd;
	bool has_socket_name;        /* nobody listens there any more */
	struct command *commands[BOX_COMMANDS_MAX];
	uint32_t next_command;
	struct client *clients[BOX_CLIENTS_MAX];
	struct buf link_out;         /* messages to those that link (control-link.h) */
	int status;                  /* of the whole, once it has ended: as its starter has it */
	bool is_announced;           /* it lives, and who waited for that was told */

	struct clocks clocks;
	struct disk_full disk;		/* of what is staged */
	struct access_gate *requests;		/* where something inside asks; NULL: nobody did */
	struct runtime_mounts mounts;	/* what was granted and brought in */
	struct freeze freeze;
	struct agent_trust agent_trust;	/* of the agent whose record counts; none: nothing is done */
	struct refusals refusals;
	struct file_gate files;		/* what the file gate counts */
	struct moves moves;		/* renames of directories that the kernel leaves to us */
	struct prompt prompt;  /* of a question, on the terminal */
	struct reviewer reviewer;	/* who gives a second opinion */
	struct notifier notifier;	/* of questions, on the desktop and at a webhook */
	struct queue queue;		/* of questions; and grants */
	struct canaries canaries; /* that the policy has planted */
	struct alerts alerts;
	struct anomaly anomaly;
	struct reactions reactions; /* of these, to the network */
	struct exec_gate *exec_gate; /* NULL: not built yet */
	struct rusage rusage;		/* of everything inside, once init was reaped */
	int report_fd;		  /* where --report FILE goes: opened before anything inside could move it */
	int announce_fd;	  /* REQUEST_DETACH: gets the id once the sandbox lives */
	unsigned terms;		  /* SIGTERM received: the second one ends */
	uint64_t rest_ns;         /* when what only the start needed is given back, once nothing happens; 0: now */

	uint64_t looked_ns;                  /* when usage was last read where memory is supervised */
	uint64_t flushed_ns; /* when the log was last written */
	uint64_t stop_ns;    /* CONTROL_STOP: when patience ends; UINT64_MAX: nobody asked */

	bool is_interrupted;	    /* a signal came while only output was left to deliver */
	int exit_code, exit_signal; /* of the main command */
	int failure_status;	    /* 126 or 127 when it could not be started, else 0 */
	int failure_errno;
	int lost_errno;		    /* its output could not be delivered; 0: it was */
	const char *lost_name;	    /* which one, where lost_errno is set */
	bool has_no_cwd; /* it failed since its working directory cannot be entered inside */

	uint64_t plan_ns, store_ns; /* what we did while the child made its namespaces, and its mounts */
	uint64_t command_started_ns, command_ended_ns;
};

/* Notes the kills and refusals that the usage as last read counts. */
int box_note_hits(struct box *box) MUST_USE;

/* Whether `atoll apply` follows: the run asked for it, ended well and changed something. */
bool box_will_apply(const struct box *box);

/* Reads usage from the limit group into box->run.usage (peaks kept). */
void box_read_usage(struct box *box);

/* How it comes to be (start.c): guardian and limits; signals as an fd; the jail, and while it is made the
 * directory, the log and the first command. */
int build_ground(struct box *box) MUST_USE;
int build_signals(struct box *box) MUST_USE;
int build_jail(struct box *box) MUST_USE;

/* The log, the wire and the clients: see events.c, serve.c, control.c. */
int events_session_start(struct box *box) MUST_USE;
int events_session_end(struct box *box, int status) MUST_USE;
int events_command_end(struct box *box, const struct command *command) MUST_USE;
/* A limit was hit for the first time. Negative: the log failed. */
int events_discard(struct box *box, enum review_phase phase) MUST_USE; /* --discard; on the disk's way at once */
int events_watch_new(struct box *box, int listener_fd) MUST_USE;

/* Takes the supervisor out of the loop. */
void events_watch_end(struct box *box);
int serve(struct box *box) MUST_USE;
int serve_start(struct box *box) MUST_USE;
int control_bind(
	struct box *box) MUST_USE; /* makes the socket; clients that come early wait in its backlog */
int control_start(struct box *box) MUST_USE;
void control_close(struct box *box); /* nobody is heard any more; the name of the socket stays */
/* Takes the name away, by which whoever tidies behind a box that was killed finds what that has left. */
void control_unlink(struct box *box);
void control_dismiss_clients(struct box *box); /* the last act: `atoll stop` returns when nothing is left */
int control_check(struct box *box) MUST_USE;
bool control_is_followed(const struct box *box); /* somebody hears of questions */
void control_resume(struct box *box); /* commands that had to wait may be able to start now */

void control_command_started(struct box *box, struct command *command, int master_fd);
void control_command_stopped(struct box *box, struct command *command, uint32_t signal_number);
void control_command_ended(struct box *box, struct command *command);
int report_write(const struct box *box, int status, struct err *err) MUST_USE;

/*
 * Opens the directory that the report goes to, before the sandbox lives: what is inside could put a link in
 * its place. -EXDEV where such a link leads out of the project already.
 */
int report_prepare(struct box *box) MUST_USE;
void summary_print(const struct box *box);
void summary_print_missing(struct box *box);
