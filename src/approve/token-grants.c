/* SPDX-License-Identifier: Apache-2.0 */
#include "approve/token-grants.h"

#include "approve/queue.h"
#include "base/str.h"
#include "os/clock.h"
#include "session/run-request.h"
#include "supervise/run.h"

enum { NS_PER_S = 1000000000, MS_PER_S = 1000 };

static bool narrow(uint64_t *limit, uint64_t most)
{
	if (most >= *limit)
		return false;
	*limit = most;
	return true;
}

bool token_grants_narrow(const struct token_held *held, struct policy *policy)
{
	/* In the order of held->limits; the network is the last one. */
	static const enum resource resources[TOKEN_HELD_LIMITS - 1] = {
		RESOURCE_MEMORY, RESOURCE_PROCESSES, RESOURCE_DISK, RESOURCE_WALL_MS, RESOURCE_CPU_MS,
	};
	struct net_amount *network = &policy->network.limits.of[NET_LIMIT_TOTAL];
	uint64_t bytes = held->limits[TOKEN_HELD_LIMITS - 1];
	bool is_less = false;

	for (size_t i = 0; i < ARRAY_SIZE(resources); i++)
		is_less |= narrow(&policy->limits[resources[i]].value, held->limits[i]);
	if (bytes == UINT64_MAX || (network->amount && network->amount <= bytes))
		return is_less;
	/* 0 stands for no limit there: of nothing at all one byte is left. */
	network->amount = bytes ? bytes : 1;
	return true;
}

/* While grants are made of one token. */
struct granting {
	struct queue *queue;
	char by[48];
	uint64_t left_ms;
	uint32_t made[QUEUE_GRANTS_MAX];
	size_t count;
};

static int add(struct granting *granting, const struct token_allowance *allowance)
{
	struct queue_grant_request request = {
		.terms = {
			.kind = (enum action_kind)allowance->kind,
			.flags = allowance->flags & (GRANT_BELOW | GRANT_PATTERNS),
			.subject = allowance->subject,
			.argv = allowance->argv && *allowance->argv ? (const char *const *)allowance->argv : NULL,
			.method = allowance->method,
			.path = allowance->path,
			.port = (uint16_t)allowance->port,
		},
		.scope = ASKING_TIME,
		.amount = granting->left_ms,
		.by = granting->by,
	};

	if (allowance->kind >= ACTION_KIND_COUNT || granting->count == ARRAY_SIZE(granting->made))
		return -ENOSPC;
	return queue_grant_add(granting->queue, &request, &granting->made[granting->count++]);
}

static int add_all(struct granting *granting, struct frame *frame, uint32_t count)
{
	struct token_allowance allowance;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < count; i++) {
		r = token_allowance_get(frame, &allowance);
		if (r == 0) {
			r = add(granting, &allowance);
			free(allowance.argv);
		}
	}
	return r < 0 ? r : frame_finish(frame);
}

/* What was granted before one of them found no room. */
static int take_back(struct granting *granting)
{
	struct queue_answerer by = { "token", 0, 0 };
	struct err ignored;
	int r = 0;

	for (size_t i = 0; r >= 0 && i + 1 < granting->count; i++)
		r = queue_revoke(granting->queue, granting->made[i], &by, &ignored);
	return r < 0 ? r : 0;
}

int token_grants_add(struct queue *queue, struct frame *frame, struct err *err)
{
	struct granting granting = { .queue = queue };
	uint64_t now_s = clock_realtime_ns() / NS_PER_S;
	struct token_held held;
	struct policy policy = *queue->run->network_policy;
	int r = token_held_get(frame, &held);

	if (r == 0 && token_grants_narrow(&held, &policy)) {
		err_set(err, ERR_POLICY, EDQUOT, "token",
			"the token is refused: this sandbox has a higher limit than the token allows");
		err_hint(err, "start one with it: `atoll run --token FILE -- CMD`");
		return 1;
	}
	if (r == 0 && now_s >= held.expires_s)
		r = err_set(err, ERR_POLICY, ETIME, "token", "the token is refused: it has expired");
	if (r == 0 && str_format(granting.by, sizeof granting.by, "token %s", held.id) < 0)
		r = -EBADMSG;
	if (r == 0) {
		granting.left_ms = held.expires_s - now_s < UINT32_MAX ? (held.expires_s - now_s) * MS_PER_S
								       : UINT32_MAX * (uint64_t)MS_PER_S;
		r = add_all(&granting, frame, held.count);
	}
	if (r == -EBADMSG)
		err_set(err, ERR_INTERNAL, EBADMSG, "token", "the rights of a token cannot be read");
	if (r == -ENOSPC)
		err_set(err, ERR_STATE, ENOSPC, "token", "this sandbox has as many grants as it can hold");
	if (r == -ETIME)
		return 1;
	if (r != -EBADMSG && r != -ENOSPC)
		return r;
	r = take_back(&granting);
	return r < 0 ? r : 1;
}

int token_grants_add_first(struct queue *queue, struct err *err)
{
	struct frame frame;
	int r = 0;

	if (!queue->run->request->token.size)
		return 0;
	r = frame_open(&frame, queue->run->request->token.frame, queue->run->request->token.size);
	if (r < 0)
		return err_set(err, ERR_INTERNAL, -r, "token", "the rights of the token cannot be read");
	r = token_grants_add(queue, &frame, err);
	return r > 0 ? -EACCES : r;
}
