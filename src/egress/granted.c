/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/granted.h"

#include <stdlib.h>

#include "base/str.h"
#include "policy/grants.h"
#include "wire/asking.h"

enum { GRANTED_MAX = 512 };

struct granted_request {
	uint32_t number;
	uint64_t uses_left;
	struct grant_terms terms;    /* strings owned */
};

static void forget(struct granted_request *request)
{
	free((char *)request->terms.subject);
	free((char *)request->terms.method);
	free((char *)request->terms.path);
}

void granted_done(struct granted *granted)
{
	for (size_t i = 0; i < granted->count; i++)
		forget(&granted->list[i]);
	free(granted->list);
	*granted = (struct granted){ 0 };
}

static uint64_t uses_of(const struct granted *granted, const struct asking_grant *told)
{
	for (size_t i = 0; i < granted->count; i++)
		if (granted->list[i].number == told->number && granted->list[i].uses_left < told->uses_left)
			return granted->list[i].uses_left;
	return told->uses_left;
}

static int add(struct granted *next, const struct granted *known, const struct asking_grant *told)
{
	struct granted_request *request = &next->list[next->count];
	const struct asking_shown *shown = &told->shown;

	if (next->count == GRANTED_MAX)
		return -EBADMSG;
	next->count++;
	*request = (struct granted_request){
		.number = told->number, .uses_left = uses_of(known, told),
		.terms = { .kind = ACTION_HTTP_REQUEST, .flags = shown->flags & GRANT_PATTERNS,
			   .subject = str_dup(shown->subject), .method = str_dup(shown->method),
			   .path = str_dup(shown->path), .port = (uint16_t)shown->port },
	};
	if (!request->terms.subject || (shown->method && !request->terms.method) ||
	    (shown->path && !request->terms.path))
		return -ENOMEM;
	return 0;
}

int granted_take(struct granted *granted, struct frame *frame)
{
	struct granted next = { .list = calloc(GRANTED_MAX, sizeof *next.list) };
	struct asking_grant told;
	int r = next.list ? 0 : -ENOMEM;

	while (r == 0 && (r = asking_grant_get(frame, &told)) > 0) {
		r = add(&next, granted, &told);
		free(told.shown.argv);
	}
	if (r < 0) {
		granted_done(&next);
		return r;
	}
	granted_done(granted);
	*granted = next;
	return 0;
}

/* Whether this grant covers each form that the policy asks about. */
static bool covers(const struct granted_request *request, const struct policy *policy, const struct target *target,
		   const struct grant_terms *asked)
{
	for (size_t i = 0; i < target->form_count; i++) {
		struct action action = { .kind = ACTION_HTTP_REQUEST, .subject = asked->subject, .port = asked->port,
					 .method = asked->method, .path = target->forms[i] };
		struct grant_terms form = *asked;

		form.path = target->forms[i];
		if (policy_decide(policy, &action).verdict == VERDICT_ASK && !grant_covers(&request->terms, &form))
			return false;
	}
	return true;
}

bool granted_use(struct granted *granted, const struct policy *policy, const struct target *target,
		 const struct target_server *server, const char *method)
{
	struct grant_terms asked = { .kind = ACTION_HTTP_REQUEST, .subject = server->host, .port = server->port,
				     .method = method };

	for (size_t i = 0; i < granted->count; i++) {
		struct granted_request *request = &granted->list[i];

		if (!request->uses_left || !covers(request, policy, target, &asked))
			continue;
		if (request->uses_left != UINT64_MAX)
			request->uses_left--;
		return true;
	}
	return false;
}
