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

/*
 * Builds the jail and leaves atoll-init executing in it. *ret_init is owned by the caller. On any
 * failure the child is gone and reaped, nothing is mounted on the host, and *err names the wall.
 */
int jail_start(const struct jail_spec *spec, struct pidref *ret_init, struct jail_enforcement *ret_enforcement,
	       struct err *err) MUST_USE;
