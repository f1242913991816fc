/* SPDX-License-Identifier: Apache-2.0 */
#include "service/launcher/call/await.h"

#include <stdlib.h>

static const char out_of_memory[] = "out of memory";

void await_answer(struct sandbox *sandbox, struct call *call, int r, uint64_t ticket, const struct atoll_error *error,
		  await_done *done)
{
	struct waiting *waiting = r < 0 ? NULL : malloc(sizeof *waiting);
	struct outcome failed = { .code = r < 0 ? r : ATOLL_E_NO_MEMORY, .what = r < 0 ? error->what : out_of_memory,
				  .hint = r < 0 ? error->hint : "" };

	if (!waiting) {
		done(sandbox, call, &failed);
		return;
	}
	*waiting = (struct waiting){ .next = sandbox->waiting, .ticket = ticket, .call = call, .done = done };
	sandbox->waiting = waiting;
}

static struct waiting *remove_waiting(struct sandbox *sandbox, uint64_t ticket)
{
	for (struct waiting **at = &sandbox->waiting; *at; at = &(*at)->next)
		if ((*at)->ticket == ticket) {
			struct waiting *waiting = *at;

			*at = waiting->next;
			return waiting;
		}
	return NULL;
}

void await_event(struct sandbox *sandbox, const atoll_record *event)
{
	struct outcome outcome = { .result = (atoll_record *)event, .what = "", .hint = "" };
	uint64_t ticket = 0, code = 0;
	struct waiting *waiting;

	atoll_get_u64(event, "ticket", &ticket);
	atoll_get_u64(event, "code", &code);
	atoll_get_string(event, "what", &outcome.what);
	atoll_get_string(event, "hint", &outcome.hint);
	outcome.code = -(int)code;
	waiting = remove_waiting(sandbox, ticket);
	if (!waiting)
		return;
	waiting->done(sandbox, waiting->call, &outcome);
	free(waiting);
}

void await_gone(struct sandbox *sandbox)
{
	const struct outcome outcome = { .code = ATOLL_E_GONE, .what = "the sandbox has ended", .hint = "" };

	while (sandbox->waiting) {
		struct waiting *waiting = sandbox->waiting;

		sandbox->waiting = waiting->next;
		waiting->done(sandbox, waiting->call, &outcome);
		free(waiting);
	}
}

void await_reply(struct sandbox *sandbox, struct call *call, const struct outcome *outcome)
{
	if (!call)
		return;
	if (outcome->code)
		call_fail_atoll(call, outcome->code, outcome->what, outcome->hint);
	else
		call_reply(call, 204);
}
