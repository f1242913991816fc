/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A narrowing: what somebody who is not trusted (a verifier that was told the task of a run) proposes to take away from
 * a policy for this run (doc/format/verify-external.md). It is a small part of what a policy can say, and two lists
 * that are only here: `files.change` and `network.reach`, of what is given now only these. It comes to lines like those
 * of a project's own file, and goes through the same check. Private to lang/.
 */

#include "lang/resolve/chain.h"

/* What stands in the place of a file's name in errors, and in the origin of rules. */
#define NARROW_FILE "narrowing"

/*
 * Reads lang->request.narrowing into lang->project, by what lang->policy gives. Errors go to lang->diags. Nothing is
 * checked here but its form: tighten_check() decides.
 */
void narrow_load(struct lang *lang);
