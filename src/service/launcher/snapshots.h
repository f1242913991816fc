/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Snapshots of what sandboxes staged, as templates of further ones, and forks. Files are carried, processes are not: a
 * fork begins as a new sandbox does, and the reply says so. Runs in atolld.
 */

#include "service/launcher/call/call.h"
#include "service/launcher/lifecycle.h"

/* SERVICE_SNAPSHOT: of a sandbox that runs; its id is a template's. */
void snapshots_take(struct call *call);

/* SERVICE_FORK: as many as the client wants, each answered by a row of its own. */
void snapshots_fork(struct call *call);

/* SERVICE_SNAPSHOTS and SERVICE_TEMPLATES: those of the key's owner. */
void snapshots_list(struct call *call);

/* SERVICE_TEMPLATE_DELETE: sandboxes that were made from it go on. */
void snapshots_delete(struct call *call);

/*
 * What a template of this id or name stands for, among those that the caller may see: 1; 0: there is none; -EIO. The
 * row is what origin points to.
 */
int snapshots_find(struct call *call, const char *template, struct template_row *ret_row,
		   struct origin *ret_origin) MUST_USE;
