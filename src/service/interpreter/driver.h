/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One driver: a command of a sandbox, what is on its way to it, and its two outputs, in which its lines stand among
 * what the code writes. It hands on bytes and lines; what they mean it does not know. Run by atoll-front.
 */

#include "service/front/extension.h"
#include "supervise/loop.h"
#include "service/protocol/host.h"
#include "service/protocol/interpreter.h"
#include "service/runtime/runtime.h"

enum { DRIVER_TOKEN_SIZE = 129 };

enum driver_state { DRIVER_NONE, DRIVER_STARTING, DRIVER_RUNNING };

struct driver;

/* What its owner hears. None but lost may end or start the driver. */
struct driver_events {
	/* One line without its newline, by one of the outputs; NULL: one that was too long, and was thrown away. */
	void (*line)(struct driver *driver, bool is_error, const void *bytes, size_t size);
	/* What the code wrote to standard output or error. Returns how much was taken: not an incomplete end. */
	size_t (*output)(struct driver *driver, bool is_error, const void *bytes, size_t size, bool is_last);
	/* Whether a line may go on growing, which takes this much now. */
	bool (*has_room)(struct driver *driver, size_t size);
	/* The command runs, and takes lines. */
	void (*started)(struct driver *driver);
	/* It could not be started (why: a sentence), or has ended (NULL). It is DRIVER_NONE again. */
	void (*lost)(struct driver *driver, const char *why);
	/* A signal has been delivered, or cannot be. */
	void (*signalled)(struct driver *driver);
};

struct driver_output {
	struct loop_source source;
	struct driver *driver;
	struct buf rest;                     /* what cannot be given yet: a part of a frame or of a character */
	struct buf line;                     /* the beginning of a line */
	bool is_passing_over;                /* what is left of a line that is too long */
};

struct driver {
	struct front *front;
	const struct driver_events *events;
	enum driver_state state;
	char sandbox[HOST_ID_SIZE], token[DRIVER_TOKEN_SIZE]; /* token: what the launcher accepted for it */
	uint64_t command;                    /* of the sandbox; 0: not known */
	uint64_t start_ticket, signal_ticket;
	char mark[RUNTIME_MARK_SIZE + 1];         /* each of its frames begins so */
	struct loop_source input;
	struct buf out;                      /* for its input */
	struct driver_output outputs[2];     /* standard output, standard error */
	bool is_held;
};

/* One that is not started. front and events are borrowed. */
void driver_init(struct driver *driver, struct front *front, const char *sandbox, const struct driver_events *events);
/* Ends it, and frees what it has. It may be started again. */
void driver_stop(struct driver *driver);

/*
 * Starts it for a language, in a directory (NULL: the home), with the token of who asked; may_be_warm: it may be one
 * that was started ahead. 0, or a negative errno.
 */
int driver_start(struct driver *driver, enum interpreter_language language, const char *cwd,
		 bool may_be_warm) MUST_USE;

/* Sends what was put into driver->out. */
void driver_flush(struct driver *driver);

/* Whether nothing is read from it for a while. */
void driver_hold(struct driver *driver, bool is_held);

/* To its process group; signalled follows. It is ended where that cannot be asked for. */
void driver_signal(struct driver *driver, int signal);

/* The launcher says that its command has ended. */
void driver_on_exit(struct driver *driver);
