/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The sandboxes of the service as atolld knows them, and where they are found: by id, and in the order in which they
 * were made. Each has a handle of libatoll while it runs. Nothing here decides or waits; runs in atolld.
 */

#include <atoll.h>

#include "service/launcher/store/kept.h"
#include "service/launcher/store/database.h"
#include "supervise/loop.h"

struct call;
struct daemon;
struct functions;
struct metrics;
struct build;

/* Another name of the template "base", which clients of the code interpreter ask for. */
#define LIFECYCLE_INTERPRETER "code-interpreter-v1"

/* What a sandbox begins with: nothing (session NULL), or what another has staged. */
struct origin {
	const char *session, *snapshot;    /* snapshot NULL: its newest state */
	const char *root;                  /* the name of an imported system; NULL: the session's, or the machine's */
};

/* What came of something that was asked of libatoll with a ticket. */
struct outcome {
	int code;                  /* 0, or ATOLL_E_* */
	atoll_record *result;      /* borrowed */
	const char *what, *hint;   /* "" where there is none */
};

struct sandbox;

/* Who waits for it. done takes call (NULL: nobody is answered). */
struct waiting {
	struct waiting *next;
	uint64_t ticket;
	struct call *call;
	void (*done)(struct sandbox *sandbox, struct call *call, const struct outcome *outcome);
};

/* A command that was started. The reply says its pid, and waits until that is known. */
struct running {
	struct running *next;
	uint64_t command;
	struct call *call;         /* NULL: it was answered */
	int fds[4];                /* owned until then: stdin, stdout, stderr, terminal; negative: none */
	bool is_listed;            /* while the box is asked which there are */
};

/* A driver of the code interpreter that was started before its sandbox was anybody's. */
enum { AHEAD_MAX = 3 };                    /* of one sandbox */

struct ahead {
	const char *language;              /* static; NULL: there is none */
	uint64_t command, pid;             /* command 0: it does not run yet */
	int fds[3];                        /* owned: stdin, stdout, stderr */
	char mark[32];
};

/* One that is none yet: it may be given to ahead_done(). */
void ahead_init(struct ahead *driver);

/* Closes the streams that nobody took, and forgets the command. */
void ahead_done(struct ahead *driver);

struct commands {
	struct ahead ahead[AHEAD_MAX];
	struct running *running;           /* owned */
	uint64_t last;                     /* the highest number that an event spoke of */
	bool is_catching_up;               /* the box is being asked which there are */
};

/* How it came to be. */
struct beginning {
	bool is_pooled;                    /* it waited in the pool before */
	bool is_warm;                      /* it was ready before anybody wanted it */
	bool is_given_up;                  /* and could not be used: it starts anew */
	char stored[SESSION_ID_SIZE];      /* what it is about to begin again from; "": nothing */
	struct build *build;               /* borrowed: the template that is built in it; NULL: it is a client's */
	/* Of start.c: who is told once it is ready (NULL: nobody waits), and for which command it waits. */
	void (*started)(struct sandbox *sandbox, struct call *call, const struct outcome *outcome);
	uint64_t waits_for, ended;
	bool is_ready;
};

struct sandbox {
	struct sandbox *next_of_bucket, *older, *newer;
	struct daemon *daemon;
	char id[CREDENTIAL_ID_SIZE], session[SESSION_ID_SIZE], owner[DATABASE_NAME_SIZE];
	char token[CREDENTIAL_TOKEN_SIZE]; /* for its inside; "": nobody needed it yet */
	int64_t key;
	enum sandbox_state state;
	bool is_changing;                  /* on its way to another state: further changes are refused */
	bool is_known;                     /* READY was heard */
	struct beginning beginning;
	uint64_t created_ms, end_ms;       /* since 1970; end 0: never */
	uint64_t left_ms;                  /* of a paused one: how long it had when that began */
	struct kept made, network;
	atoll_sandbox *handle;             /* NULL: it does not run */
	struct loop_source source;
	struct waiting *waiting;
	struct commands commands;
	struct call *creator;              /* waits for READY, or for the end of what is stored */
	struct call *sleepers;             /* calls that wait until it is awake */
	struct metrics *metrics;           /* owned; NULL: nobody asked */
};

enum { REGISTRY_BUCKETS = 4096 };

struct registry {
	struct sandbox *buckets[REGISTRY_BUCKETS];
	struct sandbox *oldest, *newest;
	size_t count;
	char not_ahead[32];        /* the language of a driver that was wanted last, and that no sandbox had */
	struct functions *functions; /* owned, of function/functions.h; NULL: none */
	struct build *builds;      /* owned, of builds.h: the newest first */
};

/* A new one in the registry, in creating. NULL: out of memory. */
struct sandbox *registry_add(struct registry *registry, struct daemon *daemon, const char *id);

/* Takes it out and frees it. Its handle was released, and nobody waits for it. NULL is fine. */
void registry_remove(struct registry *registry, struct sandbox *sandbox);

/* NULL: there is none. */
struct sandbox *registry_find(const struct registry *registry, const char *id);

/* How many an owner has, but for those that are ending. */
size_t registry_count_of(const struct registry *registry, const char *owner);

/* What the database keeps of it; borrows from it. */
struct sandbox_row sandbox_to_row(const struct sandbox *sandbox);

/* Whether a sandbox was made for this owner and is not ending. */
bool sandbox_is_there(const struct sandbox *sandbox);
