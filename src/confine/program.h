/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The rows of the table in programs.c: what one program keeps of system calls, memory, time and files. The table and
 * confine.c, which puts the walls up, know of them and nobody else.
 */

#include <seccomp.h>
#include <sys/resource.h>

#include "confine/confine.h"

/* A system call that stays, and for which arguments. */
struct confine_call {
	int number;
	enum { ARGUMENTS_ANY, ARGUMENT_IS, ARGUMENT_IS_OWN_PID } match;
	unsigned argument;       /* ARGUMENT_IS: this one, */
	uint64_t mask, value;    /* where (argument & mask) == value */
	int errnum;              /* not 0: the call does not stay, it fails with this */
};

#define CALL(name) { .number = SCMP_SYS(name) }
#define CALL_MASKED(name, which, bits, is) \
	{ .number = SCMP_SYS(name), .match = ARGUMENT_IS, .argument = (which), .mask = (bits), .value = (is) }
#define CALL_IF(name, which, is) CALL_MASKED(name, which, UINT64_MAX, is)
#define CALL_FAILS(name, with) { .number = SCMP_SYS(name), .errnum = (with) }

struct confine_calls {
	const struct confine_call *calls;
	size_t count;
};

enum { CONFINE_CALLS_MAX = 4, CONFINE_PATHS_MAX = 6 };

struct confine_row {
	const char *name;
	struct confine_calls calls[CONFINE_CALLS_MAX];
	bool is_open;            /* it starts a foreign program: all calls stay but those that the table has fail */
	bool refuses;            /* other calls fail with EPERM; else they end the process */
	bool is_hidden;          /* no other process of the same user may look into its memory */
	bool is_alone;           /* no process and no thread beside it */
	rlim_t memory_max;       /* bytes of address space */
	rlim_t cpu_seconds_max;  /* 0: none */
	struct {
		const char *path;
		uint64_t rights;
	} paths[CONFINE_PATHS_MAX]; /* beside the caller's places; one that is missing is left out */
};

/* What a program of ours may still do once it is confined; static, one of the table. */
const struct confine_row *confine_row(enum confine_program program);
