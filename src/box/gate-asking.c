/* SPDX-License-Identifier: Apache-2.0 */
#include "box/gate-asking.h"

#include <string.h>

#include "base/str.h"
#include "box/gate-log.h"
#include "box/state.h"
#include "os/proc.h"

/* A connection in the gate that waits for an answer. */
struct gate_pending {
	struct gate_pending *next;
	struct box *box;
	uint32_t id, pid;
	uint16_t port;
	bool has_left;
	char host[254];
};

static struct asking_request describe(const struct gate_open *open, const struct decision *decision, char *program,
				      size_t size)
{
	bool is_known = open->pid && proc_program((pid_t)open->pid, program, size) == 0;

	return (struct asking_request){
		.action = { .kind = ACTION_NET_CONNECT, .subject = open->host, .port = (uint16_t)open->port },
		.decision = *decision,
		.pid = (pid_t)open->pid,
		.actor = { .program = is_known ? program : NULL },
	};
}

static void drop(struct box *box, struct gate_pending *pending)
{
	struct gate_pending **at = &box->gate.asking.first;

	while (*at != pending)
		at = &(*at)->next;
	*at = pending->next;
	free(pending);
}

static int on_answer(void *context, uint64_t token, const struct asking_outcome *outcome)
{
	struct gate_pending *pending = context;
	struct box *box = pending->box;
	struct gate_pending answered = *pending;
	struct gate_open open = { .id = answered.id, .pid = answered.pid, .host = answered.host,
				  .port = answered.port };

	(void)token;
	drop(box, pending);
	return gate_log_answered(box, &open, outcome);
}

/*
 * Nobody can be told by a connection whether its client is gone or has only said all that it wants to say. So it is
 * asked for where both is so: nothing more comes, and the program that made the connection is not there any more.
 */
static bool is_gone(void *context, uint64_t token)
{
	struct gate_pending *pending = context;
	struct box *box = pending->box;
	uint32_t id = pending->id;
	char program[PATH_MAX];
	int r;

	(void)token;
	if (!pending->has_left || !pending->pid)
		return false;
	r = proc_program((pid_t)pending->pid, program, sizeof program);
	if (r != -ENOENT && r != -ESRCH)
		return false;
	drop(box, pending);
	/* What fails with the gate is heard by all who use it next. */
	(void)!gate_answer(box, id, false);
	return true;
}

void gate_asking_left(struct box *box, uint32_t id)
{
	for (struct gate_pending *at = box->gate.asking.first; at; at = at->next)
		at->has_left = at->has_left || at->id == id;
}

int gate_asking_begin(struct box *box, const struct gate_open *open, const struct decision *decision,
		      struct asking_outcome *out)
{
	struct gate_pending *pending = calloc(1, sizeof *pending);
	struct asking_waiter waiter = { .done = on_answer, .is_gone = is_gone, .context = pending };
	struct asking_request request;
	char program[PATH_MAX];
	int r;

	if (!pending || str_copy(pending->host, sizeof pending->host, open->host) < 0) {
		free(pending);
		return -ENOMEM;
	}
	pending->box = box;
	pending->id = open->id;
	pending->pid = open->pid;
	pending->port = (uint16_t)open->port;
	request = describe(open, decision, program, sizeof program);
	r = asking_begin(box, &request, &waiter, out);
	if (r <= 0) {
		free(pending);
		return r;
	}
	pending->next = box->gate.asking.first;
	box->gate.asking.first = pending;
	return 1;
}

int gate_asking_list(struct box *box, const struct gate_open *open, const struct decision *decision,
		     struct asking_outcome *out)
{
	char program[PATH_MAX];
	struct asking_request request = describe(open, decision, program, sizeof program);

	return asking_begin(box, &request, NULL, out);
}

bool gate_asking_is_on(struct box *box)
{
	return asking_is_heard(box) || asking_has_grants(box);
}

void gate_asking_done(struct box *box)
{
	while (box->gate.asking.first) {
		struct asking_waiter waiter = { .done = on_answer, .context = box->gate.asking.first };

		asking_forget(box, &waiter);
		drop(box, box->gate.asking.first);
	}
}
