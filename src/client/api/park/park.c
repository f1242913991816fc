/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/stat.h>

#include "base/str.h"
#include "client/api/fault.h"
#include "client/api/policy.h"
#include "client/api/record.h"
#include "client/api/start.h"

/*
 * Sandboxes that are built ahead, and taken. A parked box is asked for like any other, by a request that lacks who it
 * is for: that comes as one message, with what every handle says first, since a short command is over before its
 * starter says anything more. Part of libatoll.
 */

enum { AGE_MS = 600000, AGE_MAX_MS = 3600000 };

static void describe(const struct atoll_policy *policy, struct parked *parked)
{
	struct stat st = { 0 };

	*parked = (struct parked){ .has_hash = policy->has_hash };
	memcpy(parked->hash, policy->hash, sizeof parked->hash);
	/* No two memory files of a boot have one number. */
	if (fstat(policy->fd, &st) < 0)
		return;
	parked->device = st.st_dev;
	parked->inode = st.st_ino;
}

static bool is_same(const struct parked *a, const struct parked *b)
{
	if (a->has_hash && b->has_hash)
		return memcmp(a->hash, b->hash, sizeof a->hash) == 0;
	return a->inode && a->inode == b->inode && a->device == b->device;
}

static int check_shape(const struct atoll_context *context, const struct atoll_policy *policy,
		       const struct atoll_record *shape, struct atoll_error *error)
{
	const char *project = record_string(shape, "project");
	uint64_t age_ms = AGE_MS;
	int r = context_check(context, error);

	if (r < 0)
		return r;
	if (atoll_record_kind(shape) != ATOLL_SHAPE)
		return fault_set(error, ATOLL_E_INVALID, 0, "park", "there is no record of this kind");
	if (!project || project[0] != '/')
		return fault_set(error, ATOLL_E_INVALID, 0, "park", "\"project\" is no absolute path");
	(void)record_u64(shape, "age_ms", &age_ms);
	if (!age_ms || age_ms > AGE_MAX_MS)
		return fault_set(error, ATOLL_E_INVALID, 0, "park", "\"age_ms\" is 1 to %d", AGE_MAX_MS);
	return start_check_policy(policy, context, error);
}

static int adopt(struct atoll_context *context, const struct atoll_policy *policy, const char *id, int socket_fd,
		 atoll_sandbox **ret, struct atoll_error *error)
{
	struct atoll_sandbox *sandbox;
	int r = sandbox_new(context, id, socket_fd, &sandbox);

	if (r < 0)
		return fault_errno(error, r, "park");
	sandbox->parked = malloc(sizeof *sandbox->parked);
	if (!sandbox->parked) {
		atoll_sandbox_free(sandbox);
		return fault_errno(error, -ENOMEM, "park");
	}
	describe(policy, sandbox->parked);
	*ret = sandbox;
	return 0;
}

int atoll_park(atoll_context *context, const atoll_record *shape, const atoll_policy *policy, atoll_sandbox **ret,
	       struct atoll_error *error)
{
	struct spawn_request request;
	char id[SESSION_ID_SIZE];
	uint64_t age_ms;
	int fd, r = check_shape(context, policy, shape, error);

	if (r < 0)
		return r;
	if (!ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "park", "there is no place for a handle");
	r = random_session_id(id);
	if (r < 0)
		return fault_errno(error, r, "park");
	spawn_request_init(&request, context, LINK_BOX_NAME);
	request.id = id;
	r = start_put(&request, shape, NULL, &(struct stream_plan){ .fds = { FD_NONE, FD_NONE, FD_NONE } });
	if (!record_u64(shape, "age_ms", &age_ms))
		field_put_u64(&request.frame, "age_ms", AGE_MS);
	start_put_policy(&request, policy);
	r = r < 0 ? fault_errno(error, r, "park") : spawn_request_start(&request, context, &fd, error);
	if (r == 0)
		r = adopt(context, policy, id, fd, ret, error);
	spawn_request_done(&request);
	return r;
}

static int check_take(const struct atoll_sandbox *sandbox, const struct atoll_policy *policy,
		      const struct atoll_record *record, struct atoll_error *error)
{
	static const char *const settled[] = { "host_ports", "token", "record", "replay", "snapshot", "home_from",
		"root", "user_name" };
	struct parked wanted;
	int r = sandbox_check(sandbox, error);

	if (r < 0)
		return r;
	if (atoll_record_kind(record) != ATOLL_SANDBOX)
		return fault_set(error, ATOLL_E_INVALID, 0, "take", "there is no record of this kind");
	for (size_t i = 0; i < ARRAY_SIZE(settled); i++)
		if (record_has(record, settled[i]))
			return fault_set(error, ATOLL_E_INVALID, 0, "take", "\"%s\" is for atoll_create() alone",
					 settled[i]);
	r = start_check_policy(policy, sandbox->context, error);
	if (r < 0)
		return r;
	if (!sandbox->parked)
		return fault_set(error, ATOLL_E_BUSY, EBUSY, "take", "it is a sandbox already");
	describe(policy, &wanted);
	return is_same(sandbox->parked, &wanted)
		       ? 0 : fault_set(error, ATOLL_E_CONFLICT, 0, "take", "it is parked with another policy");
}

/* It is nobody's any more, whatever came of it. */
static int send_command(struct atoll_sandbox *sandbox, const struct spawn_request *request, struct atoll_error *error)
{
	struct parked *parked = sandbox->parked;
	int r;

	sandbox->parked = NULL;
	r = sandbox_send(sandbox, &request->frame, request->fds, request->fd_count, error);
	/* That many descriptors are under way: nothing was sent. */
	if (r == ATOLL_E_AGAIN || r == ATOLL_E_LIMIT) {
		sandbox->parked = parked;
		return r;
	}
	free(parked);
	return r;
}

int atoll_take(atoll_sandbox *parked, const atoll_policy *policy, const atoll_record *record,
	       struct atoll_error *error)
{
	struct spawn_request request = { 0 };
	char id[SESSION_ID_SIZE];
	struct stream_plan plan;
	int r = check_take(parked, policy, record, error);

	if (r < 0)
		return r;
	r = random_session_id(id);
	if (r < 0)
		return fault_errno(error, r, "take");
	r = stream_plan_make(&plan, record, error);
	buf_init(&request.frame, FRAME_MESSAGE_MAX);
	frame_begin(&request.frame, LINK_TAKE);
	request.id = id;
	if (r == 0) {
		r = start_put(&request, record, stream_keys, &plan);
		sandbox_put_greeting(&request.frame, parked->context);
		r = r == 0 ? frame_end(&request.frame) : r;
		r = r < 0 ? fault_errno(error, r, "take") : 0;
	}
	if (r == 0)
		r = send_command(parked, &request, error);
	if (r == 0) {
		memcpy(parked->id, id, sizeof id);
		start_adopt_streams(parked, &plan);
	}
	spawn_request_done(&request);
	stream_plan_done(&plan);
	return r;
}
