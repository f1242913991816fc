/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is kept of a container between two calls of the runtime: a directory of its own below --root with state.json,
 * the config.json that it was made with, and the socket that its first process waits at until it is started.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "oci/cgroup.h"
#include "oci/config/config.h"
#include "os/pidref.h"

enum oci_status { OCI_CREATING, OCI_CREATED, OCI_RUNNING, OCI_PAUSED, OCI_STOPPED, OCI_STATUS_COUNT };

/* "creating", "created", "running", "paused", "stopped" */
extern const char *const oci_status_names[OCI_STATUS_COUNT];

enum { OCI_ID_SIZE = 200, OCI_CREATED_SIZE = 48 };

struct oci_state {
	char id[OCI_ID_SIZE], created[OCI_CREATED_SIZE];
	int dir_fd;              /* owned */
	char *bundle;            /* owned, absolute */
	pid_t pid;               /* 0: there is no process yet */
	uint64_t start_ticks;    /* when it began: its number may be another's by now */
	struct oci_groups groups;
	struct oci_config config;
	bool has_config;
};

#define OCI_STATE_NONE ((struct oci_state){ .dir_fd = FD_NONE })

/* Closes the directory and frees what was read; nothing of the container itself changes. */
void oci_state_done(struct oci_state *state);
#define cleanup_oci_state __attribute__((cleanup(oci_state_done)))

/* -EINVAL with *err: a name that would lead elsewhere. */
int oci_state_check_id(const char *id, struct err *err) MUST_USE;

/* Makes the directory of a new container, locked until it is closed. -EEXIST: "container with id exists". */
int oci_state_make(struct oci_state *ret_state, const char *root, const char *id, struct err *err) MUST_USE;

/* Reads one. -ENOENT: "container does not exist". One whose making was cut short has what was written. */
int oci_state_open(struct oci_state *ret_state, const char *root, const char *id, struct err *err) MUST_USE;

/* Writes state.json anew; and config.json, once. */
int oci_state_store(const struct oci_state *state, struct err *err) MUST_USE;
int oci_state_store_config(const struct oci_state *state, const char *text, size_t size, struct err *err) MUST_USE;

/* What it is now; *ret_init (PIDREF_NONE where it has no process) is released with pidref_done(). */
enum oci_status oci_state_status(const struct oci_state *state, struct pidref *ret_init);

/* The state of the specification as JSON; is_whole: with rootfs, created and owner, as `state` shows it. */
int oci_state_format(const struct oci_state *state, enum oci_status status, bool is_whole, struct buf *out) MUST_USE;

/* Takes away the directory with all files, so that the id is free again. */
int oci_state_remove(struct oci_state *state, const char *root, struct err *err) MUST_USE;

/* The socket that the first process listens at, to be accepted from; and a connection to it: -ECONNREFUSED, -ENOENT. */
int oci_state_listen(const struct oci_state *state) MUST_USE;
int oci_state_connect(const struct oci_state *state) MUST_USE;
