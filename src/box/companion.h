/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Starts a program of ours beside the box, with one socket to it as fd 3 and nothing else: no environment, no
 * arguments, /dev/null as its standard streams, its own session, killed with the box. What a service of the sandbox
 * needs bytes parsed for is done in such a process. Run by atoll-box, and by `atoll run` for what is asked before.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "os/pidref.h"

struct box;

/*
 * *ret_fd (owned): our end, non-blocking, SOCK_SEQPACKET. uid: whom it becomes before its exec; 0: it stays as we are.
 * *ret_process is for companion_end(). Negative: nothing runs.
 */
int companion_start(struct box *box, const char *name, uid_t uid, int *ret_fd, struct pidref *ret_process) MUST_USE;

/* The same with more to say, also where there is no box yet. */
struct companion_spec {
	const char *program;         /* beside atoll-init */
	const char *name;            /* its argv[0]; NULL: as the program */
	char **environment;          /* NULL: none */
	uid_t uid;                   /* as above */
	bool outlives;               /* it is not killed with the box: it ends with its socket */
};
int companion_start_as(const char *init_path, const struct companion_spec *spec, int *ret_fd,
		       struct pidref *ret_process) MUST_USE;

/*
 * A program of ours for an exec, O_PATH: the one of this name beside atoll-init. Its number is at least above, so that
 * what the exec puts at fixed numbers does not replace it. -errno.
 */
int companion_open(const char *init_path, const char *name, int above) MUST_USE;

/* Kills and reaps it; nothing happens where there is none. */
void companion_end(struct pidref *process);

/* As root a uid in the range of the sandbox's, which nobody uses: one for each which; else 0. */
uid_t companion_uid(const struct box *box, unsigned which);

/* A host uid that nobody has, for a sandbox of root's, or for what is started before one; its gid is the same. */
int companion_uid_choose(uid_t *ret_uid) MUST_USE;
