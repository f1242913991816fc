/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Starts an atoll-judge and tells it whom it asks: the command or the model of verify.external. Run by atoll-box for
 * what programs are about to do, and by `atoll run` for what a task does not need, before there is a box.
 */

#include <sys/types.h>

#include "base/buf.h"
#include "os/pidref.h"
#include "policy/policy.h"

struct reviewer_origin {
	const char *init_path;       /* atoll-init: the programs are beside it */
	uid_t uid;                   /* whom it becomes; 0: it stays as we are */
	char **env;                  /* of who started atoll; the command gets a few of them */
	int secret_fd;               /* borrowed: a socket that has the value for the model's URL; FD_NONE: none */
};

/*
 * Its first message: whom it asks. judge_fd: our end of its socket; scratch: a buffer for one frame. Negative: it was
 * not taken, or could not be made.
 */
int reviewer_greet(const struct external_verifier *verifier, const struct reviewer_origin *origin, int judge_fd,
		   struct buf *scratch) MUST_USE;

/*
 * Starts one beside no box. *ret_fd (owned) is non-blocking and ready for cases, *ret_process is for peer_end(); both
 * are set on success alone.
 */
int reviewer_start(const struct external_verifier *verifier, const struct reviewer_origin *origin,
		   struct buf *scratch, int *ret_fd, struct pidref *ret_process) MUST_USE;
