/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What was built for a sandbox: its jail, its trees, and who tidies up behind it.
 * A part of struct box (sandbox.h): the states of these modules, which box/ alone sees side by side.
 */

#include <stdint.h>

#include "base/hash.h"
#include "build/disk-full.h"
#include "build/fuse.h"
#include "build/guardian.h"
#include "build/staged-count.h"
#include "build/staging.h"
#include "jail/jail.h"
#include "watch/watch.h"

struct box_build {
	struct guardian guardian;
	struct jail *jail;            /* on its way; NULL: built, or not begun */
	struct jail_enforcement enforcement;
	struct hash filter_hash;      /* what session.start binds */
	struct watch_options watch_options; /* filled once the jail stands */
	struct staging staging;
	struct staged_count staged_count; /* for who looks while it runs */
	struct fuse_servers servers;  /* of staged trees */
	struct disk_full disk;        /* of what is staged */
	uint64_t plan_ns, store_ns;   /* what we did while the child made its namespaces, and its mounts */
};
