/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One build: what this process knows of it while it runs and, of its log, for a while afterwards; its row is in the
 * database. Runs in atolld.
 */

#include "service/launcher/build/log.h"
#include "service/launcher/build/settings.h"
#include "service/launcher/call/call.h"
#include "service/launcher/store/builds.h"

enum { BUILD_TIME_MS = 3600000, BUILD_STEP_TIME_MS = 900000 };

enum build_phase { BUILD_IN_STEPS, BUILD_IN_START, BUILD_IN_END };

struct build {
	struct build *next;
	struct daemon *daemon;
	struct sandbox *sandbox;         /* borrowed; NULL: none yet, or none any more */
	char id[CREDENTIAL_ID_SIZE], owner[DATABASE_NAME_SIZE];
	struct kept request;             /* what the plan borrows from */
	struct plan plan;
	size_t at;                       /* the step that is done, or waited for */
	struct build_settings settings;
	struct build_log log;
	enum build_phase phase;
	char snapshot[CREDENTIAL_ID_SIZE]; /* that is being taken */
	struct build_cached last;        /* the newest state; session "": none */
	uint64_t command;                /* that is waited for; 0: not known yet */
	uint64_t ended;                  /* the last one that ended */
	char problem[160];               /* of it; "": it went well */
};

/* Milliseconds since 1970. */
uint64_t build_now_ms(void);

/* That of this id; NULL: this process knows of none. */
struct build *build_find(const struct daemon *daemon, const char *id);

/* What it holds, and itself. Its sandbox is not its own. */
void build_free(struct build *build);

/* The logs of the last builds stay; one that did not begin goes with the next of its id. */
void build_trim_logs(struct daemon *daemon, const char *id);

/* All of them: the end of the process. */
void build_free_all(struct daemon *daemon);

/* How many of an owner have not ended. */
size_t build_count_running(const struct daemon *daemon, const char *owner);

/* The build that a request is about, of its template; false: the call was answered. */
bool build_get(struct call *call, struct build_row *ret_build) MUST_USE;

/* What became of it; last: the state that its tags lead to from now on, or NULL. -errno. */
int build_write_end(const struct build *build, enum build_state state, const char *step, const char *message,
		    const struct build_cached *last) MUST_USE;

/* SERVICE_BUILD_STATUS: its state, and what it said from an offset on. */
void build_status(struct call *call);

/* The start of the daemon: what was being built has failed, and what was being sent is gone. -errno. */
int build_recover(struct daemon *daemon) MUST_USE;
