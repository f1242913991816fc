/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/policy.h"

#include <string.h>

#include "client/api/fault.h"
#include "os/fd.h"

enum { SNAPSHOT_MAX = 64 << 20 };

int policy_check(const struct atoll_policy *policy, struct atoll_error *error)
{
	int r = context_check(policy ? policy->context : NULL, error);

	return r == 0 && policy->fd < 0
		       ? fault_set(error, ATOLL_E_POLICY, 0, "policy", "it has problems (atoll_policy_problem)")
		       : r;
}

void atoll_policy_free(atoll_policy *policy)
{
	if (!policy)
		return;
	close_fd(&policy->fd);
	job_free(policy->job);
	rows_done(&policy->problems);
	atoll_context_free(policy->context);
	free(policy);
}

int atoll_policy_problem(const atoll_policy *policy, size_t index, const atoll_record **ret)
{
	if (!policy || index >= policy->problems.count)
		return 0;
	*ret = policy->problems.list[index];
	return 1;
}

int atoll_policy_hash(const atoll_policy *policy, uint8_t out[32])
{
	if (!policy || policy->fd < 0)
		return ATOLL_E_INVALID;
	if (!policy->has_hash)
		return ATOLL_E_NOT_FOUND;
	memcpy(out, policy->hash, sizeof policy->hash);
	return 0;
}

static int take_problems(struct atoll_policy *policy, const struct job_result *result, struct atoll_error *error)
{
	const char *message = NULL;
	int r = rows_from_json(&policy->problems, ATOLL_PROBLEM, result->text, result->size);

	if (r == -ENOMEM)
		return fault_errno(error, r, "policy");
	if (r < 0 || !policy->problems.count)
		return job_status(result, error);
	message = record_string(policy->problems.list[0], "message");
	return fault_set(error, ATOLL_E_POLICY, 0, "policy", "%s", message ? message : "the policy is wrong");
}

static int take_snapshot(struct atoll_policy *policy, const void *bytes, size_t size, struct atoll_error *error)
{
	int fd = fd_memfd_sealed("policy", bytes, size);

	if (fd < 0)
		return fault_errno(error, fd, "policy");
	policy->fd = fd_move_above(fd, 3);
	return policy->fd < 0 ? fault_errno(error, policy->fd, "policy") : 0;
}

static int take_result(struct atoll_policy *policy, const struct job_result *result, struct atoll_error *error)
{
	int r;

	if (result->status == 1)
		return take_problems(policy, result, error);
	if (result->status || !result->hash)
		return job_status(result, error) < 0 ? job_status(result, error)
						     : fault_errno(error, -EPROTO, "policy");
	r = take_snapshot(policy, result->text, result->size, error);
	memcpy(policy->hash, result->hash, sizeof policy->hash);
	policy->has_hash = true;
	return r;
}

/* Whether it is one is for the box to say, which loads it again. */
static int adopt(struct atoll_policy *policy, const struct atoll_record *record, struct atoll_error *error)
{
	cleanup_free char *bytes = NULL;
	size_t size;
	int r;

	if (record_string(record, "policy") || record_string(record, "level"))
		return fault_set(error, ATOLL_E_INVALID, 0, "policy", "\"snapshot\" excludes \"policy\" and \"level\"");
	r = job_read_memory(record_fd(record, "snapshot"), SNAPSHOT_MAX, &bytes, &size);
	return r < 0 ? fault_errno(error, r, "policy") : take_snapshot(policy, bytes, size, error);
}

static int begin(struct atoll_policy *policy, const struct atoll_record *record, struct atoll_error *error)
{
	struct job_work work = {
		.level = record_string(record, "level"), .policy = record_string(record, "policy"),
		.project = record_string(record, "project"),
	};

	if (!work.project || work.project[0] != '/')
		return fault_set(error, ATOLL_E_INVALID, 0, "policy", "\"project\" is no absolute path");
	if (work.policy && strchr(work.policy, '/') && work.policy[0] != '/')
		return fault_set(error, ATOLL_E_INVALID, 0, "policy", "\"policy\" is no name and no absolute path");
	policy->job = job_start(policy->context, &work, error);
	return policy->job ? 0 : error ? error->code : ATOLL_E_STATE;
}

int atoll_policy_begin(atoll_context *context, const atoll_record *record, atoll_policy **ret,
		       struct atoll_error *error)
{
	struct atoll_policy *policy;
	int r = context_check(context, error);

	if (r < 0)
		return r;
	if (atoll_record_kind(record) != ATOLL_POLICY || !ret)
		return fault_set(error, ATOLL_E_INVALID, 0, "policy", "there is no record of this kind");
	policy = calloc(1, sizeof *policy);
	if (!policy)
		return fault_errno(error, -ENOMEM, "policy");
	policy->context = context_ref(context);
	policy->fd = FD_NONE;
	r = record_fd(record, "snapshot") >= 0 ? adopt(policy, record, error) : begin(policy, record, error);
	if (r == 0)
		*ret = policy;
	else
		atoll_policy_free(policy);
	return r;
}

int atoll_policy_fd(const atoll_policy *policy)
{
	return policy && policy->job ? policy->job->fd : -1;
}

int atoll_policy_finish(atoll_policy *policy, struct atoll_error *error)
{
	struct job_result result = { 0 };
	int r = context_check(policy ? policy->context : NULL, error);

	if (r < 0 || !policy->job)
		return r < 0 ? r : policy_check(policy, error);
	r = job_wait(policy->job, policy->context->timeout_ms, &result, error);
	if (r == 0)
		r = take_result(policy, &result, error);
	job_result_done(&result);
	job_free(policy->job);
	policy->job = NULL;
	return r;
}

int atoll_policy_load(atoll_context *context, const atoll_record *record, atoll_policy **ret,
		      struct atoll_error *error)
{
	struct atoll_policy *policy = NULL;
	int r = ret ? atoll_policy_begin(context, record, &policy, error)
		    : fault_set(error, ATOLL_E_INVALID, 0, "policy", "there is no record of this kind");

	if (r == 0)
		r = atoll_policy_finish(policy, error);
	if (r == 0 || (r == ATOLL_E_POLICY && policy && policy->problems.count))
		*ret = policy;
	else
		atoll_policy_free(policy);
	return r;
}
