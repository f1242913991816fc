/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the rest of atolld has to do with functions: one handler for each operation, their begin and their end. A
 * deployment has two steps: a place for the archive, which the front writes, and a trial that unpacks and loads it in a
 * sandbox of the function's own. Only what was loaded once is served. The archive is opened in sandboxes alone.
 */

#include "service/launcher/call/call.h"

/* Handler of SERVICE_FUNCTION_DEPLOY: checks what is asked for, and makes a place for the archive. */
void deploy_begin(struct call *call);
/* Handler of SERVICE_FUNCTION_COMMIT: 201 when it was loaded, in the place of the one of its name before; 400. */
void deploy_commit(struct call *call);

/* Handlers of SERVICE_FUNCTIONS, _FUNCTION_GET, _FUNCTION_DELETE, _FUNCTION_LOGS. */
void functions_list(struct call *call);
void functions_get(struct call *call);
void functions_delete(struct call *call);
void functions_logs(struct call *call);

/* Handler of SERVICE_FUNCTION_INVOKE: the streams of an instance, at once or when one has loaded the code; 429. */
void invoke_begin(struct call *call);
/* How many invocations run or wait, and functions are tried, each in a sandbox; owner NULL: of all. */
size_t invoke_count(const struct daemon *daemon, const char *owner);
/* Handler of SERVICE_FUNCTION_END: how it ended, when it has. */
void invoke_end(struct call *call);

/* Those of the database. session_ended is called for each session that no struct sandbox stands for. Negative *err. */
int functions_load(struct daemon *daemon, void (*session_ended)(struct daemon *daemon), struct err *err) MUST_USE;
/*
 * Ends what a daemon that was killed has left of functions. is_over: what is not there by now never will be. True:
 * something may still come into being.
 */
bool functions_recover(struct daemon *daemon, bool is_over);
/* At the end: instances end, functions stay in the database. */
void functions_done(struct daemon *daemon);

/* Ends what is over its time; when to call it again (CLOCK_MONOTONIC; UINT64_MAX: never). */
uint64_t invoke_tend(struct daemon *daemon);
