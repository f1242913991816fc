/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Contexts, and the runs that wait in each: one at a time, in the order in which they came. Drivers start with the
 * first run, and anew with the next one where they ended. Run by atoll-front.
 */

#include "service/front/stream.h"
#include "service/interpreter/driver.h"

enum { CONTEXTS_MAX = 32, RUNS_MAX = 32 }; /* of a sandbox, of a context */

struct run;

struct context {
	struct context *next;
	struct driver driver;
	char id[INTERPRETER_ID_SIZE];
	char *cwd;                           /* owned */
	enum interpreter_language language;
	bool is_default;
	bool is_missing;                     /* the language is, as its driver said */
	struct run *runs;                    /* the first one runs, once it has a number */
	uint64_t last_number;                /* of runs */
	uint64_t busy;                       /* the number of what runs; 0: nothing */
	unsigned ended;                      /* bits: in which outputs its end has come */
	uint64_t interrupted_ms;             /* when it was; 0: it was not */
};

/* One execution, from a client's request to the end of its answer. */
struct run {
	struct run *next;
	struct context *context;             /* NULL: it is over, or waits nowhere */
	struct interpreter_request request;  /* owned */
	uint64_t number;                     /* 0: it waits */
	struct stream stream;
	struct buf out;                      /* what the stream has no room for */
	size_t out_at;                       /* so much of it was moved */
	bool is_over;
};

/* The context of this id; NULL: the sandbox has none. */
struct context *contexts_find(struct front *front, const char *sandbox, const char *id);

/* The default one of a language, made where it is not there. NULL: there are too many, or there is no memory. */
struct context *contexts_default(struct front *front, const char *sandbox, enum interpreter_language language);

/* A new one. NULL: there are too many, or there is no memory. cwd NULL: the home. */
struct context *contexts_add(struct front *front, const char *sandbox, enum interpreter_language language,
			     const char *cwd);

/* Ends its driver and its runs, which hear why. Then it is gone, or fresh. */
void contexts_remove(struct front *front, struct context *context);
void contexts_restart(struct context *context);

/* The one behind `at` (NULL: the first) of a sandbox; NULL: that was the last. */
struct context *contexts_next(struct front *front, const char *sandbox, struct context *at);

/* Queues a run whose stream has begun. token: which the launcher accepted. -EBUSY: too many wait. */
int contexts_run(struct context *context, struct run *run, const char *token) MUST_USE;

/* The client has gone: what runs is interrupted. The run is out of its context then. */
void contexts_leave(struct run *run);

/* SERVICE_EXIT: the driver of a context may have ended. */
void contexts_on_exit(struct front *front, const struct service_message *event);

/* SERVICE_GONE: its contexts are freed, and the answers of their clients cut. */
void contexts_on_gone(struct front *front, const char *sandbox);

/* Signs of life for clients, and the end of code that ignores an interrupt. */
void contexts_tick(struct front *front);
