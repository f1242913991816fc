/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Every path that the service answers, in one table: what it asks the launcher for, what must sign it, how long its
 * body may be, and who handles it. Clients of the last years are served, so that some operations have several paths.
 * Pure. Run by atoll-front.
 */

#include <stdint.h>

#include "base/cleanup.h"
#include "service/protocol/host.h"
#include "wire/service.h"

/* Which kind of server a path belongs to. */
enum route_side {
	ROUTE_API,               /* the control plane */
	ROUTE_ENVD,              /* files and processes of one sandbox */
	ROUTE_INTERPRETER,       /* contexts of code in one sandbox */
};

enum route_handler {
	ROUTE_CONTROL,           /* JSON in, one operation, JSON out */
	ROUTE_UNSERVED,          /* 501: clients know it, this service does not */
	ROUTE_HEALTH,
	ROUTE_ENVS,
	ROUTE_DOWNLOAD,
	ROUTE_UPLOAD,
	ROUTE_START,             /* streams of processes */
	ROUTE_ATTACH,
	ROUTE_PROCESS,           /* unary calls about processes */
	ROUTE_INPUT,             /* those that write to one */
	ROUTE_FILESYSTEM,
	ROUTE_WATCH,             /* a stream of changes */
	ROUTE_WATCHER,           /* the same by asking again and again */
	ROUTE_CODE,              /* the code interpreter */
	ROUTE_FUNCTION,          /* functions: deployment, invocation */
	ROUTE_ARCHIVE,           /* files of a template that is built */
	ROUTE_HANDLER_COUNT,
};

/* What a control reply looks like, and how a request is read (sandbox.h). */
enum route_form {
	ROUTE_NOTHING,           /* 204 */
	ROUTE_SANDBOX, ROUTE_DETAIL, ROUTE_LISTED,
	ROUTE_FORKS, ROUTE_SNAPSHOT, ROUTE_SNAPSHOTS, ROUTE_TEMPLATES, ROUTE_METRICS, ROUTE_METRICS_MAP, ROUTE_LOGS,
	ROUTE_LOGS_OLD, ROUTE_TEAMS, ROUTE_VOLUME, ROUTE_VOLUMES, ROUTE_SECRET, ROUTE_SECRETS,
	ROUTE_FUNCTION_ONE, ROUTE_FUNCTION_LIST, ROUTE_FUNCTION_LOG,
	ROUTE_BUILD, ROUTE_BUILD_FILE, ROUTE_BUILD_STATUS, ROUTE_ALIAS, ROUTE_TAGS, ROUTE_TAGGED,
	ROUTE_FORM_COUNT,
};

enum route_flag {
	ROUTE_STREAMED = 1,      /* Connect: envelopes both ways, errors at the end under 200 */
	ROUTE_UNARY = 2,         /* Connect: one message each way */
	ROUTE_ALL_PAGES = 4,     /* its clients know no pages */
	ROUTE_RUNNING_ONLY = 8,  /* of a list */
	ROUTE_EXTENDS = 16,      /* a time that is never made shorter */
	ROUTE_TEXT = 32,         /* errors are a plain sentence */
	ROUTE_UP_TO_LIMIT = 64,  /* with ROUTE_ALL_PAGES: no more rows than "limit" says, in all */
};

struct route {
	enum route_side side;
	const char *method, *pattern;   /* "/sandboxes/{sandbox}/timeout": a value of the frame in braces */
	enum route_handler handler;
	enum service_operation operation;
	uint32_t credentials;           /* enum service_credential */
	uint32_t flags;                 /* enum route_flag */
	uint32_t body_max;              /* bytes; 0: it has none, and what comes is refused; UINT32_MAX: a file */
	enum route_form form;
	uint32_t timeout_s;             /* of a sandbox, where the client names none; 0: the launcher knows */
};

enum { ROUTE_VALUES_MAX = 2, ROUTE_VALUE_SIZE = 257 };

struct route_match {
	const struct route *route;
	size_t value_count;
	struct {
		char key[16], text[ROUTE_VALUE_SIZE];
	} values[ROUTE_VALUES_MAX];
};

/*
 * The route of a request; path is as it came, without its query. 0. -ENOENT: there is none, or an id in it cannot be
 * one. -ENOTSUP: there are others of this path, with other methods.
 */
int route_find(enum route_side side, const char *method, const char *path, struct route_match *ret_match) MUST_USE;

/* The table, for tests and documents: NULL behind the last. */
const struct route *route_at(size_t index);
