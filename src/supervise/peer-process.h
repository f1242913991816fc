/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Starts a program of ours beside the box, with one socket to it as PEER_FD and nothing else that it was not
 * given by name: no environment, no arguments, /dev/null as its standard streams, its own session, killed with the box.
 * What a service of the sandbox needs bytes parsed for is done in such a process. Its life in a box is peer.h. Run by
 * atoll-box, and by `atoll run` for what is asked before.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "os/pidref.h"

struct run;

enum {
	PEER_FD = 3,            /* in the program: its end of the socket */
	PEER_ABOVE = 8,         /* numbers below are those that a program finds something at */
};

struct peer_fd {
	int fd;                      /* PEER_ABOVE or higher; FD_NONE: the program is not given it */
	int number;                  /* 0, or above PEER_FD: where the program finds it */
};

struct peer_spec {
	const char *program;         /* beside atoll-init */
	char **argv;                 /* NULL: its name alone */
	char **environment;          /* NULL: none */
	const struct peer_fd *given;
	size_t given_count;
	uid_t uid;                   /* whom it becomes before its exec; 0: it stays as we are */
	unsigned seconds;            /* after which it is ended; 0: it may take its time */
	bool outlives;               /* it is not killed with the box: it ends with its socket */
};

/*
 * Starts it; init_path: atoll-init, beside which the program lies. *ret_fd (owned): our end, non-blocking,
 * SOCK_SEQPACKET. *ret_process is for peer_end(). Negative: nothing runs.
 */
int peer_start_as(const char *init_path, const struct peer_spec *spec, int *ret_fd,
		  struct pidref *ret_process) MUST_USE;

/* The two halves of that, where the program is found, and its end of the socket made, some time before it starts. */

/* A program of ours for an exec: the one of this name beside atoll-init, O_PATH, PEER_ABOVE or higher. -errno. */
int peer_open(const char *init_path, const char *name) MUST_USE;

/* Both ends of a socket for it: ours non-blocking, its own PEER_ABOVE or higher; owned by the caller. -errno. */
int peer_socket(int *ret_near_fd, int *ret_far_fd) MUST_USE;

/* program_fd and link_fd, PEER_ABOVE or higher, stay the caller's. *ret_process as above, also after an error. */
int peer_spawn(const struct peer_spec *spec, int program_fd, int link_fd, struct pidref *ret_process)
	MUST_USE;

/* Kills and reaps it; nothing happens where there is none. */
void peer_end(struct pidref *process);

/* Each of a sandbox's helper programs has a uid of its own: bits that make it from the sandbox's, in a range
 * nobody uses. */
enum peer_user {
	PEER_GATE = 1, PEER_DESK, PEER_VERIFY, PEER_DESKTOP, PEER_WEBHOOK, PEER_JUDGE,
};

/* As root that uid, else 0. */
uid_t peer_uid(const struct run *run, enum peer_user user);

/* A host uid that nobody has, for a sandbox of root's, or for what is started before one; its gid is the same. */
int peer_uid_choose(uid_t *ret_uid) MUST_USE;
