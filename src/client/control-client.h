/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The client's end of a session's control socket (wire/control.h): finding the session, one request, its answers.
 * Used by the verbs of `atoll` that speak to a running box.
 */

#include <limits.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "session/record.h"
#include "wire/control.h"

/* The live session that id_or_name means (NULL: the newest of the project of the working directory). */
int client_find(const char *id_or_name, struct session_record *ret_record, struct err *err) MUST_USE;

/* The same in this state directory, also of those that have ended. */
int client_find_any(const char *state, const char *id_or_name, struct session_record *ret_record, struct err *err)
	MUST_USE;

/* The live one, and a connection to its box in *ret_fd, owned by the caller. */
int client_open(const char *id_or_name, struct session_record *ret_record, int *ret_fd, struct err *err) MUST_USE;

/*
 * The project of the working directory, for verbs to which no session was named: which one they then mean is never
 * guessed. Fails where the working directory is gone or cannot be read.
 */
int client_project(char out[PATH_MAX], struct err *err) MUST_USE;

/* An answer of the box. bytes are those of the caller's scratch buffer; fd is FD_NONE or owned by the caller. */
struct client_answer {
	struct frame frame;
	int fd;
};

/*
 * Waits for one answer. scratch holds it (FRAME_MESSAGE_MAX bytes at least). CONTROL_ERROR becomes the box's own
 * error in *err. -ECONNRESET with *err when the box is gone.
 */
int client_receive(int socket_fd, struct buf *scratch, struct client_answer *ret_answer, struct err *err) MUST_USE;

/* Sends a frame that has one number or nothing in it (count 0). */
int client_send(int socket_fd, uint16_t type, size_t count, uint32_t value, struct err *err) MUST_USE;
