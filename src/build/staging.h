/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The staged trees of one run, as the running box holds them: the session's stage directory (stage/record/record.h),
 * made before the jail, counted when everything inside is dead, and gone where nothing was changed. The jail mounts
 * it, atoll-stage reviews it; nothing here writes to a staged tree.
 */

#include <stdbool.h>

#include "build/mount-plan.h"
#include "build/stage-backend.h"
#include "stage/layer/chain.h"
#include "stage/change/change.h"
#include "stage/layer/linked.h"
#include "stage/record/record.h"

struct staging {
	int stage_fd;               /* STATE/sessions/ID/stage; FD_NONE: nothing is staged */
	struct stage_record record;
	struct stage_record origin; /* of a fork, else empty */
	struct stage_chain chain;
	enum backend_reason backend;
	struct seen *seen;          /* owned; what of the host's was noted so far; NULL: nothing */
	struct stage_counts counts; /* once it has ended */
	bool is_counted;            /* false at the end: it could not be, and everything is kept */
	bool has_changes;
	bool is_as_origin;          /* a fork that wrote nothing: it has the changes that it stands on, uncounted */
	bool is_unlike_origin;      /* a fork that wrote, so that it counts although nothing may differ from the host */
	bool is_in_use;             /* it should have gone, but a command was at work on it */
	bool is_kept;               /* it has changes, is unlike its origin, or was applied or named while it ran */
	struct stage_linked linked; /* what was put into the live layers before the sandbox began */
	bool is_linked;             /* a link was made inside, and noted */
	bool has_trash;             /* stage.gone in the session's directory waits to be removed */
	char earlier[SESSION_ID_SIZE]; /* another session with changes of this project that nobody reviewed; "": none */
	char unseen[SESSION_ID_SIZE]; /* the one of which was said at the start that this run does not see them; "": none */
};

/* Stages nothing yet: can be given to staging_done(). */
void staging_init(struct staging *staging);

/* Closes and frees what the process holds; what lies on disk stays. */
void staging_done(struct staging *staging);

/*
 * Reads the record and the layers of the session that a fork stands on; nothing for a run with trees of its own. ERR_STATE
 * or ERR_POLICY with *err where they cannot be stood on.
 */
int staging_read_request(struct staging *staging, const struct run_request *request, struct err *err) MUST_USE;

/* As root: whose the layers of a fork are on the host, which the sandbox must be again; false: any uid will do. */
bool staging_owner(const struct staging *staging, uid_t *ret_uid, gid_t *ret_gid);

struct staging_input {
	const struct run_request *request;
	const struct plan *plan;
	int session_fd;             /* of the session's directory */
	bool run_as_root;
	bool by_fuse;               /* fuse-overlayfs makes the trees */
	uid_t host_uid;             /* whose the layers will be */
	gid_t host_gid;
};

/* Makes the stage directory with its live layers and masks. Nothing where the plan stages nothing. */
int staging_make(struct staging *staging, const struct staging_input *input, struct err *err) MUST_USE;

/*
 * Keeps the record of what was made, for the session of the request, which begins now: what the host changes from now on
 * was changed beside it. Of the input it goes by request and session_fd. A fork's files of several names are put into
 * its live layers, so then nothing may be mounted yet. Nothing where nothing is staged.
 */
int staging_begin(struct staging *staging, const struct staging_input *input, struct err *err) MUST_USE;

/* Whether a tree lies in a system of the sandbox's own: what changes there stays with the session. */
bool staging_is_system(const struct staging *staging, const struct run_request *request, size_t tree);

/*
 * Something inside is about to make a hard link: noted once, for those who begin on its layers. Where that fails a fork
 * parts what is one file here, which is no reason to refuse a link. The sandbox's ids are given back.
 */
void staging_note_link(struct staging *staging);

/*
 * The jail did not take the trees: says so in words where the reason is something that is mounted below one of them.
 * *err is left alone otherwise.
 */
void staging_explain(const struct plan *plan, bool run_as_root, struct err *err);

/*
 * Before the run: says that another session of this project has changes that nobody reviewed and this run does not see,
 * and how to go on from them; once for each session. Nothing where there is none.
 */
void staging_put_unseen(struct staging *staging, const struct run_request *request, struct buf *out);

/* When nothing runs any more: what changed. */
void staging_count(struct staging *staging, const struct run_request *request, const struct policy *policy);

/*
 * Then removes the stage directory where nothing did, or where is_dropped says that all of it shall go; but what was
 * applied meanwhile can still be taken back, and snapshots stay. Negative: what should go is still there; -EBUSY: for
 * a command is at work on it.
 */
int staging_conclude(struct staging *staging, const struct run_request *request, bool is_dropped,
		     int session_fd) MUST_USE;

/* Before the run: that it is staged otherwise than is usual, for that is felt. */
void staging_put_backend(const struct staging *staging, struct buf *out);

/* At the end: that another session has such changes, where the start has not said so. */
void staging_put_earlier(const struct staging *staging, struct buf *out);

/* What staging_conclude() threw away, as guardian_dismiss() takes it; NULL where that is nothing. */
const char *staging_trash(const struct staging *staging, const struct run_request *request);
