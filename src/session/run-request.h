/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What `atoll run` asks of the box, in the same process: terminal, cwd, umask and 0, 1, 2 are the user's. A plain
 * value: it owns nothing but secrets.gate_fd.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/hash.h"
#include "policy/policy.h"

struct err;
struct frame;
struct snapshot;

enum {
	REQUEST_DETACH = 1 << 0,     /* -d: go to the background once the sandbox lives */
	REQUEST_QUIET = 1 << 1,      /* no summary on stderr */
	REQUEST_NO_TTY = 1 << 2,     /* no own pty even on a terminal (--no-tty) */
	REQUEST_JSON = 1 << 3,       /* -d prints one JSON object */
	REQUEST_CHECK = 1 << 4,      /* build every wall, run nothing (doctor) */
	/* What becomes of staged changes at the end; none of them: they are kept for a review. */
	REQUEST_DISCARD = 1 << 5,    /* they are thrown away */
	REQUEST_APPLY = 1 << 6,      /* after exit status 0 atoll-box becomes `atoll apply ID`; else they are kept */
	/*
	 * `atoll dry-run`: under a policy made by policy/trial.h. Nobody is asked, what verification would ask about
	 * runs (it reaches nothing), and neither an agent's record nor what is usual for it takes notice.
	 */
	REQUEST_TRIAL = 1 << 7,
	REQUEST_WRITES_HOST = 1 << 8, /* of a trial: without being one it would reach the host straight, too */
	REQUEST_LOWERED = 1 << 9,    /* the policy was compiled for a lower level than its own */
	REQUEST_REVIEW = 1 << 10,    /* where changes are kept, atoll-box becomes `atoll review ID`, which asks */
};

struct run_agent;

enum { REQUEST_TASK_MAX = 4096 };

/* What came of asking the verifier for less (`atoll run --narrow`). */
enum narrow_outcome {
	NARROW_TAKEN,                /* what it proposes holds, as a person said or without asking one */
	NARROW_DECLINED,             /* a person said no: the policy is whole */
	NARROW_EMPTY,                /* it proposes nothing that the policy does not have already */
	NARROW_FAILED,               /* there was no proposal that could be used, and narrow: try */
	NARROW_OUTCOME_COUNT,
};

extern const char *const narrow_outcome_names[NARROW_OUTCOME_COUNT];

struct run_narrowing {
	enum narrow_outcome outcome;
	bool by_person;
	const char *text;            /* as it was proposed: a JSON object, hostile; NULL: none came */
	const char *reason;          /* of the verifier, hostile; with NARROW_FAILED: what was wrong */
	struct hash from_hash;       /* of the policy without it */
};

/* How a sandbox that is built ahead is told what it is for (client/run-setup.h), by whom it was asked for. */
struct run_completion {
	uint64_t age_ms;             /* so long it waits */
	/* Whether it can wait with this policy, for this project. Negative with *err. */
	int (*check)(void *context, const struct snapshot *snapshot, const char *project, const char *programs,
		     struct err *err);
	/* Completes what was given, from LINK_TAKE, where what check() saw still is so. Negative with *err. */
	int (*take)(void *context, struct frame *frame, int *fds, size_t fd_count, struct err *err);
	char **command;              /* what runs then */
	uint64_t started_ns;         /* CLOCK_MONOTONIC of that moment */
	void *context;
};

/* What LINK_HELLO and LINK_SUBSCRIBE would say, where it came with the request; all 0: it is still to come. */
struct run_greeting {
	uint64_t lowest, highest, events;
};

/* Who started a sandbox from another program, and stays in touch (wire/link.h). */
struct run_starter {
	int socket_fd;               /* borrowed: its connection; what it says first is heard before anything happens */
	int streams[3];              /* borrowed: of the command; FD_NONE: as with REQUEST_DETACH */
	uint32_t pty;                /* rows << 16 | columns: the command has a terminal instead; 0: it has none */
	uint64_t deadline_ms;        /* no longer than this, whatever the policy says; UINT64_MAX: as that says */
	struct run_greeting greeting;
	const struct run_completion *completion; /* of a request that comes in two pieces; NULL: it is whole */
	const char *home_from;       /* absolute: what of the host is staged as the home; NULL: what has its path */
	const char *user_name;       /* what the user is called inside; NULL: as usual */
	char **labels;               /* of whoever keeps sandboxes (session/labels.h); NULL: none */
};

/*
 * Of a request that is not complete yet: what it has is enough for the walls, and whose they are comes later, on the
 * starter's socket (LINK_TAKE). Until then session is the name under which they wait.
 */
struct run_parking {
	uint64_t age_ms;             /* so long they wait */
	/* Puts the rest of it into the request that this stands in, once. Negative with *err: it comes to nothing. */
	int (*take)(void *context, struct frame *frame, int *fds, size_t fd_count, struct err *err);
	void *context;
};

/* What becomes of HTTP exchanges. */
enum recording_mode {
	RECORDING_NONE,
	RECORDING_WRITE,             /* they are kept in a file */
	RECORDING_REPLAY,            /* they are answered from one, and nothing goes out */
};

struct run_recording {
	enum recording_mode mode;
	int fd;                      /* borrowed: the file, to append to or to read; FD_NONE with RECORDING_NONE */
};

/* What runs, and what it finds in its environment. */
struct run_command {
	char **argv;                 /* may be empty with REQUEST_DETACH */
	char **env;                  /* the caller's environment; the box filters it by the policy */
	/*
	 * What the command of a trial asked for inside, in the place of env, for it alone: no program of ours, no file
	 * and no address goes by it. NULL: there is none.
	 */
	char **env_exact;
	char **env_added;            /* -e NAME=value: set whatever the policy passes */
};

/* Whose trees and start a fork has. */
struct run_fork {
	const char *origin;          /* the session; NULL: the run has its own */
	char **layers;               /* "SESSION/NUMBER" of each layer below, bottom first; empty: none */
	/* Absolute: the system that it has (session/directories.h); NULL: that of its origin, or the host's. */
	const char *root;
};

/* --publish */
struct run_publish {
	const struct publish_rule *rules;
	size_t count;
};

/* Tokens: what was presented with --token, and where what is presented from inside is looked up. */
struct run_token {
	void *frame;                 /* of TOKEN_HOLDS (wire/token.h), borrowed; NULL: none */
	size_t size;
	const char *keys, *store;    /* directories; "": nothing is taken */
};

/* Secrets on the way to the programs of ours that use them. */
struct run_secrets {
	char **placeholders;         /* NAME=text for secrets that the gate puts in; NULL: none */
	int gate_fd;                 /* their values (wire/secret.h), for the gate alone; closed by the box; FD_NONE */
	int judge_fd;                /* what verify.external.url wants: a socket with a value; FD_NONE */
	int notify_fd;               /* what signs for ask.webhook: a file, or a socket with a value; FD_NONE */
};

/* Test hooks; NULL: none. */
struct run_tests {
	const char *broken_wall;     /* ATOLL_TEST_BREAK: fails closed only */
	const char *limits;          /* ATOLL_TEST_LIMITS: forced backend */
	const char *hosts;           /* ATOLL_TEST_HOSTS: where names lead, judged like what a resolver says */
};

struct run_request {
	uint32_t flags;
	const char *session;         /* 12 characters of [a-z0-9] */
	const char *group;           /* names its control groups: the session, or that under which it waited */
	const char *name;            /* alias, or NULL */
	const char *project;         /* absolute real path of the project */
	const char *cwd;             /* absolute; where the command starts */
	const char *home;            /* "" when there is none */
	const char *state_dir;       /* …/atoll: sessions/ is below it */
	const char *runtime_dir;     /* …/atoll: control sockets are below it */
	const char *report_path;     /* --report, absolute or NULL; "-" never */
	const char *init_path;       /* atoll-init beside this program */
	void (*notice)(const char *text); /* what people are told, with its newlines; NULL: nobody is */
	const struct run_starter *starter; /* with REQUEST_DETACH; NULL: the command line */
	const struct run_parking *parking; /* with a starter; NULL: the request is complete */
	uint64_t started_ns;         /* CLOCK_MONOTONIC at the start of atoll */
	struct run_command command;
	const char *task;            /* --task: what the person wants; NULL: not said */
	const struct run_narrowing *narrowing; /* NULL: nobody was asked */
	const struct run_agent *agent;    /* of an agent (detect/agent-trust.h); NULL: none */
	struct run_fork fork;
	struct run_recording recording;
	struct run_publish publish;
	struct run_token token;
	struct run_secrets secrets;
	struct run_tests tests;
};

/* The policy of a run: the snapshot as it was handed in, and its validated view. Everything is borrowed. */
struct run_policy {
	const void *bytes;
	size_t size;
	const struct snapshot *snapshot;
	const struct policy *policy; /* the view of snapshot */
};

/* Tells people this, where anybody is told. The text ends in its buffer with a NUL afterwards. */
void run_request_tell(const struct run_request *request, struct buf *text);
