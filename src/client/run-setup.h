/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * From what the user asked for to the box: directories, compiled policy, request. The first part of the hot path; it
 * builds nothing and enforces nothing itself. Used by `atoll run`, and by `atoll doctor` in a child.
 */

#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/options.h"
#include "session/run-request.h"

struct fork_origin;
struct narrow_prompt;

/* What options change in the policy of the run. */
struct run_amendments {
	struct option_list host_ports; /* --host-port */
	struct option_list unmask;     /* --unmask: paths, at most COMPILED_UNMASK_MAX */
	const char *degrade;           /* --degrade: names of walls, with commas; NULL */
	const char *root;              /* --root: the name of an imported system; NULL: the host's */
};

struct run_setup {
	uint32_t flags;              /* REQUEST_* */
	const char *policy, *trust;  /* -p, -t; NULL: the default */
	const char *name, *report;   /* or NULL */
	const char *record, *replay; /* or NULL; not both */
	const char *task;            /* --task, or NULL */
	const char *narrow;          /* --narrow: a mode by name, "" for ask; NULL: as the policy says */
	const char *token;           /* --token: FILE or "-"; NULL: none */
	const char *agent, *confidence; /* or NULL */
	const char *project, *cwd;   /* as the user named them, or NULL */
	struct option_list env;      /* -e */
	char **exact_env;            /* all variables of the command, whatever else is said; NULL: the usual ones */
	struct option_list publish;  /* --publish */
	struct run_amendments amendments;
	const struct narrow_prompt *prompt; /* how a person is asked about a narrower policy; NULL: nobody is */
	void (*notice)(const char *text); /* a line for people, with its newline; NULL: nobody is told */
	const struct fork_origin *origin; /* whose staged state it begins with; NULL: none */
	const struct run_starter *starter; /* the program that started this one for it; NULL: the command line */
	const char *session;         /* the id that the starter chose */
	int policy_fd;               /* with a starter: the snapshot to run under, borrowed; FD_NONE: as above */
	char **environment;          /* what the policy passes of it reaches the command; NULL: ours */
};

/* Whether the names in it can be names: of a session, an agent, a level. -EINVAL with *err. */
int run_setup_check(const struct run_setup *given, struct err *err) MUST_USE;

/*
 * Without a starter closes everything inherited above 2. Becomes the box (client/launch.h). The exit status, also 125
 * when atoll-policy has told the user what is wrong; negative with *err when it came to nothing before.
 */
int run_setup_start(const struct run_setup *given, char **command, uint64_t started_ns, struct err *err) MUST_USE;
