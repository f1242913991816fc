/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The canaries that the policy has planted (data.canaries, monitor/canary.h): made with tokens of this session, shown
 * in the sandbox's view alone and only where nothing real is, and watched: who opens one, and where its token turns up.
 * Run by atoll-box.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "monitor/canary.h"
#include "policy/policy.h"
#include "supervise/hub.h"
#include "supervise/loop.h"
#include "supervise/module.h"

struct alerts;
struct buf;
struct json;
struct plan;
struct run;
struct watch_exec;

struct planted {
	const char *path;            /* absolute; borrowed from the policy */
	struct canary canary;
	bool is_planted;
	const char *why_not;         /* static: where it is not */
	bool is_touched;             /* and it was told */
	int watch;                   /* of inotify */
	int fd;                      /* owned: the file itself, O_PATH; FD_NONE: it is not watched */
	dev_t device;                /* as programs inside see it */
	ino_t inode;
	pid_t named_pid;             /* who was started with its path among the arguments */
	char *named_by;              /* owned: its program */
};

struct canaries {
	struct run *run;
	struct alerts *alerts;
	struct planted *items;       /* owned; NULL: none are wanted */
	size_t count;
	int inotify_fd;
	struct loop_source source;
	struct subscriber subscriber;
};

/* Nothing is wanted; before anything else. */
void canaries_init(struct canaries *canaries, struct run *run, struct alerts *alerts);

/* Makes what the policy names. Before the gate is started, which must know the tokens. */
int canaries_make(struct canaries *canaries) MUST_USE;

/* A socket from which the gate reads the tokens (wire/secret.h); FD_NONE: there are none. -errno. */
int canaries_open_tokens(const struct canaries *canaries, struct buf *scratch) MUST_USE;

/* Plans the files. Left out, and said so, are those that would change what the sandbox sees of the host's own files. */
int canaries_plan(struct canaries *canaries, const struct policy *policy, struct plan *plan) MUST_USE;

/* Once the jail stands and nothing has run in it. Fails closed: a canary that nobody watches is none. */
int canaries_watch(struct canaries *canaries) MUST_USE;

/* Whether the path is one of a planted canary, which no mask takes away. */
bool canaries_have(const struct canaries *canaries, const char *path);

/* "canaries": what was planted, for session.start and the report. */
void canaries_to_json(const struct canaries *canaries, struct json *json);

/* A line for each that is not planted although nothing real is in its place. */
void canaries_put_summary(const struct canaries *canaries, struct buf *out);

/* Its state is a struct canaries; the files go with the trees that they are in. */
extern const struct module canaries_module;
