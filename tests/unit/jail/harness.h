/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Jails for the tests: a spec with what every jail has, a directory of the host to play in, and a wire to the
 * inmate. As root the jails run as an unprivileged host uid, as in production.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include "jail/jail.h"

enum { CELL_MOUNTS = 48, CELL_HOST_UID = 1879048192, CELL_HOST_GID = 1879048192 };

struct cell {
	struct jail_spec spec;
	struct jail_mount mounts[CELL_MOUNTS];
	struct jail_enforcement enforcement;
	struct err err;
	struct pidref init;
	int wire, wire_child, init_fd;
	char host[64];       /* a directory of the host, made by cell_setup() */
	char answer[32768];
};

/* cmocka set-up and tear-down; *state is a struct cell with /proc and /dev planned. */
int cell_setup(void **state);
int cell_teardown(void **state);

/* Adds to the plan. */
struct jail_mount *cell_mount(struct cell *cell, enum jail_mount_kind kind, const char *target, const char *source,
			      uint32_t flags);

/* Makes HOST/name: a directory where content is NULL. Its path is static until the next call. */
const char *cell_host_path(struct cell *cell, const char *name);
void cell_host_make(struct cell *cell, const char *name, const char *content);

/* jail_begin() and jail_start(): 0, or the error. */
int cell_build(struct cell *cell, struct pidref *ret_init, struct err *err);

/* The same; fails the test with the error's text where it fails, or skips it where the machine cannot. */
void cell_start(struct cell *cell);

/* cell_build() that must be refused, naming this stage. */
void cell_refused(struct cell *cell, const char *stage);

/* Sends one request; the answer. */
const char *cell_ask(struct cell *cell, const char *request);

/* cell_ask() must be answered by "ok" (and a text that contains needle), or by an errno. */
void cell_expect_ok(struct cell *cell, const char *request, const char *needle);
void cell_expect_errno(struct cell *cell, const char *request, int errnum);
