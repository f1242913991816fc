/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Session directories on disk: where a run's log, policy and result are. Written by atoll-box, read by
 * every verb that names a session.
 *
 * The folder session/ is what all programs of ours know of a run without being its box: its directory and record, the
 * way to its control socket, its log for whoever reviews it afterwards, and what `atoll run` hands to the box.
 *
 *   STATE/sessions/ID/        mode 0700
 *       session.bin           this record (a wire frame) as it was at the start
 *       ended.bin             the same at the end, nothing before; the one that is read where it is there and whole
 *       policy.bin            the snapshot that was enforced
 *       narrowing.json        what the verifier proposed to take away from the policy of the run, where it was asked
 *       audit.jsonl           the action log; locked (flock) by the box while it lives
 *       denials.jsonl         what the agent sees of its own denials
 *   STATE/held              sessions that the service still needs, an id a line: gc leaves them
 *   RUNTIME/ID.sock           the control socket
 *
 * STATE and RUNTIME: see directories.h.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "os/clock.h"

#define SESSION_HELD_FILE "held"

struct session_record {
	char id[SESSION_ID_SIZE];
	char *name;              /* alias or "" (all strings owned) */
	char *project;
	char *policy;            /* the policy's name */
	char *level;
	char *command;           /* argv joined, escaped, for people */
	char *cgroups;           /* as what its control groups are named, where that is not the id; else "" */
	pid_t box_pid;           /* as started; liveness is the lock, not the number */
	uint64_t started_ns;     /* CLOCK_REALTIME */
	uint64_t ended_ns;       /* 0 while it lives, or when its end was never recorded */
	int32_t exit;            /* -1 while unknown */
	char *ended;             /* "exit", "time", …; "" while unknown */
	char *audit_head;        /* "sha256:…" at the end; "" while unknown */
	char *labels;            /* labels.h; "" or NULL: none */
	uint64_t audit_records;
	bool is_staged;          /* may hold staged changes: at first where it stages, at the end where it has some */
	bool is_kept_at_exec;    /* `stage.auto: exec`: a snapshot before each `atoll exec` */
	bool is_trial;           /* of `atoll dry-run`, and nobody has accepted it: only its id or name means it */
	bool writes_host;        /* of a trial: for real it writes straight to the host, too */
	bool is_frozen;          /* everything inside stands still for what was seen of it, until a person says more */
	bool is_lowered;         /* level stands in the place of the policy's, which is higher (trust/rules.h) */
	bool is_live;            /* not stored: whether the lock is held */
};

/* Frees its strings, and makes it one that can be freed again. */
void session_record_done(struct session_record *record);
#define cleanup_session_record __attribute__((cleanup(session_record_done)))

/*
 * Finds a session: by id, by unique prefix of at least 4 characters of an id, by name (the newest one), or with
 * NULL the newest of the project (NULL: of all).
 * -ENOENT with ERR_NOT_FOUND and a hint otherwise. running_in: the run-time directory, where ended
 * ones are left out; "" where there is none. NULL: ended ones, too.
 */
int session_find(const char *state_dir, const char *project, const char *id_or_name,
		 const char *running_in, struct session_record *ret_record, struct err *err) MUST_USE;

/* All sessions, newest first; *ret_records is owned (each with session_record_done, then free). */
int session_list(const char *state_dir, struct session_record **ret_records, size_t *ret_count,
		 struct err *err) MUST_USE;

/* The session of this id; -ENOENT where there is none, or its record cannot be read. */
int session_load_id(const char *state_dir, const char *id, struct session_record *ret_record) MUST_USE;

/* The same, if it runs; -ENOENT where it does not. */
int session_load_live(const char *state_dir, const char *id, struct session_record *ret_record) MUST_USE;

/* The path of a file of a session, in out[size]. */
int session_path(const char *state_dir, const char *id, const char *file, char *out, size_t size) MUST_USE;

/* Whether name is that of a control socket in the run-time directory, "ID.sock"; the id in out then. */
bool session_of_socket(const char *name, char out[SESSION_ID_SIZE]);

/* Whether text can be a session's id: 12 characters of [a-z0-9]. */
bool session_id_is_valid(const char *text);

/*
 * Reads the record of the session in dir_fd, or writes it: to ended.bin once ended_ns is set. The box takes the
 * lock before it writes the first one: a session without a readable record is passed over by every reader.
 */
int session_load(int dir_fd, struct session_record *ret_record) MUST_USE;
int session_store(int dir_fd, const struct session_record *record) MUST_USE;

/*
 * Makes session.bin or ended.bin, empty, which is no record to any reader: to make a file takes up to a third of a
 * millisecond, for which nobody shall wait at the end, nor where a sandbox is taken. And the record in such a file,
 * once.
 */
int session_make(int dir_fd, bool is_end) MUST_USE;
int session_store_made(int dir_fd, const struct session_record *record) MUST_USE;
