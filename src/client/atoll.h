/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * libatoll: starts and drives sandboxes of atoll. The only header that others include; libatoll(3) tells the whole, and
 * what holds everywhere comes next. It says nothing of how a sandbox is built.
 */

/*
 * Results. int: 0, or a positive number where one is documented, else one of ATOLL_E_*. What failed stands in the
 * struct atoll_error that may be given to each function (NULL: it is not wanted); pointers named ret are set on success
 * alone. Nothing is printed, and nothing of the process is changed: no environment, signals, working directory, umask,
 * children or threads.
 *
 * Handles are opaque. A context and a policy never change and may be used by any number of threads at once; any other
 * handle by one thread at a time, different ones in parallel. Behind a fork(2) the child may free handles and nothing
 * else (ATOLL_E_FORKED).
 *
 * Data come and go as records: values with names ("keys"), of which atoll_keys() has the list, with types and texts. A
 * key that a record does not have, or a value of another type, is refused at once. What is set is copied, descriptors
 * are duplicated; pointers that are got live as long as their record. Values that atoll_keys() describes as "from
 * inside" are bytes of a sandbox's choice: atoll_escape() makes them fit for a terminal.
 *
 * A sandbox is never a child of its starter: waitpid(2) and SIGCHLD know nothing of it. It outlives the handle, the
 * process and its crash; atoll_find() comes back to it.
 *
 * Requests with `uint64_t *ticket, atoll_record **result` block where ticket is NULL, at most for the context's
 * timeout_ms, while events wait; the result (owned by the caller, may be NULL) is in *result. Else they return at once
 * and the event DONE brings ticket, code and result.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ATOLL_API __attribute__((visibility("default")))
#else
#define ATOLL_API
#endif

typedef struct atoll_context atoll_context;
typedef struct atoll_policy atoll_policy;
typedef struct atoll_record atoll_record;
typedef struct atoll_sandbox atoll_sandbox;
typedef struct atoll_cursor atoll_cursor;

/* The caller sets size to sizeof of it; no more than that is written. All texts end with a NUL. */
struct atoll_error {
	uint32_t size;
	int32_t code;            /* ATOLL_E_* */
	int32_t errnum;          /* an errno, or 0 */
	char where[32];          /* the step or wall that failed */
	char what[480];
	char why[160];           /* the name of the errno, or "" */
	char hint[320];          /* what can be done, or "" */
};

enum {
	ATOLL_E_INTERNAL = -1,
	ATOLL_E_INVALID = -2,    /* an argument, a key or a value is wrong */
	ATOLL_E_POLICY = -3,     /* the policy is wrong, or does not allow this */
	ATOLL_E_WALL = -4,       /* a wall that the policy demands cannot be built here */
	ATOLL_E_STATE = -5,      /* a directory or a file of atoll's is missing, full or not usable */
	ATOLL_E_NOT_FOUND = -6,
	ATOLL_E_NOT_RUNNABLE = -7,
	ATOLL_E_AGAIN = -8,      /* not now: poll the descriptor */
	ATOLL_E_TIMEOUT = -9,
	ATOLL_E_GONE = -10,      /* the sandbox has ended, or is ending */
	ATOLL_E_BUSY = -11,
	ATOLL_E_DENIED = -12,    /* the file system or the policy of the sandbox says no */
	ATOLL_E_CONFLICT = -13,  /* it is parked with another policy, or for other places */
	ATOLL_E_LIMIT = -14,     /* too many, too large */
	ATOLL_E_UNSUPPORTED = -15, /* this sandbox cannot do that, or does not know it yet */
	ATOLL_E_FORKED = -16,    /* the handle belongs to the parent */
	ATOLL_E_PROTOCOL = -17,  /* the other end speaks of what this library does not know */
	ATOLL_E_IDENTITY = -18,  /* the user of this process changed, or its real and effective ids differ */
	ATOLL_E_EXISTS = -19,
	ATOLL_E_NO_MEMORY = -20
};

enum {                           /* types of values */
	ATOLL_TYPE_U64 = 1,      /* numbers, and booleans */
	ATOLL_TYPE_STRING,
	ATOLL_TYPE_BYTES,
	ATOLL_TYPE_STRINGS,
	ATOLL_TYPE_FD
};

enum {                           /* kinds of records */
	ATOLL_CONTEXT = 1,       /* atoll_context_new() */
	ATOLL_POLICY,            /* atoll_policy_load() */
	ATOLL_SANDBOX,           /* atoll_create(), atoll_fork(), atoll_take() */
	ATOLL_COMMAND,           /* atoll_exec() */
	ATOLL_FILTER,            /* atoll_list() */
	ATOLL_SNAPSHOT,          /* atoll_snapshot(), and what atoll_snapshots() lists */
	ATOLL_REVIEW,            /* atoll_diff(), _apply(), _undo(), _discard() */
	ATOLL_LOG,               /* atoll_log() */
	ATOLL_ANSWER,            /* atoll_answer() */
	ATOLL_LOOK,              /* atoll_look() */
	ATOLL_HOLD,              /* atoll_hold() */
	ATOLL_ATTACH,            /* atoll_attach() */
	ATOLL_ATTRIBUTES,        /* atoll_setattr() */
	ATOLL_UPDATE,            /* atoll_update() */
	ATOLL_OPEN,              /* atoll_open() */
	ATOLL_READDIR,           /* atoll_readdir() */
	ATOLL_SHAPE,             /* atoll_park() */
	/* these come from the library */
	ATOLL_EVENT = 32,
	ATOLL_RESULT,            /* of requests */
	ATOLL_INFO,              /* atoll_info(), atoll_list() */
	ATOLL_PROBLEM,           /* atoll_policy_problem() */
	ATOLL_CHANGE,            /* atoll_diff() and what came of _apply(), _undo() */
	ATOLL_QUESTION,
	ATOLL_GRANT,
	ATOLL_LINE,              /* atoll_log() */
	ATOLL_COMMAND_INFO,      /* rows of atoll_commands() */
	ATOLL_ENTRY              /* rows of atoll_readdir() */
};

enum {                           /* the key "event" of ATOLL_EVENT */
	ATOLL_EVENT_READY = 1,   /* the sandbox lives */
	ATOLL_EVENT_FAILED,      /* it does not; where, what, hint, code. END follows */
	ATOLL_EVENT_STARTED,     /* command, main, pid; terminal: of a pty; stdin, stdout, stderr of streams=pipe */
	ATOLL_EVENT_OUTPUT,      /* command, stream (1, 2), bytes; of streams=capture */
	ATOLL_EVENT_STOPPED,     /* command, signal; of a command with a pty: others stop unseen */
	ATOLL_EVENT_EXIT,        /* command, status, exit or signal, errno, ended */
	ATOLL_EVENT_DENIAL,      /* kind, subject, rule, reason, hint */
	ATOLL_EVENT_QUESTION,    /* something is asked: atoll_questions() */
	ATOLL_EVENT_ANSWERED,
	ATOLL_EVENT_ALERT,
	ATOLL_EVENT_LIMIT,       /* rule: the limit that was hit */
	ATOLL_EVENT_FROZEN,      /* frozen: 1 or 0 */
	ATOLL_EVENT_POLICY,
	ATOLL_EVENT_LOG,         /* seq, record: a line of the log */
	ATOLL_EVENT_LOST,        /* of, count, from, to: events that nobody read in time; the log has all */
	ATOLL_EVENT_DONE,        /* ticket, code, and the result, or where, what, hint */
	ATOLL_EVENT_END,         /* ended, status; the last one, and it always comes. ended "lost": it was killed;
				    "unreachable": it goes on, and requests say why this handle is none of it */
	ATOLL_EVENT_WATCH,       /* watch, change, path: of atoll_watch() by this handle, whatever it subscribes to */
	ATOLL_EVENT_PARKED       /* it waits for atoll_take() */
};

/* ---- records ---- */

/* A record of a kind that the caller makes; NULL: no memory, or another kind. free takes NULL. */
ATOLL_API atoll_record *atoll_record_new(uint32_t kind);
ATOLL_API void atoll_record_free(atoll_record *record);
ATOLL_API uint32_t atoll_record_kind(const atoll_record *record);

/*
 * Copies the value into the record, in the place of one that is there. 0; ATOLL_E_INVALID where the record's kind has
 * no such key, or one of another type (atoll_keys()), and for a value that is NULL, a descriptor that is not open,
 * 1 MiB of text, more than 1 MiB of bytes or more than 65536 strings; ATOLL_E_NO_MEMORY. The record is as before then.
 */
ATOLL_API int atoll_set_string(atoll_record *record, const char *key, const char *text, struct atoll_error *error);
ATOLL_API int atoll_set_bytes(atoll_record *record, const char *key, const void *bytes, size_t size,
			      struct atoll_error *error);
ATOLL_API int atoll_set_u64(atoll_record *record, const char *key, uint64_t number, struct atoll_error *error);
ATOLL_API int atoll_set_fd(atoll_record *record, const char *key, int fd, struct atoll_error *error);
ATOLL_API int atoll_set_strings(atoll_record *record, const char *key, const char *const *strings,
				struct atoll_error *error);

/* 1: it is there; 0: it is not, or has another type. Strings are got as bytes, too. */
ATOLL_API int atoll_get_string(const atoll_record *record, const char *key, const char **ret);
ATOLL_API int atoll_get_bytes(const atoll_record *record, const char *key, const void **ret, size_t *ret_size);
ATOLL_API int atoll_get_u64(const atoll_record *record, const char *key, uint64_t *ret);
ATOLL_API int atoll_get_strings(const atoll_record *record, const char *key, const char *const **ret);

/* Close-on-exec, the caller's from now on; once. ATOLL_E_NOT_FOUND: there is none. */
ATOLL_API int atoll_take_fd(atoll_record *record, const char *key);

/* The keys of a kind, one by one: 1, and 0 behind the last. The texts are static; any of ret may be NULL. */
ATOLL_API int atoll_keys(uint32_t kind, size_t index, const char **ret_key, uint32_t *ret_type,
			 const char **ret_text);

/* ---- places ---- */

/* major << 16 | minor << 8 | patch of the library. */
ATOLL_API uint32_t atoll_version(void);

/* Fills an ATOLL_CONTEXT as the command line does from this environment ("NAME=value", NULL-terminated). */
ATOLL_API int atoll_default_places(atoll_record *context, const char *const *environment, struct atoll_error *error);

/* Shared by all threads. Handles made by it keep it: it may be freed at any time. */
ATOLL_API int atoll_context_new(const atoll_record *record, atoll_context **ret, struct atoll_error *error);
ATOLL_API void atoll_context_free(atoll_context *context);

/* Bytes for a terminal: control characters and what is no UTF-8 as \xNN, cut to what fits. Returns the length. */
ATOLL_API size_t atoll_escape(const void *bytes, size_t size, char *out, size_t out_size);

/* ---- policies ---- */

/*
 * Compiles a policy for a project, or takes it from the cache. Blocks for some milliseconds. With ATOLL_E_POLICY *ret
 * is set, too: to what has problems alone.
 */
ATOLL_API int atoll_policy_load(atoll_context *context, const atoll_record *record, atoll_policy **ret,
				struct atoll_error *error);
ATOLL_API void atoll_policy_free(atoll_policy *policy);

/*
 * The same in two steps, for who must not block: a policy that cannot be used before atoll_policy_finish() has given 0.
 * That returns what atoll_policy_load() would, and waits where the descriptor is not readable yet. The descriptor lives
 * with the policy, and is -1 once it is finished.
 */
ATOLL_API int atoll_policy_begin(atoll_context *context, const atoll_record *record, atoll_policy **ret,
				 struct atoll_error *error);
ATOLL_API int atoll_policy_fd(const atoll_policy *policy);
ATOLL_API int atoll_policy_finish(atoll_policy *policy, struct atoll_error *error);

/* 1 and the record, which lives with the policy; 0 behind the last. */
ATOLL_API int atoll_policy_problem(const atoll_policy *policy, size_t index, const atoll_record **ret);

/* SHA-256 of what is enforced, as the log's session.start has it. ATOLL_E_NOT_FOUND for one of a "snapshot". */
ATOLL_API int atoll_policy_hash(const atoll_policy *policy, uint8_t out[32]);

/* ---- sandboxes ---- */

/*
 * Starts a sandbox, with a command (argv) or as a place for atoll_exec(). Returns at once: READY or FAILED follows.
 * With argv it ends with that command.
 */
ATOLL_API int atoll_create(atoll_context *context, const atoll_policy *policy, const atoll_record *record,
			   atoll_sandbox **ret, struct atoll_error *error);

/* The same from what another has staged. policy NULL: that of the other. record: may name a "snapshot" of it. */
ATOLL_API int atoll_fork(atoll_sandbox *origin, const atoll_policy *policy, const atoll_record *record,
			 atoll_sandbox **ret, struct atoll_error *error);

/*
 * Builds the walls of a sandbox for somebody who comes later, so that atoll_take() costs him a tenth of atoll_create().
 * Returns at once: PARKED or FAILED follows. Until it is taken it is nobody's sandbox: no atoll_list() has it, it
 * answers no request and has no log, and it ends with its handle, when "age_ms" are over, and with FAILED where what
 * it was built from changed: something was mounted on the host, or at atoll_take() a file of the policy, a program of
 * atoll's or a kernel setting is another one. Policies with secrets, an agent's places or published ports, and projects
 * with anything in them, are refused by ATOLL_E_POLICY in FAILED.
 *
 * A pool is the caller's to keep: park ahead, take the oldest that has said PARKED, and park the next when a create was
 * answered, not before. Each has three descriptors here, and elsewhere what doc/bench.md says. No bound on how many
 * there are is kept here: the memory that they may take is the caller's to say.
 */
ATOLL_API int atoll_park(atoll_context *context, const atoll_record *shape, const atoll_policy *policy,
			 atoll_sandbox **ret, struct atoll_error *error);

/*
 * Makes a parked one the sandbox that record asks for, once: id, log, clocks and all that is counted begin now. Returns
 * at once, and READY or FAILED and END follow, as of atoll_create(). It may be called before PARKED, which still comes
 * then. atoll_id() is another one afterwards. ATOLL_E_CONFLICT: it is parked with another policy; ATOLL_E_INVALID for
 * what is settled at parking ("host_ports") or needs a start of its own ("token", "record", "replay"): it stays parked.
 * ATOLL_E_GONE: it has ended; ATOLL_E_BUSY: it was taken.
 */
ATOLL_API int atoll_take(atoll_sandbox *parked, const atoll_policy *policy, const atoll_record *record,
			 struct atoll_error *error);

/*
 * Hands a parked one to another process of this user, over a connected unix socket of type SOCK_SEQPACKET (borrowed):
 * from a pool to whoever takes it there. The handle that is left says END ("unreachable"), and is to be freed. receive
 * makes a handle there, of which PARKED comes as of any other; its context must be of the same places.
 * ATOLL_E_IDENTITY: the other end is another user's; ATOLL_E_AGAIN: the socket does not block, and would have to.
 */
ATOLL_API int atoll_send(atoll_sandbox *parked, int socket, struct atoll_error *error);
ATOLL_API int atoll_receive(atoll_context *context, int socket, atoll_sandbox **ret, struct atoll_error *error);

/* One by id, beginning of an id, or name. Running: its events come from now on. Ended: END comes at once. */
ATOLL_API int atoll_find(atoll_context *context, const char *id_or_name, atoll_sandbox **ret,
			 struct atoll_error *error);

/*
 * The newest that a filter means, and NULL all of them. Here "name" may be an id, or the beginning of one, too; a trial
 * of `atoll dry-run` is meant by that alone.
 */
ATOLL_API int atoll_find_newest(atoll_context *context, const atoll_record *filter, atoll_sandbox **ret,
				struct atoll_error *error);

/* All of this user, the newest first, as ATOLL_INFO. filter: may be NULL. */
ATOLL_API int atoll_list(atoll_context *context, const atoll_record *filter, atoll_cursor **ret,
			 struct atoll_error *error);

/* 12 characters, as long as the handle, or until atoll_take(). */
ATOLL_API const char *atoll_id(const atoll_sandbox *sandbox);

/* What is on record of it, also when it has ended. */
ATOLL_API int atoll_info(atoll_sandbox *sandbox, atoll_record **ret, struct atoll_error *error);

/* The handle; the sandbox goes on, but where it is parked. Commands started by it without "keep" get SIGHUP. */
ATOLL_API void atoll_sandbox_free(atoll_sandbox *sandbox);

/* ---- events ---- */

/* Stable, owned by the handle: readable (POLLIN) while atoll_next() has something. */
ATOLL_API int atoll_fd(const atoll_sandbox *sandbox);

/* 1 and an event, owned by the caller; 0: none now. Never blocks. Behind END always 0. */
ATOLL_API int atoll_next(atoll_sandbox *sandbox, atoll_record **ret, struct atoll_error *error);

/* The same, and waits: timeout_ms, or for ever (-1). */
ATOLL_API int atoll_wait(atoll_sandbox *sandbox, int timeout_ms, atoll_record **ret, struct atoll_error *error);

/* ---- commands ---- */

/*
 * Runs one more command. Result: command, its number in all events; with streams=pipe stdin, stdout and stderr. STARTED
 * brings the terminal of streams=pty.
 *
 * With "keep" and "streams" it lasts: it goes on when its client is gone. What it writes then stands in a ring of
 * bounded size, the oldest is dropped, and its input stays open until atoll_close_input(). Its terminal comes with the
 * result, as a stream socket that is connected with it (for both directions), and its size changes by atoll_resize()
 * of any handle.
 */
ATOLL_API int atoll_exec(atoll_sandbox *sandbox, const atoll_record *command, uint64_t *ticket,
			 atoll_record **result, struct atoll_error *error);

/*
 * Those that run, and those that ended in the last 30 s, from the first one whose number is greater than after. Result:
 * rows (ATOLL_COMMAND_INFO) by atoll_rows(); next: what to ask after for more, 0: these are all.
 */
ATOLL_API int atoll_commands(atoll_sandbox *sandbox, uint64_t after, uint64_t *ticket, atoll_record **result,
			     struct atoll_error *error);

/*
 * Fresh streams of a command that lasts, also one that has just ended: first what is in its ring, then what it writes
 * from now on. Several may be attached; what is in the ring goes to the first. Result: stdin (for writing; its end says
 * nothing to the command), stdout, stderr, or terminal; dropped. how: may be NULL. ATOLL_E_NOT_FOUND: there is no such
 * command, or it does not last; ATOLL_E_LIMIT.
 */
ATOLL_API int atoll_attach(atoll_sandbox *sandbox, uint64_t command, const atoll_record *how, uint64_t *ticket,
			   atoll_record **result, struct atoll_error *error);

/*
 * The end of the input of a command that lasts, once what was written is with it: for all who are attached. Not of a
 * terminal, where a program ends its input by the character for it: ATOLL_E_INVALID.
 */
ATOLL_API int atoll_close_input(atoll_sandbox *sandbox, uint64_t command, uint64_t *ticket, atoll_record **result,
				struct atoll_error *error);

/* The rows of the result of atoll_commands() or atoll_readdir(), which may be freed then. */
ATOLL_API int atoll_rows(atoll_sandbox *sandbox, const atoll_record *result, atoll_cursor **ret,
			 struct atoll_error *error);

/* The size of the terminal of a command that this handle started, or of one that lasts. */
ATOLL_API int atoll_resize(atoll_sandbox *sandbox, uint64_t command, uint32_t rows, uint32_t columns,
			   struct atoll_error *error);

/* To the command's process group, whoever started it. */
ATOLL_API int atoll_signal(atoll_sandbox *sandbox, uint64_t command, int32_t signal, uint64_t *ticket,
			   atoll_record **result, struct atoll_error *error);

/*
 * Stops everything inside until atoll_thaw() by this handle, the end of the handle or atoll_stop(); no clock runs
 * meanwhile. For a minute at most.
 */
ATOLL_API int atoll_freeze(atoll_sandbox *sandbox, uint64_t *ticket, atoll_record **result,
			   struct atoll_error *error);

/*
 * The same without a bound, or until timeout_ms are over. With "keep" it outlives the handle and the process, and any
 * handle's atoll_thaw() ends it. how: may be NULL.
 */
ATOLL_API int atoll_hold(atoll_sandbox *sandbox, const atoll_record *how, uint64_t *ticket, atoll_record **result,
			 struct atoll_error *error);

/* Result: frozen, 1: it was until now. */
ATOLL_API int atoll_thaw(atoll_sandbox *sandbox, uint64_t *ticket, atoll_record **result, struct atoll_error *error);

/* SIGTERM to all commands, and the end when they are gone or after grace_ms. Done when nothing is left. */
ATOLL_API int atoll_stop(atoll_sandbox *sandbox, uint32_t grace_ms, uint64_t *ticket, atoll_record **result,
			 struct atoll_error *error);

/* It ends in ms from now, also if nobody is there; never later than the policy says. */
ATOLL_API int atoll_deadline(atoll_sandbox *sandbox, uint64_t ms, uint64_t *ticket, atoll_record **result,
			     struct atoll_error *error);

/* Changes what update has: its labels, as a whole. They stand in ATOLL_INFO, also when it has ended. */
ATOLL_API int atoll_update(atoll_sandbox *sandbox, const atoll_record *update, uint64_t *ticket,
			   atoll_record **result, struct atoll_error *error);

/* Another policy for the network; what else differs is refused and named. Result: ended, connections. */
ATOLL_API int atoll_change(atoll_sandbox *sandbox, const atoll_policy *policy, uint64_t *ticket,
			   atoll_record **result, struct atoll_error *error);

/*
 * Has these put into its requests over TLS, instead of those before: host, name, value, … and NULL. Hosts are exact
 * names, whose requests the policy reads (http or inject), else ATOLL_E_POLICY. They end with the sandbox.
 */
ATOLL_API int atoll_set_headers(atoll_sandbox *sandbox, const char *const *headers, uint64_t *ticket,
				atoll_record **result, struct atoll_error *error);

/* Result: the numbers that `atoll top` shows and the policy's name; "changes" only where something can be staged. */
ATOLL_API int atoll_sample(atoll_sandbox *sandbox, uint64_t *ticket, atoll_record **result,
			   struct atoll_error *error);

/* Result: status: the same and more, for programs that read JSON. */
ATOLL_API int atoll_status(atoll_sandbox *sandbox, uint64_t *ticket, atoll_record **result,
			   struct atoll_error *error);

/* ---- files, as the sandbox sees them ---- */

/*
 * Done inside by a process of the box with the sandbox's user, its mounts and its rules: no path leads out. Paths are
 * absolute ("~" is the caller's business). Each request is a record in the log before it happens. Files answer while
 * everything stands still, but nothing is changed during atoll_freeze() or a snapshot (ATOLL_E_BUSY); what was opened
 * before can be written to. A file system inside that does not answer costs ATOLL_E_TIMEOUT, and nobody else waits for
 * it longer than some seconds. What is written to memory (a tmpfs) is the memory of whoever writes to the descriptor.
 */

enum {                           /* "flags" of ATOLL_OPEN */
	ATOLL_OPEN_READ = 1 << 0,
	ATOLL_OPEN_WRITE = 1 << 1,
	ATOLL_OPEN_APPEND = 1 << 2,
	ATOLL_OPEN_CREATE = 1 << 3,
	ATOLL_OPEN_EXCLUSIVE = 1 << 4, /* with CREATE: ATOLL_E_EXISTS where it is there */
	ATOLL_OPEN_TRUNCATE = 1 << 5,
	ATOLL_OPEN_PARENTS = 1 << 6    /* with CREATE: and directories that are missing */
};

enum {                           /* flags of atoll_stat() */
	ATOLL_STAT_NOFOLLOW = 1 << 0,  /* of a link itself */
	ATOLL_STAT_ATTRIBUTES = 1 << 1 /* "attributes", too */
};

enum { ATOLL_REMOVE_RECURSIVE = 1 << 0 };

enum {                           /* flags of atoll_watch() */
	ATOLL_WATCH_RECURSIVE = 1 << 0,
	ATOLL_WATCH_ENTRIES = 1 << 1   /* events have the keys of ATOLL_ENTRY, too */
};

/*
 * A regular file, never anything else (ATOLL_E_INVALID). how: may be NULL: for reading. Result: file, a descriptor, and
 * what ATOLL_ENTRY has. What is written counts as what a program inside writes.
 */
ATOLL_API int atoll_open(atoll_sandbox *sandbox, const char *path, const atoll_record *how, uint64_t *ticket,
			 atoll_record **result, struct atoll_error *error);

/* Result: what ATOLL_ENTRY has; of a link: target and target_type, too. */
ATOLL_API int atoll_stat(atoll_sandbox *sandbox, const char *path, uint32_t flags, uint64_t *ticket,
			 atoll_record **result, struct atoll_error *error);

/*
 * What is in a directory and below it, links not followed, in no order. how: may be NULL. Result: rows by atoll_rows();
 * next: what "from" is for more, 0: these are all. What changes meanwhile may be left out or come twice.
 */
ATOLL_API int atoll_readdir(atoll_sandbox *sandbox, const char *path, const atoll_record *how, uint64_t *ticket,
			    atoll_record **result, struct atoll_error *error);

/* With those above it. ATOLL_E_EXISTS: it, or something else, is there. */
ATOLL_API int atoll_mkdir(atoll_sandbox *sandbox, const char *path, uint32_t mode, uint64_t *ticket,
			  atoll_record **result, struct atoll_error *error);

/* rename(2), within one file system. */
ATOLL_API int atoll_move(atoll_sandbox *sandbox, const char *from, const char *to, uint64_t *ticket,
			 atoll_record **result, struct atoll_error *error);

/* A file, a link, an empty directory, or with ATOLL_REMOVE_RECURSIVE all that is in it; links are never followed. */
ATOLL_API int atoll_remove(atoll_sandbox *sandbox, const char *path, uint32_t flags, uint64_t *ticket,
			   atoll_record **result, struct atoll_error *error);

/* Changes what attributes has; "attributes" as a whole. */
ATOLL_API int atoll_setattr(atoll_sandbox *sandbox, const char *path, const atoll_record *attributes,
			    uint64_t *ticket, atoll_record **result, struct atoll_error *error);

/*
 * Events WATCH of a directory until atoll_unwatch() or the end of the handle. Result: watch, their number. An event
 * with the change "overflow" says that some are lost: look again. ATOLL_E_LIMIT: too many directories.
 */
ATOLL_API int atoll_watch(atoll_sandbox *sandbox, const char *path, uint32_t flags, uint64_t *ticket,
			  atoll_record **result, struct atoll_error *error);
ATOLL_API int atoll_unwatch(atoll_sandbox *sandbox, uint64_t watch, uint64_t *ticket, atoll_record **result,
			    struct atoll_error *error);

/*
 * A connection to a TCP port of the sandbox's own loopback: family 4, 6, or 0 for whichever answers. Result: socket.
 * What the policy says of the network is of no concern to it; ports of atoll's own are never reached (ATOLL_E_DENIED).
 */
ATOLL_API int atoll_connect(atoll_sandbox *sandbox, uint16_t port, uint32_t family, uint64_t *ticket,
			    atoll_record **result, struct atoll_error *error);

/* ---- questions ---- */

/*
 * The questions that changed behind look's "after", in one of four ways (atoll_keys()). Result: after, and questions:
 * rows by atoll_looked(). "follow" is answered once there is one, and whoever does so is taken to listen, as one who
 * hears of ATOLL_EVENT_QUESTION is; one at a time. The others say all in several results, until one has no rows.
 */
ATOLL_API int atoll_look(atoll_sandbox *sandbox, const atoll_record *look, uint64_t *ticket, atoll_record **result,
			 struct atoll_error *error);
ATOLL_API int atoll_looked(atoll_sandbox *sandbox, const atoll_record *result, atoll_cursor **ret,
			   struct atoll_error *error);

/* Who asks so has been shown them: an answer for "once" covers those that wait now. */
ATOLL_API int atoll_questions(atoll_sandbox *sandbox, atoll_cursor **ret, struct atoll_error *error);

/* question: as it came, or its number and hash: what was shown is what is answered. Result: grant, its number, or 0. */
ATOLL_API int atoll_answer(atoll_sandbox *sandbox, const atoll_record *question, const atoll_record *answer,
			   uint64_t *ticket, atoll_record **result, struct atoll_error *error);
ATOLL_API int atoll_grants(atoll_sandbox *sandbox, atoll_cursor **ret, struct atoll_error *error);
ATOLL_API int atoll_revoke(atoll_sandbox *sandbox, uint64_t grant, uint64_t *ticket, atoll_record **result,
			   struct atoll_error *error);

/*
 * ---- what it changed; running or not ----
 * The verbs of `atoll` of the same names do it, in a process that the library starts.
 */

/* record: name, message; may be NULL. Result: name. */
ATOLL_API int atoll_snapshot(atoll_sandbox *sandbox, const atoll_record *record, uint64_t *ticket,
			     atoll_record **result, struct atoll_error *error);
ATOLL_API int atoll_snapshots(atoll_sandbox *sandbox, atoll_cursor **ret, struct atoll_error *error);

/*
 * Forgets a snapshot, also of a sandbox that has ended; sandboxes that began with it go on. Begins at once and goes on
 * whatever becomes of the cursor, which has no rows. What only it needed of the disk goes with the next atoll-gc(1).
 */
ATOLL_API int atoll_forget(atoll_sandbox *sandbox, const char *snapshot, atoll_cursor **ret,
			   struct atoll_error *error);

/*
 * Makes a snapshot what the sandbox has staged; what it had is named before-restore-N first. While the sandbox runs,
 * everything inside stands still meanwhile, and a program keeps the old file that it has open.
 */
ATOLL_API int atoll_restore(atoll_sandbox *sandbox, const char *snapshot, uint64_t *ticket, atoll_record **result,
			    struct atoll_error *error);

/* Each begins at once and goes on whatever becomes of the cursor. record: may be NULL. */
ATOLL_API int atoll_diff(atoll_sandbox *sandbox, const atoll_record *record, atoll_cursor **ret,
			 struct atoll_error *error);
ATOLL_API int atoll_apply(atoll_sandbox *sandbox, const atoll_record *record, atoll_cursor **ret,
			  struct atoll_error *error);
ATOLL_API int atoll_undo(atoll_sandbox *sandbox, const atoll_record *record, atoll_cursor **ret,
			 struct atoll_error *error);
ATOLL_API int atoll_discard(atoll_sandbox *sandbox, const atoll_record *record, atoll_cursor **ret,
			    struct atoll_error *error);

/* The log from a record on, as lines that are not looked into. ATOLL_E_AGAIN: it goes on while the sandbox runs. */
ATOLL_API int atoll_log(atoll_sandbox *sandbox, const atoll_record *record, atoll_cursor **ret,
			struct atoll_error *error);

/* 1 and a row, owned by the caller; 0: the end; ATOLL_E_AGAIN: later, when the descriptor is readable. */
ATOLL_API int atoll_cursor_next(atoll_cursor *cursor, atoll_record **ret, struct atoll_error *error);
ATOLL_API int atoll_cursor_fd(const atoll_cursor *cursor);
ATOLL_API void atoll_cursor_free(atoll_cursor *cursor);

#ifdef __cplusplus
}
#endif
