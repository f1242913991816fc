/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where copied-up files came from. A staged file that was copied up and that the host lacks was either deleted on the
 * host (a conflict) or renamed or linked inside the sandbox, or copied up from a sealed layer (additions). overlayfs
 * would keep a file handle of what it copied, but leaves it empty for mounts of user namespaces; so the three are told
 * apart by what else the layers and the host have. Made only when the question comes up. Within stage/ only.
 */

#include <stdbool.h>

#include "base/cleanup.h"
#include "stage/layer/layer.h"
#include "stage/layer/walk.h"

struct origins;

/* Collects what the stack's layers hold and what the host has at those paths. -errno. */
int origins_load(struct origins **ret_origins, const struct stage_stack *stack) MUST_USE;
void origins_free(struct origins *origins);

/*
 * Whether the copied-up entry, which the host lacks, is explained by something else than a deletion on the host. false
 * where there is no evidence: a file that was renamed and then changed looks like one that the host deleted.
 */
bool origins_explain(const struct origins *origins, const struct stage_entry *entry);
