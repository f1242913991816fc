/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "client/api/fault.h"
#include "client/api/policy.h"
#include "client/api/record.h"
#include "client/api/sandbox.h"
#include "wire/asking.h"

/* What the box is asked for with a ticket. */

enum { NUMBERS_MAX = 2 };

/* A request of numbers alone. */
struct numbers {
	enum link_message type;
	size_t count;
	uint64_t list[NUMBERS_MAX];
};

static int request_numbers(atoll_sandbox *sandbox, const struct numbers *numbers, uint64_t *ticket,
			   atoll_record **result, struct atoll_error *error)
{
	struct request request = { 0 };
	struct buf out;
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	request.out = &out;
	request.ticket = sandbox_begin(sandbox, &out, numbers->type);
	for (size_t i = 0; i < numbers->count; i++)
		frame_put_u64(&out, numbers->list[i]);
	return sandbox_request(sandbox, &request, ticket, result, error);
}

int atoll_signal(atoll_sandbox *sandbox, uint64_t command, int32_t signal, uint64_t *ticket, atoll_record **result,
		 struct atoll_error *error)
{
	const struct numbers numbers = { LINK_KILL, 2, { command, (uint64_t)signal } };

	if (signal < 1 || signal > 64 || !command || command > UINT32_MAX)
		return fault_set(error, ATOLL_E_INVALID, 0, "signal", "there is no such signal or command");
	return request_numbers(sandbox, &numbers, ticket, result, error);
}

int atoll_freeze(atoll_sandbox *sandbox, uint64_t *ticket, atoll_record **result, struct atoll_error *error)
{
	return request_numbers(sandbox, &(struct numbers){ LINK_FREEZE, 0, { 0 } }, ticket, result, error);
}

int atoll_thaw(atoll_sandbox *sandbox, uint64_t *ticket, atoll_record **result, struct atoll_error *error)
{
	return request_numbers(sandbox, &(struct numbers){ LINK_THAW, 0, { 0 } }, ticket, result, error);
}

int atoll_stop(atoll_sandbox *sandbox, uint32_t grace_ms, uint64_t *ticket, atoll_record **result,
	       struct atoll_error *error)
{
	return request_numbers(sandbox, &(struct numbers){ LINK_STOP, 1, { grace_ms } }, ticket, result, error);
}

int atoll_deadline(atoll_sandbox *sandbox, uint64_t ms, uint64_t *ticket, atoll_record **result,
		   struct atoll_error *error)
{
	return request_numbers(sandbox, &(struct numbers){ LINK_DEADLINE, 1, { ms } }, ticket, result, error);
}

int atoll_sample(atoll_sandbox *sandbox, uint64_t *ticket, atoll_record **result, struct atoll_error *error)
{
	return request_numbers(sandbox, &(struct numbers){ LINK_SAMPLE, 0, { 0 } }, ticket, result, error);
}

int atoll_status(atoll_sandbox *sandbox, uint64_t *ticket, atoll_record **result, struct atoll_error *error)
{
	int r = sandbox_check(sandbox, error);

	if (r == 0)
		r = sandbox_need(sandbox, 2, error);
	return r < 0 ? r : request_numbers(sandbox, &(struct numbers){ LINK_STATUS, 0, { 0 } }, ticket, result, error);
}

int atoll_hold(atoll_sandbox *sandbox, const atoll_record *how, uint64_t *ticket, atoll_record **result,
	       struct atoll_error *error)
{
	struct request request = { 0 };
	size_t unused = 0;
	struct buf out;
	int r = sandbox_check(sandbox, error);

	if (r == 0 && how && atoll_record_kind(how) != ATOLL_HOLD)
		r = fault_set(error, ATOLL_E_INVALID, 0, "freeze", "the record is of another kind");
	if (r == 0)
		r = sandbox_need(sandbox, 2, error);
	if (r < 0)
		return r;
	request.ticket = sandbox_begin(sandbox, &out, LINK_HOLD);
	request.out = &out;
	r = record_put_fields(how, NULL, &out, NULL, 0, &unused);
	if (r == 0)
		return sandbox_request(sandbox, &request, ticket, result, error);
	buf_done(&out);
	return fault_errno(error, r, "freeze");
}

int atoll_revoke(atoll_sandbox *sandbox, uint64_t grant, uint64_t *ticket, atoll_record **result,
		 struct atoll_error *error)
{
	return request_numbers(sandbox, &(struct numbers){ LINK_REVOKE, 1, { grant } }, ticket, result, error);
}

int atoll_change(atoll_sandbox *sandbox, const atoll_policy *policy, uint64_t *ticket, atoll_record **result,
		 struct atoll_error *error)
{
	struct request request = { .fd_count = 1 };
	struct buf out;
	int r = sandbox_check(sandbox, error);

	if (r == 0)
		r = policy_check(policy, error);
	if (r < 0)
		return r;
	request.ticket = sandbox_begin(sandbox, &out, LINK_POLICY);
	request.out = &out;
	request.fds = &policy->fd;
	return sandbox_request(sandbox, &request, ticket, result, error);
}

int atoll_set_headers(atoll_sandbox *sandbox, const char *const *headers, uint64_t *ticket, atoll_record **result,
		      struct atoll_error *error)
{
	struct request request = { 0 };
	struct buf out;
	int r = sandbox_check(sandbox, error);

	if (r == 0)
		r = sandbox_need(sandbox, 4, error);
	if (r < 0)
		return r;
	request.out = &out;
	request.ticket = sandbox_begin(sandbox, &out, LINK_HEADERS);
	frame_put_strv(&out, headers);
	return sandbox_request(sandbox, &request, ticket, result, error);
}

int atoll_answer(atoll_sandbox *sandbox, const atoll_record *question, const atoll_record *answer, uint64_t *ticket,
		 atoll_record **result, struct atoll_error *error)
{
	static const char *const scopes[] = { "once", "uses", "time", "session", "forever" };
	const char *scope = record_string(answer, "scope");
	struct asking_reply reply = { .scope = ASKING_ONCE };
	uint64_t number = 0, is_allowed = 0;
	struct request request = { 0 };
	const void *hash = NULL;
	size_t size = 0, found = 0;
	struct buf out;
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	while (scope && found < ARRAY_SIZE(scopes) && !str_equal(scope, scopes[found]))
		found++;
	if (!record_u64(answer, "allow", &is_allowed) || found == ARRAY_SIZE(scopes) || is_allowed > 1)
		return fault_set(error, ATOLL_E_INVALID, 0, "answer", "an answer has \"allow\" and a \"scope\"");
	if (!record_u64(question, "number", &number) || !atoll_get_bytes(question, "hash", &hash, &size) ||
	    size != ASKING_HASH_SIZE)
		return fault_set(error, ATOLL_E_INVALID, 0, "answer", "there is no question");
	(void)record_u64(answer, "amount", &reply.amount);
	reply.number = (uint32_t)number;
	reply.hash = hash;
	reply.is_allowed = (uint32_t)is_allowed;
	reply.scope = (uint32_t)found;
	request.ticket = sandbox_begin(sandbox, &out, LINK_ANSWER);
	request.out = &out;
	asking_reply_put(&out, &reply);
	return sandbox_request(sandbox, &request, ticket, result, error);
}
