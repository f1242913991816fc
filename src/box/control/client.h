/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One connection to the control socket, shared by control.c, which has the socket, and control-link*.c; nobody else
 * knows it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervise/freeze.h"
#include "supervise/loop.h"
#include "wire/frame.h"

struct box;
struct err;
struct link;

enum client_state {
	CLIENT_NEW, CLIENT_FREEZING, CLIENT_DONE, CLIENT_REFUSED, CLIENT_LINK
};

struct client {
	struct box *box;
	int fd;
	uid_t uid;
	pid_t pid;
	enum client_state state;
	bool is_deferred; /* its EXEC waits in the socket */
	struct loop_source source;
	struct freeze_holder freeze; /* while it takes a snapshot */
	bool is_follower; /* it hears of questions */
	uint64_t told;	  /* queue_generation() */
	struct link *link; /* owned (control-link.h); NULL: it speaks of one thing */
};

/*
 * Never waits: everything inside would, whose system calls the box answers. What a client does not read is kept by its
 * socket; one that lets that fill loses its connection. r: of the frame in box->run.out.
 */
void client_reply(struct client *client, int r, const int *fds, size_t fd_count);
void client_reply_u32(struct client *client, uint16_t type, uint32_t value);
void client_reply_error(struct client *client, const struct err *err);

/* Asks all commands to end, and ends the sandbox when they have or after so long. */
void control_stop(struct box *box, uint32_t grace_ms);

/* Why freeze_begin() did not, for who asked. */
void control_freeze_error(const struct box *box, int r, struct err *err);
