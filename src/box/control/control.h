/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The control socket of a sandbox (wire/control.h): who connects, what is asked, and what is told to those who stay.
 * The folder has one file for each kind of conversation; nothing in it waits for a client. Run by atoll-box.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct box;
struct command;

/* Makes the socket; clients that come early wait in its backlog. */
int control_bind(struct box *box) MUST_USE;

/*
 * The socket is that of the request's session from now on. Who is in its backlog meant something else, and goes.
 * Negative errno.
 */
int control_rename(struct box *box) MUST_USE;

/* From here on clients are heard, the one that started the sandbox first. */
int control_start(struct box *box) MUST_USE;

/* Nobody is heard any more; the name of the socket stays. */
void control_close(struct box *box);

/* Takes the name away, by which whoever tidies behind a box that was killed finds what that has left. */
void control_unlink(struct box *box);

/* The last act: `atoll stop` returns when nothing is left. */
void control_dismiss_clients(struct box *box);

/* Once a turn of the loop: what is new is told, and what was asked to stop is ended in time. Negative: the log
 * failed. */
int control_check(struct box *box) MUST_USE;

/* Whether somebody hears of questions. */
bool control_is_followed(const struct box *box);

/* Commands that had to wait may be able to start now. */
void control_resume(struct box *box);

/* It has exited, or is over with the sandbox: clients hear of it, once. */
void control_command_ended(struct box *box, struct command *command);
