/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Starts a program of ours beside the box, with one socket to it as COMPANION_FD and nothing else that it was not
 * given by name: no environment, no arguments, /dev/null as its standard streams, its own session, killed with the box.
 * What a service of the sandbox needs bytes parsed for is done in such a process. Run by atoll-box, and by `atoll run`
 * for what is asked before.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "os/pidref.h"

struct box;

/*
 * *ret_fd (owned): our end, non-blocking, SOCK_SEQPACKET. uid: whom it becomes before its exec; 0: it stays as we are.
 * *ret_process is for companion_end(). Negative: nothing runs.
 */
int companion_start(struct box *box, const char *name, uid_t uid, int *ret_fd, struct pidref *ret_process) MUST_USE;

enum {
	COMPANION_FD = 3,            /* in the program: its end of the socket */
	COMPANION_ABOVE = 8,         /* numbers below are those that a program finds something at */
};

struct companion_fd {
	int fd;                      /* COMPANION_ABOVE or higher; FD_NONE: the program is not given it */
	int number;                  /* 0, or above COMPANION_FD: where the program finds it */
};

/* The same with more to say, also where there is no box yet. */
struct companion_spec {
	const char *program;         /* beside atoll-init */
	char **argv;                 /* NULL: its name alone */
	char **environment;          /* NULL: none */
	const struct companion_fd *given;
	size_t given_count;
	uid_t uid;                   /* as above */
	unsigned seconds;            /* after which it is ended; 0: it may take its time */
	bool outlives;               /* it is not killed with the box: it ends with its socket */
};
int companion_start_as(const char *init_path, const struct companion_spec *spec, int *ret_fd,
		       struct pidref *ret_process) MUST_USE;

/* The two halves of that, where the program is found, and its end of the socket made, some time before it starts. */

/* A program of ours for an exec: the one of this name beside atoll-init, O_PATH, COMPANION_ABOVE or higher. -errno. */
int companion_open(const char *init_path, const char *name) MUST_USE;

/* program_fd and link_fd, COMPANION_ABOVE or higher, stay the caller's. *ret_process as above, also after an error. */
int companion_spawn(const struct companion_spec *spec, int program_fd, int link_fd, struct pidref *ret_process)
	MUST_USE;

/* Kills and reaps it; nothing happens where there is none. */
void companion_end(struct pidref *process);

/* Each of a sandbox's companions has a uid of its own: bits that make it from the sandbox's, in a range nobody uses. */
enum companion_user {
	COMPANION_GATE = 1, COMPANION_DESK, COMPANION_VERIFY, COMPANION_DESKTOP, COMPANION_WEBHOOK, COMPANION_JUDGE,
};

/* As root that uid, else 0. */
uid_t companion_uid(const struct box *box, enum companion_user user);

/* A host uid that nobody has, for a sandbox of root's, or for what is started before one; its gid is the same. */
int companion_uid_choose(uid_t *ret_uid) MUST_USE;
