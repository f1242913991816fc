/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An instance of a function: a sandbox whose command loads the code, says that it is ready, and waits for one event.
 * It is used once. Three streams are its whole connection: the event goes in, the result and the log come out. Nothing
 * that it says is read here but the byte that means "ready", and why it could not be loaded. Runs in atolld.
 */

#include "service/launcher/function/function.h"

enum { INSTANCE_WHY_SIZE = 1537 };

enum instance_state {
	INSTANCE_STARTING,       /* the sandbox is made, or loads the code */
	INSTANCE_READY,
	INSTANCE_BUSY,           /* an invocation has it */
	INSTANCE_OVER,           /* its command has ended, or was ended; the front reads what is left */
};

/* Each is called from the loop; the instance may be ended in it. */
struct instance_events {
	void (*ready)(struct instance *instance);
	/* It ended before it was ready. why: what it wrote to standard error, or what libatoll says. */
	void (*failed)(struct instance *instance, const char *why);
	/* Its invocation is over: end says how. */
	void (*over)(struct instance *instance);
};

struct instance {
	struct instance *next;
	struct function *function;
	char id[CREDENTIAL_ID_SIZE];     /* of its row; "": it has none */
	const struct instance_events *events;
	enum instance_state state;
	atoll_sandbox *handle;           /* owned; NULL: it was ended */
	struct loop_source source, output;   /* output: of its standard output, until it is ready */
	int fds[3];                      /* owned: stdin, stdout, stderr; FD_NONE: given away */
	uint64_t command;
	uint64_t born_ns, until_ns;      /* until: when it is ended in its state */
	uint64_t number, began_ns, began_ms, generation;   /* of its invocation */
	bool is_made;                    /* the sandbox has begun */
	bool has_ended;
	bool is_cold;
	struct function_end end;
	struct call *ender;              /* waits until it is over; NULL: nobody */
};

/* Starts one; its events come later. NULL with *err. */
struct instance *instance_start(struct function *function, const struct instance_events *events, struct err *err);

/* Ends all that runs in it, and says how: the front sees the end of its streams. It is over then. */
void instance_stop(struct instance *instance, const char *ended);

/* Ends and frees it. Nobody may wait for its end. */
void instance_free(struct instance *instance);

/* How many of a function are in a state. */
size_t instance_count(const struct function *function, enum instance_state state);
