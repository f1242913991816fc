/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * EXECUTION ENVIRONMENT: a spec becomes a confined child that runs atoll-init as PID 1. The seccomp
 * filter is loaded by atoll-init itself, as its first act (jail/filter.h), because its listener must
 * not see init's own exec. Needs no privilege where user namespaces are allowed; see doc/threat-model.md.
 */

#include "jail/spec.h"
#include "os/pidref.h"

/*
 * Refuses specs that cannot mean what they say: relative or unnormalised targets, "..", a target inside something
 * that is no directory, unordered mounts. Pure.
 */
int jail_spec_check(const struct jail_spec *spec, struct err *err) MUST_USE;

/* A jail on its way. */
struct jail;

/*
 * Begins with what takes longest and asks for least: a process beside the caller makes the user namespace and the
 * network namespace, and waits. Of spec (not kept) it goes by share_network, gate_sockets, run_as_root, degrade and
 * broken_wall, which jail_start() must get again. *ret_jail is owned by the caller.
 */
int jail_begin(const struct jail_spec *spec, struct jail **ret_jail, struct err *err) MUST_USE;

/* The process that waits, for who moves to another control group and has to take it along; 0: there is none yet. */
pid_t jail_waiting(const struct jail *jail);

/*
 * Builds the jail, once, and leaves atoll-init executing in it. *ret_init is owned by the caller. On any
 * failure the child is gone and reaped, nothing is mounted on the host, and *err names the wall.
 */
int jail_start(struct jail *jail, const struct jail_spec *spec, struct pidref *ret_init,
	       struct jail_enforcement *ret_enforcement, struct err *err) MUST_USE;

/* Also ends and reaps what waits, where jail_start() was not called. NULL is fine. */
void jail_free(struct jail *jail);
