/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The hooks of a bundle: programs of the host's, each given the container's state as JSON on its standard input.
 * Used by atoll-oci, and by the first process of its containers.
 */

#include "base/buf.h"
#include "oci/config/config.h"

/* Runs those of one kind in order, each to its end or its timeout. -errno with *err at the first that fails. */
int oci_hooks_run(const struct oci_config *config, enum oci_hook_kind kind, const struct buf *state,
		  struct err *err) MUST_USE;
