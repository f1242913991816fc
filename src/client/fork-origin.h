/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a new session stands on when it begins with the staged state of another: `atoll fork` and `atoll run
 * --continue`.
 */

#include <limits.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "os/clock.h"
#include "stage/layer/chain.h"

struct fork_origin {
	char session[SESSION_ID_SIZE];
	char state[PATH_MAX];
	char project[PATH_MAX];
	char policy[PATH_MAX];                    /* its policy.bin */
	bool is_lowered;                          /* which was compiled for a lower level than its own */
	char texts[STAGE_CHAIN_MAX][32];          /* "SESSION/NUMBER" */
	char *layers[STAGE_CHAIN_MAX + 1];        /* of texts, bottom first, NULL-terminated */
};

/*
 * The state that a session (NULL: the newest of this project that has staged changes) has under this snapshot's name;
 * NULL: the newest state, which is named fork-N then. 0, 125 when atoll-stage has said why not, or -errno.
 */
int fork_find(const char *session, const char *name, struct fork_origin *ret_origin, struct err *err) MUST_USE;
